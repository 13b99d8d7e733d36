package sim

import (
	"cmp"
	"slices"

	"ticketing/raft"
)

// This file finds whom a strike is for.

// struck is the server that a strike is for; nil if there is none.
func (w *World) struck(who string, it *node) *node {
	switch who {
	case whoIt:
		return it
	case whoLeader:
		return w.leader()
	case whoCandidate:
		return w.nextCandidate()
	}
	return w.node(Actor(who).Node())
}

// nextCandidate is who campaigns in the highest term, or else whose election timer is due first.
func (w *World) nextCandidate() (next *node) {
	var due int64
	for _, n := range w.nodes {
		if !n.alive || n.paused || n.status.Role == raft.Leader {
			continue
		}
		at, ok := n.clock.when(n.replica.Core().Deadline())
		if !ok {
			continue
		}
		campaigns := int64(0)
		if n.status.Role != raft.Follower {
			campaigns = int64(n.status.Term) << 40
		}
		if first := int64(at) - campaigns; next == nil || first < due {
			next, due = n, first
		}
	}
	return next
}

// shuffled lists the servers that are there in an order that is drawn for a purpose.
func (w *World) shuffled(purpose string) []*node {
	var all []*node
	for _, n := range w.nodes {
		if n.boots > 0 {
			all = append(all, n)
		}
	}
	place := func(n *node) uint64 {
		return draw(w.seed, streamStrike, nameKey(purpose), uint64(n.id), uint64(w.now))
	}
	slices.SortFunc(all, func(a, b *node) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.id, b.id))
	})
	return all
}
