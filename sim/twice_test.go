package sim

import (
	"strings"
	"testing"

	"ticketing/internal/planted"
)

func TestSeedsThatAreRunTwiceAreCountedOnce(t *testing.T) {
	once := exploring(t, Search{From: 1, To: 40, Faults: "harsh"})
	for every, want := range map[uint64]int64{1: 40, 20: 2, 41: 0} {
		f := exploring(t, Search{From: 1, To: 40, Faults: "harsh", Twice: every})
		if f.Diverged != nil || f.RunTwice != want || f.Seeds != 40 || f.Steps != once.Steps || f.counters != once.counters {
			t.Errorf("every %d: %d of %d seeds were run twice, and came to %d events and not %d; %+v",
				every, f.RunTwice, f.Seeds, f.Steps, once.Steps, f.Diverged)
		}
	}
}

// twiceRunner is a program that runs seeds twice and prints where the first two runs part.
const twiceRunner = `package main

import (
	"context"
	"fmt"

	"ticketing/sim"
)

func main() {
	f, err := sim.Search{From: 1, To: 20, Faults: "harsh", Twice: 1}.Explore(context.Background())
	if err != nil {
		panic(err)
	}
	d := f.Diverged
	if d == nil {
		fmt.Println("the same")
		return
	}
	fmt.Println(d.Event > 1, len(d.Common) > 0, d.Hashes[0] != d.Hashes[1], f.Last == d.Seed, f.Seeds < 20)
	for _, line := range d.Lines {
		fmt.Println(line)
	}
}
`

// Go gives the elements of a map in another order each time. Clients that open their sessions in it
// are told apart by the first message of the second of them.
func TestTwoRunsInAMapsOrderAreFoundToDiffer(t *testing.T) {
	t.Parallel()
	out := planted.Run(t, twiceRunner, nil, planted.Mistake{
		File: "sim/client_session.go",
		Is:   "	for _, c := range w.clients {\n		if c.session == 0",
		Instead: "	all := map[Actor]*client{}\n	for _, c := range w.clients {\n		all[c.name] = c\n	}\n" +
			"	for _, c := range all {\n		if c.session == 0",
	})
	lines := strings.Split(out, "\n")
	if len(lines) != 3 || lines[0] != "true true true true true" || lines[1] == lines[2] {
		t.Fatalf("it finds:\n%s", out)
	}
	for _, line := range lines[1:] {
		if !strings.Contains(line, `"kind":"request"`) {
			t.Errorf("the first event that differs is %s", line)
		}
	}
}

// A clock of the world outside that a server reads is another way to lose a seed.
func TestTwoRunsThatReadAClockAreFoundToDiffer(t *testing.T) {
	t.Parallel()
	out := planted.Run(t, twiceRunner, nil,
		planted.Mistake{File: "sim/rand.go", Is: "import (\n", Instead: "import (\n\t\"time\"\n"},
		planted.Mistake{
			File: "sim/rand.go", Is: "	x := seed ^ uint64(s)*0x9e3779b97f4a7c15\n",
			Instead: "	x := seed ^ uint64(s)*0x9e3779b97f4a7c15\n	if s == streamDelay {\n		x += uint64(time.Now().UnixNano())\n	}\n",
		})
	if !strings.HasPrefix(out, "true true true true true\n") {
		t.Errorf("it finds:\n%s", out)
	}
}

// Where nothing in the traces differs, there is no event to show, and the place is behind the last.
func TestADivergenceThatNoTraceShowsIsAtTheirEnd(t *testing.T) {
	r, err := Search{Faults: "mild"}.Run(1, Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	events := r.Trace.Events
	for _, c := range []struct {
		cut   int
		event int
		shows bool
	}{{0, len(events) + 1, false}, {1, len(events), true}} {
		var d Divergence
		if err := d.find(events, events[:len(events)-c.cut]); err != nil {
			t.Fatal(err)
		}
		if d.Event != c.event || len(d.Common) != common || (d.Lines[0] != "") != c.shows || d.Lines[1] != "" {
			t.Errorf("without the last %d: at event %d of %d, %q", c.cut, d.Event, len(events), d.Lines)
		}
	}
}
