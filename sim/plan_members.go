package sim

import (
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file draws changes of the servers in a random run.

// mostNewcomers is how many servers may join in a run.
const mostNewcomers = 3

// members draws, in some of the runs, who is added, gets a vote and is removed, whoever leads. Those
// who are removed go on running, and may be added again.
func (p *planner) members() {
	p.servers = p.nodes
	if !p.changesMembers() {
		return
	}
	p.from(0)
	t := p.within(topicMembers, 1, 0, 300*trace.Millisecond, 2*trace.Second)
	for i := 1; t < chaosEnd; i++ {
		i := i * 8
		p.from(t)
		for j := range 1 + int(p.pick(topicMembers, 1, i, 3)) { // one, or a few close together
			p.change(t, i+j)
			t += p.within(topicMembers, 2, i+j, 0, 80*trace.Millisecond)
		}
		t += p.within(topicMembers, 1, i+1, 50*trace.Millisecond, 1500*trace.Millisecond)
	}
}

// changesMembers reports whether servers come and go: in three of five harsh runs, in a third of the
// mild ones.
func (p *planner) changesMembers() bool {
	if p.harsh {
		return p.once(topicMembers, 0, 1, 5) < 3
	}
	return p.once(topicMembers, 0, 0, 3) == 0
}

// change draws one change.
func (p *planner) change(t trace.Time, i int) {
	c := Change{Do: choose(p.pick(topicMembers, 3, i, 6), opAdd, opAdd, opAdd, opPromote, opRemove, opRemove)}
	known := p.servers
	if c.Do == opAdd && p.servers < min(p.nodes+mostNewcomers, maxNodes) && p.pick(topicMembers, 4, i, 2) == 0 {
		p.servers++
		c.Node = raft.ServerID(p.servers)
	} else {
		c.Node = raft.ServerID(p.pick(topicMembers, 5, i, int64(known))) + 1
	}
	c.Learner = c.Do == opAdd && p.pick(topicMembers, 6, i, 3) == 0
	p.at(t, c)
	if p.servers > known {
		p.faultsFrom(c.Node, t)
	}
}

// changeAround draws a change just before a fault of the network, so that few hear of it, and one when
// others may have elected a leader.
func (p *planner) changeAround(i int, t, end trace.Time) {
	if !p.changesMembers() {
		return
	}
	for j, at := range []trace.Time{t - p.within(topicMembers, 7, i, 0, 20*trace.Millisecond), p.within(topicMembers, 8, i, t, end)} {
		c := Change{Do: choose(p.pick(topicMembers, 9, i+j, 3), opAdd, opPromote, opRemove)}
		c.Node = raft.ServerID(p.pick(topicMembers, 10, i+j, int64(p.servers))) + 1
		p.at(at, c)
	}
}
