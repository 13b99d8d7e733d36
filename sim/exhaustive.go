package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// This file is the exhaustive search: every state that can be reached from a start by any order of
// steps, nearest first. It knows nothing of what it searches. A space says what a state is, which
// steps can be taken from it, and what is wrong after one; the lock service over real replicas is
// one such space (exhaustive_locks.go).
//
// It runs on one core, so that what it finds is the same every time: of two shortest ways the one
// whose steps come first. Who has several spaces to search, searches them side by side.
//
// States are told apart by a fingerprint of 64 bits. Two different ones may have the same, and then
// the search skips what only the second leads to. With n states the chance of that is about n²/2⁶⁵:
// for a million states, one in 37 million.

// A space is a state of what is searched, and the way on from it. T is a step.
type space[S, T any] interface {
	fingerprint() uint64
	// steps lists what can be done here, in an order that depends on the state alone.
	steps() []T
	// take returns the state after a step. The receiver stays as it is. If the step is of no
	// interest, for example because it changes nothing, ok is false.
	take(T) (next S, ok bool)
	// problem is the invariant that the step which led here has broken, "" for none.
	problem() string
	// noted is what happened in the step which led here, a bit each, to be counted.
	noted() uint8
}

// found is what a search came to.
type found[S, T any] struct {
	states int    // different ones that were reached
	taken  int    // steps that were tried
	depth  int    // the most steps to any state, on the shortest way there
	broken string // the invariant, "" if all held everywhere
	path   []T    // a shortest way to a state where it is broken
	last   S      // and that state
	noted  [8]int // of each bit, how many steps had it
}

// errTooMany ends a search that would not end in reasonable memory.
var errTooMany = errors.New("more states than the search may keep; its bounds are too wide")

// trail remembers how a state was reached first.
type trail[T any] struct {
	before uint32
	step   T
}

// hunt is a search on its way.
type hunt[S space[S, T], T any] struct {
	found[S, T]
	seen   map[uint64]struct{} // fingerprints
	trails []trail[T]          // of the states, in the order in which they were reached
}

// search goes through all states, breadth first, so that what it finds first is shortest. It ends
// at the first broken invariant. Of the states only those whose steps are not tried yet are kept
// whole.
func search[S space[S, T], T any](ctx context.Context, start S, most int) (found[S, T], error) {
	h := hunt[S, T]{seen: map[uint64]struct{}{start.fingerprint(): {}}, trails: make([]trail[T], 1)}
	h.states, h.broken, h.last = 1, start.problem(), start
	level, first := []S{start}, 0
	for h.broken == "" && len(level) > 0 {
		if h.states > most {
			return h.found, fmt.Errorf("%w (%d)", errTooMany, most)
		}
		var next []S
		begin := len(h.trails)
		for i, s := range level {
			if err := ctx.Err(); err != nil {
				return h.found, err
			}
			level[i] = *new(S) // it is not needed again, and memory is
			next = h.expand(s, uint32(first+i), next)
			if h.broken != "" {
				break
			}
		}
		if len(h.trails) > begin {
			h.depth++
		}
		level, first = next, begin
	}
	return h.found, nil
}

// expand tries the steps from a state, and adds the states that are new to those of the next level.
func (h *hunt[S, T]) expand(s S, at uint32, next []S) []S {
	for _, step := range s.steps() {
		t, ok := s.take(step)
		if !ok {
			continue
		}
		h.taken++
		for bit := range h.noted {
			h.noted[bit] += int(t.noted() >> bit & 1)
		}
		h.broken = t.problem()
		print := t.fingerprint()
		if _, again := h.seen[print]; again && h.broken == "" {
			continue
		}
		h.seen[print] = struct{}{}
		h.states = len(h.seen)
		h.trails = append(h.trails, trail[T]{at, step})
		if h.broken != "" {
			h.last, h.path = t, wayTo(h.trails)
			return next
		}
		next = append(next, t)
	}
	return next
}

// wayTo collects the steps from the start to the last state that was reached.
func wayTo[T any](trails []trail[T]) []T {
	var way []T
	for at := uint32(len(trails) - 1); at != 0; at = trails[at].before {
		way = append(way, trails[at].step)
	}
	slices.Reverse(way)
	return way
}
