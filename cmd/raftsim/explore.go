package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"ticketing/sim"
)

// exploring is what explore was asked for.
type exploring struct {
	look
	shared     searchFlags
	seeds      string
	lasting    time.Duration
	jobs       int
	asJSON     bool
	all        bool
	coverage   bool
	guided     bool
	save       string
	twice      everyNth
	shard, out string
	from, to   uint64 // of all shards
	part       shard
	search     sim.Search // of this one
	file       *resultsFile
	header     searchHeader
	begun      time.Time
}

func (x *exploring) define(f *flag.FlagSet) {
	x.look.define(f)
	x.shared.define(f)
	f.StringVar(&x.seeds, "seeds", "", "the seeds `A-B`, both included; 1-1000 unless -for is given")
	f.DurationVar(&x.lasting, "for", 0, "go on for `DUR` from seed 1, or from A with -seeds A-")
	f.IntVar(&x.jobs, "j", 0, "how many runs at a time; 0 is one a core. The findings do not depend on it")
	f.BoolVar(&x.asJSON, "json", false, "print the findings as one JSON object")
	f.BoolVar(&x.all, "require-all", false, "fail if something that a search should see has not happened")
	f.Var(&x.twice, "check-determinism", "run every seed twice, or every `N`th, and compare the two traces")
	f.StringVar(&x.shard, "shard", "", "search part `I/N` of the seeds; 'raftsim merge' adds the parts up")
	f.BoolVar(&x.coverage, "coverage", false, "count the shapes of states that were seen, and how that number grew")
	f.BoolVar(&x.guided, "guided", false, "make half of the runs of earlier ones that came to new shapes")
	f.StringVar(&x.save, "save", "", "write what a guided search finds to `FILE`; guided-N.txt unless given")
	f.StringVar(&x.out, "out", "", "write results to `FILE` as JSON lines; go on where it ends if it is there")
}

// explore runs many seeds.
func explore(ctx context.Context, c *call) error {
	x := &exploring{begun: time.Now()}
	if err := c.parse("explore", "[flags]", x.define); err != nil {
		return err
	}
	if c.flags.NArg() != 0 {
		return misuse("explore takes flags only, not %q", c.flags.Arg(0))
	}
	if err := x.prepare(); err != nil {
		return err
	}
	if x.shared.own.dir != "" {
		return x.exploreOwn(ctx, c)
	}
	if x.guided {
		return x.guide(ctx, c)
	}
	if err := x.open(c); err != nil {
		return err
	}
	f, err := x.run(ctx, c)
	if err != nil {
		return err
	}
	ended := x.settle(ctx, c, f)
	if x.asJSON {
		return printJSON(c, &x.shared, f, x.shared.replayCommand)
	}
	c.printFindings(&x.look, &x.shared, x.search, f, time.Since(x.begun))
	c.printCurve(f.Curve)
	if !ended {
		x.printEnd(c, f)
	}
	return nil
}

// settle decides on the exit code, and reports whether something ended the search.
func (x *exploring) settle(ctx context.Context, c *call, f *sim.Findings) (ended bool) {
	ended = f.Failed != nil || f.Diverged != nil
	c.broken = ended || x.all && len(f.Unseen()) > 0
	c.cut = !ended && (f.Seeds == 0 || ctx.Err() != nil && x.unfinished(f))
	f.Cut = c.cut
	return ended
}

// prepare checks the flags.
func (x *exploring) prepare() (err error) {
	if x.search, err = x.shared.search(); err != nil {
		return err
	}
	if x.from, x.to, err = seedRange(x.seeds, x.lasting); err != nil {
		return err
	}
	if x.lasting < 0 || x.jobs < 0 {
		return misuse("-for and -j must not be negative")
	}
	if x.part, err = readShard(x.shard); err != nil {
		return err
	}
	if x.to == 0 && (x.shard != "" || x.out != "") {
		return misuse("-shard and -out need to know where the search ends: give -seeds A-B")
	}
	if x.twice != 0 && x.out != "" {
		return misuse("a results file says nothing of runs that differ: give -check-determinism without -out")
	}
	x.search.Twice = uint64(x.twice)
	x.search.From, x.search.To, err = x.part.of(x.from, x.to)
	x.search.For, x.search.Jobs, x.search.Coverage = x.lasting, x.jobs, x.coverage
	if alone := x.shard + x.out; (x.coverage || x.guided) && alone != "" {
		return misuse("-coverage and -guided look at all runs together: not with -shard or -out")
	}
	if x.guided && x.twice != 0 {
		return misuse("-check-determinism is for runs that are made by a seed: not with -guided")
	}
	if x.save != "" && !x.guided {
		return misuse("-save is for -guided: any other run is made by its seed again, see 'raftsim replay'")
	}
	return err
}

// open begins the results file, or finds out where it ends.
func (x *exploring) open(c *call) (err error) {
	if x.out == "" {
		return nil
	}
	if x.header, err = headerOf(x.search, x.from, x.to, x.part); err != nil {
		return err
	}
	var note string
	if x.file, note, err = openResults(x.out, x.header); err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintln(c.err, note)
	}
	return nil
}

// run searches what is not in the results file yet, and adds what is.
func (x *exploring) run(ctx context.Context, c *call) (*sim.Findings, error) {
	meter := newMeter(c, x.search)
	x.search.Progress = meter.tick
	if x.file == nil {
		f, err := x.search.Explore(ctx)
		meter.clear()
		return f, err
	}
	defer x.file.file.Close()
	if x.file.done() {
		return x.before()
	}
	ctx, x.file.stop = context.WithCancel(ctx)
	defer x.file.stop()
	x.file.replay = x.shared.replayCommand
	x.search.From = x.file.next
	x.search.Progress = func(f *sim.Findings) {
		meter.tick(f)
		x.file.tick(f)
	}
	f, err := x.search.Explore(ctx)
	meter.clear()
	if err != nil {
		return nil, err
	}
	if x.file.failure != nil {
		return nil, x.file.failure
	}
	f.First = x.file.first
	return f, f.Include(x.file.findings, x.file.findings.Counters())
}

// before is what a search came to that was through already. A seed that failed is run again: the file
// has its name, not its picture.
func (x *exploring) before() (*sim.Findings, error) {
	f := &x.file.findings
	if x.file.failed == nil {
		return f, nil
	}
	r, err := x.search.Run(x.file.failed.Seed, sim.Options{})
	if err != nil {
		return nil, err
	}
	if r.Held() {
		return nil, misuse("%s: seed %d failed when it was searched, and holds now: the program is another one; give another -out",
			x.out, r.Seed)
	}
	f.Failed = r
	return f, nil
}

// unfinished reports whether seeds are left over.
func (x *exploring) unfinished(f *sim.Findings) bool {
	return x.search.To == 0 || f.Last != x.search.To
}

// printEnd says whether what was searched held, and how to go on if that is not all.
func (x *exploring) printEnd(c *call, f *sim.Findings) {
	switch {
	case f.Cut:
		fmt.Fprintf(c.out, "INTERRUPTED after %d runs, in which nothing broke; go on with:\n  %s\n", f.Seeds, x.goOn(f))
		return
	case x.file != nil && x.unfinished(f):
		fmt.Fprintf(c.out, "time is up after %d runs; go on with:\n  %s\n", f.Seeds, x.goOn(f))
	}
	c.printHeld(f, x.all)
}

// goOn is the command for what is left. With a results file it is the one that was given: the file says
// where it ends.
func (x *exploring) goOn(f *sim.Findings) string {
	if x.file != nil {
		return x.header.command(x.part, x.out)
	}
	seeds := fmt.Sprintf("%d-", f.First+uint64(f.Seeds))
	if x.search.To != 0 {
		seeds += fmt.Sprint(x.search.To)
	}
	if x.lasting != 0 {
		seeds += " -for " + x.lasting.String()
	}
	return x.shared.command("raftsim explore -seeds " + seeds)
}
