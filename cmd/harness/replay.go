package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ticketing/cmd/internal/cluster"
	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/sim"
)

const (
	poll     = 2 * time.Millisecond // how often the traces are looked at
	grace    = time.Second          // what an expectation may take, and an until beyond its within
	patience = 30 * time.Second     // an until that names no time
	tardy    = 20 * time.Millisecond
	arrival  = 100 * time.Millisecond // for a request to get to the leader
	again    = 20 * time.Millisecond  // until a server that knows of no leader is asked once more
	maxTold  = 1 << 10                // answers to whoever asks servers, between two looks
)

// replay is one run of a scenario on real processes.
type replay struct {
	scenario *sim.Scenario
	plan     *plan
	dir      string
	out      *narrator

	ctx     context.Context
	working sync.WaitGroup // requests of clients
	cluster *cluster.Cluster
	view    *view
	lives   map[raft.ServerID]int
	actors  map[sim.Actor]*actor
	joined  map[sim.Actor]bool          // clients with links that the scenario speaks of
	arrived map[sim.Actor]int           // requests of each client that have got to a leader
	replied map[sim.Actor]time.Duration // when a server last answered each client
	highest map[string]uint64           // the greatest token that each resource has seen
	world   []trace.Event               // the lines, as events

	told     chan func() // what has come of questions to servers
	readings []reading   // answers that are to be looked at

	start     time.Time     // when the servers were ready
	due       time.Duration // when the next line is to be done, since then
	late      time.Duration // by how much the worst line came too late
	lateLine  sim.Line
	scheduled []scheduled
	failed    *failure
}

// scheduled is a line that "at" has put off.
type scheduled struct {
	at   time.Duration
	line sim.Line
}

// failure is the line at which a run has ended.
type failure struct {
	line sim.Line
	err  error
	cond sim.Cond // that did not come true, nil if it was something else
}

// startServers starts the servers: this program, once more for each.
func (r *replay) startServers(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to run it as the servers: %w", err)
	}
	r.ctx = ctx
	r.view, r.told = newView(r.plan.n), make(chan func(), maxTold)
	r.lives, r.actors = map[raft.ServerID]int{}, map[sim.Actor]*actor{}
	r.highest = map[string]uint64{}
	r.joined, r.arrived = map[sim.Actor]bool{}, map[sim.Actor]int{}
	r.replied = map[sim.Actor]time.Duration{}
	r.cluster, err = cluster.Start(ctx, cluster.Config{
		Binary: self, Lead: []string{"node"}, Dir: r.dir, N: r.plan.n, Later: r.plan.later,
		Proxied: true, Routed: true,
		Election: r.plan.election, Heartbeat: r.plan.heartbeat,
		Args: func(id raft.ServerID) []string {
			r.lives[id]++
			return []string{
				"-without", strings.Join(r.plan.without, ","), "-trace", r.traceFile(id),
				"-learners", fmt.Sprint(r.plan.learners),
				"-snapshot-every", fmt.Sprint(r.plan.every), "-keep", fmt.Sprint(r.plan.keep),
				fmt.Sprintf("-on-applied=%t", r.plan.onApplied),
				fmt.Sprintf("-no-prevote=%t", r.plan.noPreVote),
				fmt.Sprintf("-no-checkquorum=%t", r.plan.noCheckQuorum),
			}
		},
	})
	if err != nil {
		return err
	}
	r.start = time.Now()
	for _, c := range r.plan.delays {
		r.links(c.From, c.To, func(from, to string) {
			r.cluster.Links().Delay(from, to, c.DelayMin, c.DelayMax)
		})
	}
	for _, id := range r.view.ids() {
		if err := r.view.follow(id, r.traceFile(id)); err != nil {
			return err
		}
	}
	return r.join()
}

// join gives links to the clients whose links the scenario speaks of.
func (r *replay) join() error {
	for _, line := range r.scenario.Lines {
		var ends []sim.Actor
		switch c := inner(line.Command).(type) {
		case sim.Hold:
			ends = []sim.Actor{c.From, c.To}
		case sim.CutOne:
			ends = []sim.Actor{c.From, c.To}
		}
		for _, a := range ends {
			if a == "" || a == sim.Everyone || a.Node() != 0 || r.joined[a] {
				continue
			}
			r.joined[a] = true
			if err := r.cluster.Links().Join(string(a)); err != nil {
				return err
			}
		}
	}
	return nil
}

// inner is the command that happens, be it now or at a time.
func inner(command sim.Command) sim.Command {
	if at, ok := command.(sim.At); ok {
		return at.Command
	}
	return command
}

// traceFile is the trace of a server's newest life.
func (r *replay) traceFile(id raft.ServerID) string {
	return filepath.Join(r.dir, fmt.Sprintf("%s.%d.trace", trace.NodeName(id), r.lives[id]))
}

// links calls a function for each link between two actors, each of which may be all servers, those
// that are to come as well.
func (r *replay) links(from, to sim.Actor, do func(from, to string)) {
	expand := func(a sim.Actor) (names []string) {
		if a != "" && a != sim.Everyone {
			return []string{string(a)}
		}
		for i := range r.plan.n + r.plan.later {
			names = append(names, cluster.Name(raft.ServerID(i+1)))
		}
		return names
	}
	for _, f := range expand(from) {
		for _, t := range expand(to) {
			if f != t {
				do(f, t)
			}
		}
	}
}

func (e *harnessError) Unwrap() error { return e.error }

func (r *replay) now() time.Duration { return time.Since(r.start) }

// play carries out the lines, in order, until one fails.
func (r *replay) play() error {
	for _, line := range r.scenario.Lines {
		if line.Command == nil {
			r.out.prose(line.Prose)
			r.note(trace.KindProse, line.Prose)
			continue
		}
		r.out.paragraph()
		if err := r.carryOut(line); err != nil || r.failed != nil {
			return err
		}
	}
	r.out.paragraph()
	_, _, err := r.wait(1<<62, func() bool { return len(r.scheduled) == 0 })
	return err
}

// carryOut does one line. An error is the harness's own; a line that fails is noted.
func (r *replay) carryOut(line sim.Line) error {
	began := r.now()
	if _, isRun := line.Command.(sim.RunFor); isRun {
		r.out.line(began, line, "")
	}
	said, err := r.do(line)
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if err != nil {
		return r.fail(line, err)
	}
	if r.failed != nil { // another line, meanwhile
		return nil
	}
	if late := r.now() - r.due; late > r.late {
		r.late, r.lateLine = late, line
	}
	if _, isRun := line.Command.(sim.RunFor); !isRun {
		r.out.line(r.now(), line, said)
	}
	return nil
}

// fail notes that a line has failed, unless it is the harness that did.
func (r *replay) fail(line sim.Line, err error) error {
	var harness *harnessError
	if errors.As(err, &harness) {
		return err
	}
	f := &failure{line: line, err: err}
	switch c := line.Command.(type) {
	case sim.Expect:
		f.cond = c.Cond
	case sim.Until:
		f.cond = c.Cond
	}
	r.failed = f
	r.out.line(r.now(), line, "NO: "+err.Error())
	r.note(trace.KindFailed, err.Error())
	return nil
}

// errServer says that a server ended when nobody had told it to, or not as it should.
var errServer = errors.New("a server has failed")

// harnessError is something that has gone wrong here, and not with the servers.
type harnessError struct{ error }

// note puts a line into the trace.
func (r *replay) note(kind trace.EventKind, text string) {
	if text != "" {
		r.world = append(r.world, trace.Event{
			At: trace.Time(time.Now().UnixMicro()), Kind: kind, Text: text,
		})
	}
}

// judged merges the traces and judges them. The trace has a violation behind each event that has
// broken something.
func (r *replay) judged() (*trace.Trace, []violation, error) {
	if err := r.look(func(time.Duration) {}); err != nil {
		return nil, nil, err
	}
	var traces []*trace.Trace
	events := 0
	for _, l := range r.view.lives {
		traces = append(traces, &l.whole)
		events += len(l.whole.Events)
	}
	t, _, err := trace.Merge(traces) // one machine has one clock
	if err != nil {
		return nil, nil, fmt.Errorf("merging the servers' traces: %w", err)
	}
	if len(t.Events) != events { // what is not looked at cannot be wrong
		return nil, nil, fmt.Errorf("of %d events %d are in the merged trace", events, len(t.Events))
	}
	insert(t, r.world)
	h := &t.Header
	h.Scenario, h.Title, h.Text = r.scenario.Name, r.scenario.Title, r.scenario.Text
	h.Without = append(h.Without, r.plan.without...)
	for name := range r.actors {
		h.Clients = append(h.Clients, string(name))
	}
	slices.Sort(h.Clients)
	return t, judgeTrace(t), nil
}

// end stops the servers. Clients that still wait give up.
func (r *replay) end(cancel context.CancelFunc) error {
	cancel()
	var errs []error
	for _, a := range r.actors {
		if a.client != nil {
			a.client.Close()
		}
	}
	r.working.Wait()
	for _, s := range r.view.servers {
		s.running = false
	}
	if r.cluster != nil {
		if err := r.cluster.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", errServer, err))
		}
	}
	return errors.Join(errs...)
}

// where names a line.
func (r *replay) where(line sim.Line) string {
	return fmt.Sprintf("%s:%d", cmp.Or(r.scenario.File, r.scenario.Name+".txt"), line.No)
}
