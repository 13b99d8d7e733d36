package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"ticketing/fsm/trace"
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
func runScenario(ctx context.Context, c *call) error {
	var l look
	var to output
	var own ownFlags
	var seed, without string
	err := c.parse("run", "[flags] NAME|FILE", func(f *flag.FlagSet) {
		l.define(f)
		f.StringVar(&seed, "seed", "", "run with seed `N` instead of the scenario's")
		f.StringVar(&without, "without", "", "take `RULE,…` away: "+strings.Join(sim.RuleNames(), ","))
		to.define(f)
		own.define(f)
	})
	if err == nil {
		err = to.check()
	}
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
	if o.Seed, err = optionalSeed(seed); err != nil {
		return err
	}
	again := func(seed uint64) string {
		words := "raftsim run -seed " + strconv.FormatUint(seed, 10)
		if without != "" {
			words += " -without " + without
		}
		return words + own.words() + " " + c.flags.Arg(0)
	}
	if own.dir != "" {
		j := job{Scenario: c.flags.Arg(0), Seed: o.Seed, Without: o.Without, Again: again(scenario.SeedOr(o.Seed))}
		return c.showOwn(ctx, &own, j, l.style(c), &to)
	}
	r, err := sim.Run(scenario, o)
	if err != nil {
		return err
	}
	return c.report(r, l.style(c), &to, again(r.Seed))
}

// optionalSeed reads a scenario's other seed, if there is one.
func optionalSeed(text string) (*uint64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, misuse("-seed %q: expected a number from 0 up", text)
	}
	return &n, nil
}

// output says in which form a run is shown, and where.
type output struct {
	json  string
	trace bool
	exporting
}

func (o *output) define(f *flag.FlagSet) {
	f.StringVar(&o.json, "json", "", "write the trace as JSON lines to `FILE`, - for standard output")
	f.BoolVar(&o.trace, "trace", false, "print every event, a line each, instead of the picture")
	o.exporting.define(f)
}

// report shows a run of this program's own.
func (c *call) report(r *sim.Result, style sim.Style, to *output, again string) error {
	var verdict strings.Builder
	writeVerdict(&verdict, r, again)
	return c.show(&shown{r.Scenario.Title, r.Trace, verdict.String(), r.Held()}, style, to)
}

// shown is a run that is shown.
type shown struct {
	title   string
	trace   *trace.Trace
	verdict string
	held    bool
}

// show prints a run: the trace where it is wanted, the picture or the transcript, and the verdict.
func (c *call) show(s *shown, style sim.Style, to *output) error {
	c.broken = !s.held
	if to.json == "-" {
		_, err := s.trace.WriteTo(c.out)
		return err
	}
	if to.json != "" {
		if err := writeFile(to.json, s.trace); err != nil {
			return err
		}
	}
	if to.format != "" {
		if err := to.write(c, s.trace); err != nil || to.file == "" {
			return err
		}
	}
	if to.trace {
		fmt.Fprint(c.out, sim.Transcript(s.trace, style))
	} else {
		fmt.Fprintln(c.out, style.Clean(s.title))
		for _, line := range sim.Diagram(s.trace, style) {
			fmt.Fprintln(c.out, line)
		}
	}
	fmt.Fprintln(c.out)
	c.printClean(s.verdict, style)
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
	c.printClean(text.String(), style)
}

// printClean prints lines as the style can show them.
func (c *call) printClean(text string, style sim.Style) {
	for line := range strings.Lines(text) {
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
