package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ticketing/sim"
)

// searchFlags are shared by explore and replay, so that a failure's replay command says all that
// matters.
type searchFlags struct {
	faults, without string
	nodes           int
	own             ownFlags
}

func (s *searchFlags) define(f *flag.FlagSet) {
	f.StringVar(&s.faults, "faults", "harsh", "mild, harsh or swarm, which draws for each seed what it is like")
	f.IntVar(&s.nodes, "nodes", 0, "the number of servers, 1 to 9; 0 lets each seed choose")
	f.StringVar(&s.without, "without", "", "take `RULE,…` away: "+strings.Join(sim.RuleNames(), ","))
	s.own.define(f)
}

func (s *searchFlags) search() (sim.Search, error) {
	without, err := rules(s.without)
	if err != nil {
		return sim.Search{}, err
	}
	search := sim.Search{Faults: s.faults, Nodes: s.nodes, Without: without}
	if _, err := sim.Plan(1, s.faults, s.nodes); err != nil {
		return sim.Search{}, misuse("%v", err)
	}
	return search, nil
}

// replayCommand is the command that runs a seed of the search again.
func (s *searchFlags) replayCommand(seed uint64) string {
	return s.command(fmt.Sprintf("raftsim replay -seed %d", seed))
}

// command adds the flags that both commands have.
func (s *searchFlags) command(words string) string {
	words += " -faults " + s.faults
	if s.nodes != 0 {
		words += fmt.Sprintf(" -nodes %d", s.nodes)
	}
	if s.without != "" {
		words += " -without " + s.without
	}
	return words + s.own.words()
}

// seedRange reads A-B, A- or N.
func seedRange(text string, lasting time.Duration) (from, to uint64, err error) {
	if text == "" {
		if lasting > 0 {
			return 1, 0, nil
		}
		return 1, 1000, nil
	}
	a, b, isRange := strings.Cut(text, "-")
	if !isRange {
		b = a
	}
	from, err1 := strconv.ParseUint(a, 10, 64)
	to, err2 := strconv.ParseUint(b, 10, 64)
	if isRange && b == "" && lasting > 0 {
		to, err2 = 0, nil
	}
	endless := isRange && b == ""
	if err1 != nil || err2 != nil || from == 0 || !endless && to < from {
		return 0, 0, misuse("-seeds %q: expected A-B with 1 ≤ A ≤ B, or A- together with -for", text)
	}
	return from, to, nil
}

// meter is the progress line on a terminal.
type meter struct {
	c      *call
	search sim.Search
	begun  time.Time
	shown  time.Time
}

func newMeter(c *call, s sim.Search) *meter {
	return &meter{c: c, search: s, begun: time.Now()}
}

func (m *meter) tick(f *sim.Findings) {
	if !onScreen(m.c.err) || time.Since(m.shown) < 200*time.Millisecond {
		return
	}
	m.shown = time.Now()
	rate := float64(f.Seeds) / time.Since(m.begun).Seconds()
	left := ""
	if m.search.To != 0 && rate > 0 {
		seconds := float64(m.search.To-f.Last) / rate
		left = ", " + time.Duration(seconds*float64(time.Second)).Round(time.Second).String() + " left"
	}
	fmt.Fprintf(m.c.err, "\r\x1b[K%d seeds, %.0f a second%s; late Expires that met a newer token: %d",
		f.Seeds, rate, left, f.Count("expire.newer"))
}

func (m *meter) clear() {
	if !m.shown.IsZero() {
		fmt.Fprint(m.c.err, "\r\x1b[K")
	}
}

// printJSON prints a search; again says which command runs a seed that failed once more.
func printJSON(c *call, shared *searchFlags, f *sim.Findings, again func(seed uint64) string) error {
	report := jsonReport(shared, f)
	if r := f.Failed; r != nil {
		line := failureOf(r, again(r.Seed))
		addFailure(report, line.Violated, line.Failure, line.Replay)
	}
	return c.printAsJSON(report)
}

// jsonReport is what -json prints of a search.
func jsonReport(shared *searchFlags, f *sim.Findings) map[string]any {
	report := map[string]any{
		"seeds": f.Seeds, "first": f.First, "last": f.Last, "faults": shared.faults, "nodes": shared.nodes,
		"without": shared.without, "simulated_us": int64(f.SimTime), "events": f.Steps, "counters": f.Counters(),
		"held": f.Failed == nil && f.Diverged == nil && f.Seeds > 0, "run_twice": f.RunTwice,
		"complete": !f.Cut, "unseen": names(f.Unseen()),
	}
	if d := f.Diverged; d != nil {
		report["diverged"] = map[string]any{"seed": d.Seed, "hashes": d.Hashes, "event": d.Event, "lines": d.Lines}
	}
	return report
}

// addFailure adds what broke.
func addFailure(report map[string]any, violated []string, failure, replay string) {
	report["violated"], report["replay"] = violated, replay
	if len(violated) > 0 {
		report["shrink"] = shrinkCommand(replay)
	}
	if failure != "" {
		report["failure"] = failure
	}
}

// printFindings says what happened, what did not, and what broke.
func (c *call) printFindings(l *look, shared *searchFlags, search sim.Search, f *sim.Findings, took time.Duration) {
	c.printSearched(shared, f, took)
	if c.printTwice(shared, f); f.Diverged != nil {
		return
	}
	if f.Failed == nil {
		c.printUnseen(f)
		return
	}
	again := shared.replayCommand(f.Failed.Seed)
	r := f.Failed
	if recorded, err := search.Run(r.Seed, sim.Options{Record: true}); err == nil {
		r = recorded // the same run, with its trace
	}
	c.verdict(r, l.style(c), again)
}

// printSearched says what was searched and how often what happened.
func (c *call) printSearched(shared *searchFlags, f *sim.Findings, took time.Duration) {
	fmt.Fprintf(c.out, "seeds %d-%d, faults %s: %d runs, %.1f cluster-hours simulated, %d events, in %s\n",
		f.First, max(f.Last, f.First), shared.faults, f.Seeds, float64(f.SimTime)/3.6e9, f.Steps, took.Round(100*time.Millisecond))
	c.printCounts(f)
}

// printCounts says how often what happened.
func (c *call) printCounts(f *sim.Findings) {
	n := f.Count
	fmt.Fprintf(c.out, "  Expires applied  %8d: %d ended a tenure, %d met a newer token, %d met a free key (%d proposed bare)\n",
		n("expire.existed")+n("expire.newer")+n("expire.free"), n("expire.existed"), n("expire.newer"), n("expire.free"), n("expire.bare"))
	fmt.Fprintf(c.out, "  Grants           %8d granted, %d rejected, %d given back as too late; %d releases, %d not found; %d clean-ups\n",
		n("grant.granted"), n("grant.rejected"), n("grant.late"), n("release.released"), n("release.not-found"), n("cleanups"))
	fmt.Fprintf(c.out, "  Requests         %8d told again; %d sessions evicted, %d requests of theirs refused\n",
		n("repeated"), n("sessions.evicted"), n("sessions.unknown"))
	fmt.Fprintf(c.out, "  Extensions       %8d, %d refused behind an Expire, %d too late\n",
		n("extend.extended"), n("extend.refused"), n("extend.not-found"))
	fmt.Fprintf(c.out, "  Reads            %8d answered, %d not; %d transfers, of which %d came to their end and %d were given up\n",
		n("reads"), n("reads.failed"), n("transfers"), n("transfers.done"), n("transfers.given-up"))
	if n("snapshots") > 0 || n("snapshots.installed") > 0 {
		fmt.Fprintf(c.out, "  Snapshots        %8d taken, %d sent, %d installed (%d beside entries behind them, %d in place of others); %d lost in crashes\n",
			n("snapshots"), n("snapshots.sent"), n("snapshots.installed"), n("snapshots.suffix"), n("snapshots.conflict"),
			n("snapshots.lost")+n("snapshots.unnamed"))
	}
	if n("members.changed") > 0 || n("members.refused") > 0 {
		fmt.Fprintf(c.out, "  Servers          %8d changes, %d refused, %d taken back, %d whose caller was not told; %d leaders left\n",
			n("members.changed"), n("members.refused"), n("members.taken-back"), n("members.unknown"), n("members.left"))
	}
	fmt.Fprintf(c.out, "  Elections        %8d campaigns, %d leaders, %d deposed (%d with uncommitted entries), %d logs cut back\n",
		n("elections"), n("leaders"), n("deposed"), n("deposed.uncommitted"), n("truncations"))
	fmt.Fprintf(c.out, "  Faults           %8d crashes (%d tore a record), %d pauses, %d cuts, %d messages lost, %d doubled\n",
		n("crashes"), n("torn"), n("pauses"), n("cuts"), n("lost"), n("duplicated"))
	fmt.Fprintf(c.out, "  Fenced resource  %8d writes taken, %d refused for an old token; %d times two clients believed to hold one lock\n",
		n("written"), n("refused"), n("beliefs.overlap"))
	fmt.Fprintf(c.out, "  Client histories %8d with %d requests and reads, on %d keys no verdict\n",
		n("histories"), n("histories.operations"), n("histories.gave-up"))
}

// replay runs one seed of the search again.
func replay(ctx context.Context, c *call) error {
	var l look
	var shared searchFlags
	var to output
	var seed string
	err := c.parse("replay", "-seed N [flags]", func(f *flag.FlagSet) {
		l.define(f)
		shared.define(f)
		f.StringVar(&seed, "seed", "", "the seed `N`")
		to.define(f)
	})
	if err == nil {
		err = to.check()
	}
	if err != nil {
		return err
	}
	if c.flags.NArg() != 0 {
		return misuse("replay takes flags only, not %q", c.flags.Arg(0))
	}
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return misuse("-seed %q: expected the number that a failure printed", seed)
	}
	search, err := shared.search()
	if err != nil {
		return err
	}
	if shared.own.dir != "" {
		return c.showOwn(ctx, &shared.own, shared.job(n, search.Without), l.style(c), &to)
	}
	r, err := search.Run(n, sim.Options{Record: true})
	if err != nil {
		return err
	}
	if first := r.Scenario.Lines[0]; first.Prose != "" && !to.trace && to.json != "-" && to.format == "" {
		fmt.Fprintln(c.out, first.Prose) // what the seed drew; the picture has no prose
	}
	return c.report(r, l.style(c), &to, shared.replayCommand(n))
}
