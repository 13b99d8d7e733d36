package sim

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm/trace"
)

func exploring(t *testing.T, s Search) *Findings {
	t.Helper()
	f, err := s.Explore(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The search is only worth something if what it looks for does happen in it.
//
//spec:test Expire.Token
//spec:test Release.Token
func TestRandomRunsHoldAndTheInterestingThingsHappen(t *testing.T) {
	exploring(t, Search{From: 1, To: 600, Faults: "mild"}).held(t)
	f := exploring(t, Search{From: 1, To: 1500, Faults: "harsh"})
	f.held(t)
	f.happened(t, 1, "expire.newer", "expire.existed", "expire.free", "grant.granted", "release.released",
		"elections", "deposed.uncommitted", "truncations", "crashes", "torn", "pauses", "cuts", "lost",
		"duplicated", "refused", "written", "cleanups", "answers.unknown", "grant.late", "repeated",
		"extend.extended", "extend.refused", "extend.not-found", "sessions.evicted", "sessions.unknown")
	f.happened(t, 1, "reads", "reads.failed", "messages.read", "messages.read-reply", "transfers", "transfers.done",
		"transfers.given-up", "transfers.refused", "messages.transfer", "messages.transfer-reply")
	f.happened(t, 500, "snapshots", "snapshots.sent", "snapshots.installed", "snapshots.restored", "snapshots.lost",
		"snapshots.resent", "snapshots.refused")
	f.happened(t, 5, "snapshots.suffix", "snapshots.conflict", "snapshots.unnamed")
	f.happened(t, 500, "members.changed", "members.refused", "members.added", "members.promoted", "members.removed",
		"members.unknown")
	f.happened(t, 50, "members.taken-back", "members.left")
	f.happened(t, f.Seeds*2/5, "runs.both")
}

func (f *Findings) held(t *testing.T) {
	t.Helper()
	if f.Failed != nil {
		t.Fatalf("%s: %v, %v; again: raftsim replay -seed %d",
			f.Failed.Scenario.Name, f.Failed.Unexpected(), f.Failed.Failure, f.Last)
	}
}

// happened asks that each of some things did, so many times or more.
func (f *Findings) happened(t *testing.T, least int64, names ...string) {
	t.Helper()
	for _, name := range names {
		if got := f.Count(name); got < least {
			t.Errorf("in %d runs %q happened %d times, want at least %d", f.Seeds, name, got, least)
		}
	}
}

// A run has both only if its servers took snapshots by themselves and a change was committed. What a
// change was is counted, too.
func TestARunHasBothOnlyIfServersTookSnapshotsWhileOthersCameAndWent(t *testing.T) {
	const changing = "timeout S1\nuntil leader S1\nadd S4\nuntil S1 members=S1,S2,S3,S4 commit=3\nremove S4\nuntil S1 commit=4\n"
	for name, c := range map[string]struct {
		lines                        string
		both, added, promoted, taken int64
	}{
		"neither":             {"timeout S1\nuntil leader S1\nuntil converged\n", 0, 0, 0, 0},
		"changes alone":       {changing, 0, 1, 1, 1},
		"one by command":      {changing + "snapshot S1\nrun 100ms\n", 0, 1, 1, 1},
		"both":                {"config snapshot=2\n" + changing + "run 100ms\n", 1, 1, 1, 1},
		"snapshots by itself": {"config snapshot=2\ntimeout S1\nuntil leader S1\npropose S1 x\npropose S1 y\nrun 1s\n", 0, 0, 0, 0},
	} {
		r, err := Run(scenario(t, c.lines), Options{})
		if err != nil || !r.Held() {
			t.Fatalf("%s: %v, %v", name, err, r.Failure)
		}
		got := []int64{r.Count("runs.both"), r.Count("members.added"), r.Count("members.promoted"), r.Count("members.removed")}
		if want := []int64{c.both, c.added, c.promoted, c.taken}; !slices.Equal(got, want) {
			t.Errorf("%s: both, added, promoted, removed are %v, want %v", name, got, want)
		}
	}
}

// The cores' own invariants, which cost too much for a search, are asked after every input of some
// runs.
func TestRandomRunsAreFineInDepth(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		r, err := Search{Faults: "harsh"}.Run(seed, Options{Deep: true})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Held() {
			t.Errorf("seed %d: %v, %v", seed, r.Violations, r.Failure)
		}
	}
}

func TestTheSearchFindsWhatATokenCheckIsForAndWhatNumbersAreFor(t *testing.T) {
	for rule, want := range map[string]string{
		"expire-token": "removal-meant", "release-token": "removal-meant", "request-ids": "granted-once",
	} {
		f := exploring(t, Search{From: 1, To: 100, Faults: "harsh", Without: []string{rule}})
		if f.Failed == nil {
			t.Errorf("without %s: nothing broke in 100 seeds", rule)
			continue
		}
		if got := f.Failed.Violations[0].Invariant; got != want {
			t.Errorf("without %s: %s broke, want %s", rule, got, want)
		}
	}
}

// Each shows what a request's number is for, and fails without one.
func TestWithoutNumbersWhatIsAskedTwiceIsDoneTwice(t *testing.T) {
	for _, name := range []string{"once", "once-closed", "withdrawn", "unlock-retry", "evicted"} {
		s, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Run(s, Options{Without: []string{"request-ids"}}); err != nil || r.Held() {
			t.Errorf("%s holds without request-ids, %v", name, err)
		}
	}
}

// The other two rules make late Expires more frequent and are not needed for safety: the table's
// check is.
func TestWithoutGateOrNoopWaitTheTokenCheckAloneIsEnough(t *testing.T) {
	f := exploring(t, Search{From: 1, To: 300, Faults: "harsh", Without: []string{"gate", "noop-wait"}})
	if f.Failed != nil {
		t.Fatalf("seed %d: %v, %v", f.Last, f.Failed.Violations, f.Failed.Failure)
	}
	if f.Count("expire.newer") == 0 || f.Count("grant.rejected") == 0 {
		t.Error("no Expire met a newer token, or no Grant was rejected")
	}
}

// What clients do is drawn apart from what befalls the servers, so a run can be compared with one
// under other faults.
func TestWhatClientsDoDoesNotDependOnTheFaults(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		want := clientLines(t, seed, "harsh", 5)
		kinds := map[string]int{}
		for _, line := range want {
			kinds[strings.Fields(line)[3]]++
		}
		if seed == 1 && (kinds["acquire"] == 0 || kinds["extend"] == 0 || kinds["retry"] == 0) {
			t.Fatalf("seed %d has %v", seed, kinds)
		}
		for _, other := range [][]string{clientLines(t, seed, "mild", 5), clientLines(t, seed, "harsh", 3)} {
			if diff := cmp.Diff(want, other); diff != "" {
				t.Errorf("seed %d:\n%s", seed, diff)
			}
		}
	}
}

// clientLines are a plan's lines about what clients do.
func clientLines(t *testing.T, seed uint64, faults string, nodes int) (lines []string) {
	t.Helper()
	plan, err := Plan(seed, faults, nodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range plan.Lines {
		if text := line.Command.String(); strings.HasPrefix(text, "at ") && strings.Contains(text, ": ") {
			lines = append(lines, text)
		}
	}
	return lines
}

func TestFindingsDoNotDependOnTheNumberOfJobs(t *testing.T) {
	for _, without := range [][]string{nil, {"expire-token"}} {
		one := exploring(t, Search{From: 1, To: 40, Faults: "harsh", Without: without, Jobs: 1})
		for _, jobs := range []int{2, 5} {
			many := exploring(t, Search{From: 1, To: 40, Faults: "harsh", Without: without, Jobs: jobs})
			if diff := cmp.Diff(one.Counters(), many.Counters()); diff != "" || one.Last != many.Last || one.Steps != many.Steps {
				t.Errorf("with %d jobs it ended at seed %d instead of %d:\n%s", jobs, many.Last, one.Last, diff)
			}
		}
	}
}

func TestASearchThatIsCutShortCountsAnUnbrokenRunOfSeeds(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s := Search{From: 1, Faults: "mild", Progress: func(f *Findings) {
		if f.Seeds == 10 {
			stop()
		}
	}}
	f, err := s.Explore(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if f.Seeds < 10 || f.Last != uint64(f.Seeds) || f.Failed != nil {
		t.Errorf("%d seeds, the last is %d, failed: %v", f.Seeds, f.Last, f.Failed)
	}
}

// A random run is a scenario like any other: written down and read again it is the same run.
func TestARandomRunIsAScenarioFile(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= wide(18, 60); seed++ {
		faults := FaultNames()[seed%3]
		plan, err := Plan(seed, faults, 0)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("again.txt", plan.String())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		a, errA := Run(plan, Options{Record: true})
		b, errB := Run(again, Options{Record: true})
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if !slices.EqualFunc(a.Trace.Events, b.Trace.Events, func(x, y trace.Event) bool { return cmp.Equal(x, y) }) {
			t.Errorf("seed %d: the written plan runs differently", seed)
		}
	}
}

func TestImpossibleSearchesAreRefused(t *testing.T) {
	for _, s := range []Search{{Faults: "hrash"}, {Faults: "mild", Nodes: -1}, {Faults: "mild", Nodes: 12}} {
		if _, err := s.Explore(context.Background()); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
	_, err := Plan(1, "hrash", 0)
	if want := `did you mean "harsh"?`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say %s", err, want)
	}
}
