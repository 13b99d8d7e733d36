package raft_test

import (
	"fmt"
	"slices"

	"ticketing/raft"
)

// The state machine of a test's server is the list of what it has applied, and its snapshot that list
// written down.

// written is the state after these entries, which begin with the first.
func written(applied []raft.Entry) (data []byte) {
	for _, e := range applied {
		data = fmt.Appendf(data, "%d@%d %s%v\n", e.Index, e.Term, e.Command, e.Members)
	}
	return data
}

// before returns the entries up to an index that are not in a server's log any more: what was committed
// there. If the test plays the leader then nobody has seen some of them, and they are blank.
func (c *cluster) before(base raft.Index) []raft.Entry {
	known := c.observer.entries
	if int(base) > len(known) && c.setup.only == 0 {
		c.fatal("a log begins behind entry %d, and %d are committed", base, len(known))
	}
	for i := raft.Index(len(known)); i < base; i++ {
		known = append(slices.Clip(known), raft.Entry{Index: i + 1})
	}
	return known[:base:base]
}

// A history is a log from the first entry on: what a snapshot stands for, and what is behind that. It
// is looked at after every input, so it is not copied into one.
type history struct{ before, rest []raft.Entry }

func (h history) last() raft.Index { return raft.Index(len(h.before) + len(h.rest)) }

func (h history) at(i raft.Index) raft.Entry {
	if i <= raft.Index(len(h.before)) {
		return h.before[i-1]
	}
	return h.rest[i-1-raft.Index(len(h.before))]
}

func (h history) holds(e raft.Entry) bool { return e.Index <= h.last() && sameEntry(h.at(e.Index), e) }

func (h history) all() []raft.Entry {
	if len(h.before) == 0 {
		return h.rest
	}
	return append(h.before, h.rest...)
}

// history is that of a server's log.
func (c *cluster) history(core *raft.Core) history {
	return history{c.before(core.FirstIndex() - 1), logOf(core)}
}

// diskOf is that of the log on a server's disk.
func (c *cluster) diskOf(n *node) history {
	if s := n.disk.Snapshot; s != nil {
		return history{c.before(s.LastIncludedIndex), n.disk.Entries}
	}
	return history{nil, n.disk.Entries}
}

// compact gives a server's core a snapshot of what it has applied up to an index.
func (c *cluster) compact(id raft.ServerID, index raft.Index) {
	c.note("%d compacts to %d", id, index)
	n := c.node(id)
	data := written(n.applied[:index])
	c.input(n, func(core *raft.Core) {
		if err := core.Compact(index, data); err != nil {
			c.fatal("server %d: %v", id, err)
		}
	})
}

// saveSnapshot completes the saving of a snapshot.
func (c *cluster) saveSnapshot(id raft.ServerID) {
	n := c.node(id)
	s := n.saving
	c.note("%d has saved the snapshot of %d", id, s.LastIncludedIndex)
	n.saving, n.files = nil, append(n.files, s)
	before := n.core.Clone()
	c.input(n, func(core *raft.Core) { core.SnapshotSaved(s.LastIncludedIndex) })
	c.observer.met.observeAdoption(before, s)
}

// restore makes a server's state machine what a snapshot says.
func (c *cluster) restore(n *node, s *raft.Snapshot) {
	n.applied = c.before(s.LastIncludedIndex)
	if c.setup.only == 0 && string(s.Data) != string(written(n.applied)) {
		c.fatal("server %d: the snapshot of entry %d is\n%s, where\n%s is committed", n.id,
			s.LastIncludedIndex, s.Data, written(n.applied))
	}
}

// flushSnapshot does what a write that names a snapshot asks of a disk: the log begins behind it. If
// the snapshot's last entry stands in the stored log, what follows it stays.
func (c *cluster) flushSnapshot(n *node, s *raft.Snapshot) {
	if !slices.Contains(n.files, s) {
		c.fatal("server %d: a write names the snapshot of entry %d, which is not durable", n.id, s.LastIncludedIndex)
	}
	at := slices.IndexFunc(n.disk.Entries, func(e raft.Entry) bool {
		return e.Index == s.LastIncludedIndex && e.Term == s.LastIncludedTerm
	})
	if at < 0 {
		n.disk.Entries = nil
	} else {
		n.disk.Entries = slices.Clone(n.disk.Entries[at+1:])
	}
	n.disk.Snapshot = s
	n.files = slices.DeleteFunc(n.files, func(f *raft.Snapshot) bool {
		return f.LastIncludedIndex < s.LastIncludedIndex
	})
}

// observeAdoption counts what a snapshot did to the log whose place it took.
func (m *met) observeAdoption(before *raft.Core, s *raft.Snapshot) {
	was := before.Status()
	if s.LastIncludedIndex <= was.CommitIndex {
		m.taken++
		return
	}
	m.installed++
	switch t, ok := before.Term(s.LastIncludedIndex); {
	case ok && t == s.LastIncludedTerm:
		m.kept++
	case ok:
		m.dropped++
	}
}

// observeSnapshot looks at a server's snapshot: it stands for what is committed, as it was committed,
// and for the servers of that moment.
func (c *cluster) observeSnapshot(n *node) error {
	s := n.core.Snapshot()
	if s == nil || c.setup.only != 0 || n.seen == s {
		return nil
	}
	n.seen = s
	history, members := c.before(s.LastIncludedIndex), c.setup.first()
	for _, e := range history {
		if e.Members != nil {
			members = e.Members
		}
	}
	last := history[len(history)-1]
	switch {
	case string(s.Data) != string(written(history)):
		return fmt.Errorf("SnapshotCommitted: entry %d: %s, where %s is committed", last.Index, s.Data, written(history))
	case s.LastIncludedTerm != last.Term:
		return fmt.Errorf("SnapshotCommitted: entry %d has term %d, not %d", last.Index, last.Term, s.LastIncludedTerm)
	case s.Members != nil && !slices.Equal(s.Members, members):
		return fmt.Errorf("SnapshotCommitted: at entry %d the servers are %v, not %v", last.Index, members, s.Members)
	}
	return nil
}

// outline writes an output down, with snapshots as what they are and not where.
func outline(out raft.Output) string {
	text := ""
	for _, s := range []**raft.Snapshot{&out.Save, &out.Restore, &out.Write.Snapshot} {
		if *s != nil {
			text += fmt.Sprintf("%+v ", **s)
		}
		*s = nil
	}
	return fmt.Sprintf("%s%+v", text, out)
}
