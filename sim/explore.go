package sim

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"ticketing/fsm/trace"
)

// Search is what explore looks for: random runs, each made by Plan from its seed.
type Search struct {
	From, To uint64        // the seeds; To 0 is without end
	For      time.Duration // stop after this long, 0 for never
	Faults   string        // see Plan
	Nodes    int
	Without  []string
	Twice    uint64               // run every so manieth seed twice, and compare; 0 for none
	Jobs     int                  // how many at a time; 0 for all cores. The findings do not depend on it
	Coverage bool                 // count the shapes of states: Findings.Curve
	Progress func(done *Findings) // called now and then by one goroutine, may be nil
}

// Findings is what the seeds up to the first failing one came to.
type Findings struct {
	Seeds    int64
	First    uint64 // the first seed
	Last     uint64 // the last seed that counts: the failing one, if there is one
	Failed   *Result
	RunTwice int64       // so many seeds were run twice,
	Diverged *Divergence // and in these two runs not the same happened, which ends the search
	Cut      bool        // it was interrupted before it was through
	SimTime  trace.Time  // simulated time, all seeds together
	Steps    int64
	Curve    Curve // with Search.Coverage
	counters counters
}

// Count returns a counter, summed over the seeds.
func (f *Findings) Count(name string) int64 {
	return f.counters.named(name)
}

// Counters returns all counters by name.
func (f *Findings) Counters() map[string]int64 {
	m := map[string]int64{}
	for i, name := range counterNames() {
		m[name] = f.counters[i]
	}
	return m
}

func (f *Findings) add(seed uint64, r *seedResult) {
	f.Seeds++
	if r.twice {
		f.RunTwice++
	}
	f.Diverged = r.diverged
	f.Last = seed
	f.SimTime += r.End
	f.Steps += r.Steps
	for i := range r.counters {
		f.counters[i] += r.counters[i]
	}
	// A number of terms is the highest in a run; the sum says little, but adds up like the others.
	if !r.Held() {
		f.Failed = r.Result
	}
}

// over reports whether something was found that ends a search.
func (f *Findings) over() bool { return f.Failed != nil || f.Diverged != nil }

// seedResult is one seed's result on its way to being counted.
type seedResult struct {
	seed uint64
	*Result
	twice    bool
	diverged *Divergence
}

// Explore runs seeds until one fails, two runs of one differ, they are all done, time is up, or ctx
// ends. Seeds are run in any order and counted in theirs: those behind the first failing one do not
// count, so the findings are the same for any number of jobs.
func (s Search) Explore(ctx context.Context) (*Findings, error) {
	if _, err := Plan(1, s.Faults, s.Nodes); err != nil {
		return nil, err
	}
	if s.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.For)
		defer cancel()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	seeds, results := make(chan uint64), make(chan seedResult)
	group.Go(func() error {
		defer close(seeds)
		for seed := s.From; ; seed++ {
			select {
			case seeds <- seed:
			case <-ctx.Done():
				return nil
			}
			if seed == s.To || seed == math.MaxUint64 {
				return nil
			}
		}
	})
	crew, crewCtx := errgroup.WithContext(ctx)
	for range Workers(s.Jobs) {
		crew.Go(func() error { return s.work(crewCtx, seeds, results) })
	}
	group.Go(func() error {
		defer close(results)
		return crew.Wait()
	})
	findings := s.collect(results, stop)
	return findings, group.Wait()
}

// work runs seeds. A result is always delivered: once a seed has been taken, the ones after it wait
// for it.
func (s Search) work(ctx context.Context, seeds <-chan uint64, results chan<- seedResult) error {
	for seed := range seeds {
		r := seedResult{seed: seed, twice: s.Twice != 0 && seed%s.Twice == 0}
		var err error
		if r.twice {
			r.Result, r.diverged, err = s.twice(seed)
		} else {
			r.Result, err = s.Run(seed, Options{})
		}
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		results <- r
	}
	return nil
}

// collect counts results in the order of their seeds.
func (s Search) collect(results <-chan seedResult, stop func()) *Findings {
	f := &Findings{First: s.From}
	var seen shapes
	early := map[uint64]*seedResult{}
	next := s.From
	for r := range results {
		early[r.seed] = &r
		for early[next] != nil && !f.over() {
			f.add(next, early[next])
			if s.Coverage {
				seen.add(early[next].Points, f.Seeds)
				f.Curve = seen.curve
			}
			delete(early, next)
			next++
			if s.Progress != nil {
				s.Progress(f)
			}
		}
		if f.over() {
			stop()
		}
	}
	return f
}

// Run runs one seed of the search.
func (s Search) Run(seed uint64, o Options) (*Result, error) {
	scenario, err := Plan(seed, s.Faults, s.Nodes)
	if err != nil {
		return nil, err
	}
	o.Without, o.Coverage = s.Without, s.Coverage
	return Run(scenario, o)
}
