package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"ticketing/sim"
)

const diffArgs = "-seed N -without RULE | [-without RULE] [-raft DIR] A [B]"

// diff is raftsim diff: where two runs part, and what follows from that.
func diff(ctx context.Context, c *call) error {
	var l look
	var shared searchFlags
	var seed string
	var lines int
	err := c.parse("diff", diffArgs, func(f *flag.FlagSet) {
		l.define(f)
		shared.define(f)
		f.StringVar(&seed, "seed", "", "compare seed `N` of the search; with scenarios, run both with this seed")
		f.IntVar(&lines, "lines", 24, "tell at most `N` lines of what follows, 0 for all")
	})
	if err != nil {
		return err
	}
	if lines < 0 {
		return misuse("-lines %d: expected a number from 0 up", lines)
	}
	pair, o, err := shared.toCompare(c.flags, seed)
	if err != nil {
		return err
	}
	var runs [2]*sim.Result
	if runs[0], err = sim.Run(pair[0], o); err != nil {
		return fmt.Errorf("running %s: %w", pair[0].Name, err)
	}
	if shared.without != "" {
		o.Without = strings.Split(shared.without, ",")
	}
	if shared.own.dir != "" {
		names := c.flags.Args()
		runs[1], err = c.otherOwn(ctx, &shared, names[max(0, len(names)-1):], o, l.style(c))
	} else {
		runs[1], err = sim.Run(pair[1], o)
	}
	if err != nil {
		return fmt.Errorf("running %s: %w", pair[1].Name, err)
	}
	if runs[1] == nil {
		return nil // it came to no end, and that is said
	}
	d := sim.Diff(runs[0], runs[1])
	fmt.Fprint(c.out, d.Text(l.style(c), lines))
	c.broken = d.Parted()
	return nil
}

// toCompare is what the arguments say. Rules are taken from the second run, and it is the one with the
// reader's package raft; what breaks in either does
// not end it, or the rest of the other would differ from nothing.
func (s *searchFlags) toCompare(flags *flag.FlagSet, seed string) (pair [2]*sim.Scenario, o sim.Options, err error) {
	o = sim.Options{Record: true, KeepGoing: true}
	if _, err = s.search(); err != nil {
		return pair, o, err
	}
	names := flags.Args()
	switch {
	case len(names) > 2:
		return pair, o, misuse("diff compares two scenarios, and flags go before them, not %q", names)
	case len(names) == 0 && seed == "":
		return pair, o, misuse("diff takes two scenarios, or one or -seed N with -without RULE or -raft DIR")
	case len(names) < 2 && s.without == "" && s.own.dir == "":
		return pair, o, misuse("with what should it be compared? Give -without RULE, -raft DIR, or a second scenario")
	}
	if seed != "" {
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return pair, o, misuse("-seed %q: expected a number from 0 up", seed)
		}
		o.Seed = &n
	}
	if len(names) == 0 {
		pair[0], err = sim.Plan(*o.Seed, s.faults, s.nodes)
		pair[1] = pair[0]
		return pair, o, err
	}
	if err := noSearchFlags(flags); err != nil {
		return pair, o, err
	}
	for i := range pair {
		if pair[i], err = sim.Load(names[min(i, len(names)-1)]); err != nil {
			return pair, o, err
		}
	}
	return pair, o, nil
}
