package sim

import (
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file draws what clients do in a random run.

// users are those who use locks.
func (p *planner) users() []Actor {
	return []Actor{"A", "B", "C", "D", "E"}[:3+p.once(topicShape, 6, 0, 3)]
}

// clients draws lock users that take a lock, use it and give it back, most often close to the end
// of the lease, where it hurts; some leave, stop, or forget.
func (p *planner) clients() {
	names := p.users()
	keys := p.keys[:1+p.once(topicShape, 7, 0, 3)]
	for c, name := range names {
		p.from(0)
		t := p.within(topicClient, c, 0, 300*trace.Millisecond, trace.Second)
		for i := 1; t < chaosEnd; i++ {
			i := i * 16
			p.from(t)
			key := keys[p.pick(topicClient, c, i, int64(len(keys)))]
			lease := p.within(topicClient, c, i+1, 200*trace.Millisecond, 1200*trace.Millisecond) / trace.Millisecond * trace.Millisecond
			p.at(t, Acquire{Client: name, Key: key, Lease: duration(lease), Try: p.pick(topicClient, c, i+2, 8) == 0})
			end := t + lease*trace.Time(p.pick(topicClient, c, i+3, 60)+30)/100 // 30 % to 90 % of the lease,
			if p.pick(topicClient, c, i+4, 2) == 0 {
				end = t + lease*trace.Time(p.pick(topicClient, c, i+3, 25)+90)/100 // or 90 % to 115 %
			}
			p.at(p.within(topicClient, c, i+5, t, end), Write{Client: name, Key: key})
			p.leave(name, c, i, key, end)
			p.repeats(name, c, i, key, t, end)
			t = end + p.within(topicClient, c, i+6, 5*trace.Millisecond, 200*trace.Millisecond)
		}
	}
}

// repeats draws what a client does again, between asking for a lock and parting with it: it extends
// its lease, sends its request again, leaves and comes back with the same one, or begins a new
// session. Each has draws of its own, so that the rest is as it would be without.
func (p *planner) repeats(name Actor, c, i int, key string, t, end trace.Time) {
	pick := func(j int, n int64) bool { return p.pick(topicRepeat, c, i+j, n) == 0 }
	within := func(j int, lo, hi trace.Time) trace.Time { return p.within(topicRepeat, c, i+j, lo, hi) }
	if pick(0, 3) {
		lease := within(1, 200*trace.Millisecond, 900*trace.Millisecond) / trace.Millisecond * trace.Millisecond
		p.at(within(2, (t+end)/2, end), Extend{Client: name, Key: key, Lease: duration(lease)})
		if pick(3, 3) {
			p.at(within(4, (t+end)/2, end), ClientDo{Client: name, Do: "retry"})
		}
	}
	for j := 5; j < 8 && pick(j, 4); j++ { // once, or a few times
		p.at(within(j+3, t, end), ClientDo{Client: name, Do: "retry"})
	}
	if pick(11, 6) {
		gone := within(12, t, t+60*trace.Millisecond)
		p.at(gone, ClientDo{Client: name, Do: "disconnect"})
		p.at(gone+within(13, trace.Millisecond, 120*trace.Millisecond), ClientDo{Client: name, Do: "retry"})
	}
	if pick(14, 16) {
		p.at(within(15, t, end), Connect{Clients: []Actor{name}})
	}
}

// crowd draws whether so many others connect that the clients are forgotten. A cluster that sends
// few entries in a message would need longer for it than a run lasts.
func (p *planner) crowd() {
	if !p.crowds() {
		return
	}
	p.from(0)
	t := p.within(topicCrowd, 1, 0, trace.Second, chaosEnd)
	if p.fork.before(t) {
		p.from(t)
		t = p.within(topicCrowd, 1, 0, p.fork.at, chaosEnd)
	}
	p.at(t, Connect{Others: crowded})
}

func (p *planner) crowds() bool { return p.harsh && p.batch == 64 && p.once(topicCrowd, 0, 0, 8) == 0 }

// reads draws who looks at the table meanwhile, at any server, one read or a few close together: what
// is not there yet when the first is asked may be when the last is.
func (p *planner) reads() {
	p.from(0)
	t := p.within(topicRead, 0, 0, 200*trace.Millisecond, trace.Second)
	for i := 1; t < chaosEnd; i++ {
		i := i * 8
		p.from(t)
		node := raft.ServerID(p.pick(topicRead, 0, i, int64(p.nodes))) + 1
		for j := range 1 + int(p.pick(topicRead, 0, i+1, 3)) {
			p.at(t, ReadTable{Node: node})
			t += p.within(topicRead, j+1, i+2, trace.Millisecond, 100*trace.Millisecond)
		}
		t += p.within(topicRead, 0, i+3, 10*trace.Millisecond, 400*trace.Millisecond)
	}
}

// readsAround draws reads at the server that a fault of the network is about: just before it, so that
// what is needed for the answer is on its way, and just before its end, when there may be another
// leader.
func (p *planner) readsAround(node raft.ServerID, i int, t, end trace.Time) {
	before := p.within(topicRead, -1, i, 0, 30*trace.Millisecond)
	p.at(t-before, ReadTable{Node: node})
	for j := 1; j <= 2; j++ {
		p.at(end-p.within(topicRead, -1, i+j, 0, min(end-t, 150*trace.Millisecond)), ReadTable{Node: node})
	}
}

// transfers draws when leadership is handed over, and to whom. Whoever leads then is told; the others
// refuse.
func (p *planner) transfers() {
	if p.nodes == 1 {
		return
	}
	p.from(0)
	t := p.within(topicTransfer, 0, 0, 500*trace.Millisecond, 5*trace.Second)
	for i := 1; t < chaosEnd; i++ {
		i := i * 8
		p.from(t)
		to := raft.ServerID(p.pick(topicTransfer, 0, i, int64(p.nodes))) + 1
		for from := raft.ServerID(1); int(from) <= p.nodes; from++ {
			if from != to {
				p.at(t, Transfer{From: from, To: to})
			}
		}
		t += p.within(topicTransfer, 0, i+1, 200*trace.Millisecond, 5*trace.Second)
	}
}

// leave draws how a client parts with its lock.
func (p *planner) leave(name Actor, c, i int, key string, end trace.Time) {
	switch p.pick(topicClient, c, i+7, 12) {
	case 0:
		p.at(end, ClientDo{Client: name, Do: "disconnect"})
	case 1: // it forgets; the lease ends the tenure
	case 2:
		stops := choose(p.pick(topicFault, -1-c, i, 2), "pause", "suspend")
		p.at(end-10*trace.Millisecond, ClientDo{Client: name, Do: stops})
		p.at(end, Write{Client: name, Key: key})
		p.at(end, ReleaseLock{Client: name, Key: key})
		p.at(end+p.within(topicClient, c, i+8, 50*trace.Millisecond, 1500*trace.Millisecond), ClientDo{Client: name, Do: "resume"})
	case 3:
		p.at(end, ReleaseLock{Client: name, Key: key})
		p.at(end+p.within(topicClient, c, i+8, trace.Millisecond, 5*trace.Millisecond), ClientDo{Client: name, Do: "retry"})
	default:
		p.at(end, ReleaseLock{Client: name, Key: key})
	}
}
