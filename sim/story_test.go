package sim

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ticketing/fsm/trace"
)

func TestTheStoryNamesTheLineThatIsTheGuard(t *testing.T) {
	source, err := os.ReadFile("../fsm/table.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(source)) {
		if strings.TrimSpace(line) == storyLine {
			found++
		}
	}
	if found != 1 {
		t.Errorf("fsm/table.go has the line %q %d times; the story tells people to delete it", storyLine, found)
	}
}

func TestTheStoryFitsAScreen(t *testing.T) {
	for _, o := range []Style{{}, {ASCII: true}, {Color: true}} {
		text, held, err := Story(o)
		if err != nil || !held {
			t.Fatalf("held %v, %v", held, err)
		}
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) > 30 {
			t.Errorf("%+v: %d lines", o, len(lines))
		}
		checkStyle(t, "the story", lines, o)
	}
}

// What the story claims, looked up in the traces and not in its words.
func TestTheStoryIsTrue(t *testing.T) {
	scenario, err := Load(storyScenario)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		without  []string
		writes   string // that the resource took or refused, in order
		overlaps int
	}{
		{nil, "B2:written B2:written", 0},
		{[]string{storyRule}, "B2:written C3:written B2:refused", 1},
	} {
		r, err := Run(scenario, Options{Record: true, KeepGoing: true, Without: c.without})
		if err != nil {
			t.Fatal(err)
		}
		overlaps := overlaps(r.Trace)
		var writes []string
		for _, e := range r.Trace.Events {
			if e.Kind != trace.KindResource {
				continue
			}
			writes = append(writes, fmt.Sprintf("%s%d:%s", e.Client.Client, e.Client.Token, e.Client.Status))
			if len(overlaps) > 0 && (e.At < overlaps[0].from || e.At > overlaps[0].to) {
				t.Errorf("without %v: %s writes at %s, when B and C do not both believe", c.without, e.Client.Client, e.At)
			}
		}
		if got := strings.Join(writes, " "); got != c.writes {
			t.Errorf("without %v: the writes are %s, want %s", c.without, got, c.writes)
		}
		if len(overlaps) != c.overlaps || r.Held() != (c.without == nil) {
			t.Errorf("without %v: held %v, overlaps %v", c.without, r.Held(), overlaps)
		}
	}
}

// A search counts beliefs as it goes; a trace tells of them afterwards. Both see the same.
func TestASearchCountsTheBeliefsThatATraceTellsOf(t *testing.T) {
	counted, compared := 0, 0
	for seed := uint64(1); seed <= 200; seed++ {
		r, err := Search{Faults: "mild"}.Run(seed, Options{Record: true})
		if err != nil {
			t.Fatal(err)
		}
		if bendsClientClocks(r.Scenario) {
			continue // a trace tells until when a client believes if its clock goes on as it does
		}
		compared++
		told := 0
		all := beliefs(r.Trace)
		for i, later := range all {
			for _, b := range all[:i] { // later may be over at once, if its client was paused
				told += count01(b.key == later.key && b.client != later.client && later.from < b.to)
			}
		}
		if counted += told; r.Count("beliefs.overlap") != int64(told) {
			t.Errorf("seed %d: %d are counted, and the trace tells of %d", seed, r.Count("beliefs.overlap"), told)
		}
	}
	if counted == 0 || compared < 20 {
		t.Errorf("two clients believed to hold one lock %d times in %d runs", counted, compared)
	}
}

// bendsClientClocks reports whether a client's clock changes its rate, or stands still, in the course of
// a run.
func bendsClientClocks(s *Scenario) bool {
	return slices.ContainsFunc(s.Lines, func(l Line) bool {
		at, _ := l.Command.(At)
		clock, isClock := at.Command.(SetClock)
		do, _ := at.Command.(ClientDo)
		return isClock && clock.Actor.Node() == 0 || do.Do == "suspend"
	})
}
