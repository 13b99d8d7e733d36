package sim

import (
	"strings"
	"testing"

	"ticketing/internal/planted"
)

// endings is a program that prints of each scenario that it is given whether it held, and if not,
// what broke first; and at last what the random search finds.
const endings = `package main

import (
	"fmt"
	"os"

	"ticketing/sim"
)

func main() {
	for _, name := range os.Args[1:] {
		s, err := sim.Load(name)
		if err != nil {
			panic(err)
		}
		r, err := sim.Run(s, sim.Options{})
		switch {
		case err != nil:
			panic(err)
		case len(r.Violations) > 0:
			fmt.Println(name, r.Violations[0].Invariant, r.Violations[0].Node)
		default:
			fmt.Println(name, "held", r.Held())
		}
	}
	for seed := uint64(1); seed <= 200; seed++ {
		r, err := sim.Search{Faults: "harsh"}.Run(seed, sim.Options{})
		if err != nil {
			panic(err)
		}
		if len(r.Violations) > 0 {
			fmt.Println("search", r.Violations[0].Invariant)
			return
		}
	}
}
`

// onTheWallClock is a server that counts leases on its machine's wall clock, and all else as before.
func onTheWallClock() []planted.Mistake {
	const reads = "n.replica.Wall = raft.Time(n.clock.wallAt(w.now))\n\t"
	return []planted.Mistake{
		{File: "fsm/replica.go", Is: "\tnow     raft.Time\n", Instead: "\tnow     raft.Time\n\tWall raft.Time\n"},
		{File: "fsm/replica.go", Is: "r.now = max(r.now, now)", Instead: "r.now = r.Wall"},
		{File: "fsm/replica.go", Is: "r.leader.ready {\n\t\tif next, ok", Instead: "false {\n\t\tif next, ok"},
		{File: "sim/node.go", Is: "n.replica.Tick(local)", Instead: reads + "n.replica.Tick(local)"},
		{File: "sim/node.go", Is: "n.replica.Tick(n.clock.at(w.now))", Instead: reads + "n.replica.Tick(n.clock.at(w.now))"},
	}
}

// A lease that is counted on the wall clock ends when somebody sets that clock, or sets it to and fro.
// Ours does not look at it, and the same runs are fine. Where the two clocks go alike the mistake does
// no harm, so it is the step that is to blame. (Row L07.)
//
//spec:test Clock.OwnApply
func TestALeaseOnTheWallClockEndsWithAStep(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"wall-jump": "expire-earned S1", "wall-strobe": "expire-earned S1", "suspended-leader": "expire-earned S1",
		"search": "expire-earned", "clock-slew": "held true", "clock-wander": "held true", "stopped-clock": "held true", "late-timers": "held true",
	}
	var names []string
	for name := range want {
		if name != "search" {
			names = append(names, name)
		}
	}
	for line := range strings.Lines(planted.Run(t, endings, names, onTheWallClock()...)) {
		name, got, _ := strings.Cut(strings.TrimSpace(line), " ")
		if got != want[name] {
			t.Errorf("with leases on the wall clock %s comes to %q, want %q", name, got, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not run: %v", want)
	}
}
