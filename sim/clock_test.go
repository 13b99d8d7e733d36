package sim

import (
	"testing"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

const hours = 3600 * trace.Second

// rates run from the slowest that a scenario might think of to the fastest.
func rates() []int64 {
	return []int64{1, 7, 999, 333_333, 500_000, 999_999, trueRate, 1_000_001, 1_500_000, 7_777_777, 100 * trueRate}
}

func TestWhenIsTheFirstTimeAtWhichAClockReadsSoMuch(t *testing.T) {
	for _, rate := range rates() {
		for i := range uint64(2000) {
			c := clock{
				fromTrue:  trace.Time(below(scramble(i), int64(100*hours))),
				fromLocal: raft.Time(below(scramble(i+1e6), int64(100*hours))),
				rate:      rate,
			}
			local := c.fromLocal + raft.Time(below(scramble(i+2e6), 1<<(i%36)))
			at, ok := c.when(local)
			if !ok || at < c.fromTrue || c.at(at) < local {
				t.Fatalf("rate %d: it reads %d at %d; wanted %d (%v)", rate, c.at(at), at, local, ok)
			}
			if at > c.fromTrue && c.at(at-1) >= local {
				t.Fatalf("rate %d: it already reads %d at %d, before %d", rate, c.at(at-1), at-1, at)
			}
		}
	}
}

func TestAClockNeverGoesBackAndKeepsItsRate(t *testing.T) {
	for _, rate := range rates() {
		c := clock{rate: rate}
		before := raft.Time(-1)
		for now := trace.Time(0); now < 3000; now++ {
			if c.at(now) < before {
				t.Fatalf("rate %d: it goes back at %d", rate, now)
			}
			before = c.at(now)
		}
		if got, want := c.at(trueRate), raft.Time(rate); got != want {
			t.Errorf("rate %d: after a second it reads %d", rate, got)
		}
	}
}

func TestAThousandHoursDoNotOverflow(t *testing.T) {
	for _, rate := range rates() {
		c := clock{rate: rate}
		end := 1000 * hours
		if got, want := c.at(end), raft.Time(1000*3600*rate); got != want {
			t.Errorf("rate %d: it reads %d, want %d", rate, got, want)
		}
		local := raft.Time(1000 * hours)
		at, ok := c.when(local)
		if !ok || c.at(at) < local || c.at(at-1) >= local {
			t.Errorf("rate %d: it reads %d at %d and %d before", rate, c.at(at), at, c.at(at-1))
		}
	}
}

func TestAStoppedClockStandsStillAndNeverGetsThere(t *testing.T) {
	c := clock{rate: trueRate}
	c.setRate(trace.Second, 0)
	if c.at(trace.Second) != c.at(5*hours) || c.at(trace.Second) != raft.Time(trace.Second) {
		t.Errorf("it reads %d, then %d", c.at(trace.Second), c.at(5*hours))
	}
	if at, ok := c.when(raft.Time(trace.Second) + 1); ok {
		t.Errorf("it will read more at %d", at)
	}
	if at, ok := c.when(raft.Time(trace.Second)); !ok || at > trace.Second {
		t.Errorf("what it reads already, it reads at %d (%v)", at, ok)
	}
	c.setRate(3*trace.Second, trueRate)
	if got := c.at(4 * trace.Second); got != raft.Time(2*trace.Second) {
		t.Errorf("it stood for 2 s of 4 and reads %d", got)
	}
}

func TestAClockThatIsBentDoesNotJump(t *testing.T) {
	c := clock{rate: trueRate, fromLocal: 250}
	for i := range uint64(5000) {
		at := c.fromTrue + trace.Time(below(scramble(i), int64(trace.Second)))
		before := c.at(at)
		c.setRate(at, rates()[below(scramble(i+1e6), int64(len(rates())))])
		if c.at(at) != before {
			t.Fatalf("bend %d: it read %d and reads %d", i, before, c.at(at))
		}
	}
}
