package sim

import (
	"context"
	"fmt"
	"strings"
)

// Defences are the precautions of the lock service, each on or off. Pipelining is none: it is how
// the service runs, and decides which of the others are needed.
type Defences struct {
	Pipelining, Gate, NoopWait, ExpireToken, ReleaseToken, RequestIDs bool
}

const defences = 6

// all lists them in the order of the table's columns.
func (d *Defences) all() [defences]*bool {
	return [...]*bool{&d.Pipelining, &d.Gate, &d.NoopWait, &d.ExpireToken, &d.ReleaseToken, &d.RequestIDs}
}

// DefenceNames lists the columns of the table: behind the first, the names of rules.
func DefenceNames() []string {
	return []string{"pipeline", "gate", "noop-wait", "expire-token", "release-token", "request-ids"}
}

// AllDefences lists the combinations, the one with everything on first.
func AllDefences() []Defences {
	list := make([]Defences, 1<<defences)
	for i := range list {
		for column, on := range list[i].all() {
			*on = i>>(defences-1-column)&1 == 0
		}
	}
	return list
}

// On reports which are on, in the order of DefenceNames.
func (d Defences) On() []bool {
	var list []bool
	for _, on := range d.all() {
		list = append(list, *on)
	}
	return list
}

// Without names the rules that are off, as the scenario language does.
func (d Defences) Without() []string {
	var rules []string
	for i, on := range d.On() {
		if i > 0 && !on {
			rules = append(rules, DefenceNames()[i])
		}
	}
	return rules
}

// String says what is off.
func (d Defences) String() string {
	var words []string
	if !d.Pipelining {
		words = append(words, "with pipeline=off")
	}
	if rules := d.Without(); len(rules) > 0 {
		words = append(words, "without "+strings.Join(rules, ", "))
	}
	if words == nil {
		return "with everything on"
	}
	return strings.Join(words, " and ")
}

// Name is a name for the combination that a file can have.
func (d Defences) Name() string {
	var words []string
	for i, on := range d.On() {
		if !on {
			words = append(words, DefenceNames()[i])
		}
	}
	if words == nil {
		return "no-nothing"
	}
	return "no-" + strings.Join(words, "-no-")
}

// searchWindow is more messages than S1 ever sends to S2 without an answer.
const searchWindow = 64

// config has elections as in Figure 2: with a question before each, and clocks that say when a leader
// was heard, there would be more states and no other way to break the table.
func (d Defences) config() worldConfig {
	c := defaultConfig()
	c.preVote, c.checkQuorum = false, false
	c.window, c.grantOnApplied, c.without = searchWindow, !d.Pipelining, d.Without()
	if err := c.takeAway(); err != nil {
		panic("sim: the table has a column that is no rule: " + err.Error())
	}
	return c
}

// A Verdict is what the exhaustive search of a combination has come to.
type Verdict struct {
	Defences
	States int      // different ones that were reached: all that there are, if nothing is broken
	Depth  int      // the most steps to any state, on the shortest way there
	Broken string   // the invariant, "" if all held everywhere
	Steps  []string // a shortest way to a state where it is broken
	Noted  Noted

	path   []lockStep
	within scope
}

// Noted counts steps that were tried in which something happened that the verdict is about: where
// it never does, "safe" would say nothing.
type Noted struct {
	Late     int // an Expire, or what stands for one, met a newer token
	Again    int // a duplicate was answered with what was told before
	Spent    int // a duplicate was answered Noop
	Extended int
	Ghosts   int // a tenure was given back because its client had gone
	Lagging  int // a leader was elected that had not applied all that was
}

// mostStates of one search are kept: a few hundred bytes each, and some kilobytes of those to go on
// from.
const mostStates = 3_000_000

// usualScope is that of the table.
func usualScope() scope {
	return scope{acquires: 2, extends: 1, lapses: 2, duplicates: 1, disconnects: 1, elections: 1}
}

func (d Defences) search(ctx context.Context, within scope) (Verdict, error) {
	config := d.config()
	start, err := newLocks(&config, within)
	if err != nil {
		return Verdict{}, err
	}
	f, err := search[*locks, lockStep](ctx, start, mostStates)
	if err != nil {
		return Verdict{}, fmt.Errorf("searching %s: %w", d, err)
	}
	n := f.noted
	v := Verdict{
		Defences: d, States: f.states, Depth: f.depth, Broken: f.broken,
		Noted: Noted{n[notedLate], n[notedAgain], n[notedSpent], n[notedExtend], n[notedGhost], n[notedLagged]},
		path:  f.path, within: within,
	}
	for _, step := range f.path {
		v.Steps = append(v.Steps, capital(step.String()))
	}
	return v, nil
}

// Search goes through all that can happen with these defences, within the scope of the table.
func (d Defences) Search(ctx context.Context) (Verdict, error) { return d.search(ctx, usualScope()) }

// DefenceTable searches every combination, jobs at a time, 0 for one a core. The verdicts stand in
// the order of AllDefences and do not depend on how many there are at a time.
func DefenceTable(ctx context.Context, jobs int) ([]Verdict, error) {
	list := AllDefences()
	return sideBySide(ctx, jobs, len(list), func(ctx context.Context, i int) (Verdict, error) {
		return list[i].Search(ctx)
	})
}
