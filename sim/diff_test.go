package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ticketing/fsm/trace"
)

// quarrel is a scenario to which one line is added.
const quarrel = `# Two ask
at 300ms A: acquire door lease=2s
at 400ms B: acquire gate lease=2s
run 3s
`

func recorded(t *testing.T, text string, without ...string) *Result {
	t.Helper()
	s, err := Parse("two.txt", text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(s, Options{Record: true, KeepGoing: true, Without: without})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// with is the quarrel with one line more, behind the others.
func with(line string) string { return strings.Replace(quarrel, "run 3s", line+"\nrun 3s", 1) }

func TestARunDiffersFromItselfInNothing(t *testing.T) {
	words := strings.Replace(quarrel, "run 3s", "# They wait.\nrun 3s\nexpect leader S2", 1)
	for _, other := range []string{quarrel, words} {
		d := Diff(recorded(t, quarrel), recorded(t, other))
		if d.Parted() || d.Same < 100 || d.Apart != 0 || !strings.Contains(d.Text(Style{}, 0), "They are the same") {
			t.Errorf("%d are the same, then\n%s", d.Same, d.Text(Style{}, 0))
		}
	}
}

// Randomness is keyed, so a message more to somebody else changes nothing for those who do not get it.
func TestADifferenceReachesThoseToWhomItIsToldAndNobodyElse(t *testing.T) {
	d := Diff(recorded(t, quarrel), recorded(t, with("at 1s A: write door")))
	if len(d.Since) != 2 || d.Since["A"] != trace.Second || d.Since["door"] < trace.Second+defaultDelayMin {
		t.Errorf("it reaches %v", d.Since)
	}
	if d.First[0] != 0 || d.At != trace.Second || d.Follows(0) != 0 || d.Follows(1) < 2 || d.Apart != 0 {
		t.Errorf("%+v", d)
	}
}

// What is missing in one run is a cause in it as well. And it takes a message, and so its time, before
// others notice.
func TestWhatAServerDoesNotDoMattersToOthersOnceTheyCouldKnow(t *testing.T) {
	for _, line := range []string{"at 1s crash S1", "at 1s pause S1"} {
		d := Diff(recorded(t, with(line)), recorded(t, quarrel))
		if d.Since["S1"] != trace.Second || len(d.Since) < 3 || d.Apart != 0 {
			t.Fatalf("%s: it reaches %v, %d apart", line, d.Since, d.Apart)
		}
		for who, at := range d.Since {
			if who != "S1" && at < trace.Second+defaultDelayMin {
				t.Errorf("%s: %s at %s", line, who, at)
			}
		}
	}
}

// A line about the network reaches nobody by itself; all that differs behind it follows from it.
func TestACutIsTheCauseOfWhatIsLostByIt(t *testing.T) {
	d := Diff(recorded(t, quarrel), recorded(t, with("at 1s isolate S1")))
	if d.At != trace.Second || d.Apart != 0 || d.Follows(1) < 10 || d.Since["S1"] <= trace.Second {
		t.Errorf("%d apart, it reaches %v", d.Apart, d.Since)
	}
}

// A message that is lost as it is sent does not reach its receiver: that misses it when it would have come.
func TestALostMessageIsMissedWhenItWouldHaveCome(t *testing.T) {
	r := recorded(t, quarrel)
	i := slices.IndexFunc(r.Trace.Events, func(e trace.Event) bool {
		return e.At > trace.Second && e.Kind == trace.KindSend && e.Message.Kind == trace.Append
	})
	beat := r.Trace.Events[i]
	cut := fmt.Sprintf("at %dus cut %s->%s", beat.At-1, beat.Message.From, beat.Message.To)
	d := Diff(r, recorded(t, with(cut)))
	lost := slices.ContainsFunc(d.Runs[1].Trace.Events, func(e trace.Event) bool {
		return e.At == beat.At && e.Kind == trace.KindLost && e.Node == beat.Message.To
	})
	if missed := d.Since[beat.Message.To]; !lost || missed < beat.At+defaultDelayMin || missed > beat.At+defaultDelayMax {
		t.Errorf("%s: lost %v, missed at %s", cut, lost, missed)
	}
}

// Two lines more are two causes.
func TestAnotherCauseIsCountedApart(t *testing.T) {
	d := Diff(recorded(t, quarrel), recorded(t, with("at 1s A: write door\nat 500ms B: write gate")))
	if _, too := d.Since["A"]; too || d.At != 500*trace.Millisecond || d.Apart < 2 {
		t.Errorf("%d apart, it reaches %v", d.Apart, d.Since)
	}
}

// The rule is the cause: both runs are one until the lease ends, and then one of them proposes the bare
// Release, which removes what it is not meant for.
func TestWithoutTheTokenTheRunsPartWhereTheLeaseEnds(t *testing.T) {
	s, err := Load("late-expire")
	if err != nil {
		t.Fatal(err)
	}
	d := Diff(recorded(t, s.Text), recorded(t, s.Text, "expire-token"))
	one, other := d.Runs[0].Trace.Events[d.First[0]-1], d.Runs[1].Trace.Events[d.First[1]-1]
	if one.Kind != trace.KindAppend || other.Kind != trace.KindAppend || one.Entry.Cause != "lease" || one.At != other.At {
		t.Errorf("they part at %+v and %+v", one, other)
	}
	v := d.Runs[1].Violations
	if len(v) == 0 || !d.cone[1][v[0].Event] {
		t.Errorf("the violation %v does not follow", v)
	}
	text := strings.Split(strings.TrimSpace(d.Text(Style{ASCII: true}, 3)), "\n")
	few, all := len(text), strings.Count(d.Text(Style{ASCII: true}, 0), "\n")
	if few > 20 || all < 40 {
		t.Errorf("%d lines of %d", few, all)
	}
	for _, part := range []string{"expire 1 door", "release 0 door", "more lines to the end", "removal-meant broke", "all held"} {
		if !slices.ContainsFunc(text, func(line string) bool { return strings.Contains(line, part) }) {
			t.Errorf("it does not say %q:\n%s", part, strings.Join(text, "\n"))
		}
	}
	if longest := slices.MaxFunc(text, func(a, b string) int { return len(a) - len(b) }); len(longest) > usualWidth {
		t.Errorf("%d columns: %s", len(longest), longest)
	}
}
