package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// recovering is a cluster of three that S1 leads, in which A holds the door for a second.
const recovering = "nodes 3\ntimeout S1\nuntil leader S1\nA: acquire door lease=1s\nuntil A granted\nrun 100ms\n"

// Each thing that must follow is looked at in a cluster that does it, and in one that something stops.
func TestEachSentenceAboutProgressCanFailAndIsSilentWhenItHolds(t *testing.T) {
	all := 1_000_000
	lose := func(from, to Actor) func(*testing.T, *World) {
		return func(t *testing.T, w *World) {
			for _, c := range []Command{
				SetNetwork{From: from, To: to, LinkSpec: LinkSpec{LossPPM: &all}}, RunFor{For: 100 * time.Millisecond},
			} {
				if err := w.do(c); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	deaf := func(t *testing.T, w *World) { // it goes on leading, since the others still hear it
		w.config.checkQuorum = false
		lose("*", "S1")(t, w)
	}
	for _, c := range []struct {
		name   string
		config string
		stage  func(w *World, core []*node) bool
		stop   func(*testing.T, *World)
	}{
		{progressLeader, "", (*World).leads, func(t *testing.T, w *World) {
			if err := w.do(Crash{Node: "S1"}); err != nil {
				t.Fatal(err)
			}
			lose("*", "*")(t, w)
		}},
		{progressCommit, "config checkquorum=off\n", (*World).commits, deaf},
		{progressRead, "config checkquorum=off\n", (*World).reads, deaf},
		{progressExpire, "config checkquorum=off\n", (*World).expires, deaf},
		{progressConverge, "", (*World).converges, func(t *testing.T, w *World) {
			lose("*", "S3")(t, w)
			if err := w.do(Propose{Node: 1, Text: "x"}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for _, stopped := range []bool{false, true} {
			w := worldOf(t, scenario(t, c.config+recovering))
			if stopped {
				c.stop(t, w)
			}
			begun := w.now
			kept := c.stage(w, w.nodes)
			if took := w.now - begun; took > 5*trace.Second {
				t.Errorf("%s, stopped: %v: it took %s", c.name, stopped, took)
			}
			var broken []string
			for _, v := range w.broken {
				broken = append(broken, v.Invariant)
			}
			if stopped && (kept || !slices.Equal(broken, []string{c.name})) || !stopped && (!kept || len(broken) > 0) {
				t.Errorf("%s, stopped: %v: kept: %v, broken: %v", c.name, stopped, kept, broken)
			}
		}
	}
}

// Whoever is not in the majority keeps what it has.
func TestAMajorityHealsAndNobodyElse(t *testing.T) {
	t.Parallel()
	broken, crossed := 0, 0
	for seed := uint64(1); seed <= 40; seed++ {
		lines := fmt.Sprintf("nodes 5\nseed %d\nnetwork loss=10%%\n", seed)
		for i := 1; i <= 5; i++ {
			lines += fmt.Sprintf("clock S%d rate=0.7\n", i)
		}
		w := worldOf(t, scenario(t, lines+"timeout S1\nrun 500ms\ncut S1 S2 | S3 S4 S5\nstrike isolate S3\n"+
			"strike crash S2\nstrike crash S5\nstrike pause S1\ndisk S4 stall\n"))
		core := w.drawCore()
		if len(core) != 3 {
			t.Fatalf("seed %d: %d of 5 heal", seed, len(core))
		}
		if err := w.heal(core); err != nil {
			t.Fatal(err)
		}
		for _, n := range w.nodes {
			healed := n.alive && !n.paused && !n.disk.stalled && n.clock.rate == trueRate
			if healed != slices.Contains(core, n) {
				t.Errorf("seed %d: S%d is healed: %v", seed, n.id, healed)
			}
			for _, other := range w.nodes {
				l := w.links[n.index][other.index]
				if n == other {
					continue
				}
				if both := slices.Contains(core, n) && slices.Contains(core, other); both && (l.cut || l.lossPPM > 0) {
					t.Errorf("seed %d: S%d does not reach S%d", seed, n.id, other.id)
				} else if !both && l.lossPPM > 0 {
					crossed++
				}
			}
		}
		broken += len(w.nodes) - len(core)
	}
	if broken == 0 || crossed == 0 {
		t.Errorf("%d servers and %d links stayed as they were", broken, crossed)
	}
}

// A change that is not committed may be, and then its majority counts.
func TestASetInOneLogAloneCountsForTheMajority(t *testing.T) {
	w := worldOf(t, scenario(t, "nodes 5\n"))
	few := raft.Configuration{{ID: 1, Voter: true}, {ID: 2, Voter: true}, {ID: 3, Voter: true}}
	w.ledger.sets = []effective{{index: 4, members: few}}
	w.nodes[0].sets = append(w.nodes[0].sets, effective{index: 9, members: w.config.first()})
	if core := w.drawCore(); len(core) < 3 {
		t.Errorf("%d of five heal", len(core))
	}
	w.nodes[0].sets[1].index = 3 // it has been overtaken
	if core := w.drawCore(); len(core) != 2 {
		t.Errorf("%d of three heal", len(core))
	}
}
