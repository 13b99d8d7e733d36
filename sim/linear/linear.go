// Package linear judges what clients saw of a lock service, and nothing else: is there an order of
// their operations, each at a moment between its call and its return, in which one lock table gives
// all these answers? That is linearizability (Herlihy, Wing 1990). The search is Wing and Gong's,
// with Lowe's memory of the places where it has been, so that it is at none of them twice.
//
// Keys are judged apart, for no operation is about two of them; only tokens are compared over all.
package linear

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ticketing/fsm"
)

// Kind is what was asked for.
type Kind string

// The kinds.
const (
	Acquire Kind = "acquire"
	Release Kind = "release"
	Extend  Kind = "extend"
	Get     Kind = "get"
)

// Outcome is what the client knows of it.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	No      Outcome = "no"      // an Acquire: the table has another holder; else: that tenure is over
	Unknown Outcome = "unknown" // it may have been carried out, or may yet be, or never
)

// Never is a time after all others. It is the Return of an operation of unknown outcome.
const Never = math.MaxInt64

// Operation is one request and what came of it. Times are µs of one clock. It must be no slower than
// any clock by which a lease is counted, or a lease could be over before it can be here.
type Operation struct {
	Client  string
	Kind    Kind
	Key     string
	Token   fsm.Token // that was granted, named, or seen by a Get (0: the key is free)
	Owner   string    // that a Get has seen
	Lease   int64     // of an Acquire or Extend, in µs
	Call    int64
	Return  int64
	Left    int64 // when an Acquire's client hung up, so that the lock is given back; 0 if it did not
	Outcome Outcome
}

func (o Operation) String() string {
	return fmt.Sprintf("%s: %s %q, token %d %s, %s, from %d to %d",
		o.Client, o.Kind, o.Key, o.Token, o.Owner, o.Outcome, o.Call, o.Return)
}

// Check returns what is wrong with a history, "" if nothing is. It tries so many places for each key,
// and then gives up: gaveUp says of how many keys it does not know.
func Check(all []Operation, places int) (problem string, gaveUp int) {
	if problem := checkTokens(all); problem != "" {
		return problem, 0
	}
	keys := map[string][]Operation{}
	var names []string // in the order of the history, so that the same one is found each time
	for _, o := range all {
		if keys[o.Key] == nil {
			names = append(names, o.Key)
		}
		keys[o.Key] = append(keys[o.Key], o)
	}
	for _, name := range names {
		s := prepare(keys[name])
		s.budget = places
		switch {
		case s.from(place{}):
		case s.gaveUp:
			gaveUp++
		default:
			return fmt.Sprintf("no order of what was done to %q explains the answers; at the latest it fails at (%s)",
				name, s.done[s.furthest]), gaveUp
		}
	}
	return "", gaveUp
}

// checkTokens is about all keys together: no token is given out twice, or seen on two keys, and none
// that is asked for after somebody has seen another is the smaller one.
func checkTokens(all []Operation) string {
	granted := slices.DeleteFunc(slices.Clone(all), func(o Operation) bool {
		return o.Kind != Acquire || o.Outcome != OK
	})
	seen := slices.DeleteFunc(slices.Clone(all), func(o Operation) bool {
		return o.Outcome != OK || o.Token == 0
	})
	slices.SortStableFunc(granted, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	slices.SortStableFunc(seen, func(a, b Operation) int { return cmp.Compare(a.Return, b.Return) })
	keys := map[fsm.Token]string{}
	for _, o := range seen {
		if key, known := keys[o.Token]; known && key != o.Key {
			return fmt.Sprintf("token %d is of %q, too (%s)", o.Token, key, o)
		}
		keys[o.Token] = o.Key
	}
	given := map[fsm.Token]bool{}
	var greatest fsm.Token // that had been seen before the Acquire at hand was called
	for _, o := range granted {
		for len(seen) > 0 && seen[0].Return < o.Call {
			greatest = max(greatest, seen[0].Token)
			seen = seen[1:]
		}
		switch {
		case given[o.Token]:
			return fmt.Sprintf("token %d is given out twice (%s)", o.Token, o)
		case o.Token <= greatest:
			return fmt.Sprintf("the token goes back: %d had been seen before (%s)", greatest, o)
		}
		given[o.Token] = true
	}
	return ""
}
