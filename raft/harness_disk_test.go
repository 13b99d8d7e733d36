package raft_test

import (
	"slices"

	"ticketing/raft"
)

// save completes these writes, or all if none is named, in this order.
func (c *cluster) save(id raft.ServerID, seqs ...uint64) {
	n := c.node(id)
	if len(seqs) == 0 {
		for _, w := range n.writes {
			seqs = append(seqs, w.Seq)
		}
	}
	for _, seq := range seqs {
		for i := range n.writes {
			if n.writes[i].Seq == seq {
				n.writes[i].done = true
				c.observer.met.disorder += min(i, 1)
			}
		}
		for len(n.writes) > 0 && n.writes[0].done {
			c.flush(n)
		}
		c.note("%d has saved %d", id, seq)
		c.input(n, func(core *raft.Core) { core.Saved(seq) })
	}
}

// flush makes the first unfinished write part of the disk, as doc.go tells the driver to.
func (c *cluster) flush(n *node) {
	w := n.writes[0]
	n.writes = n.writes[1:]
	n.disk.HardState = w.HardState
	if w.Snapshot != nil {
		c.flushSnapshot(n, w.Snapshot)
	}
	if len(w.Entries) > 0 {
		first := raft.Index(1)
		if s := n.disk.Snapshot; s != nil {
			first = s.LastIncludedIndex + 1
		}
		before := n.disk.Entries[:w.Entries[0].Index-first]
		n.disk.Entries = append(slices.Clip(before), w.Entries...)
	}
}

// crash stops a server. Its disk keeps the first few of the writes that have begun and that are not
// complete, or that are complete behind one that is not.
func (c *cluster) crash(id raft.ServerID, keep int) {
	n := c.node(id)
	c.note("%d crashes, keeping %d of %d unfinished writes", id, keep, len(n.writes))
	for ; keep > 0 && len(n.writes) > 0; keep-- {
		c.flush(n)
	}
	c.observer.met.lost += len(n.writes)
	n.core, n.twin, n.writes, n.saving = nil, nil, nil, nil
	if err := c.observeDisks(); err != nil {
		c.fatal("server %d crashed: %v", id, err)
	}
}

// restart starts a server from its disk.
func (c *cluster) restart(id raft.ServerID) {
	n := c.node(id)
	core, err := raft.New(c.setup.config(id), n.disk, 0)
	if err != nil {
		c.fatal("server %d does not start: %v", id, err)
	}
	*n = node{id: id, core: core, disk: n.disk, slow: n.slow, lazy: n.lazy, twins: n.twins}
	n.owed = map[uint64]int{}
	if s := n.disk.Snapshot; s != nil {
		n.files = []*raft.Snapshot{s}
		c.restore(n, s)
	}
	c.note("%d starts", id)
	c.check(n, core.Clone())
}

// slow makes a server's writes wait for save.
func (c *cluster) slow(id raft.ServerID) { c.node(id).slow = true }
