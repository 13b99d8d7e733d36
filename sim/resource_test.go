package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm/trace"
)

// broken returns the invariants that were broken in a run of a scenario's lines, in order. What its
// lines expect is left aside: it is about one resource, and is run here with another.
func broken(t *testing.T, s *Scenario, lines []Line) (names []string) {
	t.Helper()
	other := *s
	other.Lines = slices.DeleteFunc(slices.Clone(lines), func(l Line) bool {
		_, expects := l.Command.(Expect)
		return expects
	})
	for i, l := range other.Lines {
		if u, ok := l.Command.(Until); ok && aboutTheResource(u.Cond) {
			other.Lines[i].Command = RunFor{For: u.Within}
		}
	}
	r, err := Run(&other, Options{KeepGoing: true, Deep: true})
	if err != nil || r.Failure != nil {
		t.Fatal(err, r.Failure)
	}
	for _, v := range r.Violations {
		names = append(names, v.Invariant)
	}
	return names
}

func aboutTheResource(cond Cond) bool {
	switch c := cond.(type) {
	case CondViolated:
		return true
	case CondClient:
		return c.State == stateRefused
	}
	return false
}

func isMistake(l Line) bool {
	c, ok := l.Command.(SetResource)
	return ok && c.Mistake != ""
}

// Each mistake breaks the invariant that is about it in its scenario, and the same events break
// nothing where the resource is right. So it is the mistake that does it.
//
//spec:test Fence
func TestEachMistakeOfAResourceIsShownAndARightOneIsFineThere(t *testing.T) {
	want := map[string]string{
		mistakeEquality: "holder-served", mistakeStrict: "holder-served",
		mistakeCheckThenAct: "fenced-writes", mistakeZero: "fenced-writes",
		mistakeNotDurable: "fenced-writes", mistakeReadUnfenced: "fenced-writes",
	}
	for _, mistake := range mistakeNames() {
		s, err := Load("fence-" + mistake)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(s.Lines, isMistake)
		if at < 0 || s.Lines[at].Command.(SetResource).Mistake != mistake {
			t.Fatalf("%s does not make the mistake", s.Name)
		}
		if got := broken(t, s, s.Lines); len(got) != 1 || got[0] != want[mistake] {
			t.Errorf("%s broke %q, want %s", mistake, got, want[mistake])
		}
		if got := broken(t, s, slices.Delete(slices.Clone(s.Lines), at, at+1)); len(got) != 0 {
			t.Errorf("without its mistake %s still broke %q", mistake, got)
		}
	}
}

// In the scenario of a right resource everything happens that a mistake needs to show: with any of
// them in it, something breaks.
func TestTheScenarioOfARightResourceWouldShowEveryMistake(t *testing.T) {
	s, err := Load("fence-correct")
	if err != nil {
		t.Fatal(err)
	}
	if got := broken(t, s, s.Lines); len(got) != 0 {
		t.Errorf("as it is, it broke %q", got)
	}
	for _, mistake := range mistakeNames() {
		line := Line{Command: SetResource{Key: "door", Mistake: mistake}}
		if got := broken(t, s, slices.Insert(slices.Clone(s.Lines), 0, line)); len(got) == 0 {
			t.Errorf("with the mistake %s nothing broke", mistake)
		}
	}
}

// calls is what a resource made of each call, in order.
func calls(w *World) (list []string) {
	for _, e := range w.trace.Events {
		switch c := e.Client; {
		case e.Kind == trace.KindResource:
			list = append(list, fmt.Sprintf("%s %s #%d %s, seen %d", c.Client, c.Op, c.Token, c.Status, c.High))
		case e.Kind == trace.KindLost && (c.Op == opWrite || c.Op == opRead):
			list = append(list, fmt.Sprintf("%s %s #%d lost: %s", c.Client, c.Op, c.Token, e.Text))
		}
	}
	return list
}

func checkCalls(t *testing.T, text string, want ...string) {
	t.Helper()
	w := played(t, steady+text)
	if diff := cmp.Diff(want, calls(w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACallIsComparedWhenItIsDone(t *testing.T) {
	checkCalls(t, `
		A: write door token=5 takes=300ms
		run 100ms
		A: write door token=7
		run 50ms
		expect A written
		run 300ms
		expect A refused`,
		"A write #7 written, seen 0", "A write #5 refused, seen 7")
}

func TestWhatARestartingResourceWasAboutToDoIsLostAndWhatItHasSeenIsNot(t *testing.T) {
	checkCalls(t, `
		A: write door token=5
		B: write gate token=9 takes=1s
		A: write door token=6 takes=1s
		run 100ms
		resource door restart
		A: write door token=4
		run 2s
		expect A refused
		expect B written`,
		"A write #5 written, seen 0", "A write #6 lost: the resource restarts",
		"A write #4 refused, seen 5", "B write #9 written, seen 0")
}

func TestAReadIsACallLikeAnyOther(t *testing.T) {
	checkCalls(t, `
		A: read door
		expect A nothing
		A: acquire door lease=10s via=S3
		until A granted token=1
		A: read door
		run 50ms
		expect A read
		expect count read = 1
		expect count written = 0
		B: write door token=3
		run 50ms
		A: pause
		A: read door
		run 50ms
		expect A read
		A: resume
		run 50ms
		expect A refused`,
		"A read #1 read, seen 0", "B write #3 written, seen 1", "A read #1 refused, seen 3")
}

func TestACallWithoutATokenIsRefusedBeforeAnybodyHasCome(t *testing.T) {
	checkCalls(t, `
		A: write door token=0
		run 50ms
		expect A refused
		A: write door token=1
		run 50ms
		expect A written`,
		"A write #0 refused, seen 0", "A write #1 written, seen 0")
}

// What is on its way to a resource that restarts gets there.
func TestARestartLosesNothingThatHasNotArrived(t *testing.T) {
	checkCalls(t, `
		A: write door token=5 takes=1s
		resource door restart
		run 2s
		expect A written`,
		"A write #5 written, seen 0")
}

// The invariant is about writes: a resource that lets old holders look does not break it by that.
func TestAnOldHoldersReadIsNoWrite(t *testing.T) {
	w := played(t, "resource door mistake=read-unfenced"+steady+`
		A: acquire door lease=300ms via=S3
		until A granted token=1
		B: write door token=2
		run 50ms
		A: read door
		run 50ms
		expect A read`)
	if len(w.broken) != 0 {
		t.Errorf("it broke %v", w.broken)
	}
	for _, e := range w.trace.Events {
		if e.Kind == trace.KindResource && e.Rule != "" {
			t.Errorf("a resource with a mistake goes by the rule %s", e.Rule)
		}
	}
}

func TestAPictureTellsWhatResourcesMakeOfCalls(t *testing.T) {
	pictures := ""
	for _, name := range []string{"fence-correct", "fence-check-then-act", "fence-zero-accepted"} {
		s, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(s, Options{Record: true})
		if err != nil || !r.Held() {
			t.Fatal(err, r.Failure)
		}
		pictures += strings.Join(Diagram(r.Trace, Style{Width: 160}), "\n")
	}
	for _, want := range []string{
		"B reads with token 2: the resource takes it",
		"A, whose #1 is over, writes: refused, the resource has seen #2",
		"A writes without a token: refused, the resource has seen #2",
		"A writes with token 1: the resource finds its token right",
		"A, whose #1 is over, writes: the resource takes it; fenced-writes is broken",
		"A writes without a token: the resource takes it; fenced-writes is broken",
	} {
		if !strings.Contains(pictures, want) {
			t.Errorf("no picture says %q", want)
		}
	}
}
