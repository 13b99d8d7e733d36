package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"ticketing/sim"
)

// shrink is raftsim shrink: the shortest scenario that it finds which breaks what a long one broke.
func shrink(ctx context.Context, c *call) error {
	var shared searchFlags
	var seed, file string
	err := c.parse("shrink", shrinkArgs, func(f *flag.FlagSet) {
		shared.define(f)
		f.StringVar(&seed, "seed", "", "shrink seed `N` of the search; with a scenario, run it with this seed")
		f.StringVar(&file, "o", "", "write the scenario to `FILE` instead of standard output")
	})
	if err != nil {
		return err
	}
	s, what, err := shared.failing("shrink", c.flags, c.flags.Args(), seed)
	if err != nil {
		return err
	}
	meter := shrinkMeter{c: c}
	s.Progress = meter.tick
	begun := time.Now()
	var best *sim.Shrunk
	if shared.own.dir == "" {
		best, err = s.Run(ctx)
	} else {
		j := job{Scenario: c.flags.Arg(0), Seed: s.Seed, Faults: shared.faults, Nodes: shared.nodes, Without: s.Without}
		j.Again = "raftsim shrink " + strings.Join(c.args, " ")
		best, err = c.shrinkOwn(ctx, &shared.own, j)
	}
	meter.clear()
	switch {
	case errors.Is(err, sim.ErrHeld):
		return fmt.Errorf("%s does not fail, so there is nothing to shrink: %w", what, err)
	case err != nil || best == nil:
		return err
	}
	c.cut = best.Cut
	if file == "" {
		fmt.Fprint(c.out, best.Scenario.Text)
	} else if err := os.WriteFile(file, []byte(best.Scenario.Text), 0o644); err != nil {
		return fmt.Errorf("writing the scenario: %w; give -o a file in a directory that is there", err)
	}
	c.sayShrunk(best, time.Since(begun))
	if file != "" {
		fmt.Fprintf(c.err, "again: raftsim run%s %s\n", shared.own.words(), file)
	}
	return nil
}

const shrinkArgs = "-seed N | NAME|FILE [flags]"

// failing is what a command's arguments say: a seed of the search, or a scenario.
func (s *searchFlags) failing(command string, flags *flag.FlagSet, names []string, seed string) (sim.Shrink, string, error) {
	search, err := s.search()
	if err != nil {
		return sim.Shrink{}, "", err
	}
	found := sim.Shrink{Without: search.Without}
	if seed != "" {
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return found, "", misuse("-seed %q: expected the number that a failure printed", seed)
		}
		found.Seed = &n
	}
	switch {
	case len(names) > 1:
		return found, "", misuse("%s takes one scenario, and flags go before it, not %q", command, names)
	case len(names) == 1:
		if err := noSearchFlags(flags); err != nil {
			return found, "", err
		}
		found.Scenario, err = sim.Load(names[0])
		return found, names[0], err
	case seed == "":
		return found, "", misuse("%s takes -seed N, as a failure of explore printed it, or a scenario that fails", command)
	}
	found.Scenario, err = sim.Plan(*found.Seed, s.faults, s.nodes)
	return found, "seed " + seed, err
}

// noSearchFlags refuses flags that say how a seed of the search is drawn, where there is a scenario.
func noSearchFlags(flags *flag.FlagSet) (err error) {
	flags.Visit(func(f *flag.Flag) {
		if f.Name == "faults" || f.Name == "nodes" {
			err = misuse("-%s is for a seed of the search; a scenario says so itself", f.Name)
		}
	})
	return err
}

// sayShrunk says what came of it, beside the scenario and not in it.
func (c *call) sayShrunk(best *sim.Shrunk, took time.Duration) {
	fmt.Fprintf(c.err, "%s: %d actions became %d, in %d runs and %s\n",
		best.Invariant, best.Before, best.After, best.Runs, took.Round(time.Millisecond))
	if best.Cut {
		fmt.Fprintln(c.err, "INTERRUPTED: this is the shortest so far")
	}
}

// shrinkCommand is the command that shrinks what another one runs again: its flags are the same.
func shrinkCommand(again string) string {
	for _, other := range []string{"raftsim replay ", "raftsim run "} {
		if rest, ok := strings.CutPrefix(again, other); ok {
			return "raftsim shrink " + rest
		}
	}
	return ""
}

// shrinkMeter is the progress line on a terminal.
type shrinkMeter struct {
	c     *call
	shown time.Time
}

func (m *shrinkMeter) tick(best *sim.Shrunk) {
	if !isTerminal(m.c) || time.Since(m.shown) < 100*time.Millisecond {
		return
	}
	m.shown = time.Now()
	fmt.Fprintf(m.c.err, "\r\x1b[K%s: %d actions of %d left, %d runs",
		best.Invariant, best.After, best.Before, best.Runs)
}

func (m *shrinkMeter) clear() {
	if !m.shown.IsZero() {
		fmt.Fprint(m.c.err, "\r\x1b[K")
	}
}
