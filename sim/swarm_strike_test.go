package sim

import (
	"strings"
	"testing"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// struckWorld is a cluster that S1 leads, in which A holds the door.
const struckWorld = "nodes 3\nconfig election=1s heartbeat=100ms\ntimeout S1\nuntil leader S1\n" +
	"A: acquire door lease=30s\nuntil A granted\nrun 300ms\n"

func TestAStrikeDoesWhatItSaysAndEndsByItself(t *testing.T) {
	cut := func(w *World, from, to int) bool { return w.links[from][to].cut }
	s1 := func(w *World) *node { return w.nodes[0] }
	for what, is := range map[string]func(w *World) bool{
		"crash leader":    func(w *World) bool { return !s1(w).alive },
		"tear S1":         func(w *World) bool { return !s1(w).alive },
		"scatter S1":      func(w *World) bool { return !s1(w).alive },
		"pause leader":    func(w *World) bool { return s1(w).paused },
		"stall S1":        func(w *World) bool { return s1(w).disk.stalled },
		"spoil S1":        func(w *World) bool { return s1(w).disk.failNext },
		"isolate S1":      func(w *World) bool { return cut(w, 0, 1) && cut(w, 2, 0) },
		"mute S1":         func(w *World) bool { return cut(w, 0, 1) && !cut(w, 1, 0) },
		"deafen S1":       func(w *World) bool { return !cut(w, 0, 1) && cut(w, 1, 0) },
		"delay S1":        func(w *World) bool { return w.links[0][1].holds > 0 && w.links[2][0].holds > 0 },
		"pause-holder":    func(w *World) bool { return w.clients[0].paused },
		"bridge":          func(w *World) bool { return cut(w, 0, 1) || cut(w, 1, 2) || cut(w, 2, 0) },
		"clock-fan-out":   func(w *World) bool { return s1(w).clock.rate != trueRate || w.nodes[1].clock.rate != trueRate },
		"pause candidate": func(w *World) bool { return w.nodes[1].paused || w.nodes[2].paused },
	} {
		w := worldOf(t, scenario(t, struckWorld))
		if err := w.do(parseLine(t, "strike "+what+" for 400ms")); err != nil {
			t.Fatal(err)
		}
		w.advance(w.now + 50*trace.Millisecond)
		if !is(w) {
			t.Errorf("%s has not happened", what)
		}
		w.advance(w.now + trace.Second)
		if is(w) {
			t.Errorf("%s has not ended", what)
		}
		if name, _, _ := strings.Cut(what, " "); w.counters.named("strikes."+name) != 1 {
			t.Errorf("%s is not counted", what)
		}
	}
}

// Strikes that take their time are looked at while they last.
func TestAStrikeThatIsMadeOfOthersGoesThroughThemAll(t *testing.T) {
	for what, c := range map[string]struct {
		counter string
		least   int64
	}{
		"swizzle":         {"strikes.isolate", 3},
		"rolling-restart": {"restarts", 3},
		"ping-pong":       {"strikes.isolate", 2},
		"candidate-storm": {"strikes.isolate", 1},
		"wreck S2":        {"crashes", 1},
		"transfer leader": {"transfers.done", 1},
	} {
		w := worldOf(t, scenario(t, struckWorld+"strike "+what+" for 6s\nrun 9s\n"))
		if got := w.counters.named(c.counter); got < c.least {
			t.Errorf("%s: %s is %d, want %d or more", what, c.counter, got, c.least)
		}
	}
}

func TestAStrikeThatCannotBeDoesNothing(t *testing.T) {
	w := worldOf(t, scenario(t, "nodes 1\ncrash S1\nstrike crash S1 for 100ms\nstrike pause S1 for 100ms\n"+
		"strike isolate leader for 100ms\nstrike pause-holder for 100ms\nstrike ping-pong for 1s\nrun 1s\n"))
	for _, name := range StrikeNames() {
		if n := w.counters.named("strikes." + name); n != 0 {
			t.Errorf("%s happened %d times", name, n)
		}
	}
	if w.nodes[0].alive {
		t.Error("what did not take S1 down has brought it up")
	}
}

// Each moment is where its name says: what has not left the server by then never does.
func TestAFaultAtAMomentComesInTheMidstOfIt(t *testing.T) {
	const setUp = "nodes 3\nconfig election=1s heartbeat=100ms\n"
	const leads = setUp + "timeout S1\nuntil leader S1\nrun 300ms\n"
	for _, c := range []struct {
		what, lines string
		is          func(w *World) bool
	}{
		{"a leader that has committed tells nobody", leads + "propose S1 x\non committed strike crash it\nrun 300ms\n",
			func(w *World) bool {
				i := w.nodes[0].status.CommitIndex
				return !w.nodes[0].alive && i == 2 && w.nodes[1].status.CommitIndex < i && w.nodes[2].status.CommitIndex < i
			}},
		{"nobody hears of a new leader", setUp + "on elected strike crash it\ntimeout S1\nrun 500ms\n",
			func(w *World) bool {
				return w.nodes[0].status.Role == raft.Leader && !w.nodes[0].alive &&
					w.counters.named("messages.append") == 0
			}},
		{"a client does not hear of its Grant",
			leads + "on granted strike crash it\nA: acquire door lease=9s\nrun 1s\n",
			func(w *World) bool { return w.ledger.holder["door"] == 1 && w.clients[0].token == 0 }},
		{"a vote that is granted is lost", setUp + "on voted strike crash it\ntimeout S1\nrun 100ms\n",
			func(w *World) bool {
				for _, n := range w.nodes[1:] {
					if !n.alive {
						return n.status.VotedFor == 1 && n.disk.durable.VotedFor == 0
					}
				}
				return false
			}},
		{"entries that a follower has stored are lost", leads + "on stored strike crash it\npropose S1 x\nrun 100ms\n",
			func(w *World) bool {
				for _, n := range w.nodes[1:] {
					if !n.alive {
						return n.status.LastIndex == 2 && n.disk.last() == 1
					}
				}
				return false
			}},
		{"the third time and no other", leads + "on committed #3 strike crash it\npropose S1 x\nrun 300ms\n" +
			"propose S1 y\nrun 300ms\nexpect leader S1\npropose S1 z\nrun 300ms\n",
			func(w *World) bool { return !w.nodes[0].alive && w.nodes[0].status.CommitIndex == 4 }},
	} {
		if w := worldOf(t, scenario(t, c.lines)); !c.is(w) {
			t.Errorf("%s: it did not", c.what)
		}
	}
}

func TestTheListsOfCountersAreAsLongAsWhatTheyCount(t *testing.T) {
	if n := len(strikeKinds()); n != strikeCount {
		t.Errorf("there are %d kinds of strikes, and counters for %d", n, strikeCount)
	}
	if n := len(turnings()); n != turningCount {
		t.Errorf("there are %d moments, and counters for %d", n, turningCount)
	}
}
