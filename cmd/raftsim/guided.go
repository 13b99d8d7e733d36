package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"ticketing/sim"
)

// guide is explore -guided. A run that breaks something is made by no seed, so it is written to a file.
func (x *exploring) guide(ctx context.Context, c *call) error {
	meter := newMeter(c, x.search)
	x.search.Progress = meter.tick
	f, err := sim.Guided{Search: x.search}.Explore(ctx)
	meter.clear()
	if err != nil {
		return err
	}
	x.settle(ctx, c, &f.Findings)
	file := cmp.Or(x.save, fmt.Sprintf("guided-%d.txt", f.Last))
	if f.Failing != nil {
		if err := os.WriteFile(file, []byte(f.Failing.Text), 0o644); err != nil {
			return fmt.Errorf("a run broke something, and its file cannot be written, give another -save: %w", err)
		}
	}
	if x.asJSON {
		return printJSON(c, &x.shared, &f.Findings, func(uint64) string { return "raftsim run " + file })
	}
	fmt.Fprintf(c.out, "runs %d-%d, guided, faults %s: %d runs, %d of them made of others; %.1f cluster-hours simulated, in %s\n",
		f.First, max(f.Last, f.First), x.shared.faults, f.Seeds, f.Mutants, float64(f.SimTime)/3.6e9,
		time.Since(x.begun).Round(100*time.Millisecond))
	c.printCounts(&f.Findings)
	c.printCurve(f.Curve)
	fmt.Fprintf(c.out, "                            of them %d came first in a run made by its number, %d in one made of others\n",
		f.Fresh[0], f.Fresh[1])
	if f.Failed != nil {
		fmt.Fprintf(c.out, "run %d broke something; it is now %s\n", f.Last, file)
		c.verdict(f.Failed, x.look.style(c), "raftsim run "+file)
		return nil
	}
	c.printUnseen(&f.Findings)
	if f.Cut {
		fmt.Fprintf(c.out, "INTERRUPTED after %d runs, in which nothing broke\n", f.Seeds)
		return nil
	}
	c.printHeld(&f.Findings, x.all)
	return nil
}

// printCurve says how many shapes of states were seen, and whether there are fewer and fewer new ones.
func (c *call) printCurve(curve sim.Curve) {
	if len(curve) == 0 {
		return
	}
	last := curve[len(curve)-1]
	fmt.Fprintf(c.out, "  Coverage         %8d shapes of states in %d runs", last.Points, last.Seeds)
	var before []string
	for _, p := range curve[max(0, len(curve)-5) : len(curve)-1] {
		before = append(before, fmt.Sprintf("%d after %d", p.Points, p.Seeds))
	}
	if len(before) > 0 {
		fmt.Fprintf(c.out, ": %s", strings.Join(before, ", "))
	}
	fmt.Fprintln(c.out)
	if len(curve) > 2 {
		if one := curve[len(curve)-2]; last.Seeds > one.Seeds {
			fmt.Fprintf(c.out, "                            lately %.1f new ones a run; the first had %d\n",
				float64(last.Points-one.Points)/float64(last.Seeds-one.Seeds), curve[0].Points)
		}
	}
}
