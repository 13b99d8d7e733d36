package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ticketing/fsm/trace"
	"ticketing/sim"
)

// After so many seeds that came to no end a search gives up: one that loops costs seconds, one that
// panics costs a process.
const (
	mostCrashes   = 100
	mostLoopSeeds = 10
	mostSeeds     = 12 // that are named of those that ended at the same place
)

// ownSearch is a search with the reader's package raft.
type ownSearch struct {
	sim.Search
	shared *searchFlags
	b      *built
	bounds bounds
	jobs   int
}

// ownFindings is what it came to.
type ownFindings struct {
	sim.Findings
	failed  *outcome // of seed Last, which broke something
	crashes []seedCrash
	loops   int               // of them
	places  map[string]uint64 // where there was one, and its seed
}

type seedCrash struct {
	seed uint64
	*crash
}

func (f *ownFindings) over() bool {
	return f.failed != nil || len(f.crashes) == mostCrashes || f.loops == mostLoopSeeds
}

// ownResult is one seed's result on its way to being counted.
type ownResult struct {
	seed    uint64
	outcome *outcome
	crash   *crash
}

// explore runs seeds as sim.Search does: in any order, counted in theirs, up to the first that breaks
// something. A seed that comes to no end is counted and does not end the search.
func (s *ownSearch) explore(ctx context.Context) (*ownFindings, error) {
	if s.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.For)
		defer cancel()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var next atomic.Uint64
	next.Store(s.From)
	results := make(chan ownResult)
	crew, crewCtx := errgroup.WithContext(ctx)
	for range s.jobs {
		crew.Go(func() error { return s.work(crewCtx, &next, results) })
	}
	failed := make(chan error, 1)
	go func() {
		failed <- crew.Wait()
		close(results)
	}()
	f, err := s.collect(ctx, results, stop)
	if failed := <-failed; err == nil && ctx.Err() == nil {
		err = failed
	}
	return f, err
}

// work runs seeds until there are no more.
func (s *ownSearch) work(ctx context.Context, next *atomic.Uint64, results chan<- ownResult) error {
	h := &hand{b: s.b, bounds: s.bounds}
	defer h.end()
	for ctx.Err() == nil {
		seed := next.Add(1) - 1
		if s.To != 0 && seed > s.To || seed == math.MaxUint64 {
			return nil
		}
		o, c, err := h.ask(ctx, s.shared.job(seed, s.Without))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		results <- ownResult{seed, o, c}
	}
	return ctx.Err()
}

// job is a seed of the search for a worker.
func (s *searchFlags) job(seed uint64, without []string) job {
	return job{
		Seed: &seed, Faults: s.faults, Nodes: s.nodes, Without: without, Again: s.replayCommand(seed),
	}
}

// collect counts results in the order of their seeds. The first crash at each place it has watched.
func (s *ownSearch) collect(ctx context.Context, results <-chan ownResult, stop func()) (*ownFindings, error) {
	f := &ownFindings{Findings: sim.Findings{First: s.From}, places: map[string]uint64{}}
	h := &hand{b: s.b, bounds: s.bounds}
	defer h.end()
	early := map[uint64]ownResult{}
	next := s.From
	var failure error
	for r := range results {
		early[r.seed] = r
		for ; failure == nil && !f.over(); next++ {
			r, ok := early[next]
			if !ok {
				break
			}
			delete(early, next)
			if failure = s.watch(ctx, h, f, &r); failure == nil {
				failure = f.add(r)
			}
			if s.Progress != nil {
				s.Progress(&f.Findings)
			}
		}
		if failure != nil || f.over() {
			stop()
		}
	}
	if ctx.Err() != nil && !f.over() {
		return f, nil // time is up, or somebody has interrupted it
	}
	return f, failure
}

// watch finds out more about a crash, unless an earlier one says it.
func (s *ownSearch) watch(ctx context.Context, h *hand, f *ownFindings, r *ownResult) (err error) {
	if r.crash == nil {
		return nil
	}
	if _, seen := f.places[r.crash.place()]; seen && r.crash.kind != crashLoop {
		return nil
	}
	r.outcome, r.crash, err = h.watch(ctx, s.shared.job(r.seed, s.Without), r.crash)
	return err
}

func (f *ownFindings) add(r ownResult) error {
	if r.crash != nil {
		place := r.crash.place()
		if _, seen := f.places[place]; !seen {
			f.places[place] = r.seed
		}
		f.crashes = append(f.crashes, seedCrash{r.seed, r.crash})
		if r.crash.kind == crashLoop {
			f.loops++
		}
		return f.Include(sim.Findings{Seeds: 1, Last: r.seed}, nil)
	}
	if !r.outcome.held() {
		f.failed = r.outcome
	}
	part := sim.Findings{
		Seeds: 1, Last: r.seed, SimTime: trace.Time(r.outcome.EndUS), Steps: r.outcome.Steps,
	}
	return f.Include(part, r.outcome.Counters)
}

// exploreOwn is explore with -raft.
func (x *exploring) exploreOwn(ctx context.Context, c *call) error {
	if x.shard != "" || x.out != "" {
		return misuse("-shard and -out are for a search whose program stays the same; leave them away with -raft")
	}
	if x.guided || x.coverage || x.twice != 0 {
		return misuse("-guided, -coverage and -check-determinism look into runs of this process, and with -raft there are none; leave them away")
	}
	b, err := x.shared.own.build(ctx)
	if err != nil {
		return err
	}
	defer b.remove()
	fmt.Fprintf(c.err, "package raft: %s\n", b.parts)
	meter := newMeter(c, x.search)
	x.search.Progress = meter.tick
	s := &ownSearch{Search: x.search, shared: &x.shared, b: b, bounds: usualBounds(), jobs: sim.Workers(x.jobs)}
	f, err := s.explore(ctx)
	meter.clear()
	if err != nil {
		return err
	}
	c.broken = f.failed != nil || len(f.crashes) > 0 || x.all && len(f.Unseen()) > 0
	c.cut = f.failed == nil && (f.Seeds == 0 || ctx.Err() != nil && x.unfinished(&f.Findings))
	f.Cut = c.cut
	if x.asJSON {
		return c.printAsJSON(f.report(&x.shared))
	}
	c.printSearched(&x.shared, &f.Findings, time.Since(x.begun))
	f.print(c, x)
	return nil
}

// print says what broke, and what came to no end: of those that ended at the same place the first.
func (f *ownFindings) print(c *call, x *exploring) {
	if f.failed == nil && len(f.crashes) == 0 {
		c.printUnseen(&f.Findings)
	}
	style := x.look.style(c)
	var text strings.Builder
	for _, s := range f.crashes {
		if f.places[s.place()] == s.seed {
			s.write(&text, fmt.Sprintf("seed %d", s.seed))
			f.printLike(&text, s)
		}
	}
	if f.failed != nil {
		text.WriteString(f.failed.Verdict)
	}
	c.printClean(text.String(), style)
	switch {
	case f.failed != nil:
	case f.over():
		fmt.Fprintf(c.out, "given up after %d seeds that came to no end\n", len(f.crashes))
	case f.Cut:
		fmt.Fprintf(c.out, "INTERRUPTED after %d runs; go on with:\n  %s\n", f.Seeds, x.goOn(&f.Findings))
	case len(f.crashes) > 0:
		fmt.Fprintf(c.out, "%d of %d seeds came to no end; in the others all %d invariants held\n",
			len(f.crashes), f.Seeds, len(sim.Invariants()))
	default:
		c.printHeld(&f.Findings, x.all)
	}
}

// printLike names the other seeds that ended as one did.
func (f *ownFindings) printLike(out io.Writer, first seedCrash) {
	var seeds []string
	for _, s := range f.crashes {
		if s.seed != first.seed && s.place() == first.place() {
			seeds = append(seeds, strconv.FormatUint(s.seed, 10))
		}
	}
	if more := len(seeds) - mostSeeds; more > 0 {
		seeds = append(seeds[:mostSeeds], fmt.Sprintf("and %d more", more))
	}
	if len(seeds) > 0 {
		fmt.Fprintf(out, "        at the same place: seeds %s\n", strings.Join(seeds, ", "))
	}
}

// report is what -json prints.
func (f *ownFindings) report(shared *searchFlags) map[string]any {
	crashed := []map[string]any{}
	for _, s := range f.crashes {
		crashed = append(crashed, map[string]any{
			"seed": s.seed, "kind": s.kind, "says": s.says, "event": s.last, "stack": s.frames,
			"once": s.once, "replay": s.again,
		})
	}
	report := jsonReport(shared, &f.Findings)
	report["crashed"] = crashed
	report["held"] = f.failed == nil && len(f.crashes) == 0 && f.Seeds > 0
	if f.failed != nil {
		addFailure(report, f.failed.Violated, f.failed.Failure, shared.replayCommand(f.Last))
	}
	return report
}
