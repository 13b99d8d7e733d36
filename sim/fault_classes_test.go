package sim

import (
	"testing"
	"time"

	"ticketing/fsm/trace"
)

// happensIn is what each class of faults makes happen.
func happensIn() map[string]string {
	return map[string]string{
		"clock-drift": "clocks.drifting", "clock-wander": "clocks.wandering", "clock-slew": "clocks.slewed",
		"clock-step": "clocks.jumped", "clock-strobe": "clocks.strobed", "clock-stop": "clocks.stopped",
		"clock-late": "timers.late", "suspend": "suspends", "disk-reorder": "writes.reordered",
		"disk-error": "stopped", "crash-writing": "crashes.writing", "crash-keep": "crashes.kept-some",
	}
}

// withOneClass is a busy run in which one server after another has a fault of one class, and the
// client, too, if it is one of clocks.
func withOneClass(seed uint64, class faultClass, clients bool) *Scenario {
	p := &planner{seed: seed, nodes: 3, keys: []string{"door"}}
	p.add(SetNodes{N: 3})
	p.add(SetSeed{Seed: seed})
	p.add(SetDisk{Node: Everyone, SyncSet: true, SyncMin: 5 * time.Millisecond, SyncMax: 40 * time.Millisecond})
	for t := 500 * trace.Millisecond; t < chaosEnd; t += 250 * trace.Millisecond {
		p.at(t, Acquire{Client: "A", Key: "door", Lease: 200 * time.Millisecond})
		p.at(t, Acquire{Client: "B", Key: "gate", Lease: 100 * time.Millisecond, Try: true})
	}
	for i, t := 0, trace.Second; t+trace.Second < chaosEnd; i, t = i+1, t+trace.Second {
		who := []Actor{"S1", "S2", "S3"}[i%3]
		class.draw(&fault{p: p, who: who, from: t, to: t + 900*trace.Millisecond})
		if clients {
			class.draw(&fault{p: p, who: "A", from: t, to: t + 900*trace.Millisecond})
		}
	}
	p.end()
	return &Scenario{Name: class.name, Title: class.name, Lines: p.lines}
}

// A class does what its name says, everything holds all the same, and all is well in the end.
func TestEachClassOfFaultsHappensAndEnds(t *testing.T) {
	want := happensIn()
	run := func(class faultClass, clients bool) {
		count := int64(0)
		for seed := uint64(1); seed <= 20; seed++ {
			r, err := Run(withOneClass(seed, class, clients), Options{Deep: true})
			if err != nil || !r.Held() {
				t.Fatalf("%s, seed %d: %v, %v, %v", class.name, seed, err, r.Violations, r.Failure)
			}
			count += r.Count(want[class.name])
		}
		if count == 0 {
			t.Errorf("%s: in 20 runs there is no %s", class.name, want[class.name])
		}
		delete(want, class.name)
	}
	for _, class := range clockFaults() {
		run(class, true)
	}
	for _, class := range machineFaults() {
		run(class, false)
	}
	if len(want) > 0 {
		t.Errorf("there is no class for %v", want)
	}
}
