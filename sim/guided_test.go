package sim

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each thing that a shape keeps makes a difference: what is done to one server gives shapes that a run
// without it does not have.
func TestWhatIsDoneToAServerGivesNewShapes(t *testing.T) {
	points := func(done string) map[uint64]bool {
		r := play(t, "# A lock\nnodes 3\nseed 7\n"+done+"connect A\nat 600ms A: acquire door lease=400ms\nrun 2s\n")
		set := map[uint64]bool{}
		for _, p := range r.Points {
			set[p] = true
		}
		if len(set) != len(r.Points) || len(set) < 20 {
			t.Fatalf("%q: %d shapes, of which %d differ", done, len(r.Points), len(set))
		}
		return set
	}
	without := points("")
	for _, done := range []string{
		"at 500ms crash S1\n", "at 500ms pause S1\n", "at 500ms disk S1 stall\n", "at 500ms isolate S1\n",
		"at 500ms cut S1->S2\n", "at 500ms hold S1->S2\n", "clock S1 rate=0.5\nclock S2 rate=2\n",
	} {
		fresh := 0
		for p := range points(done) {
			if !without[p] {
				fresh++
			}
		}
		if fresh == 0 {
			t.Errorf("%q gives no shape that is not there without it", strings.TrimSpace(done))
		}
	}
}

func play(t *testing.T, text string) *Result {
	t.Helper()
	s, err := Parse("test", text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(s, Options{Coverage: true})
	if err != nil || !r.Held() {
		t.Fatal(err, r.Failure, r.Violations)
	}
	return r
}

// A guided search depends on its numbers alone. It is not vacuous: runs are made of others, and come to
// shapes that nothing before them had.
func TestAGuidedSearchDependsOnItsNumbersAlone(t *testing.T) {
	search := Guided{Search{From: 1, To: wide(160, 1000), Faults: "harsh"}}
	var found []*GuidedFindings
	for _, jobs := range []int{1, 3} {
		search.Jobs = jobs
		f, err := search.Explore(t.Context())
		if err != nil || f.Failed != nil {
			t.Fatal(err, f.Failing)
		}
		found = append(found, f)
	}
	f := found[0]
	if diff := cmp.Diff(f.Counters(), found[1].Counters()); diff != "" || !slices.Equal(f.Curve, found[1].Curve) {
		t.Errorf("one at a time, and three:\n%s%v\n%v", diff, f.Curve, found[1].Curve)
	}
	if f.Mutants < int(f.Seeds)/4 || f.Fresh[1] < f.Mutants || f.Fresh[0]+f.Fresh[1] != int(f.Curve[len(f.Curve)-1].Points) {
		t.Errorf("%d runs, of which %d were made of others; new shapes in the one and the other: %v; %v",
			f.Seeds, f.Mutants, f.Fresh, f.Curve)
	}
	for i := range f.Curve[1:] {
		if a, b := f.Curve[i], f.Curve[i+1]; a.Seeds >= b.Seeds || a.Points > b.Points {
			t.Errorf("the curve goes from %v to %v", a, b)
		}
	}
}

// What it finds is a file, which breaks the same when it is run.
func TestWhatAGuidedSearchFindsIsAFile(t *testing.T) {
	f, err := Guided{Search{From: 1, To: 1000, Faults: "harsh", Without: []string{"expire-token"}}}.Explore(t.Context())
	if err != nil || f.Failed == nil || f.Failing == nil {
		t.Fatal(err, "nothing is found")
	}
	r, err := Run(f.Failing, Options{})
	if err != nil || len(r.Unexpected()) == 0 || r.Unexpected()[0].Invariant != f.Failed.Unexpected()[0].Invariant {
		t.Errorf("as a file it comes to %v, %v", r.Violations, err)
	}
}

// A run that is made of others can break what none of those with the numbers break, and its impossible
// lines are not in the file.
func TestARunMadeOfOthersIsAFileToo(t *testing.T) {
	g := &guided{Guided: Guided{Search{From: 1, Faults: "harsh", Without: []string{"expire-token"}}}, found: &GuidedFindings{}}
	for seed := uint64(1); seed <= 64; seed++ { // to have something to change
		s, err := Plan(seed, "harsh", 0)
		if err != nil {
			t.Fatal(err)
		}
		g.corpus = append(g.corpus, s)
	}
	broken, shorter := 0, 0
	for seed := uint64(65); (broken < 3 || shorter == 0) && seed < 1000; seed += 2 {
		a, err := g.attempt(seed)
		if err != nil {
			t.Fatal(err)
		}
		if a.mutant && len(a.ran.Lines) < len(a.Scenario.Lines) {
			shorter++
		}
		if !a.mutant || len(a.Unexpected()) == 0 {
			continue
		}
		broken++
		g.take(seed, a)
		if err := g.confirm(a); err != nil {
			t.Error(err)
		}
	}
	if broken < 3 || shorter == 0 {
		t.Errorf("%d broke something, %d had lines that cannot be carried out", broken, shorter)
	}
}

// It stops when it is told to.
func TestAGuidedSearchStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, err := Guided{Search{From: 1, Faults: "mild", Progress: func(f *Findings) { cancel() }}}.Explore(ctx)
	if err != nil || f.Seeds != roundRuns {
		t.Errorf("%d runs, %v", f.Seeds, err)
	}
}
