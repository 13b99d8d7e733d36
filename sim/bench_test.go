//go:build unix

package sim

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"ticketing/fsm/trace"
)

// A simulated hour of a cluster, per second of a core: how far a search sees in a night. All
// invariants are on, since a search runs with them.

// BenchmarkIdleCluster is three servers with nothing to do but heartbeats.
func BenchmarkIdleCluster(b *testing.B) {
	simulate(b, nil, func(w *World, now trace.Time) { w.advance(now + trace.Second) })
}

// BenchmarkTwentyOps adds five clients which together take or give back a lock every 50 ms.
func BenchmarkTwentyOps(b *testing.B) {
	clients := []Actor{"A", "B", "C", "D", "E"}
	simulate(b, clients, func(w *World, now trace.Time) {
		for i := range 20 {
			w.advance(now + trace.Time(i)*50*trace.Millisecond)
			c := clients[i%len(clients)]
			var do Command = Acquire{Client: c, Key: string(c), Lease: 2 * time.Second}
			if i/len(clients)%2 == 1 {
				do = ReleaseLock{Client: c, Key: string(c)}
			}
			if err := w.do(do); err != nil {
				panic(err)
			}
		}
	})
}

// BenchmarkSwarm is what a search does for each seed: it draws the plan, makes the world, runs it and asks
// the judge.
func BenchmarkSwarm(b *testing.B) {
	meter := measure(b)
	var events int64
	var simulated trace.Time
	for i := range b.N {
		r, err := Search{Faults: "swarm"}.Run(uint64(i)+1, Options{})
		if err != nil || !r.Held() {
			b.Fatal(r, err)
		}
		events += r.Steps
		simulated += r.End
	}
	spent := meter(events, simulated)
	b.ReportMetric(float64(b.N)/spent.Seconds(), "seeds/s")
}

// simulate runs b.N seconds, in worlds of up to ten minutes each: logs without snapshots only grow.
// Time is this process's time on a core, since a machine may have other things to do.
func simulate(b *testing.B, clients []Actor, second func(w *World, now trace.Time)) {
	const most = 600
	var events int64
	meter := measure(b)
	for left := b.N; left > 0; left -= most {
		w := newWorld(uint64(left), defaultConfig(), clients)
		if err := w.start(); err != nil {
			b.Fatal(err)
		}
		for i := range min(left, most) {
			second(w, trace.Time(i)*trace.Second)
		}
		if w.halted {
			b.Fatal(w.broken, w.failure)
		}
		if n := w.counters[countGranted]; clients != nil && left > most && n < 9*most {
			b.Fatalf("%d Grants in %d s, want nearly 10 a second", n, most)
		}
		events += w.steps
	}
	meter(events, trace.Time(b.N)*trace.Second)
}

// measure begins to measure. What it returns reports how many simulated hours a second of a core was good
// for, and what an event has cost, and returns the time.
func measure(b *testing.B) func(events int64, simulated trace.Time) time.Duration {
	percent := debug.SetGCPercent(400) // as raftsim has it
	start := coreTime(b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	return func(events int64, simulated trace.Time) time.Duration {
		b.StopTimer()
		spent := coreTime(b) - start
		runtime.ReadMemStats(&after)
		debug.SetGCPercent(percent)
		b.ReportMetric(float64(simulated)/float64(3600*trace.Second)/spent.Seconds(), "cluster-hours/s")
		b.ReportMetric(float64(spent.Nanoseconds())/float64(events), "ns/event")
		b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(events), "allocs/event")
		return spent
	}
}

// coreTime is what this process has used of the machine's cores.
func coreTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
