package sim

import (
	"slices"

	"ticketing/raft"
)

// This file says what a search has seen by the shapes of states. A shape leaves out what no rule looks
// at: which server is which, how high a term is, how long a log is. It is that of two servers: how each
// is, how they stand to each other, and how the locks stand that the one knows. All servers together have
// so many shapes that each run would come to new ones for ever; of two there are some ten thousand, and a
// search that meets no new ones is likely to meet nothing new.

// coverage collects the shapes of a run.
type coverage struct {
	seen   map[uint64]struct{}
	points []uint64 // in the order in which they were first seen
}

// look takes down the shapes of a server that has just done something, and of each of the others.
func (c *coverage) look(w *World, n *node) {
	term, commit := n.status.Term, n.status.CommitIndex
	for _, other := range w.nodes {
		term, commit = max(term, other.status.Term), max(commit, other.status.CommitIndex)
	}
	mine := n.shape(term, commit)<<8 | n.lockShape(w)
	c.add(mine)
	for _, other := range w.nodes {
		if other != n {
			c.add(mine<<32 | other.shape(term, commit)<<16 | w.between(n, other)<<1 | 1)
		}
	}
}

func (c *coverage) add(shape uint64) {
	if _, seen := c.seen[shape]; !seen {
		c.seen[shape] = struct{}{}
		c.points = append(c.points, shape)
	}
}

// shape is how one server is: its role, how far it is behind in terms and in commits, and whether its
// disk is. It has seven bits.
func (n *node) shape(term raft.Term, commit raft.Index) uint64 {
	const down, paused = 6, 7
	x := uint64(n.status.Role)
	switch {
	case !n.alive:
		x = down
	case n.paused:
		x = paused
	}
	x = x<<1 | bit(n.status.Term < term)
	x = x<<2 | few(uint64(commit-n.status.CommitIndex), 1, 8)
	return x<<1 | bit(len(n.disk.unsynced) > 0)
}

// lockShape is how the locks stand that a server knows: whether there is one that is held, that is over
// by its clock, and that somebody else has had since. It has three bits.
func (n *node) lockShape(w *World) (x uint64) {
	for key, t := range n.tenures {
		switch {
		case w.highest[key] > t.token: // the resource has seen a newer token
			x |= 4
		case n.clock.at(w.now) >= t.local+t.lease:
			x |= 2
		default:
			x |= 1
		}
	}
	return x
}

// between is how two servers stand to each other: how their logs do, and the links. It has six bits.
func (w *World) between(a, b *node) uint64 {
	shorter := min(len(a.chains), len(b.chains))
	diverged := shorter > 0 && a.chains[shorter-1] != b.chains[shorter-1]
	x := bit(diverged)<<1 | bit(len(a.chains) > len(b.chains))
	there, back := &w.links[a.index][b.index], &w.links[b.index][a.index]
	x = x<<2 | bit(there.cut)<<1 | bit(back.cut)
	return x<<2 | bit(there.holds != 0)<<1 | bit(back.holds != 0)
}

// few is 0 for none, 1 up to a, 2 up to b, 3 above.
func few(n, a, b uint64) uint64 {
	switch {
	case n == 0:
		return 0
	case n <= a:
		return 1
	case n <= b:
		return 2
	}
	return 3
}

func bit(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// Curve is how many shapes a search had seen after so many seeds: after one, two, four and so on, and in
// the end.
type Curve []CurvePoint

// CurvePoint is one point of it.
type CurvePoint struct{ Seeds, Points int64 }

// shapes is what a search has seen.
type shapes struct {
	seen  map[uint64]struct{}
	curve Curve
}

// add takes in a run's shapes, and returns how many of them are new.
func (s *shapes) add(points []uint64, seeds int64) (fresh int) {
	if s.seen == nil {
		s.seen = map[uint64]struct{}{}
	}
	for _, p := range points {
		if _, seen := s.seen[p]; !seen {
			s.seen[p] = struct{}{}
			fresh++
		}
	}
	at := CurvePoint{Seeds: seeds, Points: int64(len(s.seen))}
	if n := len(s.curve); n > 0 && s.curve[n-1].Seeds&(s.curve[n-1].Seeds-1) != 0 {
		s.curve = slices.Delete(s.curve, n-1, n) // only the last may be no power of two
	}
	s.curve = append(s.curve, at)
	return fresh
}
