package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ticketing/fsm/trace"

	"github.com/google/go-cmp/cmp"
)

func asked(t *testing.T, q When) *Moments {
	t.Helper()
	m, err := q.Ask(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Another future has the same past: not an event before the fork differs, and many after it do.
func TestAnotherFutureHasTheSamePast(t *testing.T) {
	parted := 0
	for seed := uint64(1); seed <= wide(6, 40); seed++ {
		q := When{Faults: "harsh", Seed: &seed, Without: []string{"expire-token"}}
		r, err := q.run(nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range trace.Time(4) {
			f := fork{at: r.End * i / 4, seed: seed + 1000}
			s, err := planForked(seed, q.Faults, q.Nodes, &f)
			if err != nil {
				t.Fatal(err)
			}
			other, err := Run(s, Options{Seed: &seed, Without: q.Without, Record: true, fork: &f})
			if err != nil {
				t.Fatal(err)
			}
			d := Diff(r, other)
			if !d.Parted() {
				continue
			}
			parted++
			if d.At < f.at {
				t.Errorf("seed %d: a fork at %s changes what was at %s", seed, f.at, d.At)
			}
		}
	}
	if parted < 12 {
		t.Errorf("only %d futures were others", parted)
	}
}

// Not only the network's chance is another one from the fork on, but what is planned as well.
func TestAnotherFutureIsPlannedAnew(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		f := fork{at: 4 * trace.Second, seed: seed + 1000}
		s, err := Plan(seed, "harsh", 0)
		if err != nil {
			t.Fatal(err)
		}
		other, err := planForked(seed, "harsh", 0, &f)
		if err != nil {
			t.Fatal(err)
		}
		var before, after [2][]string
		for i, lines := range [][]Line{s.Lines, other.Lines} {
			for _, l := range lines {
				if isAt(l.Command) && micros(timeOf(l.Command)) >= f.at {
					after[i] = append(after[i], l.Command.String())
				} else if isAt(l.Command) {
					before[i] = append(before[i], l.Command.String())
				}
			}
			slices.Sort(before[i])
		}
		if diff := cmp.Diff(before[0], before[1]); diff != "" || len(before[0]) < 50 {
			t.Errorf("seed %d: the past (-as it was +as it is):\n%s", seed, diff)
		}
		kept := 0
		for _, l := range after[1] {
			if slices.Contains(after[0], l) {
				kept++
			}
		}
		if kept*2 > len(after[0]) {
			t.Errorf("seed %d: %d of %d lines stayed", seed, kept, len(after[0]))
		}
	}
}

// The plan of another future is a sound one: nobody is restarted who runs. What was decided about the
// whole run stays, such as whether servers come and go.
func TestOtherFuturesOfSoundRunsHold(t *testing.T) {
	crashed := int64(0)
	for seed := uint64(1); seed <= wide(50, 250); seed++ {
		s, err := Plan(seed, "harsh", 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range trace.Time(4) {
			f := fork{at: (2*i + 1) * trace.Second, seed: 7*seed + uint64(i)}
			r, err := When{Faults: "harsh", Seed: &seed}.run(&f)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Held() {
				t.Errorf("seed %d, from %s on another one: %v %v", seed, f.at, r.Failure, r.Violations)
			}
			if comeAndGo(s) != comeAndGo(r.Scenario) {
				t.Errorf("seed %d, from %s on: whether servers come and go is decided anew", seed, f.at)
			}
			crashed += r.Count("crashes")
		}
	}
	if crashed < 100 {
		t.Errorf("only %d crashes", crashed)
	}
}

func comeAndGo(s *Scenario) bool {
	return slices.ContainsFunc(s.Lines, func(l Line) bool {
		at, ok := l.Command.(At)
		_, change := at.Command.(Change)
		return ok && change
	})
}

// A request is carried out twice without its number, if the first answer is lost and it is sent again: it
// is decided when the answer is sent.
func TestWhatChanceDecidesIsDecidedAtThatMoment(t *testing.T) {
	s, err := Parse("chance.txt", "# By chance\nnodes 1\nwithout request-ids\nnetwork loss=30%\nat 500ms A: acquire door lease=1s\nrun 3s\n")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for seed := uint64(1); seed < 60 && found < 3; seed++ {
		m, err := When{Scenario: s, Seed: &seed, Futures: 60}.Ask(context.Background())
		if errors.Is(err, ErrHeld) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		events := m.Run.Trace.Events
		lost := slices.IndexFunc(events, func(e trace.Event) bool {
			return e.Kind == trace.KindLost && e.Node == "A" && e.Client.Op == "grant"
		})
		if lost < 0 {
			continue // it was late, or copied
		}
		found++
		at := events[lost].At
		i := m.steepest()
		if m.Shares[i].At > at || m.Shares[i+1].At < at || m.rise(i) < 10 {
			t.Errorf("seed %d: the answer was lost at %s, and it rises from %+v to %+v", seed, at, m.Shares[i], m.Shares[i+1])
		}
	}
	if found < 3 {
		t.Errorf("only %d seeds lose an answer", found)
	}
}

func TestTheShareEndsWithAllAndBeginsWithFew(t *testing.T) {
	seed := uint64(18)
	q := When{Faults: "harsh", Seed: &seed, Without: []string{"expire-token"}, Futures: 20, Jobs: 1}
	m := asked(t, q)
	last := m.Shares[len(m.Shares)-1]
	if m.Broken.Invariant != "removal-meant" || last != (Share{m.Broken.At, 20}) {
		t.Errorf("%v, the last share is %+v", m.Broken, last)
	}
	if first := m.Shares[0]; first.At != 0 || first.Fails > 10 || len(m.Shares) < 25 {
		t.Errorf("the first of %d shares is %+v", len(m.Shares), first)
	}
	end := m.NoReturn()
	for _, s := range m.Shares {
		if s.At >= end.At && s.Fails < 18 {
			t.Errorf("no return from %s on, but at %s %d fail", end.At, s.At, s.Fails)
		}
	}
	if end.At == 0 || end.At == m.Broken.At {
		t.Errorf("no return from %s on", end.At)
	}
	q.Jobs = 4
	if diff := cmp.Diff(m.Shares, asked(t, q).Shares); diff != "" {
		t.Errorf("(-one at a time +four):\n%s", diff)
	}
	text := m.Text(Style{ASCII: true})
	if n := strings.Count(text, "\n"); n < len(m.Shares) || n > len(m.Shares)+20 {
		t.Errorf("%d lines", n)
	}
	for line := range strings.Lines(text) {
		if len(line) > usualWidth+1 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if !strings.Contains(text, "point of no return: from "+exactMillis(end.At)) || !strings.Contains(text, " | ") {
		t.Errorf("it says\n%s", text)
	}
}

// What no chance can prevent is decided from the beginning.
func TestAScenarioThatAlwaysFailsCouldNeverBeSaved(t *testing.T) {
	s, err := Parse("busy.txt", strings.Replace(cluttered, "loss=0.1% duplicate=0.2%", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	if m := asked(t, When{Scenario: s, Futures: 10}); m.NoReturn().At != 0 {
		t.Errorf("%+v", m.Shares)
	}
	s, err = Parse("fine.txt", "# Fine\nrun 1s\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (When{Scenario: s, Futures: 10}).Ask(context.Background()); !errors.Is(err, ErrHeld) {
		t.Errorf("%v", err)
	}
}
