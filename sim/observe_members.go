package sim

import (
	"slices"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file follows who the servers are, in each log and in the one history, without asking the cores.

// effective is a set of servers, and the index of the entry from which on it counts.
type effective struct {
	index   raft.Index
	members raft.Configuration
}

// at returns the last of some sets that counts at an index.
func at(list []effective, i raft.Index) (e effective) {
	for _, c := range list {
		if c.index <= i {
			e = c
		}
	}
	return e
}

// members is the set that a node's log says.
func (n *node) members() effective { return n.sets[len(n.sets)-1] }

// bootMembers reads who the servers are off a node's disk.
func (w *World) bootMembers(n *node) {
	base := effective{}
	if !n.joins {
		base.members = w.config.first()
	}
	if s := n.disk.durable.Snapshot; s != nil {
		base = effective{s.LastIncludedIndex, s.Members}
	}
	n.sets = follow([]effective{base}, n.disk.durable.Entries)
}

// follow brings sets in line with entries that were stored.
func follow(sets []effective, entries []raft.Entry) []effective {
	if len(entries) == 0 {
		return sets
	}
	sets = cutSets(sets, entries[0].Index)
	for _, e := range entries {
		if e.Members != nil {
			sets = append(sets, effective{e.Index, e.Members})
		}
	}
	return sets
}

// cutSets drops the sets of entries from an index on, but for the one with which the log begins.
func cutSets(sets []effective, from raft.Index) []effective {
	for len(sets) > 1 && sets[len(sets)-1].index >= from {
		sets = sets[:len(sets)-1]
	}
	return sets
}

// trimSets lets the sets begin with a snapshot's. If the log went, so do they.
func trimSets(sets []effective, s *raft.Snapshot, kept bool) []effective {
	left := []effective{{s.LastIncludedIndex, s.Members}}
	for _, e := range sets {
		if kept && e.index > s.LastIncludedIndex {
			left = append(left, e)
		}
	}
	return left
}

// observeMembers follows a node's sets through a step, and counts a change that was taken back.
func (w *World) observeMembers(n *node, out *fsm.Output, kept bool) {
	before := n.members()
	if s := out.Write.Snapshot; s != nil {
		n.sets = trimSets(n.sets, s, kept)
	}
	n.sets = follow(n.sets, out.Write.Entries)
	if out.Write.Snapshot == nil && n.members().index < before.index {
		w.counters[countMembersTakenBack]++
	}
}

// observeLeft counts a leader that has gone because its removal is committed, and reports whether it
// is one.
func (w *World) observeLeft(n *node, before, after *raft.Status) bool {
	m := n.members()
	left := before.Role == raft.Leader && after.Role == raft.Follower && before.Term == after.Term &&
		!votes(m.members, n.id) && m.index <= after.CommitIndex
	if left {
		w.counters[countMembersLeft]++
	}
	return left
}

// votes reports whether a server has a vote in a set.
func votes(members raft.Configuration, id raft.ServerID) bool {
	return slices.ContainsFunc(members, func(m raft.Member) bool { return m.ID == id && m.Voter })
}

// quorumOf counts those of the voters in a set who fulfil something, and how many it takes.
func (w *World) quorumOf(members raft.Configuration, holds func(n *node) bool) (count, voters int) {
	for _, m := range members {
		if !m.Voter {
			continue
		}
		voters++
		if n := w.node(m.ID); n != nil && holds(n) {
			count++
		}
	}
	return count, voters
}

// belongs reports whether a server is one of those that the leader has; without a leader, one of those
// that it has itself.
func (w *World) belongs(n *node) bool {
	in := n
	if l := w.leader(); l != nil {
		in = l
	}
	return in.boots > 0 && slices.ContainsFunc(in.members().members, func(m raft.Member) bool { return m.ID == n.id })
}

// membersText writes a set as scenarios do.
func membersText(members raft.Configuration) string {
	if len(members) == 0 {
		return "none"
	}
	return trace.MembersText(members)
}
