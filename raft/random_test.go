package raft_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ticketing/raft"
)

// Whatever the network, the disks, the clocks and crashes do, every promise of doc.go holds, and
// once they stop doing it the cluster gets on with its work. The observer looks after each input;
// each run is a subtest, so that a failure names the one to run again.
func TestRandomRunsKeepEveryPromise(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds /= 10
	}
	var all met
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			m := newChaos(t, seed).run(2000)
			all.leaders += m.leaders
			all.commits += m.commits
			all.replaced += m.replaced
			all.lost += m.lost
			all.disorder += m.disorder
		})
	}
	if t.Failed() || all.leaders == 0 {
		return // there is something to look at, or a single run was asked for
	}
	t.Logf("%d runs met %+v", seeds, all)
	for name, count := range map[string]int{
		"leaders": all.leaders, "commits": all.commits, "replaced logs": all.replaced,
		"lost writes": all.lost, "writes out of order": all.disorder,
	} {
		if count < int(seeds) {
			t.Errorf("the runs met too few %s to show anything: %d", name, count)
		}
	}
}

// chaos is a cluster and what happens to it. Each run has its own mix of faults: one in which
// everything happens equally often would seldom get far in any direction.
type chaos struct {
	*cluster
	rng     *rand.Rand
	serial  int // of the last command
	actions []func()
	loss    float64 // the part of the messages that is lost
	repeat  float64 // that is delivered more than once
	disturb float64 // that overtakes others
}

func newChaos(t *testing.T, seed uint64) *chaos {
	rng := rand.New(rand.NewPCG(seed, 1))
	size := 3 + 2*rng.IntN(2)
	c := newCluster(t, setup{size: size, batch: 1 + rng.IntN(4), window: 1 + rng.IntN(4)})
	c.failure = fmt.Sprintf("seed %d: go test ./raft -run '%s$'", seed, t.Name())
	h := &chaos{cluster: c, rng: rng}
	for _, n := range c.nodes {
		n.slow = rng.IntN(2) == 0
		n.lazy = rng.IntN(3) == 0
		n.twins = seed%8 == 0
	}
	h.loss, h.repeat, h.disturb = rng.Float64()*0.2, rng.Float64()*0.3, rng.Float64()
	for _, action := range []struct {
		do            func()
		least, spread int
	}{
		{h.someMessage, 60, 60},
		{h.someWrite, 10, 60},
		{h.someTake, 10, 60},
		{h.someProposal, 5, 20},
		{h.someHeartbeat, 2, 10},
		{h.someTimeout, 1, 6},
		{h.someTick, 1, 6},
		{h.someCrash, 0, 3},
		{h.someRestart, 2, 6},
		{h.someCut, 0, 3},
		{h.heal, 1, 4},
	} {
		weight := action.least + rng.IntN(action.spread)
		h.actions = append(h.actions, slices.Repeat([]func(){action.do}, weight)...)
	}
	return h
}

func (h *chaos) run(steps int) met {
	for range steps {
		h.actions[h.rng.IntN(len(h.actions))]()
	}
	h.recover()
	h.observer.met.leaders = len(h.observer.leaders)
	h.observer.met.commits = len(h.observer.commits)
	return h.observer.met
}

// recover ends all faults. A majority is up, talks, and its disks work: then there is a leader
// after some timeouts, a command commits, and all servers hold and apply the same.
func (h *chaos) recover() {
	h.heal()
	now := raft.Time(0)
	for _, n := range h.nodes {
		n.slow, n.lazy = false, false
		if n.core == nil {
			h.restart(n.id)
		}
		h.take(n)
		now = max(now, n.core.Deadline())
	}
	h.cluster.run()
	leader := raft.ServerID(0)
	for end := now + 20*electionTimeout; leader == 0; leader = h.leader() {
		if now += heartbeatTimeout; now > end {
			h.fatal("no leader after 20 election timeouts without a fault")
		}
		h.elapse(now)
	}
	h.propose(leader, "the last")
	h.cluster.run()
	h.elapse(h.core(leader).Deadline() + 2*heartbeatTimeout)
	for _, n := range h.nodes {
		same(h.t, fmt.Sprintf("%s\nlog of %d", h.failure, n.id), h.log(leader), h.log(n.id))
		same(h.t, "applied", h.log(leader), n.applied)
		n.sent = nil
	}
	h.heartbeat(leader)
	h.cluster.run()
	if sent := h.outbox(leader); len(sent) != len(h.nodes)-1 {
		h.fatal("the leader of an idle cluster sends more than heartbeats: %v", sent)
	}
}

// someone is a server that is up, or nil.
func (h *chaos) someone() *node {
	n := h.nodes[h.rng.IntN(len(h.nodes))]
	if n.core == nil {
		return nil
	}
	return n
}

func (h *chaos) someMessage() {
	var busy []link
	for _, from := range h.nodes {
		for _, to := range h.nodes {
			if l := (link{from.id, to.id}); len(h.queues[l]) > 0 {
				busy = append(busy, l)
			}
		}
	}
	if len(busy) == 0 {
		return
	}
	l := busy[h.rng.IntN(len(busy))]
	at := 0
	if h.rng.Float64() < h.disturb {
		at = h.rng.IntN(len(h.queues[l]))
	}
	if h.rng.Float64() < h.loss {
		h.queues[l] = slices.Delete(h.queues[l], at, at+1)
		return
	}
	h.deliverAt(l.from, l.to, at, h.rng.Float64() >= h.repeat)
}

func (h *chaos) someWrite() {
	if n := h.someone(); n != nil && len(n.writes) > 0 {
		h.save(n.id, n.writes[h.rng.IntN(len(n.writes))].Seq)
	}
}

func (h *chaos) someTake() {
	if n := h.someone(); n != nil {
		h.take(n)
	}
}

func (h *chaos) someProposal() {
	n := h.someone()
	if leader := h.leader(); leader != 0 && h.rng.IntN(4) > 0 {
		n = h.node(leader)
	}
	if n != nil && n.core.Status().Role == raft.Leader {
		h.serial++
		h.propose(n.id, fmt.Sprint(h.serial))
	}
}

func (h *chaos) someHeartbeat() {
	if n := h.someone(); n != nil {
		h.heartbeat(n.id)
	}
}

func (h *chaos) someTimeout() {
	if n := h.someone(); n != nil {
		h.timeout(n.id)
	}
}

func (h *chaos) someTick() {
	if n := h.someone(); n != nil {
		early := raft.Time(h.rng.Int64N(int64(heartbeatTimeout))) - heartbeatTimeout/2
		h.tick(n.id, n.core.Deadline()-early)
	}
}

func (h *chaos) someCrash() {
	if n := h.someone(); n != nil {
		h.crash(n.id, h.rng.IntN(len(n.writes)+1))
	}
}

func (h *chaos) someRestart() {
	if n := h.nodes[h.rng.IntN(len(h.nodes))]; n.core == nil {
		h.restart(n.id)
	}
}

// someCut cuts one direction or both.
func (h *chaos) someCut() {
	a, b := h.nodes[h.rng.IntN(len(h.nodes))].id, h.nodes[h.rng.IntN(len(h.nodes))].id
	if h.down[link{a, b}] = true; h.rng.IntN(2) == 0 {
		h.cut(a, b)
	}
}
