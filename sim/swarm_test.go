package sim

import (
	"strings"
	"testing"
)

// swarmSeeds is how many seeds the tests of a plan look at. It takes some ten milliseconds.
const swarmSeeds = 300

func TestEachClassOfFaultsIsInForSomeSeedsAndOutForOthers(t *testing.T) {
	in, sizes := map[string]int{}, map[int]int{}
	for seed := uint64(1); seed <= swarmSeeds; seed++ {
		s := drawSwarm(planner{seed: seed, keys: []string{"door"}}, 0)
		sizes[s.nodes]++
		for c := range classCount {
			if s.in[c] {
				in[classNames[c]]++
			}
		}
	}
	for c := range classCount {
		if n := in[classNames[c]]; n < swarmSeeds/40 || n > swarmSeeds*3/5 {
			t.Errorf("%q is in for %d of %d seeds", classNames[c], n, swarmSeeds)
		}
	}
	for n := 1; n <= 7; n++ {
		if sizes[n] == 0 {
			t.Errorf("no seed has %d servers", n)
		}
	}
}

// A class that is drawn and then does nothing would be missed by nobody.
func TestARunIsAnotherOneWithoutAClassOfFaultsThatItHas(t *testing.T) {
	plan := func(seed uint64, out class) (text string, was bool) {
		s := drawSwarm(planner{seed: seed, keys: []string{"door", "gate"}}, 5)
		if out >= 0 {
			was, s.in[out] = s.in[out], false
		}
		lines := s.scenario().Lines[1:] // without what it says that it drew
		return (&Scenario{Lines: lines}).String(), was
	}
	for c := range classCount {
		runs, others := 0, 0
		for seed := uint64(1); seed <= 60; seed++ {
			before, _ := plan(seed, -1)
			after, was := plan(seed, c)
			if !was && before != after {
				t.Errorf("seed %d: without %s, which it does not have, it is another run", seed, classNames[c])
			}
			if was {
				runs++
				if before != after {
					others++
				}
			}
		}
		if others < runs*2/3 || others == 0 {
			t.Errorf("without %s only %d of %d runs are others", classNames[c], others, runs)
		}
	}
}

// The wait for the leader's own entry is part of the gate: without it alone, a Grant is rejected.
func TestRulesGoOnlyWhereNothingDependsOnThem(t *testing.T) {
	seen := map[string]int{}
	batches := map[int]int{}
	for seed := uint64(1); seed <= swarmSeeds; seed++ {
		rules := ""
		for _, l := range swarmPlan(t, seed).Lines {
			switch c := l.Command.(type) {
			case SetWithout:
				rules = strings.Join(c.Rules, " ")
			case SetConfig:
				batches[c.Batch]++
				if c.Heartbeat*3 > c.Election || c.Batch < 1 || c.Batch > 64 || c.Window < 1 || c.Window > 16 {
					t.Errorf("seed %d: %s", seed, c)
				}
			}
		}
		seen[rules]++
	}
	if len(seen) != 3 || seen[""] == 0 || seen["gate"] == 0 || seen["gate noop-wait"] == 0 {
		t.Errorf("the rules that are taken away: %v", seen)
	}
	if batches[1] == 0 || batches[64] == 0 || len(batches) < 20 {
		t.Errorf("the batches: %v", batches)
	}
}

func swarmPlan(t *testing.T, seed uint64) *Scenario {
	t.Helper()
	plan, err := Plan(seed, "swarm", 0)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestHalfOfTheFaultsAreForTheLeader(t *testing.T) {
	at, all := map[string]int{}, 0
	for seed := uint64(1); seed <= swarmSeeds; seed++ {
		for _, l := range swarmPlan(t, seed).Lines {
			if c, ok := l.Command.(At); ok {
				if s, ok := c.Command.(Strike); ok && s.Who != "" && s.For > 0 {
					at[s.Who]++
					all++
				}
			}
		}
	}
	if n := at[whoLeader]; n < all*45/100 || n > all*55/100 {
		t.Errorf("%d of %d faults are for the leader", n, all)
	}
	if n := at[whoCandidate]; n < all*20/100 || n > all*30/100 {
		t.Errorf("%d of %d faults are for the next candidate", n, all)
	}
}

// Rates are drawn so that each doubling is as likely as the next.
func TestDrawsAreLogarithmic(t *testing.T) {
	octaves := map[int]int{}
	const draws = 6000
	for i := range draws {
		p := &planner{seed: 7}
		n := p.logarithmic(topicShape, i, 0, 1, 63)
		if n < 1 || n > 63 {
			t.Fatalf("%d is not between 1 and 63", n)
		}
		for o := 0; ; o++ {
			if n>>o <= 1 {
				octaves[o]++
				break
			}
		}
	}
	for o := range 6 {
		if n := octaves[o]; n < draws/6*8/10 || n > draws/6*12/10 {
			t.Errorf("%d of %d draws are from %d to %d", n, draws, 1<<o, 2<<o-1)
		}
	}
}

// A search is worth something only if what it looks for does happen in it.
func TestEveryStrikeAndEveryMomentComesInASwarm(t *testing.T) {
	t.Parallel()
	f := exploring(t, Search{From: 1, To: 400, Faults: "swarm"})
	f.held(t)
	for _, name := range StrikeNames() {
		f.happened(t, 1, "strikes."+name)
	}
	for _, name := range MomentNames() {
		f.happened(t, 1, "moments."+name)
	}
	f.happened(t, 400, "recoveries")
	f.happened(t, 40, "recoveries.leaderless", "recoveries.broken", "recoveries.lapsed")
	f.happened(t, 1, "expire.newer", "sessions.evicted", "members.taken-back", "snapshots.conflict", "grant.rejected")
}

func TestARunSaysWhatItDrew(t *testing.T) {
	r, err := Search{Faults: "swarm"}.Run(7, Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	text := Transcript(r.Trace, Style{})
	for _, want := range []string{"drew ", "config election="} {
		if !strings.Contains(text, want) {
			t.Errorf("the transcript does not say %q", want)
		}
	}
}
