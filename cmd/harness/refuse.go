package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ticketing/raft"
	"ticketing/sim"
)

// plan is what a scenario sets up, as far as real processes can be set up so.
type plan struct {
	n, learners         int        // the servers to begin with; the last of them are learners
	later               int        // servers that are added
	every, keep         raft.Index // see rpc.Config
	election, heartbeat time.Duration
	without             []string
	onApplied           bool // pipeline=off
	noPreVote           bool
	noCheckQuorum       bool
	delays              []sim.SetNetwork
	notes               []string // what is taken another way than it is written
}

// What the language says of a scenario that says nothing.
const (
	defaultNodes     = 3
	defaultElection  = 150 * time.Millisecond
	defaultHeartbeat = 50 * time.Millisecond
	leastDelay       = 5 * time.Millisecond // on the way between two servers
	mostDelay        = 20 * time.Millisecond
)

// refusal is a line that real processes cannot do.
type refusal struct {
	file    string
	line    int
	problem string
}

func (e *refusal) Error() string {
	return fmt.Sprintf("%s:%d: cannot be done on real processes: %s", e.file, e.line, e.problem)
}

// prepare reads the set-up, and looks for lines that real processes cannot do. It returns a
// *refusal at the first, before anything is started.
func prepare(s *sim.Scenario) (*plan, error) {
	all := sim.LinkSpec{DelaySet: true, DelayMin: leastDelay, DelayMax: mostDelay}
	p := &plan{
		n: defaultNodes, election: defaultElection, heartbeat: defaultHeartbeat,
		delays: []sim.SetNetwork{{LinkSpec: all}},
	}
	for _, line := range s.Lines {
		if problem := p.line(line.Command); problem != "" {
			return nil, &refusal{cmp.Or(s.File, s.Name+".txt"), line.No, problem}
		}
	}
	p.later = max(p.later-p.n, 0)
	slices.Sort(p.without)
	p.without = slices.Compact(p.without)
	return p, nil
}

func (p *plan) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// line takes a set-up line in, and says what is wrong with any line.
func (p *plan) line(command sim.Command) string {
	switch c := command.(type) {
	case sim.SetManual:
		return "manual: messages and timers do not wait for a line to let them go"
	case sim.SetNodes:
		p.n, p.learners = c.N+c.Learners, c.Learners
	case sim.SetSeed:
		p.note("seed %d decides nothing here: no two runs are alike", c.Seed)
	case sim.SetConfig:
		return p.config(c)
	case sim.SetWithout:
		p.without = append(p.without, c.Rules...)
	case sim.SetNode:
		return "node: a server starts with an empty disk, and what is on it later is its own doing"
	case sim.SetNetwork:
		return p.network(c)
	case sim.SetClock:
		return "clock: the processes share this machine's clock, and it is not set"
	case sim.SetDisk:
		return "disk: the files are this machine's, and they work"
	case sim.Until:
		return refuseCond(c.Cond)
	case sim.Expect:
		return refuseCond(c.Cond)
	case sim.At:
		return p.line(c.Command)
	case sim.Change:
		p.later = max(p.later, int(c.Node))
	default:
		return refuseEvent(command)
	}
	return ""
}

func (p *plan) config(c sim.SetConfig) string {
	p.election = cmp.Or(c.Election, p.election)
	p.heartbeat = cmp.Or(c.Heartbeat, p.heartbeat)
	if c.Pipeline != nil {
		p.onApplied = !*c.Pipeline
	}
	if c.PreVote != nil {
		p.noPreVote = !*c.PreVote
	}
	if c.CheckQuorum != nil {
		p.noCheckQuorum = !*c.CheckQuorum
	}
	if c.Batch > 0 || c.Window > 0 {
		return "config batch, window: a server's are fixed"
	}
	if c.Chunk > 0 {
		return "config chunk: the parts of a server's snapshot have a fixed size"
	}
	if c.SnapshotEvery != nil {
		p.every = *c.SnapshotEvery
	}
	p.keep = cmp.Or(c.Keep, p.keep)
	return ""
}

func (p *plan) network(c sim.SetNetwork) string {
	if c.From != "" && (c.From.Node() == 0 && c.From != sim.Everyone ||
		c.To.Node() == 0 && c.To != sim.Everyone) {
		return "link: only links between servers have a delay"
	}
	p.note("%s: only the delay is taken, as a connection loses, doubles and overtakes nothing", c)
	if c.DelaySet {
		p.delays = append(p.delays, c)
	}
	return ""
}

func refuseEvent(command sim.Command) string {
	switch c := command.(type) {
	case sim.Deliver:
		return c.Verb + ": messages are bytes in a connection, and none can be picked out"
	case sim.Hold:
		return refuseKind(c.Messages)
	case sim.Crash:
		if c.Writing || c.Keep > 0 {
			return "crash writing, crash keep=: a killed process loses nothing that it has written"
		}
		if c.How != "" {
			return "crash " + c.How + ": a killed process does not tear what is on the disk"
		}
	case sim.Strike, sim.On, sim.Recover:
		return "strike, on, recover: what they look for inside a server is not seen from outside in time; say crash, pause, isolate, heal"
	case sim.Suspend:
		return "suspend: the processes share this machine, and it does not sleep"
	case sim.ReleaseLock:
		if c.TokenSet && c.Token == 0 {
			return "token=0: the client library sends no Release without a token"
		}
	case sim.SetResource:
		return "resource: the one here makes no mistakes, and it does not restart"
	case sim.ReadTable:
		if c.Local {
			return "read local: that is seen without asking, \"expect holder … at S1\" looks at it"
		}
	case sim.Read:
		return "read: the resource here is only written to"
	case sim.Write:
		if c.TokenSet {
			return "write token=: the client library gives tokens, and none can be made up"
		}
		if c.Takes > 0 {
			return "takes=: the resource here does at once what it is asked for"
		}
	case sim.ClientDo:
		if c.Do == "retry" {
			return "retry: the client library asks again by itself, as often as it thinks right"
		}
		if c.Do == "suspend" {
			return "suspend: the clients share this machine, and it does not sleep"
		}
	}
	return ""
}

// refuseKind refuses what picks out one kind of messages. Between a client and a server each
// direction has only one kind.
func refuseKind(m sim.Messages) string {
	client := func(a sim.Actor) bool { return a != sim.Everyone && a != "" && a.Node() == 0 }
	all := m.Kind == "" || m.Kind == "request" && client(m.From) ||
		m.Kind == "request-reply" && client(m.To)
	if all {
		return ""
	}
	return fmt.Sprintf("the kind %q: messages are bytes in a connection, and none can be picked out",
		m.Kind)
}

// insistent reports whether a condition counts attempts that came to nothing. That none has is
// another matter: it says that all that was asked for was done in the end.
func insistent(c sim.CondCount) bool {
	refused := c.Name == "members.refused" || c.Name == "reads.failed"
	return c.Name == "members.unknown" || refused && c.N != 0
}

func refuseCond(cond sim.Cond) string {
	switch c := cond.(type) {
	case sim.CondInFlight:
		return "in-flight: nobody can look into a connection"
	case sim.CondCount:
		if insistent(c) {
			return "count " + c.Name + ": the client library asks again by itself, until it has an answer"
		}
		if !slices.Contains(counterNames(), c.Name) {
			return "count " + c.Name + ": it cannot be counted from outside"
		}
	case sim.CondNode:
		if slices.Contains(c.Fields, sim.Field{Key: "read", Value: "failed"}) {
			return "read=failed: the client library asks again by itself, until it has an answer"
		}
	case sim.CondClient:
		if c.State == "late" || c.State == "not-leader" {
			return c.State + ": the client library does not say so, it asks again by itself"
		}
	case sim.CondViolated:
		if !slices.Contains(invariantNames(), c.Invariant) {
			return c.Invariant + ": the traces of real servers are not judged by it"
		}
	}
	return ""
}
