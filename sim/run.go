package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// Options are what a run adds to its scenario.
type Options struct {
	Seed      *uint64  // instead of the scenario's
	Without   []string // rules to take away, besides the scenario's
	Record    bool     // keep the trace
	Deep      bool     // run raft.Check and raft.Delta after every input: slow, for tests
	KeepGoing bool     // a broken invariant and a failed expectation do not end the run
	MaxSteps  int64    // the most events of a run; 0 is a million, which is enough for hours of a cluster
	Coverage  bool     // collect the shapes of states, see coverage.go
	effects   *[]effect
	lenient   *[]int // scheduled lines that cannot be carried out are noted here and passed over
	fork      *fork

	// Tell is told of each event of a recorded run when it happens, the last of so: whoever watches a
	// run that may never end. It must keep nothing of it.
	Tell func(so *trace.Trace)
}

// Result is what came of a run.
type Result struct {
	Scenario   *Scenario
	Seed       uint64
	Without    []string
	Nodes      int
	Trace      *trace.Trace
	Violations []Violation // in the order in which they happened
	Failure    error       // the first line that failed: an expectation, or a line that cannot be carried out
	End        trace.Time  // when it ended
	Steps      int64       // events that did something
	Points     []uint64    // with Options.Coverage: the shapes of states, in the order in which they came
	counters   counters
	slowest    map[string]int64 // what a majority that healed took, in tenths of an election timeout
}

// Held reports whether the scenario passed: no unexpected violation and no failure.
func (r *Result) Held() bool { return r.Failure == nil && len(r.Unexpected()) == 0 }

// Unexpected returns the violations that the scenario does not expect.
func (r *Result) Unexpected() []Violation {
	expected := r.Scenario.expectedViolations()
	return slices.DeleteFunc(slices.Clone(r.Violations), func(v Violation) bool { return expected[v.Invariant] })
}

// Count returns a counter by its name; 0 for one that there is not.
func (r *Result) Count(name string) int64 {
	return r.counters.named(name)
}

func (s *Scenario) expectedViolations() map[string]bool {
	expected := map[string]bool{}
	for _, line := range s.Lines {
		command := line.Command
		if at, ok := command.(At); ok {
			command = at.Command
		}
		var cond Cond
		switch c := command.(type) {
		case Expect:
			cond = c.Cond
		case Until:
			cond = c.Cond
		}
		if v, ok := cond.(CondViolated); ok {
			expected[v.Invariant] = true
		}
	}
	return expected
}

// errHalted is why a line was not carried out when an invariant was broken in it.
var errHalted = errors.New("an invariant was broken")

// Run carries out a scenario. The error says why it could not be set up; what went wrong in it is
// in the Result.
func Run(s *Scenario, o Options) (*Result, error) {
	w, err := prepareRun(s, o)
	if err != nil {
		return nil, err
	}
	r := &Result{Scenario: s, Seed: w.seed, Without: w.config.without, Nodes: len(w.nodes), Trace: w.trace}
	r.Failure = w.play(s, o.KeepGoing)
	w.checks.end(w)
	if errors.Is(r.Failure, errHalted) {
		r.Failure = nil
	}
	w.countBoth()
	if w.coverage != nil {
		r.Points = w.coverage.points
	}
	r.Violations, r.End, r.Steps, r.counters = w.broken, w.now, w.steps, w.counters
	r.slowest = w.slowestStages()
	return r, nil
}

// prepareRun makes the world of a scenario, up to the start of its nodes.
func prepareRun(s *Scenario, o Options) (*World, error) {
	config := defaultConfig()
	manual := false
	for _, line := range s.Lines {
		switch c := line.Command.(type) {
		case SetNodes:
			config.nodes, config.learners = c.N, c.Learners
		case SetManual:
			manual = true
		case SetConfig:
			config.set(c)
		case SetWithout:
			config.without = append(config.without, c.Rules...)
		}
	}
	config.joiners = s.joiners(&config)
	if config.heartbeat < 1 {
		return nil, errors.New("config heartbeat is less than a microsecond, which is the least that clocks here measure")
	}
	config.without = append(config.without, o.Without...)
	if err := config.takeAway(); err != nil {
		return nil, err
	}
	w := newWorld(s.SeedOr(o.Seed), config, s.clients())
	w.manual, w.deep, w.effects, w.lenient = manual, o.Deep, o.effects, o.lenient
	if o.Coverage {
		w.coverage = &coverage{seen: map[uint64]struct{}{}}
	}
	w.fork = o.fork
	w.pass(0)
	w.maxSteps = cmp.Or(o.MaxSteps, 1_000_000)
	w.tolerate = s.expectedViolations()
	if o.KeepGoing {
		w.tolerate["*"] = true
	}
	if o.Record {
		w.trace, w.tell = &trace.Trace{Header: w.header(s)}, o.Tell
	}
	return w, nil
}

// SeedOr is the seed that a run of the scenario has, if not another.
func (s *Scenario) SeedOr(other *uint64) uint64 {
	seed := uint64(1)
	for _, line := range s.Lines {
		if c, ok := line.Command.(SetSeed); ok {
			seed = c.Seed
		}
	}
	if other != nil {
		seed = *other
	}
	return seed
}

func (w *World) header(s *Scenario) trace.Header {
	h := trace.NewHeader()
	h.Scenario, h.Title, h.Text, h.Seed = s.Name, s.Title, s.Text, w.seed
	h.Without = append(h.Without, w.config.without...)
	for _, n := range w.nodes {
		h.Nodes = append(h.Nodes, string(n.name))
	}
	if w.config.learners+w.config.joiners > 0 {
		h.Members = trace.MembersText(w.config.first())
	}
	for _, c := range w.clients {
		h.Clients = append(h.Clients, string(c.name))
	}
	return h
}

func (c *worldConfig) set(s SetConfig) {
	if s.Election > 0 {
		c.election = micros(s.Election)
	}
	if s.Heartbeat > 0 {
		c.heartbeat = micros(s.Heartbeat)
	}
	if s.Batch > 0 {
		c.batch = s.Batch
	}
	if s.Window > 0 {
		c.window = s.Window
	}
	if s.SnapshotEvery != nil {
		c.snapshotEvery = *s.SnapshotEvery
	}
	if s.Chunk > 0 {
		c.chunk = s.Chunk
	}
	if s.Keep > 0 {
		c.keep = s.Keep
	}
	if s.PreVote != nil {
		c.preVote = *s.PreVote
	}
	if s.CheckQuorum != nil {
		c.checkQuorum = *s.CheckQuorum
	}
	if s.Pipeline != nil {
		c.grantOnApplied = !*s.Pipeline
	}
}

// takeAway translates the names of rules.
func (c *worldConfig) takeAway() error {
	slices.Sort(c.without)
	c.without = slices.Compact(c.without)
	for _, rule := range c.without {
		switch rule {
		case "expire-token":
			c.rules.NoExpireToken = true
		case "release-token":
			c.rules.NoReleaseToken = true
		case "gate":
			c.rules.NoGate = true
		case "noop-wait":
			c.rules.NoNoopWait = true
		case "request-ids":
			c.rules.NoRequestIDs = true
		default:
			return fmt.Errorf("unknown rule %q; expected one of %s%s",
				rule, strings.Join(RuleNames(), " "), Nearest(rule, RuleNames()))
		}
	}
	return nil
}

// clients lists the clients that a scenario names, in the order of their first lines.
func (s *Scenario) clients() []Actor {
	var names []Actor
	add := func(a Actor) {
		if a != "" && a != Everyone && a.Node() == 0 && !slices.Contains(names, a) {
			names = append(names, a)
		}
	}
	for _, line := range s.Lines {
		command := line.Command
		if at, ok := command.(At); ok {
			command = at.Command
		}
		switch c := command.(type) {
		case Acquire:
			add(c.Client)
		case ReleaseLock:
			add(c.Client)
		case Connect:
			for _, client := range c.Clients {
				add(client)
			}
		case Extend:
			add(c.Client)
		case Write:
			add(c.Client)
		case Read:
			add(c.Client)
		case ClientDo:
			add(c.Client)
		case SetClock:
			add(c.Actor)
		case Hold:
			add(c.From)
			add(c.To)
		case Deliver:
			add(c.From)
			add(c.To)
		case SetNetwork:
			add(c.From)
			add(c.To)
		case CutOne:
			add(c.From)
			add(c.To)
		case Heal:
			add(c.From)
			add(c.To)
		}
	}
	return names
}

// startState makes what a node line says: a log of no-ops.
func (c *worldConfig) startState(s SetNode) raft.Durable {
	d := raft.Durable{HardState: raft.HardState{Term: s.Term, VotedFor: s.Vote}}
	first := raft.Index(1)
	if s.Snapshot.Index > 0 {
		d.Snapshot = &raft.Snapshot{
			LastIncludedIndex: s.Snapshot.Index, LastIncludedTerm: s.Snapshot.Term, Data: encoded(&fsm.Table{}),
		}
		first += s.Snapshot.Index
	}
	for i, term := range s.Log {
		d.Entries = append(d.Entries, c.startEntry(raft.Index(i)+first, term))
	}
	return d
}

// atStart reports whether an entry is of a term from before the run, which nobody in it led.
func (w *World) atStart(e raft.Entry) bool { return e.Term <= w.firstTerm }
