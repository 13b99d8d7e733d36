package sim

import (
	"fmt"
	"testing"

	"ticketing/fsm/trace"
)

// Row L09. A lease is counted on the clock of whoever leads, so a clock that is wrong ends it early
// or late. What it cannot do is split the table, lower a token or let a stale write through. Each
// cell of the matrix is a scenario: three servers' clock rates, a lease, and the network's delay.

// TestSkewedClocksSplitNothing runs every cell with all invariants on: tokens grow, a key is
// granted only when its last tenure has ended, all servers apply the same with the same result.
// That clocks which did nothing split nothing would prove little, so the test counts the leases
// that ended before their holder's own clock said so, and the writes that only the token at the
// resource stopped. (Hazard 38.)
//
//spec:test Fence
func TestSkewedClocksSplitNothing(t *testing.T) {
	cells := skewCells()
	early, stale := 0, int64(0)
	for _, c := range cells {
		text := fmt.Sprintf(skewScenario, c.s1, c.s2, c.s3, c.lease, c.delay)
		r := runSkewed(t, text)
		n := endedEarly(t, r.Trace)
		// A client counts from before it asked, a server from when it applied. So it takes a fast
		// clock, and a leader's: S1 ends A's lease, S2 ends B's.
		if n > 0 && c.s1 != "2" && c.s2 != "2" {
			t.Errorf("%d leases ended early, though no leader's clock was fast, in\n%s", n, text)
		}
		early += n
		stale += r.Count("refused")
	}
	t.Logf("%d cells: %d leases ended early, %d stale writes were refused", len(cells), early, stale)
	if early == 0 {
		t.Error("no lease ended early: the clocks were not wrong enough to show anything")
	}
	if stale == 0 {
		t.Error("no stale write was refused: nobody went wrong")
	}
}

// skewCell is a cell of the matrix: the servers' clock rates, A's lease, the network's delay.
type skewCell struct{ s1, s2, s3, lease, delay string }

func skewCells() (cells []skewCell) {
	rates := []string{"0.5", "1", "2"}
	for _, s1 := range rates {
		for _, s2 := range rates {
			for _, s3 := range rates {
				for _, lease := range []string{"2s", "5s"} {
					for _, delay := range []string{"1ms..5ms", "5ms..20ms", "20ms..100ms"} {
						cells = append(cells, skewCell{s1, s2, s3, lease, delay})
					}
				}
			}
		}
	}
	return cells
}

// skewScenario tells a cell's story: A overstays, B is granted the lock by S1's clock, both write,
// and then another leader ends B's lease by its own clock.
const skewScenario = `# Clocks at the rates %[1]s, %[2]s and %[3]s, a lease of %[4]s, delays of %[5]s
nodes 3
config election=2s prevote=off checkquorum=off
network delay=%[5]s
clock S1 rate=%[1]s
clock S2 rate=%[2]s
clock S3 rate=%[3]s
timeout S1
until leader S1
A: acquire door lease=%[4]s
until A granted token=1
A: write door
until A written
B: acquire door lease=4s
until B granted token=2
B: write door
until B written
A: write door
until A refused
until holder door B token=2 at *
crash S1
timeout S2
until leader S2 term=2
until free door at *
restart S1
expect converged within 10s
expect free door at *
C: acquire door lease=3s
until C granted token=3
expect count written = 2
expect count refused = 1
`

func runSkewed(t *testing.T, text string) *Result {
	t.Helper()
	s, err := Parse("skew.txt", text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(s, Options{Record: true, Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Held() {
		t.Fatalf("%v, %v in\n%s", r.Failure, r.Unexpected(), text)
	}
	return r
}

// endedEarly counts the tenures that an Expire ended while their holders still believed in them.
// The clients' clocks are true here, so that their readings compare with true time.
func endedEarly(t *testing.T, run *trace.Trace) (early int) {
	t.Helper()
	believed := map[uint64]int64{} // until when, by token
	ended := map[uint64]bool{}
	for _, e := range run.Events {
		switch {
		case e.Kind == trace.KindAnswer && e.Text == stateGranted:
			believed[e.Client.Token] = e.Client.Until
		case e.Kind == trace.KindApply && e.Entry.Result == "Expired{true}":
			var token uint64
			if _, err := fmt.Sscanf(e.Entry.Command, "- expire %d", &token); err != nil {
				t.Fatalf("an Expire reads %q: %v", e.Entry.Command, err)
			}
			if !ended[token] && int64(e.At) < believed[token] {
				early++
			}
			ended[token] = true
		}
	}
	return early
}
