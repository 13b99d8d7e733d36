package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// rulesAndWhatTheyGuard are rules that can be taken away and what breaks then. Without the gate nothing does: the
// table's check is enough.
func rulesAndWhatTheyGuard() map[string]string {
	return map[string]string{
		"expire-token": "removal-meant", "release-token": "removal-meant",
		"noop-wait": "gate-holds", "request-ids": "granted-once",
	}
}

// failing returns the plans of the first n seeds that break something without a rule.
func failing(t testing.TB, rule string, n int) []*Scenario {
	t.Helper()
	var found []*Scenario
	for seed := uint64(1); seed <= 1000 && len(found) < n; seed++ {
		s, err := Plan(seed, "harsh", 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(s, Options{Without: []string{rule}})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Violations) > 0 {
			found = append(found, s)
		}
	}
	if len(found) < n {
		t.Fatalf("without %s only %d seeds break something", rule, len(found))
	}
	return found
}

func shrunk(t testing.TB, s Shrink) *Shrunk {
	t.Helper()
	got, err := s.Run(context.Background())
	if err != nil {
		t.Fatalf("%s: %v", s.Scenario.Name, err)
	}
	return got
}

// again reads a shrunk scenario back from its text and runs it.
func again(t *testing.T, text string) *Result {
	t.Helper()
	s, err := Parse("again.txt", text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	r, err := Run(s, Options{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}

func breaks(r *Result, invariant string) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Invariant == invariant })
}

// How short is a matter of the seeds, so it is asked of the middle of several.
func TestAFailingSeedShrinksToAFewLinesThatBreakTheSame(t *testing.T) {
	for rule, invariant := range some(t, rulesAndWhatTheyGuard(), "release-token", "request-ids") {
		var lengths []int
		for _, s := range failing(t, rule, int(wide(2, 5))) {
			got := shrunk(t, Shrink{Scenario: s, Without: []string{rule}})
			if got.Invariant != invariant || got.Expected || got.Cut || got.Before < 100 {
				t.Fatalf("without %s, %s: %+v", rule, s.Name, got)
			}
			r := again(t, got.Scenario.Text)
			if r.Held() || !breaks(r, invariant) || r.Scenario.Actions() != got.After {
				t.Errorf("without %s, %s: the file breaks %v\n%s", rule, s.Name, r.Violations, got.Scenario.Text)
			}
			lengths = append(lengths, got.After)
		}
		if middle(lengths) > 6 {
			t.Errorf("without %s: the middle of %v actions is more than 6", rule, lengths)
		}
	}
}

// Without two rules a run may break two things. Most of these break granted-once when they get short.
func TestTheInvariantThatBrokeIsTheOneThatBreaks(t *testing.T) {
	rules := []string{"expire-token", "request-ids"}
	found, want := 0, int(wide(1, 3))
	for seed := uint64(1); seed <= 400 && found < want; seed++ {
		s, err := Plan(seed, "harsh", 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(s, Options{Without: rules})
		if err != nil || len(r.Violations) == 0 || r.Violations[0].Invariant != "removal-meant" {
			continue
		}
		found++
		got := shrunk(t, Shrink{Scenario: s, Without: rules})
		if r := again(t, got.Scenario.Text); got.Invariant != "removal-meant" || !breaks(r, "removal-meant") {
			t.Errorf("seed %d breaks %v\n%s", seed, r.Violations, got.Scenario)
		}
	}
	if found < want {
		t.Errorf("only %d seeds break removal-meant first", found)
	}
}

func TestNoLineOfAShrunkScenarioCanGo(t *testing.T) {
	tried := 0
	for rule, invariant := range some(t, rulesAndWhatTheyGuard(), "release-token", "request-ids") {
		for _, s := range failing(t, rule, int(wide(1, 2))) {
			got := shrunk(t, Shrink{Scenario: s, Without: []string{rule}}).Scenario
			for i, l := range got.Lines {
				if !isAction(l.Command) {
					continue
				}
				tried++
				rest := &Scenario{Title: got.Title, Lines: slices.Delete(slices.Clone(got.Lines), i, i+1)}
				if r := again(t, rest.String()); breaks(r, invariant) {
					t.Errorf("without %s, %s: %q is not needed in\n%s", rule, s.Name, l, got)
				}
			}
		}
	}
	if tried < int(wide(3, 10)) {
		t.Errorf("only %d lines were tried", tried)
	}
}

func TestShrinkingIsDeterministic(t *testing.T) {
	for rule := range some(t, rulesAndWhatTheyGuard(), "request-ids") {
		s := Shrink{Scenario: failing(t, rule, 1)[0], Without: []string{rule}}
		one, other := shrunk(t, s), shrunk(t, s)
		if one.Scenario.Text != other.Scenario.Text || one.Runs != other.Runs {
			t.Errorf("after %d and %d runs\n%s\n%s", one.Runs, other.Runs, one.Scenario, other.Scenario)
		}
	}
}

// cluttered breaks removal-meant by a Release without its token; all the rest of it is in the way.
const cluttered = `# Much ado
nodes 5
seed 1
config election=200ms heartbeat=40ms batch=8
network delay=3ms..30ms loss=0.1% duplicate=0.2%
clock S2 rate=1.013
without release-token
# The lock that matters is the vault.
at 1213ms Bob: acquire vault lease=613ms
at 3002ms Zoe: acquire vault lease=2377ms
at 3571ms Bob: release vault
at 2s S5Friend: acquire gate lease=3s
at 2s crash S4
at 2500ms restart S4
run 5s
`

func TestWhatIsLeftHasRoundTimesUsualNamesAndNoSetUpThatIsNotNeeded(t *testing.T) {
	s, err := Parse("busy.txt", cluttered)
	if err != nil {
		t.Fatal(err)
	}
	got := shrunk(t, Shrink{Scenario: s})
	want := `# Much ado, shrunk: breaks removal-meant
nodes 1
seed 1
without release-token
at 0s A: acquire door lease=1s
at 1s B: acquire door lease=2s
at 1.5s A: release door
run 1.6s
`
	if got.Scenario.Text != want || got.Before != 6 || got.After != 3 {
		t.Errorf("%d actions became %d:\n%s", got.Before, got.After, got.Scenario.Text)
	}
}

// What a network loses and delays by chance becomes a line where it matters. Now and then no
// such line alone will do; then the share stays.
func TestWhatTheNetworkDoesByChanceIsSaid(t *testing.T) {
	for share, want := range map[string]string{
		"tail=40%:900ms": " hold A->S1 request\n",
		"loss=30%":       " drop S1->A request-reply\n",
	} {
		said := 0
		s, err := Parse("chance.txt", "# By chance\nnodes 1\nwithout request-ids\nnetwork "+share+
			"\nat 500ms A: acquire door lease=1s\nrun 3s\n")
		if err != nil {
			t.Fatal(err)
		}
		for seed := uint64(1); seed < 40 && said == 0; seed++ {
			got, err := Shrink{Scenario: s, Seed: &seed}.Run(context.Background())
			if err == nil && strings.Contains(got.Scenario.Text, want) && !strings.Contains(got.Scenario.Text, "network") {
				said++
			}
		}
		if said == 0 {
			t.Errorf("%s: no seed shrinks to a line with %q", share, want)
		}
	}
}

// A scenario that is there to show a bug passes because it breaks something, and so does what it
// shrinks to.
func TestAScenarioThatExpectsAViolationStillDoes(t *testing.T) {
	s, err := Parse("busy.txt", cluttered+"expect removal-meant violated\n")
	if err != nil {
		t.Fatal(err)
	}
	got := shrunk(t, Shrink{Scenario: s})
	r := again(t, got.Scenario.Text)
	if !got.Expected || !r.Held() || !breaks(r, "removal-meant") || got.After != 3 {
		t.Errorf("%v\n%s", r.Failure, got.Scenario.Text)
	}
}

func TestWhatBreaksNothingIsNotShrunk(t *testing.T) {
	for text, want := range map[string]string{
		"# Fine\nrun 1s\n":             "no invariant was broken",
		"# Not so\nexpect leader S1\n": "what failed is a line",
	} {
		s, err := Parse("fine.txt", text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Shrink{Scenario: s}.Run(context.Background())
		if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAnInterruptedShrinkReturnsItsBest(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s := Shrink{Scenario: failing(t, "release-token", 1)[0], Without: []string{"release-token"}}
	s.Progress = func(best *Shrunk) {
		if best.Scenario != nil && best.After < best.Before {
			stop()
		}
	}
	got, err := s.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Cut || got.After >= got.Before || !breaks(again(t, got.Scenario.Text), got.Invariant) {
		t.Errorf("%+v", got)
	}
	whole := shrunk(t, Shrink{Scenario: s.Scenario, Without: s.Without})
	if whole.After >= got.After {
		t.Errorf("%d actions when it is interrupted, %d when not", got.After, whole.After)
	}
}
