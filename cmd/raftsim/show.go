package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"ticketing/sim"
)

// story is raftsim without arguments.
func story(_ context.Context, c *call) error {
	var l look
	if err := c.parse("", "", l.define); err != nil {
		return err
	}
	if c.flags.NArg() > 0 {
		return misuse("%q: a command comes before its flags; 'raftsim help' lists the commands", c.flags.Arg(0))
	}
	text, held, err := sim.Story(l.style(c))
	if err != nil {
		return err
	}
	fmt.Fprint(c.out, text)
	c.broken = !held
	return nil
}

func list(_ context.Context, c *call) error {
	var invariants bool
	err := c.parse("list", "[-invariants]", func(f *flag.FlagSet) {
		f.BoolVar(&invariants, "invariants", false, "list the invariants instead")
	})
	if err != nil {
		return err
	}
	if invariants {
		for _, i := range sim.Invariants() {
			fmt.Fprintf(c.out, "%-22s %s\n", i.Name, i.Sentence)
		}
		return nil
	}
	for _, s := range sim.Library() {
		fmt.Fprintf(c.out, "%-24s %s\n", s.Name, s.Title)
	}
	return nil
}

// runScenario is raftsim run.
func runScenario(_ context.Context, c *call) error {
	var l look
	var seed, without, json string
	var trace bool
	err := c.parse("run", "[flags] NAME|FILE", func(f *flag.FlagSet) {
		l.define(f)
		f.StringVar(&seed, "seed", "", "run with seed `N` instead of the scenario's")
		f.StringVar(&without, "without", "", "take `RULE,…` away: "+strings.Join(sim.RuleNames(), ","))
		f.StringVar(&json, "json", "", "write the trace as JSON lines to `FILE`, - for standard output")
		f.BoolVar(&trace, "trace", false, "print every event, a line each, instead of the picture")
	})
	if err != nil {
		return err
	}
	if c.flags.NArg() != 1 {
		return misuse("run takes one scenario, by name or as a file, and flags go before it; 'raftsim list' lists them")
	}
	scenario, err := sim.Load(c.flags.Arg(0))
	if err != nil {
		return err
	}
	o := sim.Options{Record: true}
	if o.Without, err = rules(without); err != nil {
		return err
	}
	if seed != "" {
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return misuse("-seed %q: expected a number from 0 up", seed)
		}
		o.Seed = &n
	}
	r, err := sim.Run(scenario, o)
	if err != nil {
		return err
	}
	again := "raftsim run -seed " + strconv.FormatUint(r.Seed, 10)
	if without != "" {
		again += " -without " + without
	}
	return c.report(r, l.style(c), json, trace, again+" "+c.flags.Arg(0))
}

// report prints a run: the trace where it is wanted, the picture or the transcript, and the
// verdict.
func (c *call) report(r *sim.Result, style sim.Style, json string, trace bool, again string) error {
	c.broken = !r.Held()
	if json == "-" {
		_, err := r.Trace.WriteTo(c.out)
		return err
	}
	if json != "" {
		if err := writeFile(json, r.Trace); err != nil {
			return err
		}
	}
	if trace {
		fmt.Fprint(c.out, sim.Transcript(r.Trace, style))
	} else {
		fmt.Fprintln(c.out, style.Clean(r.Scenario.Title))
		for _, line := range sim.Diagram(r.Trace, style) {
			fmt.Fprintln(c.out, line)
		}
	}
	fmt.Fprintln(c.out)
	c.verdict(r, style, again)
	return nil
}

func writeFile(name string, t io.WriterTo) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("writing the trace: %w", err)
	}
	if _, err := t.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing the trace: %w", err)
	}
	return nil
}

// verdict says what held and what did not, and how to see it again.
func (c *call) verdict(r *sim.Result, style sim.Style, again string) {
	var text strings.Builder
	writeVerdict(&text, r, again)
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(c.out, style.Clean(strings.TrimSuffix(line, "\n")))
	}
}

func writeVerdict(out io.Writer, r *sim.Result, again string) {
	for _, v := range r.Violations {
		fmt.Fprintf(out, "BROKEN  %s: %s\n", v.Invariant, sim.Sentence(v.Invariant))
		fmt.Fprintf(out, "        at %s on %s: %s\n", v.At, v.Node, v.Detail)
		if r.Trace != nil {
			fmt.Fprintln(out, "        the steps that led to it:")
			for _, line := range sim.LastSteps(r.Trace, v, 12) {
				fmt.Fprintln(out, "        "+line)
			}
		}
	}
	if r.Failure != nil {
		fmt.Fprintf(out, "FAILED  %v\n", r.Failure)
	}
	if taken, installed := r.Count("snapshots"), r.Count("snapshots.installed"); taken+installed > 0 {
		fmt.Fprintf(out, "        snapshots: %d taken, %d sent, %d installed\n", taken, r.Count("snapshots.sent"), installed)
	}
	if changed, refused := r.Count("members.changed"), r.Count("members.refused"); changed+refused > 0 {
		fmt.Fprintf(out, "        servers: %d changes, %d refused, %d taken back\n", changed, refused, r.Count("members.taken-back"))
	}
	if r.Held() {
		fmt.Fprintf(out, "held    seed %d, %d events in %s of simulated time, %d invariants\n",
			r.Seed, r.Steps, r.End, len(sim.Invariants()))
		return
	}
	fmt.Fprintf(out, "seed %d; again: %s\n", r.Seed, again)
	if len(r.Violations) > 0 {
		fmt.Fprintf(out, "shorter: %s\n", shrinkCommand(again))
	}
}
