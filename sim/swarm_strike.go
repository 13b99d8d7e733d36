package sim

import (
	"fmt"
	"slices"
	"time"

	"ticketing/raft"
)

// A Strike is a fault with a name, "strike crash leader for 300ms": it happens to whoever is the leader
// then, and it ends by itself. A fault that names its server says what happens; one that names a part
// says why that is bad.
//
// It is forgiving: a crash of a server that is down already does nothing, so a random run can have any
// number of them, and any of them can be taken away.
type Strike struct {
	What string        // see StrikeNames
	Who  string        // leader, candidate, it or a server; "" for a fault that chooses by itself
	For  time.Duration // 0 is for good
}

// On is "on committed #3 strike crash it for 300ms": the third time from now on that a server comes to
// that moment, it is struck in the midst of it.
type On struct {
	Moment string // see MomentNames
	Nth    int    // 0 is the first, the same as 1
	Strike
}

// Whom a strike may be for, besides a server by its name.
const (
	whoLeader    = "leader"    // of the highest term
	whoCandidate = "candidate" // who campaigns, or else would be the first to
	whoIt        = "it"        // who came to the moment
)

func (c Strike) String() string {
	return newLine("strike %s", c.What).when(c.Who != "", "%s", c.Who).
		when(c.For > 0, "for %s", brief(c.For)).String()
}

func (c On) String() string {
	return newLine("on %s", c.Moment).when(c.Nth > 0, "#%d", c.Nth).when(true, "%s", c.Strike).String()
}

// relief ends a strike. No file has one: a strike says itself how long it lasts.
type relief struct {
	Strike
	node *node
}

func (r relief) String() string { return fmt.Sprintf("the end of %s, on %s", r.Strike, r.node.name) }

// strikeKind is one kind of strike. What begins it returns whether it could be done.
type strikeKind struct {
	name  string
	aimed bool // at one server
	begin func(w *World, n *node, s Strike) bool
	end   func(w *World, n *node) Command // nil if it has no end of its own
}

// strikeKinds lists those that are for one server, then those that are made of others.
func strikeKinds() []strikeKind {
	return slices.Concat(processStrikes(), networkStrikes(), compoundStrikes())
}

// strikeCount is how many kinds there are; a test holds it to the list.
const strikeCount = 19

// StrikeNames lists the names of faults that strike knows.
func StrikeNames() (names []string) {
	for _, k := range strikeKinds() {
		names = append(names, k.name)
	}
	return names
}

func processStrikes() []strikeKind {
	crash := func(how string) func(*World, *node, Strike) bool {
		return func(w *World, n *node, _ Strike) bool {
			return n.alive && w.tells(Crash{Node: n.name, How: how})
		}
	}
	restart := func(w *World, n *node) Command {
		if n.alive {
			return nil
		}
		return Restart{Node: n.name}
	}
	resume := func(w *World, n *node) Command {
		if !n.alive || !n.paused {
			return nil
		}
		return Resume{Node: n.id}
	}
	diskIsFine := func(w *World, n *node) Command { return SetDisk{Node: n.name, Do: "ok"} }
	return []strikeKind{
		{"crash", true, crash(""), restart},
		{"tear", true, crash("torn"), restart},
		{"scatter", true, crash("some"), restart},
		{"pause", true, func(w *World, n *node, _ Strike) bool {
			return n.alive && !n.paused && w.tells(Pause{Node: n.id})
		}, resume},
		{"stall", true, func(w *World, n *node, _ Strike) bool {
			return n.alive && w.tells(SetDisk{Node: n.name, Do: "stall"})
		}, diskIsFine},
		{"wreck", true, (*World).wreck, restart},
		{"spoil", true, func(w *World, n *node, _ Strike) bool {
			return n.alive && w.tells(SetDisk{Node: n.name, Do: "fail"})
		}, restart},
		{"transfer", true, (*World).handAway, nil},
	}
}

func networkStrikes() []strikeKind {
	cut := func(from, to bool) func(*World, *node, Strike) bool {
		return func(w *World, n *node, _ Strike) bool {
			return len(w.nodes) > 1 &&
				(!from || w.tells(CutOne{From: n.name, To: Everyone})) && (!to || w.tells(CutOne{From: Everyone, To: n.name}))
		}
	}
	heal := func(w *World, n *node) Command {
		w.tells(Heal{From: n.name, To: Everyone})
		return Heal{From: Everyone, To: n.name}
	}
	hold := func(w *World, n *node, again bool) bool {
		return len(w.nodes) > 1 && w.tells(Hold{Messages: Messages{From: Everyone, To: n.name}, Again: again}) &&
			w.tells(Hold{Messages: Messages{From: n.name, To: Everyone}, Again: again})
	}
	return []strikeKind{
		{"isolate", true, cut(true, true), heal},
		{"mute", true, cut(true, false), heal},
		{"deafen", true, cut(false, true), heal},
		{"delay", true, func(w *World, n *node, _ Strike) bool { return hold(w, n, false) },
			func(w *World, n *node) Command { hold(w, n, true); return nil }},
	}
}

// tells carries out a command that a strike consists of.
func (w *World) tells(c Command) bool {
	if err := w.do(c); err != nil && w.failure == nil {
		w.failure, w.halted = err, true
	}
	return !w.halted
}

// wreck lets writes pile up, and takes the power away half-way: what was answered too early is lost.
func (w *World) wreck(n *node, s Strike) bool {
	if !n.alive || !w.tells(SetDisk{Node: n.name, Do: "stall"}) {
		return false
	}
	w.later(s.For/2, Strike{What: "crash", Who: string(n.name)})
	return true
}

// handAway makes a server hand its leadership to whichever other is drawn; one that does not lead
// refuses.
func (w *World) handAway(n *node, _ Strike) bool {
	others := slices.DeleteFunc(w.shuffled("transfer"), func(other *node) bool { return other == n })
	return n.alive && !n.paused && n.status.Role == raft.Leader && len(others) > 0 &&
		w.tells(Transfer{From: n.id, To: others[0].id})
}

// doStrike is what lines about strikes say.
func (w *World) doStrike(command Command) error {
	switch c := command.(type) {
	case Strike:
		w.strike(c, nil)
	case On:
		w.arms(c)
	case relief:
		w.relieve(c)
	case Recover:
		return w.recover()
	}
	return nil
}

// strike carries out a strike. it is who came to a moment, nil if nobody did.
func (w *World) strike(s Strike, it *node) {
	if w.recovering {
		return
	}
	kinds := strikeKinds()
	i := slices.IndexFunc(kinds, func(k strikeKind) bool { return k.name == s.What })
	n := w.struck(s.Who, it)
	if kinds[i].aimed && (n == nil || n.boots == 0) {
		return
	}
	w.steps++
	w.traceCommand(s)
	if !kinds[i].begin(w, n, s) {
		return
	}
	w.counters[countStrikes+counter(i)]++
	if s.For > 0 && kinds[i].end != nil {
		w.later(s.For, relief{s, n})
	}
}

// relieve ends a strike, if there is something to end: somebody else may have done it.
func (w *World) relieve(r relief) {
	kinds := strikeKinds()
	i := slices.IndexFunc(kinds, func(k strikeKind) bool { return k.name == r.What })
	if w.recovering {
		return
	}
	if c := kinds[i].end(w, r.node); c != nil {
		w.tells(c)
	}
	if r.What == "spoil" { // or its disk would fail at its next write, long after
		r.node.disk.failNext = false
	}
}

// later schedules a command that a strike consists of.
func (w *World) later(after time.Duration, c Command) {
	w.commands = append(w.commands, c)
	w.pending++
	w.schedule(event{at: w.now + micros(after), kind: eventCommand, slot: uint32(len(w.commands) - 1)})
}
