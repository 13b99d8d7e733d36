package sim

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// isSafe is the table in one sentence. Request ids and the token in a Release are always needed;
// the one in an Expire is not where a Grant is decided on applied state, one at a time.
func isSafe(d Defences) bool {
	return d.RequestIDs && d.ReleaseToken && (d.ExpireToken || !d.Pipelining && d.Gate)
}

// only returns everything on but some, by their names.
func only(t *testing.T, off ...string) Defences {
	t.Helper()
	d := AllDefences()[0]
	for _, name := range off {
		column := slices.Index(DefenceNames(), name)
		if column < 0 {
			t.Fatalf("no defence %q", name)
		}
		*d.all()[column] = false
	}
	return d
}

func searched(t *testing.T, d Defences, within scope) Verdict {
	t.Helper()
	v, err := d.search(t.Context(), within)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEveryCombinationIsInTheTableOnce(t *testing.T) {
	names := map[string]bool{}
	safe := 0
	for _, d := range AllDefences() {
		names[d.Name()] = true
		if isSafe(d) {
			safe++
		}
	}
	if len(names) != 64 || safe != 10 {
		t.Errorf("%d names, %d safe; want 64 and 10", len(names), safe)
	}
	if all := AllDefences()[0]; all != only(t) || len(all.Without()) != 0 {
		t.Errorf("the first is %s", all)
	}
	want := []string{"gate", "expire-token"}
	if diff := cmp.Diff(want, only(t, "pipeline", "gate", "expire-token").Without()); diff != "" {
		t.Error(diff)
	}
}

// A counterexample of the search is judged again by the simulator, with its own clients, network,
// clocks and invariants, of which that one breaks and no other.
func TestTheSimulatorBreaksOnEveryCounterexample(t *testing.T) {
	shown := 0
	for _, d := range AllDefences() {
		if isSafe(d) {
			continue
		}
		v := searched(t, d, usualScope())
		if v.Broken == "" {
			t.Errorf("%s: nothing breaks", d)
			continue
		}
		name, text, err := v.Scenario()
		if err != nil {
			t.Error(err)
			continue
		}
		s, err := Parse(name+".txt", text)
		if err != nil {
			t.Error(err)
			continue
		}
		r, err := Run(s, Options{KeepGoing: true})
		if err != nil || r.Failure != nil || len(r.Violations) != 1 || r.Violations[0].Invariant != v.Broken {
			t.Errorf("%s: error %v, failure %v, broken %v; want %s alone", name, err, r.Failure, r.Violations, v.Broken)
			continue
		}
		shown++
	}
	if shown != 54 {
		t.Errorf("%d counterexamples were replayed, want 54", shown)
	}
}

// With a mended rule the same file must not break anything, or it would show something else.
func TestACounterexampleShowsTheRuleThatIsOff(t *testing.T) {
	for _, rule := range []string{"expire-token", "release-token", "request-ids"} {
		v := searched(t, only(t, rule), usualScope())
		name, text, err := v.Scenario()
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(name, strings.Replace(text, "without "+rule+"\n", "", 1))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(s, Options{KeepGoing: true}) // a line may find no message to deliver
		if err != nil || len(r.Violations) > 0 || r.Held() {
			t.Errorf("with %s: error %v, broken %v, held %v", rule, err, r.Violations, r.Held())
		}
	}
}

func TestASafeCombinationHasNoScenario(t *testing.T) {
	v := searched(t, only(t), scope{acquires: 1, lapses: 1})
	if _, _, err := v.Scenario(); err == nil {
		t.Error("there is one")
	}
}

// The whole scope of the table takes a minute of one core or more for the safe rows (see
// docs/defences.md); here each thing that can happen in it happens in a part of it.
func TestEverythingOnIsSafe(t *testing.T) {
	var sum Noted
	for _, within := range []scope{
		{acquires: 2, extends: 1, lapses: 2, disconnects: 1, elections: 0},
		{acquires: 2, extends: 1, lapses: 1, elections: 1},
		{acquires: 2, lapses: 1, duplicates: 1, disconnects: 1, elections: 1},
	} {
		v := searched(t, only(t), within)
		if v.Broken != "" || v.States < 1000 {
			t.Errorf("within %+v: %s, after %q", within, v.Words(), v.Steps)
		}
		sum.Late += v.Noted.Late
		sum.Again += v.Noted.Again
		sum.Spent += v.Noted.Spent
		sum.Extended += v.Noted.Extended
		sum.Ghosts += v.Noted.Ghosts
		sum.Lagging += v.Noted.Lagging
	}
	if min(sum.Late, sum.Again, sum.Spent, sum.Extended, sum.Ghosts, sum.Lagging) == 0 {
		t.Errorf("something never happened: %+v", sum)
	}
}

// Where Grants are decided on applied state, behind the gate, no Expire ever meets a newer token.
// So the token in it has nothing to do there, and to show it in such a run would show nothing.
func TestWithoutPipeliningAndBehindTheGateNoExpireIsLate(t *testing.T) {
	within := scope{acquires: 2, lapses: 2, disconnects: 1, elections: 1}
	v := searched(t, only(t, "pipeline"), within)
	if v.Broken != "" || v.Noted.Late != 0 || v.Noted.Lagging == 0 {
		t.Errorf("%s, %+v", v.Words(), v.Noted)
	}
	for _, off := range [][]string{{"pipeline", "expire-token"}, {"pipeline", "noop-wait", "expire-token"}} {
		if v := searched(t, only(t, off...), within); v.Broken != "" {
			t.Errorf("%s: %s, after %q", v.Defences, v.Words(), v.Steps)
		}
	}
	if v := searched(t, only(t, "pipeline", "gate"), within); v.Broken != "" || v.Noted.Late == 0 {
		t.Errorf("without the gate: %s, %+v", v.Words(), v.Noted)
	}
}

// Two of the table's verdicts rest on its scope. One more election and a restart break them.
func TestASecondElectionAndARestartBreakWhatTheTableCallsSafe(t *testing.T) {
	text, err := os.ReadFile("../docs/defences/second-election.txt")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("second-election.txt", string(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(s, Options{})
	if err != nil || !r.Held() || len(r.Violations) != 1 {
		t.Fatalf("error %v, failure %v, broken %v", err, r.Failure, r.Violations)
	}
	for _, rule := range []string{" noop-wait", " expire-token"} {
		s, err := Parse("second-election.txt", strings.Replace(string(text), rule, "", 1))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Run(s, Options{}); err != nil || len(r.Violations) > 0 {
			t.Errorf("with%s: error %v, broken %v", rule, err, r.Violations)
		}
	}
}

// Without the short cuts every server may campaign and get its messages or not, and states are told
// apart by all that is in them. The verdicts are the same.
func TestTheShortCutsChangeNoVerdict(t *testing.T) {
	within := scope{acquires: 2, lapses: 1, wide: true}
	if long() {
		within.elections = 1
	}
	for _, off := range [][]string{
		{}, {"gate"}, {"noop-wait"}, {"pipeline"}, {"expire-token"}, {"release-token"},
		{"pipeline", "expire-token"}, {"pipeline", "gate", "expire-token"},
	} {
		d := only(t, off...)
		v := searched(t, d, within)
		if (v.Broken == "") != isSafe(d) {
			t.Errorf("%s: %s, after %q", d, v.Words(), v.Steps)
		}
	}
}
