package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file is the guided search. Half of its runs are those that a search makes of their numbers. The
// others are earlier ones that came to states of a shape that none before had (coverage.go), with a few
// actions changed: what is rare is more likely close to what was rare.

// Guided is such a search. It looks for broken invariants, and not for missing progress: who changes
// actions may well leave a majority down.
type Guided struct {
	Search
}

// roundRuns is how many runs choose from the same earlier ones, so that what is found depends neither
// on how many are done at a time nor on which is through first.
const roundRuns = 64

// corpusMost is how many runs are kept to be changed. The oldest go: what came to something new early on
// did so because all was new.
const corpusMost = 512

// GuidedFindings is what a guided search came to.
type GuidedFindings struct {
	Findings
	Corpus  int       // runs that came to something new
	Mutants int       // runs that were made of others,
	Fresh   [2]int    // and how many shapes were new in runs made of numbers, and of others
	Failing *Scenario // of Failed, as a file has it; nil if nothing broke
}

// guided is a guided search on its way.
type guided struct {
	Guided
	found  *GuidedFindings
	shapes shapes
	corpus []*Scenario
}

// attempt is one run and what was run.
type attempt struct {
	*Result
	ran    *Scenario
	mutant bool
}

// Explore runs From to To, until one breaks an invariant, time is up, or ctx ends.
func (s Guided) Explore(ctx context.Context) (*GuidedFindings, error) {
	if s.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.For)
		defer cancel()
	}
	g := &guided{Guided: s, found: &GuidedFindings{Findings: Findings{First: s.From}}}
	for first := s.From; (s.To == 0 || first <= s.To) && ctx.Err() == nil; first += roundRuns {
		n := roundRuns
		if s.To != 0 {
			n = int(min(roundRuns, s.To-first+1))
		}
		results, err := sideBySide(ctx, s.Jobs, n, func(_ context.Context, i int) (attempt, error) {
			return g.attempt(first + uint64(i))
		})
		if ctx.Err() != nil {
			break // the round is not whole
		}
		if err != nil {
			return nil, err
		}
		for i, a := range results {
			if g.take(first+uint64(i), a); g.found.Failed != nil {
				return g.found, g.confirm(a)
			}
		}
		if s.Progress != nil {
			s.Progress(&g.found.Findings)
		}
	}
	g.found.Curve, g.found.Corpus = g.shapes.curve, len(g.corpus)
	return g.found, nil
}

// attempt makes a run's scenario and runs it. Lines that turn out to be impossible, such as the restart
// of a server that was not stopped, are as if they were not there.
func (g *guided) attempt(seed uint64) (a attempt, err error) {
	if a.ran, err = Plan(seed, g.Faults, g.Nodes); err != nil {
		return a, err
	}
	// Many changes make no sense, such as a server that is named and never comes. After a few of those the
	// run is that of its number.
	for try := uint64(0); seed%2 == 1 && len(g.corpus) > 0 && !a.mutant && try < mostTries; try++ {
		m := mutate(draw(seed, streamGuide, 0, 0, try), g.corpus)
		m.Title = fmt.Sprintf("Guided search (%s), run %d", g.Faults, seed)
		if s, err := Parse(fmt.Sprintf("guided-%d", seed), m.String()); err == nil {
			a.ran, a.mutant = s, true
		}
	}
	var impossible []int
	a.Result, err = Run(a.ran, Options{Without: g.Without, Coverage: true, lenient: &impossible})
	if err != nil {
		return a, fmt.Errorf("run %d: %w", seed, err)
	}
	a.ran = withoutNths(a.ran, impossible)
	return a, nil
}

// withoutNths is a scenario without some of its scheduled lines.
func withoutNths(s *Scenario, nths []int) *Scenario {
	t := *s
	t.Lines = nil
	nth := -1
	for _, l := range s.Lines {
		if _, scheduled := l.Command.(At); scheduled {
			if nth++; slices.Contains(nths, nth) {
				continue
			}
		}
		t.Lines = append(t.Lines, l)
	}
	return &t
}

// take counts a run.
func (g *guided) take(seed uint64, a attempt) {
	f := g.found
	if a.mutant {
		f.Mutants++
	}
	if len(a.Unexpected()) == 0 {
		a.Failure = nil // no more than missing progress
	}
	f.add(seed, &seedResult{seed: seed, Result: a.Result})
	fresh := g.shapes.add(a.Points, f.Seeds)
	f.Fresh[bit(a.mutant)] += fresh
	if fresh > 0 {
		g.corpus = append(g.corpus, a.ran)
		g.corpus = g.corpus[max(0, len(g.corpus)-corpusMost):]
	}
}

// confirm runs what has failed again, from the text that its file would have.
func (g *guided) confirm(a attempt) (err error) {
	g.found.Curve, g.found.Corpus = g.shapes.curve, len(g.corpus)
	s := *a.ran
	if len(g.Without) > 0 {
		s.Lines = slices.Insert(slices.Clone(s.Lines), 1, Line{Command: SetWithout{Rules: g.Without}})
	}
	if g.found.Failing, err = Parse(fmt.Sprintf("guided-%d", g.found.Last), s.String()); err != nil {
		return fmt.Errorf("run %d failed, but not as a file: %w", g.found.Last, err)
	}
	r, err := Run(g.found.Failing, Options{Record: true})
	if err != nil {
		return fmt.Errorf("run %d failed, but not as a file: %w", g.found.Last, err)
	}
	if r.Held() {
		return fmt.Errorf("run %d broke %s, and its file does not: please report this",
			g.found.Last, a.Unexpected()[0].Invariant)
	}
	g.found.Failed = r
	return nil
}

// mostTries is how often a run's changes are drawn again if they make no sense.
const mostTries = 4

// mutate makes a run of earlier ones. Each decision is keyed by a number.
func mutate(seed uint64, corpus []*Scenario) *Scenario {
	m := &mutation{seed: seed}
	parent := corpus[m.pick(int64(len(corpus)))]
	for _, l := range parent.Lines {
		if c, is := l.Command.(Until); is { // it would wait in vain where a majority stays down
			m.lines = append(m.lines, RunFor{For: min(c.Within, duration(peaceOfMutants))})
			break
		}
		m.lines = append(m.lines, l.Command)
	}
	for range int64(1) << m.pick(6) {
		m.change(corpus)
	}
	s := &Scenario{}
	for _, c := range m.lines {
		s.Lines = append(s.Lines, Line{Command: c})
	}
	return s
}

// peaceOfMutants is how long a changed run goes on when its faults are over.
const peaceOfMutants = 3 * trace.Second

type mutation struct {
	seed  uint64
	draws uint64
	lines []Command
}

func (m *mutation) pick(n int64) int64 {
	m.draws++
	return below(draw(m.seed, streamGuide, 0, 0, m.draws), n)
}

// change does one thing to the actions.
func (m *mutation) change(corpus []*Scenario) {
	var actions []int
	for i, c := range m.lines {
		if _, scheduled := c.(At); scheduled {
			actions = append(actions, i)
		}
	}
	if len(actions) == 0 {
		return
	}
	i := actions[m.pick(int64(len(actions)))]
	a := m.lines[i].(At)
	switch m.pick(6) {
	case 0: // once more, some other time
		m.lines = slices.Insert(m.lines, i, Command(At{Time: m.time(), Command: a.Command}))
	case 1: // a little earlier or later
		shift := time.Duration(1) << m.pick(21) * time.Microsecond // up to a second, small ones as likely as large
		if m.pick(2) == 0 {
			shift = -shift
		}
		m.lines[i] = At{Time: inChaos(a.Time + shift), Command: a.Command}
	case 2: // to another server
		m.retarget(i)
	case 3: // not at all
		m.lines = slices.Delete(m.lines, i, i+1)
	case 4: // with other chances
		for j, c := range m.lines {
			if _, is := c.(SetSeed); is {
				m.lines[j] = SetSeed{Seed: draw(m.seed, streamGuide, 1, 0, 0)}
			}
		}
	case 5: // and from a time on, what was done in another run
		m.splice(corpus[m.pick(int64(len(corpus)))])
	}
}

func (m *mutation) time() time.Duration {
	return duration(trace.Time(m.pick(int64(chaosEnd))))
}

func inChaos(t time.Duration) time.Duration { return max(0, min(t, duration(chaosEnd))) }

// retarget swaps two servers in a line.
func (m *mutation) retarget(i int) {
	n := int64(m.servers())
	one := string(NodeActor(raft.ServerID(m.pick(n) + 1)))
	two := string(NodeActor(raft.ServerID(m.pick(n) + 1)))
	if lines := mapped([]Command{m.lines[i]}, map[string]string{one: two, two: one}); len(lines) == 1 {
		m.lines[i] = lines[0]
	}
}

func (m *mutation) servers() int {
	if i := slices.IndexFunc(m.lines, isNodes); i >= 0 {
		return m.lines[i].(SetNodes).N
	}
	return defaultNodes
}

// splice takes what another run of as many servers does after some moment, instead of what this one does.
func (m *mutation) splice(other *Scenario) {
	theirs := &mutation{}
	for _, l := range other.Lines {
		theirs.lines = append(theirs.lines, l.Command)
	}
	if theirs.servers() != m.servers() {
		return
	}
	moment := m.time()
	later := func(c Command) bool {
		a, scheduled := c.(At)
		return scheduled && a.Time > moment
	}
	end := slices.IndexFunc(m.lines, func(c Command) bool { _, is := c.(RunFor); return is })
	if end < 0 {
		return
	}
	var lines []Command
	for _, c := range m.lines[:end] {
		if !later(c) {
			lines = append(lines, c)
		}
	}
	for _, c := range theirs.lines {
		if later(c) {
			lines = append(lines, c)
		}
	}
	m.lines = append(lines, m.lines[end:]...)
}
