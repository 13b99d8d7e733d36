// Raftsim runs the lock service on paper and breaks it on purpose. Without arguments it shows why a
// late Expire never deletes a freshly granted lock, and what happens without the check that stops
// it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"

	"ticketing/sim"
)

// Exit codes.
const (
	exitHeld   = 0   // it held
	exitBroken = 1   // an invariant or an expectation failed
	exitUsage  = 2   // wrong usage, or a malformed file
	exitCut    = 130 // interrupted before it was through
)

func main() {
	// A search allocates fast and keeps little; collecting less often gains a tenth or more.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	ctx := context.Background()
	if hearsInterrupt(os.Args[1:]) {
		heard, stop := signal.NotifyContext(ctx, os.Interrupt)
		context.AfterFunc(heard, stop) // a second Ctrl-C ends anything
		ctx = heard
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// hearsInterrupt reports whether a command does something about Ctrl-C: what runs many seeds says
// what it has found, and what has built a program deletes it.
func hearsInterrupt(args []string) bool {
	if len(args) == 0 {
		return false
	}
	own := func(arg string) bool { return strings.HasPrefix(strings.TrimLeft(arg, "-"), "raft") }
	return slices.Contains([]string{"explore", "experiment", "shrink", "when", "grade"}, args[0]) ||
		slices.ContainsFunc(args[1:], own)
}

// command is one of raftsim's subcommands.
type command struct {
	name, args, does string
	run              func(ctx context.Context, c *call) error
}

func commands() []command {
	return []command{
		{"list", "[-invariants]", "the scenarios, a line each", list},
		{"run", "[flags] NAME|FILE", "run a scenario and draw it", runScenario},
		{"explore", "[flags]", "search random runs for a broken invariant", explore},
		{"replay", "-seed N [flags]", "one run of the search, as a failure printed it", replay},
		{"shrink", shrinkArgs, "the shortest scenario that breaks the same", shrink},
		{"diff", diffArgs, "where two runs part, and what follows from that", diff},
		{"when", whenArgs, "from which moment on a failing run could not be saved", when},
		{"merge", "[flags] FILE…", "add up the results of a search on several machines", mergeResults},
		{"grade", "-raft DIR [flags]", "judge a package raft of your own", grade},
		{"experiment", "NAME [flags]", "measure what a sentence about locks claims", measure},
		{"table", "[flags]", "which combinations of defences are safe, by exhaustive search", table},
		{"trace", "[-draw] FILE…", "print or draw what real nodes, or a run, have written", printTrace},
		{"worker", "", "what -raft starts by itself", work},
		{"help", "", "this", help},
	}
}

// call is one invocation: its arguments and where its output goes.
type call struct {
	args     []string
	out, err io.Writer
	flags    *flag.FlagSet
	broken   bool     // it ran, and something did not hold
	cut      bool     // it was interrupted
	screen   *os.File // what out writes to, if that is a file
}

// usageError is a mistake of the person at the keyboard.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func misuse(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	buffered := bufio.NewWriter(out)
	c := &call{args: args, out: buffered, err: errs}
	c.screen, _ = out.(*os.File)
	err := c.dispatch(ctx)
	if failed := buffered.Flush(); failed != nil && err == nil {
		err = fmt.Errorf("writing the output: %w", failed)
	}
	var syntax *sim.SyntaxError
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitHeld
	case errors.As(err, &syntax):
		fmt.Fprintln(errs, err)
		return exitUsage
	case c.cut || errors.Is(err, context.Canceled):
		return exitCut
	case err != nil:
		fmt.Fprintln(errs, "raftsim:", err)
		return exitUsage
	case c.broken:
		return exitBroken
	}
	return exitHeld
}

func (c *call) dispatch(ctx context.Context) error {
	if len(c.args) == 0 || strings.HasPrefix(c.args[0], "-") && !isHelp(c.args[0]) {
		return story(ctx, c)
	}
	name := c.args[0]
	if isHelp(name) {
		name = "help"
	}
	var names []string
	for _, cmd := range commands() {
		if cmd.name == name {
			c.args = c.args[1:]
			return cmd.run(ctx, c)
		}
		names = append(names, cmd.name)
	}
	return misuse("unknown command %q%s; 'raftsim help' lists them", name, sim.Nearest(name, names))
}

func isHelp(arg string) bool {
	return arg == "-h" || arg == "--help" || arg == "-help" || arg == "help"
}

// help lists the commands by what a person wants.
func help(_ context.Context, c *call) error {
	fmt.Fprint(c.out, `raftsim shows a replicated lock service under partitions, delays, skewed clocks and crashes.

See it
  raftsim                          the late-Expire story, beside the same seed without the token check
  raftsim list                     the scenarios, a line each; -invariants lists what is watched
  raftsim run NAME|FILE            a scenario: picture and verdict; -trace for its prose and every event
  raftsim trace FILE…              what lockd -trace has written on each node, as one; -draw for a picture
Search
  raftsim explore -seeds 1-5000    random runs; -faults mild|harsh|swarm; stops at the first broken invariant
  raftsim merge FILE…              add up what explore -shard I/N -out FILE has found on N machines
  raftsim replay -seed N           one of them again, the very command that a failure prints
  raftsim shrink -seed N           the shortest scenario that breaks the same; NAME|FILE: of a scenario
  raftsim diff A B                 where two runs part, and what follows from that; -seed N -without RULE
  raftsim when SEED                from which moment on it could not be saved: other futures of a failing run
Learn
  raftsim grade -raft DIR          your own package raft in place of ours: what holds, and what comes next
Check
  raftsim table                    every combination of defences: safe, or the shortest way to what breaks
Measure
  raftsim experiment NAME          arms, drift or lifetime, over many seeds; -svg FILE for a picture

RULE for -without: expire-token release-token gate noop-wait request-ids.
'raftsim COMMAND -h' lists a command's flags.
Exit codes: 0 it held; 1 an invariant or an expectation failed; 2 wrong usage or a malformed file;
130 a search was interrupted.
`)
	return nil
}

// printAsJSON prints what another program may read.
func (c *call) printAsJSON(v any) error {
	enc := json.NewEncoder(c.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// parse reads a command's flags. A flag that there is not is answered with the nearest ones.
func (c *call) parse(name, args string, define func(f *flag.FlagSet)) error {
	f := flag.NewFlagSet("raftsim "+name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	define(f)
	c.flags = f
	err := f.Parse(c.args)
	if err == nil {
		return nil
	}
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(c.out, "usage: raftsim %s\n", strings.TrimSpace(name+" "+args))
		f.SetOutput(c.out)
		f.PrintDefaults()
		return err
	}
	const undefined = "flag provided but not defined: -"
	if unknown, ok := strings.CutPrefix(err.Error(), undefined); ok {
		var names []string
		f.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		return misuse("unknown flag -%s%s; 'raftsim %s' lists them", unknown, sim.Nearest(unknown, names), strings.TrimSpace(name+" -h"))
	}
	return misuse("%v; 'raftsim %s -h' lists the flags", err, name)
}

// rules reads -without.
func rules(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	known := sim.RuleNames()
	names := strings.Split(list, ",")
	for _, name := range names {
		found := false
		for _, k := range known {
			found = found || k == name
		}
		if !found {
			return nil, misuse("unknown rule %q%s; expected some of %s", name, sim.Nearest(name, known), strings.Join(known, ","))
		}
	}
	return names, nil
}
