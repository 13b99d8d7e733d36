package main

import (
	"fmt"
	"html"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"ticketing/cmd/internal/history"
	"ticketing/fsm"
)

// state is one key of the lock table, at a moment of which only a bound is known.
type state struct {
	holder fsm.Token // 0 if the key is free
	last   fsm.Token // the greatest token that this key has had
	until  int64     // the holder's tenure may be over from then on, for reasons of its own
	now    int64     // it is this time at the earliest
}

// request is what goes into a step. That a step lies between its call and its return the library
// sees to, for the order of steps; the step itself needs to know, for the leases.
type request struct {
	history.Operation
	gone int64 // an Acquire's: a Release of its token that nobody knows the outcome of was called
}

// lockTable is the specification of one key. A tenure ends by a Release with its token, or by a
// step of the service alone: the lease, counted from no earlier than the Acquire's call, ran out.
// When a lease's end is noticed has no upper bound, so the model takes that step when nothing else
// explains what a client saw, and then at the first moment at which it may have been.
func lockTable() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, input, _ any) (bool, any) {
			ok, next := s.(state).step(input.(request))
			return ok, next
		},
		Partition:         byKey,
		DescribeOperation: func(input, _ any) string { return input.(request).String() },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
}

func (s state) step(r request) (bool, state) {
	s.now = max(s.now, r.Call)
	switch {
	case r.Granted():
		if s.holder != 0 {
			s.lapse()
		}
		if r.Token <= s.last {
			return false, s
		}
		s.holder, s.last = r.Token, r.Token
		s.until = min(s.now+r.Lease, max(s.now, r.gone))
	case r.Outcome == history.OK:
		if s.holder != r.Token {
			return false, s
		}
		s.holder = 0
	default: // NotHeld
		if s.holder == r.Token {
			s.lapse()
		}
	}
	return s.now <= r.Return, s
}

// lapse ends the tenure by itself.
func (s *state) lapse() {
	s.holder, s.now = 0, max(s.now, s.until)
}

// byKey splits a history, as no operation is about two keys.
func byKey(all []porcupine.Operation) [][]porcupine.Operation {
	keys := map[string]int{}
	var parts [][]porcupine.Operation
	for _, o := range all {
		key := o.Input.(request).Key
		i, seen := keys[key]
		if !seen {
			i = len(parts)
			keys[key] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], o)
	}
	return parts
}

// prepare makes a history into what the library takes. It leaves out what cannot contradict
// anything, since each operation without a return doubles the search:
//
//   - An Acquire of unknown outcome. If it was granted, the tenure may end at any moment, by a
//     clean-up Release; so it is in nobody's way, and nobody else's tenure follows from it.
//   - A Release of unknown outcome. It may end its tenure at any moment from its call on, and no
//     other: that bound goes to the Acquire.
//   - A refusal. It tells what a leader believed, perhaps of a Grant that never took effect, or as
//     one that was deposed and did not know it; see checkRefusals.
func prepare(all []history.Operation) []porcupine.Operation {
	gone := map[fsm.Token]int64{}
	for _, o := range all {
		if o.Kind == history.Release && o.Outcome == history.Unknown {
			if t, seen := gone[o.Token]; !seen || o.Call < t {
				gone[o.Token] = o.Call
			}
		}
	}
	var prepared []porcupine.Operation
	clients := map[string]int{}
	for _, o := range all {
		if o.Outcome == history.Unknown || o.Outcome == history.Held {
			continue
		}
		r := request{o, math.MaxInt64}
		if t, seen := gone[o.Token]; seen && o.Granted() {
			r.gone = t
		}
		if _, seen := clients[o.Client]; !seen {
			clients[o.Client] = len(clients)
		}
		prepared = append(prepared, porcupine.Operation{
			ClientId: clients[o.Client], Input: r, Call: o.Call, Return: o.Return,
		})
	}
	return prepared
}

// checkRefusals returns an error if somebody was told that a key is held which nobody can have had.
func checkRefusals(all []history.Operation) error {
	first := map[string]int64{} // when a key was first asked for with success, or perhaps so
	for _, o := range all {
		if o.Kind == history.Acquire && o.Outcome != history.Held {
			if t, seen := first[o.Key]; !seen || o.Call < t {
				first[o.Key] = o.Call
			}
		}
	}
	for _, o := range all {
		if o.Outcome != history.Held {
			continue
		}
		if t, seen := first[o.Key]; !seen || t > o.Return {
			return fmt.Errorf("refused, though nobody can have had the key:\n%+v", o)
		}
	}
	return nil
}

func (r request) String() string {
	name := html.EscapeString(r.Client)
	if r.Kind == history.Release {
		return fmt.Sprintf("%s: release %d → %s", name, r.Token, r.Outcome)
	}
	lease := time.Duration(r.Lease) * time.Microsecond
	return fmt.Sprintf("%s: acquire for %v → token %d", name, lease, r.Token)
}

func (s state) String() string {
	if s.holder == 0 {
		return fmt.Sprintf("free, after token %d", s.last)
	}
	return fmt.Sprintf("held with token %d, its lease may end from %v on", s.holder,
		time.Duration(s.until)*time.Microsecond)
}
