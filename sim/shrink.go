package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ticketing/fsm/trace"
)

// Shrink looks for a short scenario that breaks the invariant that a long one broke. Randomness in a
// run is keyed, so a run from which a line is taken away is the same but for what follows from that,
// and trying lines one after another gets somewhere.
//
// It depends on nothing but the scenario and its options: the same ones shrink to the same file.
type Shrink struct {
	Scenario *Scenario
	Seed     *uint64            // instead of the scenario's
	Without  []string           // rules to take away, besides the scenario's
	Progress func(best *Shrunk) // before each run
}

// Shrunk is the shortest failing scenario so far.
type Shrunk struct {
	Scenario  *Scenario // parsed from the text that it is printed as, so it is what its file will do
	Invariant string    // what it breaks, as the long one did first
	Expected  bool      // the long one expected that, and so does it: running it is no failure
	Before    int       // actions, see [Scenario.Actions],
	After     int       // and how many are left
	Runs      int       // tried so far
	Cut       bool      // it was interrupted, and more might go
}

// ErrHeld is why a run cannot be shrunk: nothing broke in it.
var ErrHeld = errors.New("no invariant was broken")

// Actions counts what is done in a scenario: its lines but for those that set up, let time pass or
// expect something.
func (s *Scenario) Actions() int {
	n := 0
	for _, l := range s.Lines {
		if l.Command != nil && isAction(l.Command) {
			n++
		}
	}
	return n
}

func isAction(c Command) bool {
	switch c := c.(type) {
	case RunFor, Until, Expect:
		return false
	case At:
		return isAction(c.Command)
	}
	return endsSetUp(c)
}

// mostRounds bounds how often all is tried again because something else has gone meanwhile.
const mostRounds = 8

// Run shrinks. When ctx ends, it returns what it has found until then.
func (s Shrink) Run(ctx context.Context) (*Shrunk, error) {
	r, err := Run(s.Scenario, Options{Seed: s.Seed, Without: s.Without})
	if err != nil {
		return nil, err
	}
	broken := r.Unexpected()
	if len(broken) == 0 {
		broken = r.Violations
	}
	if len(broken) == 0 {
		return nil, heldError(r)
	}
	m := &shrinker{
		ctx: ctx, progress: s.Progress, maxSteps: 2*r.Steps + 10_000, title: s.Scenario.Title, failed: map[string]bool{},
		best: &Shrunk{
			Invariant: broken[0].Invariant, Expected: len(r.Unexpected()) == 0, Before: s.Scenario.Actions(),
		},
	}
	if !m.try(bare(s.Scenario, r)) {
		return nil, fmt.Errorf("%s breaks %s, but not without its prose and expectations",
			s.Scenario.Name, broken[0].Invariant)
	}
	for range mostRounds {
		before := m.best.Scenario.Text
		m.round()
		if m.best.Scenario.Text == before {
			m.dropUnderAnySeed()
		}
		if m.best.Scenario.Text == before {
			break
		}
	}
	if m.explicit() {
		m.round()
	}
	m.best.Cut = ctx.Err() != nil
	return m.finish()
}

func heldError(r *Result) error {
	if r.Failure != nil {
		return fmt.Errorf("%w; what failed is a line, and that is not shrunk: %v", ErrHeld, r.Failure)
	}
	return ErrHeld
}

// shrinker is a search on its way.
type shrinker struct {
	ctx      context.Context
	progress func(*Shrunk)
	title    string
	maxSteps int64
	lines    []Command       // of the best so far,
	at       trace.Time      // and when it breaks
	failed   map[string]bool // texts that break something else, or nothing
	best     *Shrunk
}

// round tries everything once: what is likely to take much away comes first.
func (m *shrinker) round() {
	m.trim()
	m.tryAnySeed(m.plain()) // what follows is much quicker then
	m.dropLines()
	m.simplify()
	m.dropLines()
	m.trim()
	m.roundTimes()
	m.closeGaps()
	m.trim()
	m.rename()
}

// bare is a scenario without what is not needed to break something: prose, questions and the
// expectation that it breaks, at which a run would go on. Seed and rules stand in it.
func bare(s *Scenario, r *Result) []Command {
	lines := []Command{SetSeed{Seed: r.Seed}}
	if len(r.Without) > 0 {
		lines = append(lines, SetWithout{Rules: r.Without})
	}
	for _, l := range s.Lines {
		switch c := l.Command.(type) {
		case nil, SetSeed, SetWithout, Question:
		case SetNodes:
			lines = slices.Insert(lines, 0, l.Command)
		case Expect:
			if _, violated := c.Cond.(CondViolated); !violated {
				lines = append(lines, l.Command)
			}
		case Until:
			if _, violated := c.Cond.(CondViolated); violated {
				within := c.Within
				if within == 0 {
					within = defaultWithin
				}
				lines = append(lines, RunFor{For: within})
				continue
			}
			lines = append(lines, l.Command)
		default:
			lines = append(lines, l.Command)
		}
	}
	return lines
}

// try runs lines, and keeps them if they break the invariant. What runs is what the file will say.
func (m *shrinker) try(lines []Command) bool {
	if m.ctx.Err() != nil && m.lines != nil { // one run there must be, to have something to return
		return false
	}
	text := m.text(lines)
	if m.failed[text] {
		return false
	}
	m.failed[text] = true // until it turns out otherwise
	s, err := Parse("shrunk.txt", text)
	if err != nil {
		return false // such as a node that is named and is not there
	}
	m.best.Runs++
	if m.progress != nil {
		m.progress(m.best)
	}
	r, err := Run(s, Options{MaxSteps: m.maxSteps})
	if err != nil {
		return false
	}
	i := slices.IndexFunc(r.Violations, func(v Violation) bool { return v.Invariant == m.best.Invariant })
	if i < 0 {
		return false
	}
	delete(m.failed, text)
	m.lines, m.at = lines, r.Violations[i].At
	m.best.Scenario, m.best.After = s, s.Actions()
	return true
}

// text is lines as a file.
func (m *shrinker) text(lines []Command) string {
	s := &Scenario{Title: fmt.Sprintf("%s, shrunk: breaks %s", m.title, m.best.Invariant)}
	for _, c := range lines {
		s.Lines = append(s.Lines, Line{Command: c})
	}
	return s.String()
}

// finish adds the expectation that the long scenario had, and with it the exit code.
func (m *shrinker) finish() (*Shrunk, error) {
	if !m.best.Expected {
		return m.best, nil
	}
	lines := append(slices.Clone(m.lines), Expect{Cond: CondViolated{Invariant: m.best.Invariant}})
	s, err := Parse("shrunk.txt", m.text(lines))
	if err != nil {
		return nil, err
	}
	m.best.Scenario = s
	return m.best, nil
}
