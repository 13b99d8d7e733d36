package sim

import (
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file draws snapshots in a random run.

// often is after how many entries a server takes a snapshot, in the runs in which servers do: so few
// that whoever is away for a moment needs one.
const often = 10

// compaction draws whether servers take snapshots by themselves, into how many parts one goes on its
// way, and how much of the log stays before its end.
func (p *planner) compaction(c *SetConfig) {
	if !p.compacts() {
		return
	}
	every := raft.Index(often)
	c.SnapshotEvery = &every
	c.Keep = choose(p.pick(topicSnapshot, 0, 1, 3), raft.Index(0), 3, 2*often)
	if !p.crowds() { // or it is large, and one part after another takes longer than a run lasts
		c.Chunk = choose(p.pick(topicSnapshot, 0, 2, 3), 0, 64, 256)
	}
}

// compacts reports whether servers take snapshots by themselves: in five of six harsh runs in which
// servers come and go, since each makes the other harder, and in a third of the others.
func (p *planner) compacts() bool {
	if p.harsh && p.changesMembers() {
		return p.once(topicSnapshot, 0, 3, 6) != 0
	}
	return p.once(topicSnapshot, 0, 0, 3) == 0
}

// snapshots draws snapshots by command, in half of the runs.
func (p *planner) snapshots() {
	if !p.commandsSnapshots() {
		return
	}
	p.from(0)
	t := p.within(topicSnapshot, 1, 1, 300*trace.Millisecond, 2*trace.Second)
	for i := 1; t < chaosEnd; i++ {
		i := i * 8
		p.from(t)
		p.at(t, Compact{Node: raft.ServerID(p.pick(topicSnapshot, 1, i, int64(p.nodes))) + 1})
		t += p.within(topicSnapshot, 1, i+1, 100*trace.Millisecond, 1500*trace.Millisecond)
	}
}

func (p *planner) commandsSnapshots() bool { return p.once(topicSnapshot, 1, 0, 2) == 0 }

// snapshotAt draws a snapshot just before a server's crash, which it may interrupt at any point.
func (p *planner) snapshotAt(id raft.ServerID, crash trace.Time) {
	if p.commandsSnapshots() {
		// Both in one number of 64 bits, so that every machine draws the same.
		bits := draw(p.seed, streamPlan, uint64(topicSnapshot), 2, uint64(id)<<32|uint64(crash))
		p.at(crash-between(bits, 0, 40*trace.Millisecond), Compact{Node: id})
	}
}
