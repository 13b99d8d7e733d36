package main

import (
	"fmt"
	"strings"

	"ticketing/fsm/trace"
	"ticketing/sim"
)

// This file prints what experiments have found, for people.

// The findings are the simulator's own, and are written as JSON like these.
type (
	armsFinding     struct{ *sim.Arms }
	driftFinding    struct{ *sim.Drift }
	lifetimeFinding struct{ *sim.Lifetime }
)

func (f armsFinding) table(b *strings.Builder) {
	fmt.Fprintf(b, "arms, seeds %d-%d: three clients and one lock, leases of 1 s, clocks up to 5 %% wrong\n\n", f.From, f.To)
	fmt.Fprintf(b, "            %8s %9s  two believe to hold it   writes to the resource\n", "", "came back")
	fmt.Fprintf(b, "%-11s %8s %9s %9s %13s %9s %8s %8s %9s\n",
		"arm", "grants", "too late", "seeds", "seconds", "taken", "refused", "stale", "in seeds")
	for _, a := range f.Arms.Arms {
		fmt.Fprintf(b, "%-11s %8d %9d %9d %13s %9d %8d %8d %9d\n", a.Name, a.Grants, a.Overstays,
			a.OverlapSeeds, seconds(a.Overlap), a.Taken, a.Refused, a.Stale, a.StaleSeeds)
	}
	nothing, delay := f.Arms.Arms[0], f.Arms.Arms[1]
	fmt.Fprintf(b, "\nstale: taken although a write with a greater token was taken before.\n")
	if f.Check() == nil {
		fmt.Fprintf(b, "HELD  In every arm two believe at once."+
			" The lock-delay leaves %d of %d stale writes, fencing none.\n", delay.Stale, nothing.Stale)
	}
}

// seconds writes a time in seconds, cut to milliseconds.
func seconds(t trace.Time) string {
	return fmt.Sprintf("%d.%03d", t/trace.Second, t%trace.Second/trace.Millisecond)
}

// millis writes a time in milliseconds.
func millis(t trace.Time) string {
	return fmt.Sprintf("%d.%03d", t/trace.Millisecond, t%trace.Millisecond)
}

// share writes parts per million as a percentage.
func share(ppm int64) string { return fmt.Sprintf("%d.%03d %%", ppm/10_000, ppm%10_000/10) }

func (f driftFinding) table(b *strings.Builder) {
	fmt.Fprintf(b, "drift, seeds %d-%d: a lease of 10 s, the fastest server and the slowest client\n\n", f.From, f.To)
	fmt.Fprintf(b, "%-11s %10s   first margin without overlap   overlap, ms   drawn clocks: overlaps"+
		"  with pauses, at a\n", "clocks", "")
	fmt.Fprintf(b, "%-11s %10s   %14s %14s   %11s   %10s %11s  margin of 95 %%, ms\n",
		"wrong by", "the law", "at zero delay", "with delays", "just below", "no margin", "the law's")
	seeds := f.To - f.From + 1
	for _, r := range f.Rows {
		last := r.Paused[len(r.Paused)-1]
		fmt.Fprintf(b, "%-11s %10s   %14s %14s   %11s   %10s %11s  %13s\n",
			share(r.Error), share(r.Law), share(r.Tight), share(r.Delayed), millis(r.Before),
			fmt.Sprintf("%d of %d", r.Drawn, seeds), fmt.Sprintf("%d of %d", r.DrawnAtLaw, seeds),
			millis(last.Worst))
	}
	fmt.Fprintf(b, "\nthe law: 2r/(1+r) of the lease, for clocks that are wrong by r, rounded up to %s.\n",
		share(sim.MarginStep))
	if f.Check() == nil {
		fmt.Fprintf(b, "HELD  Without pauses overlap ends exactly at the law's margin."+
			" With them no margin up to 95 %% ends it.\n")
	}
}

func (f lifetimeFinding) table(b *strings.Builder) {
	fmt.Fprintf(b, "lifetime, seeds %d-%d: elections within a lease of 60 s, clocks up to 1 %% wrong\n\n", f.From, f.To)
	fmt.Fprintf(b, "%-10s  %-27s  %-27s  %s\n", "", "own remaining time (ours)", "restart at full", "stale checkpoint")
	fmt.Fprintf(b, "%-10s", "elections")
	for range 3 {
		fmt.Fprintf(b, "  %6s %6s %6s %6s", "least", "mean", "most", "early")
	}
	b.WriteByte('\n')
	for _, r := range f.Rows {
		fmt.Fprintf(b, "%-10d", r.Elections)
		for _, p := range []sim.Policy{r.Own, r.Restart, r.Stale} {
			fmt.Fprintf(b, "  %6s %6s %6s %6d", factor(p.Shortest), factor(p.Mean), factor(p.Longest), p.Early)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "\nin leases, and how many of %d were over before their holder's own clock said so.\n", f.To-f.From+1)
	if f.Check() == nil {
		fmt.Fprintf(b, "HELD  Elections do not change how long a lease lasts, beyond what the clocks are wrong by.\n")
	}
}

// factor writes parts per million as a factor.
func factor(ppm int64) string { return fmt.Sprintf("%d.%03d", ppm/1_000_000, ppm%1_000_000/1000) }
