package sim

import (
	"cmp"
	"context"
	"slices"

	"ticketing/fsm/trace"
)

// A fork is the moment at which a run goes on under another seed.
type fork struct {
	at   trace.Time
	seed uint64
}

// before reports whether there is a fork, and a time is behind it.
func (f *fork) before(t trace.Time) bool { return f != nil && f.at <= t }

// When asks from which moment on a failing run could not be saved: it gives the run other futures, from
// earlier and earlier moments on, and counts how many fail in the same way.
type When struct {
	Scenario *Scenario // one that fails; nil for a seed of the search,
	Faults   string    // of which these say how it is drawn; see Plan
	Nodes    int
	Seed     *uint64 // of the scenario or of the search
	Without  []string
	Futures  int    // from each moment
	Jobs     int    // how many runs at a time; 0 for all cores. The answer does not depend on it
	Progress func() // called after each run, by several at a time; nil for no one
}

// Moments are the answer.
type Moments struct {
	Run     *Result // the failing run, recorded
	Broken  Violation
	Futures int
	Shares  []Share // by rising time; the last is when it breaks
}

// Share is how many other futures from a moment on fail.
type Share struct {
	At    trace.Time
	Fails int
}

// The moments are even steps, and then, where the share rises most, finer ones.
const (
	coarseSteps = 16
	fineSteps   = 8
	fineRounds  = 2
)

// Ask gives the run other futures.
func (q When) Ask(ctx context.Context) (*Moments, error) {
	r, err := q.run(nil)
	if err != nil {
		return nil, err
	}
	broken := slices.Concat(r.Unexpected(), r.Violations)
	if len(broken) == 0 {
		return nil, heldError(r)
	}
	m := &Moments{Run: r, Broken: broken[0], Futures: q.Futures}
	if err := q.add(ctx, m, steps(0, m.Broken.At, coarseSteps)); err != nil {
		return nil, err
	}
	for range fineRounds {
		i := m.steepest()
		if err := q.add(ctx, m, steps(m.Shares[i].At, m.Shares[i+1].At, fineSteps)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// run is the run, or another future of it.
func (q When) run(f *fork) (*Result, error) {
	s := q.Scenario
	if s == nil {
		var err error
		if s, err = planForked(*q.Seed, q.Faults, q.Nodes, f); err != nil {
			return nil, err
		}
	}
	return Run(s, Options{Seed: q.Seed, Without: q.Without, Record: f == nil, fork: f})
}

// steps are n even steps from one time to another, both included.
func steps(from, to trace.Time, n int) []trace.Time {
	var times []trace.Time
	for i := range n + 1 {
		times = append(times, from+(to-from)*trace.Time(i)/trace.Time(n))
	}
	return times
}

// add asks about more moments.
func (q When) add(ctx context.Context, m *Moments, times []trace.Time) error {
	times = slices.DeleteFunc(slices.Compact(times), func(t trace.Time) bool {
		return slices.ContainsFunc(m.Shares, func(s Share) bool { return s.At == t })
	})
	failed, err := sideBySide(ctx, q.Jobs, len(times)*q.Futures, func(_ context.Context, i int) (bool, error) {
		nth := uint64(i % q.Futures)
		r, err := q.run(&fork{at: times[i/q.Futures], seed: draw(m.Run.Seed, streamFork, 0, 0, nth)})
		if err != nil {
			return false, err
		}
		if q.Progress != nil {
			q.Progress()
		}
		same := func(v Violation) bool { return v.Invariant == m.Broken.Invariant }
		return slices.ContainsFunc(r.Violations, same), nil
	})
	if err != nil {
		return err
	}
	for i, t := range times {
		s := Share{At: t}
		for _, f := range failed[i*q.Futures : (i+1)*q.Futures] {
			if f {
				s.Fails++
			}
		}
		m.Shares = append(m.Shares, s)
	}
	slices.SortFunc(m.Shares, func(a, b Share) int { return cmp.Compare(a.At, b.At) })
	return nil
}

// steepest is the moment from which to the next one the share rises most.
func (m *Moments) steepest() int {
	best := 0
	for i := range m.Shares[:len(m.Shares)-1] {
		if m.rise(i) > m.rise(best) {
			best = i
		}
	}
	return best
}

func (m *Moments) rise(i int) int { return m.Shares[i+1].Fails - m.Shares[i].Fails }

// NoReturn is the first moment from which on nine of ten futures fail, and from every later one.
func (m *Moments) NoReturn() Share {
	i := len(m.Shares) - 1
	for i > 0 && m.Shares[i-1].Fails*10 >= m.Futures*9 {
		i--
	}
	return m.Shares[i]
}
