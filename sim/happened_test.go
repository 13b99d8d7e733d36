package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

// A counter that counts everything, or nothing, would let a search pass that has seen nothing. So each
// is shown a scenario in which its moment comes, and one much like it in which it does not.
func TestEachHappeningIsCountedWhenItHappensAndNotOtherwise(t *testing.T) {
	scenarios := map[string][2]string{ // with it, without
		"expire.newer":          {"late-expire", "duplicate-expire"},
		"expire.free":           {"duplicate-expire", "late-expire"},
		"expire.existed":        {"paused-holder", "late-expire"},
		"expire.outlived":       {"old-leader-timer", "slow-clock"},
		"grant.rejected":        {"two-grants", "once"},
		"grant.late":            {"lapsed-grant", "extend"},
		"beliefs.overlap":       {"fast-clock", "paused-holder"},
		"cleanups":              {"ghost-lock", "paused-holder"},
		"release.not-found":     {"late-release", "fence-strict"},
		"extend.extended":       {"extend", "extend-never-creates"},
		"extend.refused":        {"extend-race", "extend"},
		"extend.not-found":      {"extend-never-creates", "extend"},
		"refused":               {"fence-strict", "fence-check-then-act"},
		"repeated":              {"once", "lapsed-grant"},
		"sessions.evicted":      {"evicted", "once-closed"},
		"sessions.unknown":      {"evicted", "once-closed"},
		"answers.unknown":       {"deposed-proposals", "withdrawn"},
		"leaders.two":           {"minority-partition", "transfer"},
		"leaders.inherit":       {"figure-8", "election"},
		"elections.again":       {"split-vote", "election"},
		"deposed.uncommitted":   {"old-messages", "transfer"},
		"deposed.alone":         {"stalled-leader", "member-remove-leader"},
		"reads.deposed":         {"read-deposed", "read-index"},
		"transfers.done":        {"transfer", "transfer-dead"},
		"transfers.given-up":    {"transfer-dead", "transfer"},
		"truncations":           {"log-repair", "restart-follower"},
		"commits.earlier-term":  {"old-entries-commit", "election"},
		"commits.ahead-of-disk": {"stalled-leader", "slow-disk"},
		"torn":                  {"crash-torn", "power-loss"},
		"snapshots.installed":   {"snapshot-catch-up", "restart-follower"},
		"snapshots.suffix":      {"snapshot-suffix", "snapshot-conflict"},
		"snapshots.conflict":    {"snapshot-conflict", "snapshot-suffix"},
		"snapshots.resent":      {"snapshot-lost-chunk", "snapshot-catch-up"},
		"snapshots.lost":        {"snapshot-power-loss", "snapshot-suffix"},
		"snapshots.unnamed":     {"snapshot-power-loss", "snapshot-crash"},
		"members.added":         {"member-add", "member-remove"},
		"members.changed":       {"member-add", "election"},
		"members.promoted":      {"member-add", "member-remove"},
		"members.removed":       {"member-remove", "member-add"},
		"members.refused":       {"member-too-early", "member-add"},
		"members.unknown":       {"member-fallback", "member-remove"},
		"members.taken-back":    {"member-fallback", "member-own-term"},
		"members.left":          {"member-remove-leader", "member-remove"},
		"clocks.drifting":       {"fast-clock", "wall-jump"},
		"clocks.stopped":        {"stopped-clock", "slow-clock"},
		"clocks.wandering":      {"clock-wander", "clock-slew"},
		"clocks.slewed":         {"clock-slew", "clock-wander"},
		"clocks.jumped":         {"wall-jump", "wall-strobe"},
		"clocks.strobed":        {"wall-strobe", "wall-jump"},
		"timers.late":           {"late-timers", "clock-slew"},
		"suspends":              {"suspended-holder", "paused-holder"},
		"crashes.kept-none":     {"crash-writing", "crash-keep"},
		"crashes.kept-some":     {"crash-keep", "crash-writing"},
		"crashes.kept-all":      {"crash-keep", "power-loss"},
		"crashes.writing":       {"crash-writing", "crash-keep"},
		"writes.reordered":      {"disk-reorder", "disk-error"},
		"stopped":               {"disk-error", "crash-writing"},
		"disks.lost":            {"disk-replaced", "lost-disk"},
		"disks.spared":          {"disk-spared", "disk-replaced"},
	}
	var listed []string
	for _, h := range Happenings() {
		if h.Counter != "runs.both" { // no scenario has snapshots that nobody orders
			listed = append(listed, h.Counter)
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(scenarios)), listed); diff != "" {
		t.Fatalf("scenarios here and happenings there:\n%s", diff)
	}
	if len(listed) < 25 {
		t.Errorf("there are only %d", len(listed))
	}
	for name, pair := range scenarios {
		with, without := counted(t, pair[0], name), counted(t, pair[1], name)
		if with == 0 || without != 0 {
			t.Errorf("%s: %d in %s and %d in %s, where there is none", name, with, pair[0], without, pair[1])
		}
	}
}

// counted runs a scenario of the library, which holds, and returns one of its counters.
func counted(t *testing.T, scenario, counter string) int64 {
	t.Helper()
	s, err := Load(scenario)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(s, Options{})
	if err != nil || !r.Held() {
		t.Fatalf("%s: %v", scenario, err)
	}
	return r.Count(counter)
}

func TestWhatHasNotHappenedIsListed(t *testing.T) {
	none := &Findings{}
	if got, want := len(none.Unseen()), len(Happenings()); got != want {
		t.Errorf("before the first run %d of %d are listed", got, want)
	}
	some := &Findings{}
	if err := some.Include(Findings{Seeds: 2, Last: 9}, map[string]int64{"torn": 3, "lost": 1}); err != nil {
		t.Fatal(err)
	}
	unseen := some.Unseen()
	torn := slices.ContainsFunc(unseen, func(h Happening) bool { return h.Counter == "torn" })
	if torn || len(unseen) != len(Happenings())-1 || some.Seeds != 2 || some.Last != 9 {
		t.Errorf("%+v lists %v", some, unseen)
	}
	if err := some.Include(Findings{}, map[string]int64{"tron": 1}); err == nil || !strings.Contains(err.Error(), `"tron"`) {
		t.Errorf("a counter that there is not: %v", err)
	}
}

// What has been added up from parts is what the whole comes to.
func TestFindingsOfPartsAddUpToThoseOfTheWhole(t *testing.T) {
	whole := exploring(t, Search{From: 1, To: 40, Faults: "harsh"})
	sum := &Findings{First: 1}
	for from := uint64(1); from <= 40; from += 20 {
		part := exploring(t, Search{From: from, To: from + 19, Faults: "harsh"})
		if err := sum.Include(*part, part.Counters()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(whole.Counters(), sum.Counters()); diff != "" {
		t.Error(diff)
	}
	if sum.Seeds != 40 || sum.Last != 40 || sum.SimTime != whole.SimTime || sum.Steps != whole.Steps {
		t.Errorf("%d seeds up to %d, %s simulated, %d events", sum.Seeds, sum.Last, sum.SimTime, sum.Steps)
	}
}

// What no two scenarios tell apart is shown by hand.
func TestWhoTriesAgainAndWhoStepsDownAlone(t *testing.T) {
	follower := raft.Status{Role: raft.Follower, Term: 2}
	candidate := raft.Status{Role: raft.Candidate, Term: 2}
	leader := raft.Status{Role: raft.Leader, Term: 2}
	in := func(s raft.Status, term raft.Term) raft.Status {
		s.Term = term
		return s
	}
	for _, tt := range []struct {
		name          string
		before, after raft.Status
		left          bool
		again, alone  int64
	}{
		{"a first campaign", follower, in(candidate, 3), false, 0, 0},
		{"another one", candidate, in(candidate, 3), false, 1, 0},
		{"one that goes on", candidate, candidate, false, 0, 0},
		{"a leader without a majority", leader, follower, false, 0, 1},
		{"a leader that was removed", leader, follower, true, 0, 0},
		{"a leader that saw a higher term", leader, in(follower, 3), false, 0, 0},
	} {
		w := &World{}
		w.countLead(&node{}, &tt.before, &tt.after, tt.left)
		if again, alone := w.counters[countElectionsAgain], w.counters[countDeposedAlone]; again != tt.again || alone != tt.alone {
			t.Errorf("%s: elections.again %d, deposed.alone %d", tt.name, again, alone)
		}
	}
}
