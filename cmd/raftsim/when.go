package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"

	"ticketing/sim"
)

const whenArgs = "[flags] SEED|NAME|FILE"

// mostFutures bounds what is asked for: a million runs from each of thirty moments take hours.
const mostFutures = 1_000_000

// when is raftsim when: from which moment on a failing run could not be saved.
func when(ctx context.Context, c *call) error {
	var l look
	var shared searchFlags
	var seed string
	q := sim.When{}
	err := c.parse("when", whenArgs, func(f *flag.FlagSet) {
		l.define(f)
		shared.define(f)
		f.StringVar(&seed, "seed", "", "seed `N` of the search; with a scenario, run it with this seed")
		f.IntVar(&q.Futures, "futures", 100, "give the run `N` other futures from each moment on")
		f.IntVar(&q.Jobs, "j", 0, "how many runs at a time; 0 is one a core. The answer does not depend on it")
	})
	if err != nil {
		return err
	}
	if q.Futures < 1 || q.Futures > mostFutures || q.Jobs < 0 {
		return misuse("-futures must be at least 1 and at most %d, and -j not negative", mostFutures)
	}
	names := c.flags.Args()
	if len(names) == 1 && seed == "" {
		if _, err := strconv.ParseUint(names[0], 10, 64); err == nil {
			seed, names = names[0], nil
		}
	}
	failing, what, err := shared.failing("when", c.flags, names, seed)
	if err != nil {
		return err
	}
	q.Seed, q.Without, q.Faults, q.Nodes = failing.Seed, failing.Without, shared.faults, shared.nodes
	file := ""
	if len(names) > 0 {
		q.Scenario, file = failing.Scenario, names[0]
	}
	text, err := c.moments(ctx, &q, &shared.own, file, l.style(c))
	if errors.Is(err, sim.ErrHeld) {
		return fmt.Errorf("%s does not fail, so there is no moment to look for: %w", what, err)
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(c.err, "INTERRUPTED; fewer -futures take less time")
		c.cut = true
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprint(c.out, text)
	return nil
}

// moments draws the answer. A scenario is also named, for a process that reads it by itself.
func (c *call) moments(ctx context.Context, q *sim.When, own *ownFlags, scenario string, style sim.Style) (string, error) {
	if own.dir != "" {
		return c.momentsOwn(ctx, q, own, scenario, style)
	}
	m, err := q.Ask(ctx)
	if err != nil {
		return "", err
	}
	return m.Text(style), nil
}
