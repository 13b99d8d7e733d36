package sim

import (
	"time"
)

// This file has the faults that are made of others, under the names that people give them.

func compoundStrikes() []strikeKind {
	return []strikeKind{
		{"swizzle", false, (*World).swizzle, nil},
		{"rolling-restart", false, (*World).rollingRestart, nil},
		{"ping-pong", false, (*World).pingPong, nil},
		{"bridge", false, (*World).bridge, nil},
		{"candidate-storm", false, (*World).candidateStorm, nil},
		{"pause-holder", false, (*World).pauseHolder, nil},
		{"clock-fan-out", false, (*World).clockFanOut, nil},
	}
}

// isolatesFor is a strike that cuts a server off for a while.
func isolatesFor(n *node, long time.Duration) Strike {
	return Strike{What: "isolate", Who: string(n.name), For: long}
}

// swizzle cuts servers off one after another, and lets them come back one after another, in an order of
// its own: the cluster goes through many partitions, and none of them is mended by the next.
func (w *World) swizzle(_ *node, s Strike) bool {
	off, back := w.shuffled("swizzle"), w.shuffled("back from a swizzle")
	if len(off) < 2 {
		return false
	}
	step := s.For / time.Duration(2*len(off))
	for i, n := range off {
		for j, other := range back {
			if other == n {
				w.later(time.Duration(i)*step, isolatesFor(n, time.Duration(len(off)+j-i)*step))
			}
		}
	}
	return true
}

// rollingRestart restarts one server after another, as somebody does who brings in a new version.
func (w *World) rollingRestart(_ *node, s Strike) bool {
	all := w.shuffled("rolling restart")
	step := s.For / time.Duration(len(all))
	for i, n := range all {
		w.later(time.Duration(i)*step, Strike{What: "crash", Who: string(n.name), For: step * 2 / 3})
	}
	return true
}

// pingPong takes the leader away as soon as there may be another, again and again, so that leadership
// goes back and forth.
func (w *World) pingPong(_ *node, s Strike) bool {
	if w.leader() == nil || len(w.nodes) < 2 {
		return false
	}
	step := duration(3 * w.config.election)
	for at := time.Duration(0); at+step <= s.For; at += step {
		w.later(at, Strike{What: "isolate", Who: whoLeader, For: step})
	}
	return true
}

// bridge parts the cluster in two halves that only one server reaches both of.
func (w *World) bridge(_ *node, s Strike) bool {
	all := w.shuffled("bridge")
	if len(all) < 3 {
		return false
	}
	groups := make([][]Actor, 2)
	for i, n := range all[1:] {
		groups[i%2] = append(groups[i%2], n.name)
	}
	if !w.tells(Cut{Groups: groups}) {
		return false
	}
	w.later(s.For, Heal{})
	return true
}

// candidateStorm cuts one server off and makes its clock so fast that it campaigns all the time. When
// it is back, it has the highest term, or has only asked for one.
func (w *World) candidateStorm(_ *node, s Strike) bool {
	all := w.shuffled("candidate storm")
	if len(all) < 2 {
		return false
	}
	if !w.tells(SetClock{Actor: all[0].name, RatePPM: 8 * trueRate}) {
		return false
	}
	w.later(0, isolatesFor(all[0], s.For))
	w.later(s.For, SetClock{Actor: all[0].name, RatePPM: trueRate})
	return true
}

// pauseHolder stops a client while it holds a lock, which it does not know to have lost when it goes on.
func (w *World) pauseHolder(_ *node, s Strike) bool {
	l := w.leader()
	if l == nil {
		return false
	}
	for _, c := range w.clients {
		if c.paused || !w.believes(c) {
			continue
		}
		if !w.tells(ClientDo{Client: c.name, Do: "pause"}) {
			return false
		}
		w.later(s.For, ClientDo{Client: c.name, Do: "resume"})
		return true
	}
	return false
}

// believes reports whether a client has a lock by its own clock.
func (w *World) believes(c *client) bool {
	for _, h := range c.tokens {
		if h.token != 0 && c.clock.at(w.now) < h.deadline {
			return true
		}
	}
	return false
}

// clockFanOut lets all clocks go apart: each server's has another rate, from half to twice the true one.
func (w *World) clockFanOut(_ *node, s Strike) bool {
	all := w.shuffled("clock fan-out")
	if len(all) < 2 {
		return false
	}
	for i, n := range all {
		rate := int64(trueRate/2 + i*trueRate*3/2/(len(all)-1))
		if !w.tells(SetClock{Actor: n.name, RatePPM: rate}) {
			return false
		}
		w.later(s.For, SetClock{Actor: n.name, RatePPM: trueRate})
	}
	return true
}
