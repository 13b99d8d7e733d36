package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"ticketing/sim"
)

// experiment is one of the measurements: what it claims, how many seeds it runs unless told
// otherwise, and how.
type experiment struct {
	name, claim, seeds string
	run                func(context.Context, sim.Seeds) (finding, error)
}

// A finding is what came of an experiment. It can be printed, drawn, and written as JSON.
type finding interface {
	Check() error // nil if the law held
	table(b *strings.Builder)
	plot() string
}

func experiments() []experiment {
	return []experiment{
		{"arms", "only a token that is checked keeps a lost holder's writes out", "1-1000",
			func(ctx context.Context, s sim.Seeds) (finding, error) {
				f, err := sim.RunArms(ctx, s)
				return armsFinding{f}, err
			}},
		{"drift", "what of its lease a client must do without, if clocks are wrong", "1-20",
			func(ctx context.Context, s sim.Seeds) (finding, error) {
				f, err := sim.RunDrift(ctx, s)
				return driftFinding{f}, err
			}},
		{"lifetime", "how long a lease lasts through fifty elections", "1-100",
			func(ctx context.Context, s sim.Seeds) (finding, error) {
				f, err := sim.RunLifetime(ctx, s)
				return lifetimeFinding{f}, err
			}},
	}
}

// measure runs an experiment.
func measure(ctx context.Context, c *call) error {
	if len(c.args) == 0 || isHelp(c.args[0]) {
		fmt.Fprintln(c.out, "usage: raftsim experiment NAME [flags]; 'raftsim experiment NAME -h' lists the flags")
		for _, e := range experiments() {
			fmt.Fprintf(c.out, "  %-9s %s\n", e.name, e.claim)
		}
		return nil
	}
	var names []string
	for _, e := range experiments() {
		if e.name == c.args[0] {
			c.args = c.args[1:]
			return c.measure(ctx, e)
		}
		names = append(names, e.name)
	}
	return misuse("unknown experiment %q%s; expected one of %s",
		c.args[0], sim.Nearest(c.args[0], names), strings.Join(names, ", "))
}

func (c *call) measure(ctx context.Context, e experiment) error {
	var seeds, picture string
	var jobs int
	var asJSON bool
	err := c.parse("experiment "+e.name, "[flags]", func(f *flag.FlagSet) {
		f.StringVar(&seeds, "seeds", e.seeds, "the seeds `A-B`, both included")
		f.IntVar(&jobs, "j", 0, "how many runs at a time; 0 is one a core. What comes out does not depend on it")
		f.BoolVar(&asJSON, "json", false, "print the figures as one JSON object")
		f.StringVar(&picture, "svg", "", "draw the figures into `FILE`")
	})
	if err != nil {
		return err
	}
	if c.flags.NArg() != 0 {
		return misuse("experiment %s takes flags only, not %q", e.name, c.flags.Arg(0))
	}
	s := sim.Seeds{Jobs: jobs}
	if s.From, s.To, err = seedRange(seeds, 0); err != nil {
		return err
	}
	if jobs < 0 || s.To-s.From >= 1<<20 {
		return misuse("-j must not be negative, and a million seeds are the most")
	}
	found, err := e.run(ctx, s)
	if c.cut = ctx.Err() != nil; c.cut {
		return nil // part of the figures would be no figures
	}
	if err != nil {
		return err
	}
	if picture != "" {
		if err := os.WriteFile(picture, []byte(found.plot()), 0o644); err != nil {
			return fmt.Errorf("drawing the figures: %w", err)
		}
	}
	return c.tell(e, found, asJSON)
}

// tell prints what was found, and whether the law held.
func (c *call) tell(e experiment, found finding, asJSON bool) error {
	wrong := found.Check()
	c.broken = wrong != nil
	if asJSON {
		report := map[string]any{"experiment": e.name, "held": wrong == nil, "figures": found}
		if wrong != nil {
			report["wrong"] = strings.Split(wrong.Error(), "\n")
		}
		return c.printAsJSON(report)
	}
	var b strings.Builder
	found.table(&b)
	fmt.Fprint(c.out, b.String())
	if wrong == nil {
		return nil
	}
	for _, line := range strings.Split(wrong.Error(), "\n") {
		fmt.Fprintf(c.out, "BROKEN  %s\n", line)
	}
	return nil
}
