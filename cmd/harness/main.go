// Command harness replays a scenario of the simulator on real processes: servers that talk over
// real connections, with a proxy in each link that cuts, holds and delays, and clients that use the
// client library. Then it judges what the servers did by what they have written into their traces.
//
//	go run ./cmd/harness late-expire
//	go run ./cmd/harness -without expire-token late-expire
//
// docs/harness.md says what it can do and what not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"ticketing/sim"
)

// Exit codes.
const (
	exitHeld   = 0
	exitBroken = 1   // an invariant or an expectation failed
	exitUsage  = 2   // wrong usage, a malformed file, or one that real processes cannot do
	exitCut    = 130 // interrupted before it was through
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "node" {
		if err := runNode(os.Args[2:], os.Stdin, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, "harness node:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `harness replays a scenario of the simulator on real processes, and judges what they did.

  harness [flags] NAME|FILE
  harness -list

`

// options is the command line.
type options struct {
	without    string
	trace, dir string
	list       bool
	quiet      bool
	name       string
}

var errUsage = errors.New("wrong usage")

func parse(args []string, out io.Writer) (o options, err error) {
	f := flag.NewFlagSet("harness", flag.ContinueOnError)
	f.SetOutput(out)
	f.Usage = func() { fmt.Fprint(out, usage); f.PrintDefaults() }
	rules := strings.Join(sim.RuleNames(), ",")
	f.StringVar(&o.without, "without", "", "take `RULE,…` away: "+rules)
	f.StringVar(&o.trace, "trace", "", "keep the servers' traces, merged, in `FILE`")
	f.StringVar(&o.dir, "dir", "", "keep what the servers store and log in `DIR`, which must be new")
	f.BoolVar(&o.list, "list", false, "list the scenarios, and what of each cannot be done here")
	f.BoolVar(&o.quiet, "quiet", false, "print the verdict alone")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.list {
		return o, nil
	}
	if f.NArg() != 1 {
		return o, fmt.Errorf("%w: name one scenario, behind the flags; -list lists them", errUsage)
	}
	o.name = f.Arg(0)
	for rule := range strings.SplitSeq(o.without, ",") {
		if rule != "" && !slices.Contains(sim.RuleNames(), rule) {
			return o, fmt.Errorf("%w: there is no rule %q%s; expected some of %s",
				errUsage, rule, sim.Nearest(rule, sim.RuleNames()), rules)
		}
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return exitHeld
	}
	held := true
	switch {
	case err != nil:
	case o.list:
		list(out)
	default:
		held, err = o.replay(ctx, out)
	}
	var syntax *sim.SyntaxError
	var refused *refusal
	switch {
	case errors.As(err, &syntax), errors.As(err, &refused):
		fmt.Fprintln(errs, err)
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(errs, "harness: interrupted")
		return exitCut
	case err != nil:
		fmt.Fprintln(errs, "harness:", err)
		if errors.Is(err, errServer) {
			return exitBroken
		}
		return exitUsage
	case !held:
		return exitBroken
	}
	return exitHeld
}

// list tells for each scenario of the library whether it can be done.
func list(out io.Writer) {
	for _, s := range sim.Library() {
		text := s.Title
		if _, err := prepare(s); err != nil {
			text = "cannot: " + strings.TrimPrefix(err.Error(), s.File)
		}
		fmt.Fprintf(out, "%-24s %s\n", s.Name, text)
	}
}

// replay runs one scenario and reports whether it held. An error says that it could not be run.
func (o options) replay(ctx context.Context, out io.Writer) (held bool, err error) {
	s, err := sim.Load(o.name)
	if err != nil {
		return false, err
	}
	p, err := prepare(s)
	if err != nil {
		return false, err
	}
	for rule := range strings.SplitSeq(o.without, ",") {
		if rule != "" && !slices.Contains(p.without, rule) {
			p.without = append(p.without, rule)
		}
	}
	slices.Sort(p.without)
	dir := o.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "harness-"); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	r := &replay{scenario: s, plan: p, dir: dir, out: newNarrator(out, o.quiet)}
	v, err := r.run(ctx)
	if err != nil {
		return false, err
	}
	if o.trace != "" {
		if err := writeTrace(o.trace, v.trace); err != nil {
			return false, err
		}
	}
	v.print(out, o.again())
	return v.held(), nil
}

// again is the command that runs this once more.
func (o options) again() string {
	words := []string{"go run ./cmd/harness"}
	if o.without != "" {
		words = append(words, "-without", o.without)
	}
	return strings.Join(append(words, o.name), " ")
}

func writeTrace(name string, t io.WriterTo) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("keeping the trace: %w", err)
	}
	_, err = t.WriteTo(f)
	return errors.Join(err, f.Close())
}
