package sim

import (
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file draws what happens to servers in a random run: they lose power, stop running, and their disks
// stand still.

// blackouts draws whether the whole cluster loses power once. If a fork draws that anew, it is not while a
// server may still be down from before.
func (p *planner) blackouts() {
	p.from(0)
	p.blackout = p.blackoutAt()
	p.another = p.blackout
	if p.fork.before(p.blackout) {
		p.from(p.blackout)
		if p.another = p.blackoutAt(); !p.fork.before(p.another - longestDown - 10*trace.Millisecond) {
			p.another = never
		}
	}
	if t := p.another; t < chaosEnd {
		p.at(t, Crash{Node: Everyone, How: p.torn(topicShape, 10, 0)})
		p.at(t+p.within(topicShape, 11, 0, 10*trace.Millisecond, 400*trace.Millisecond), Restart{Node: Everyone})
	}
}

// longestDown is how long a server is down, or does not run, at most.
const longestDown = 1200 * trace.Millisecond

// blackoutAt draws when it does.
func (p *planner) blackoutAt() trace.Time {
	if p.pick(topicShape, 8, 0, 4) != 0 {
		return never
	}
	return p.within(topicShape, 9, 0, 2*trace.Second, 6*trace.Second)
}

func (p *planner) torn(t topic, about, i int) string {
	return choose(p.pick(t, about, i, 2), "", "torn")
}

// nodeFaults draws one server's crashes, pauses and stalls, one after another.
func (p *planner) nodeFaults(id raft.ServerID) {
	p.from(0)
	p.faultsFrom(id, 0)
}

// faultsFrom is nodeFaults for a server that is there from a time on.
func (p *planner) faultsFrom(id raft.ServerID, begin trace.Time) {
	upMost, downMost := 6*trace.Second, 300*trace.Millisecond
	if p.harsh {
		upMost, downMost = 2*trace.Second, longestDown
	}
	defer p.from(begin)
	n := int(id)
	victim, lost := p.loses()
	t := begin + p.within(topicNodeFault, n, 0, 200*trace.Millisecond, upMost)
	for i := 1; ; i++ {
		i := i * 8
		p.from(t)
		down := p.within(topicNodeFault, n, i, 20*trace.Millisecond, downMost)
		if victim == id && t+down >= lost {
			p.at(max(t, lost), Crash{Node: NodeActor(id), How: "lost"})
			return
		}
		if t+down >= chaosEnd {
			return
		}
		blackout := p.blackout
		if p.fork.before(t) {
			blackout = p.another
		}
		if t < blackout+500*trace.Millisecond && t+down > blackout-10*trace.Millisecond {
			t = blackout + 500*trace.Millisecond + p.within(topicNodeFault, n, i+1, 0, upMost)
			continue
		}
		if !p.trouble(id, t, down) {
			p.nodeFault(id, i, t, down)
		}
		t += down + p.within(topicNodeFault, n, i+4, 50*trace.Millisecond, upMost)
	}
}

// nodeFault draws the ith fault of a server.
func (p *planner) nodeFault(id raft.ServerID, i int, t, down trace.Time) {
	switch p.pick(topicNodeFault, int(id), i+2, 5) {
	case 0, 1:
		p.snapshotAt(id, t)
		p.at(t, Crash{Node: NodeActor(id), How: p.torn(topicNodeFault, int(id), i+3)})
		p.at(t+down, Restart{Node: NodeActor(id)})
	case 2:
		p.at(t, Pause{Node: id})
		p.at(t+down, Resume{Node: id})
	case 3:
		p.at(t, SetDisk{Node: NodeActor(id), Do: "stall"})
		p.at(t+down, SetDisk{Node: NodeActor(id), Do: "ok"})
	case 4:
		p.stallAndCrash(id, t, down)
	}
}

// stallAndCrash lets writes pile up and then takes the power away: what was answered too early is
// lost.
func (p *planner) stallAndCrash(id raft.ServerID, t, down trace.Time) {
	p.at(t, SetDisk{Node: NodeActor(id), Do: "stall"})
	p.snapshotAt(id, t+down/2)
	p.at(t+down/2, Crash{Node: NodeActor(id), How: p.torn(topicNodeFault, int(id), int(t))})
	p.at(t+down, Restart{Node: NodeActor(id)})
}
