package main

import (
	"context"
	"fmt"
	"strings"

	"ticketing/sim"
)

// showOwn shows a run with the reader's package raft, or how it came to no end.
func (c *call) showOwn(ctx context.Context, own *ownFlags, j job, style sim.Style, to *output) error {
	b, err := own.build(ctx)
	if err != nil {
		return err
	}
	defer b.remove()
	fmt.Fprintf(c.err, "package raft: %s\n", b.parts)
	h := &hand{b: b, bounds: usualBounds()}
	defer h.end()
	j.Tell = true
	var w watched
	o, crashed, err := h.askWatched(ctx, j, &w)
	if err != nil {
		return err
	}
	h.end()
	fmt.Fprint(c.err, printedBy(h.stderr.String()))
	if crashed != nil {
		c.printCrash(crashed, "the run", style)
		return nil
	}
	return c.show(&shown{o.Title, &w.run, o.Verdict, o.held()}, style, to)
}

// printedBy is what the reader's code has printed, without what Go adds when the process ends.
func printedBy(stderr string) string {
	var own strings.Builder
	for line := range strings.Lines(stderr) {
		if ending.MatchString(line) {
			break
		}
		own.WriteString(line)
	}
	return own.String()
}

func (c *call) printCrash(crashed *crash, what string, style sim.Style) {
	c.broken = true
	var text strings.Builder
	crashed.write(&text, what)
	c.printClean(text.String(), style)
}

// shrinkOwn shrinks with the reader's package raft. It returns nothing if a run came to no end.
func (c *call) shrinkOwn(ctx context.Context, own *ownFlags, j job) (*sim.Shrunk, error) {
	j.Shrink = true
	o, crashed, err := c.askOwn(ctx, own, j, &watched{})
	if err != nil {
		return nil, err
	}
	if crashed != nil {
		c.printCrash(crashed, "one of the runs that were tried", sim.Style{ASCII: true, Width: width})
		return nil, nil
	}
	return o.Shrunk, nil
}
