package main

import (
	"fmt"
	"strconv"

	"ticketing/sim"
)

// everyNth is the flag -check-determinism: every seed when it has no value, 0 when it is not given.
type everyNth uint64

func (n *everyNth) String() string   { return strconv.FormatUint(uint64(*n), 10) }
func (n *everyNth) IsBoolFlag() bool { return true }

func (n *everyNth) Set(text string) error {
	if text == "true" {
		text = "1"
	}
	every, err := strconv.ParseUint(text, 10, 64)
	if err != nil || every == 0 {
		return fmt.Errorf("expected a number from 1 up, such as 20 for every twentieth seed")
	}
	*n = everyNth(every)
	return nil
}

// printTwice says what came of seeds that were run twice.
func (c *call) printTwice(shared *searchFlags, f *sim.Findings) {
	d := f.Diverged
	if d == nil && f.RunTwice > 0 {
		fmt.Fprintf(c.out, "  Run twice        %8d seeds, and each had the same trace again\n", f.RunTwice)
	}
	if d == nil {
		return
	}
	fmt.Fprintf(c.out, "DIVERGED  two runs of seed %d are the same up to event %d:\n", d.Seed, d.Event-1)
	for i, line := range d.Common {
		fmt.Fprintf(c.out, "  %6d  %s\n", d.Event-len(d.Common)+i, line)
	}
	for i, run := range []string{"one", "other"} {
		line := d.Lines[i]
		if line == "" {
			line = "(its trace has ended)"
		}
		fmt.Fprintf(c.out, "  %6s  %s\n", run, line)
	}
	if d.Lines[0] == d.Lines[1] {
		fmt.Fprintln(c.out, "the traces are the same to the end, and what was counted is not")
	}
	fmt.Fprintf(c.out, "traces %.12s… and %.12s…; again: %s\n", d.Hashes[0], d.Hashes[1],
		shared.command(fmt.Sprintf("raftsim explore -check-determinism -seeds %d-%d", d.Seed, d.Seed)))
}
