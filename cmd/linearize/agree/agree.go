// Package agree asks two judges about the same histories: package linear, which every random run of
// the simulator ends with, and a plain model of the lock table under porcupine. They share the form
// of a history and nothing else. A history that they do not agree on is a mistake in one of them.
//
// Histories are drawn from a seed: a lock table that is right, with times of its own. For every other
// seed it forgets a lock now and then, and some answers and times are changed afterwards. That does
// not always make a history wrong.
package agree

import (
	"github.com/anishathalye/porcupine"

	"ticketing/fsm"
	"ticketing/sim/linear"
)

// Counts is what came of some histories.
type Counts struct {
	Good, Bad int // as porcupine says
	GaveUp    int // keys that package linear does not know about
	Differ    int
	First     uint64 // the first seed on which the two differ
	// How much of what makes a history hard there was: requests of unknown outcome, locks that were
	// seen and that no answer tells of, and refusals.
	Unknown, Seen, Refused int
}

// places is more than any of these short histories needs.
const places = 1_000_000

// Ask judges the histories of some seeds, by the model as it is or with a mistake in it.
func Ask(from, to uint64, mistake Mistake) Counts {
	var c Counts
	for seed := from; seed <= to; seed++ {
		all := history(seed)
		c.count(all)
		good := tokensRise(all) && porcupine.CheckOperations(lockTable(mistake), prepare(all))
		problem, gaveUp := linear.Check(all, places)
		c.GaveUp += gaveUp
		if good {
			c.Good++
		} else {
			c.Bad++
		}
		if good == (problem == "") {
			continue
		}
		if c.Differ++; c.Differ == 1 {
			c.First = seed
		}
	}
	return c
}

func (c *Counts) count(all []linear.Operation) {
	answered := map[fsm.Token]bool{0: true}
	for _, o := range all {
		answered[o.Token] = answered[o.Token] || o.Kind == linear.Acquire
	}
	for _, o := range all {
		switch {
		case o.Outcome == linear.Unknown:
			c.Unknown++
		case !answered[o.Token]:
			c.Seen++
		case o.Kind == linear.Acquire && o.Outcome == linear.No:
			c.Refused++
		}
	}
}

// tokensRise restates what tokens promise over all keys, for each two operations.
func tokensRise(all []linear.Operation) bool {
	sees := func(o linear.Operation) bool { return o.Outcome == linear.OK && o.Token != 0 }
	for i, a := range all {
		for j, b := range all {
			granted := a.Kind == linear.Acquire
			twice := granted && i != j && b.Kind == linear.Acquire && a.Token == b.Token
			back := granted && b.Return < a.Call && b.Token >= a.Token
			moved := a.Token == b.Token && a.Key != b.Key
			if sees(a) && sees(b) && (twice || back || moved) {
				return false
			}
		}
	}
	return true
}
