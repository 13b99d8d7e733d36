package sim

import (
	"slices"
	"time"

	"ticketing/fsm/trace"
)

// This file turns what the network does by chance into lines that say so. Most of it was not needed:
// those lines go, and with them the shares of a network that loses and delays at random. Duplicates stay
// to chance.

// An effect is something that the network did by chance to one message.
type effect struct {
	what     string // drop or slow
	at       trace.Time
	delay    trace.Time // if it is slow
	messages Messages   // of its link and kind;
	nth      int        // of those in flight, the oldest being 1, it is this one
}

// note writes down an effect on a message that is, or would be, the newest on its link.
func (w *World) note(f *flight, what string, delay trace.Time) {
	if w.effects == nil || f.kind >= messageDisconnect { // the language has no names for these
		return
	}
	of := Messages{From: w.actors[f.from].name, To: w.actors[f.to].name, Kind: f.kind.String()}
	nth := len(w.selected(of))
	if what == "drop" {
		nth++
	}
	*w.effects = append(*w.effects, effect{what, w.now, delay, of, nth})
}

// lines is the effect as the language says it. A message can be dropped once it is in flight,
// but what is to be held must be before it is sent.
func (e effect) lines() []Command {
	if e.what == "slow" {
		return []Command{
			At{Time: duration(e.at), Command: Hold{Messages: e.messages}},
			At{Time: duration(e.at + e.delay), Command: Hold{Messages: e.messages, Again: true}},
		}
	}
	nth := e.nth
	if nth == 1 {
		nth = 0 // the oldest need not be counted
	}
	return []Command{
		At{Time: duration(e.at) + time.Microsecond, Command: Deliver{Verb: "drop", Messages: e.messages, Nth: nth}},
	}
}

// explicit says what the network does by chance, if what is left then is less, and reports whether it
// is.
func (m *shrinker) explicit() bool {
	i := slices.IndexFunc(m.lines, func(c Command) bool { return chances(c) > 0 })
	if i < 0 {
		return false
	}
	before := *m.best
	lines, at := m.lines, m.at
	sure := slices.Clone(lines)
	if n := withoutChances(sure[i].(SetNetwork)); n.LinkSpec != (LinkSpec{}) {
		sure[i] = n
	} else {
		sure = slices.Delete(sure, i, i+1)
	}
	said, units := spelledOut(sure, m.effects())
	if len(said) > mostEffects || !m.try(said) && !m.tryAlone(said, units) {
		return false
	}
	m.dropLines()
	if m.best.After >= before.After+chanceWeight*chances(lines[i]) {
		before.Runs = m.best.Runs
		*m.best, m.lines, m.at = before, lines, at
		return false
	}
	return true
}

// tryAlone tries one of the effects without the others: said together they are not quite what they
// were, and a message that one of them names may not be there.
func (m *shrinker) tryAlone(said []Command, units [][]int) bool {
	for i := range units {
		if m.try(without(said, units, units[i:i+1])) {
			return true
		}
	}
	return false
}

// spelledOut is lines with effects among them, and the effects' own lines as units. What is scheduled
// may stand anywhere; in front, no run or until comes before it. The run goes on a little longer, as what
// follows may come later.
func spelledOut(lines []Command, effects []effect) (said []Command, units [][]int) {
	first := slices.IndexFunc(append(slices.Clone(lines), RunFor{}), endsSetUp)
	said = slices.Clone(lines[:first])
	for _, e := range effects {
		var unit []int
		for _, c := range e.lines() {
			unit = append(unit, len(said))
			said = append(said, c)
		}
		units = append(units, unit)
	}
	said = append(said, lines[first:]...)
	if last, ok := said[len(said)-1].(RunFor); ok {
		said[len(said)-1] = RunFor{For: last.For + time.Second}
	}
	return said, units
}

func withoutChances(n SetNetwork) SetNetwork {
	n.TailSet, n.TailPPM, n.Tail, n.LossPPM = false, 0, 0, nil
	return n
}

const (
	chanceWeight = 3   // how many lines a share of the network may cost to be rid of
	mostEffects  = 400 // lines; a run with more of them is not made short so
)

// chances counts the shares that a set-up line leaves to chance.
func chances(c Command) int {
	n, ok := c.(SetNetwork)
	count := 0
	for _, set := range []bool{n.TailSet, n.LossPPM != nil} {
		if ok && set {
			count++
		}
	}
	return count
}

// effects runs the best so far again and writes down what the network does.
func (m *shrinker) effects() []effect {
	var effects []effect
	if _, err := Run(m.best.Scenario, Options{MaxSteps: m.maxSteps, effects: &effects}); err != nil {
		return nil
	}
	return effects
}
