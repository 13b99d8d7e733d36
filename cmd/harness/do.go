package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/sim"
)

// do carries out a line's command and says what came of it. Everything takes no time on the
// scenario's clock but what waits for the servers.
func (r *replay) do(line sim.Line) (said string, err error) {
	switch c := line.Command.(type) {
	case sim.RunFor:
		r.due += c.For
		_, _, err := r.wait(r.due, func() bool { return false })
		return "", err
	case sim.Until:
		limit := cmp.Or(c.Within, patience)
		return r.await(c.Cond, limit+grace, fmt.Sprintf("waited %s for %s", limit, c.Cond))
	case sim.Expect:
		limit := grace
		if converged, ok := c.Cond.(sim.CondConverged); ok {
			limit += converged.Within
		}
		return r.await(c.Cond, limit, fmt.Sprintf("expected %s", c.Cond))
	case sim.At:
		return "", r.putOff(c, line.No)
	case sim.SetNodes, sim.SetSeed, sim.SetConfig, sim.SetWithout, sim.SetNetwork, sim.Question:
		return "", nil // known before the start, or for readers
	}
	return r.doNow(line.Command)
}

// doNow is what happens at once.
func (r *replay) doNow(command sim.Command) (said string, err error) {
	switch c := command.(type) {
	case sim.Acquire:
		return "", r.doAs(c.Client, c)
	case sim.ReleaseLock:
		return "", r.doAs(c.Client, c)
	case sim.Connect:
		return "", r.connect(c)
	case sim.Extend:
		return "", r.doAs(c.Client, c)
	case sim.Write:
		err := r.doAs(c.Client, c)
		return r.actors[c.Client].String(), err
	case sim.ClientDo:
		return "", r.doAs(c.Client, c)
	}
	r.note(trace.KindCommand, command.String()) // what clients do, servers tell
	switch command.(type) {
	case sim.Timeout, sim.Beat, sim.Propose, sim.Pause, sim.Resume, sim.Crash, sim.Restart:
		return r.doServer(command)
	case sim.Change, sim.Transfer, sim.ReadTable, sim.Compact:
		return r.doAsked(command)
	}
	return r.doNetwork(command)
}

// putOff leaves a line until its time.
func (r *replay) putOff(c sim.At, no int) error {
	if c.Time < r.now() {
		return fmt.Errorf("that time is over, it is %s", r.now().Round(time.Millisecond))
	}
	later := scheduled{c.Time, sim.Line{No: no, Command: c.Command}}
	r.scheduled = append(r.scheduled, later)
	byTime := func(a, b scheduled) int { return cmp.Compare(a.at, b.at) }
	slices.SortStableFunc(r.scheduled, byTime)
	return nil
}

// await waits for a condition. The scenario's clock goes on from the event that has made it true,
// and not from when that was noticed here. What a client hears it has been told by a server: that
// moment counts, as this machine may be slow to wake the client.
func (r *replay) await(cond sim.Cond, limit time.Duration, problem string) (string, error) {
	is := ""
	ok, at, err := r.wait(r.now()+limit, func() (ok bool) {
		ok, is = r.holds(cond)
		return ok
	})
	if err != nil {
		return "", err
	}
	if r.failed != nil { // a line that "at" had put off
		return "", nil
	}
	if !ok {
		return "", fmt.Errorf("%s; %s", problem, is)
	}
	if c, isClient := cond.(sim.CondClient); isClient {
		at = min(at, max(r.replied[c.Client], r.due))
	}
	r.due = max(r.due, at)
	r.note(trace.KindExpect, cond.String())
	if _, same := cond.(sim.CondNode); same {
		return "yes", nil
	}
	return is, nil
}

// doServer is what is done to a server's process.
func (r *replay) doServer(command sim.Command) (string, error) {
	defer func() { r.due = r.now() }()
	switch c := command.(type) {
	case sim.Crash:
		return "", r.each(c.Node, r.crash)
	case sim.Restart:
		return "", r.each(c.Node, func(s *server) error {
			if s.running && c.Node == sim.Everyone {
				return nil
			}
			return r.restart(s)
		})
	case sim.Timeout:
		return "", r.tell(c.Node, "timeout")
	case sim.Beat:
		return "", r.tell(c.Node, "beat")
	case sim.Propose:
		return "", r.tell(c.Node, "propose "+c.Text)
	case sim.Pause:
		s, err := r.able(c.Node)
		if err != nil {
			return "", err
		}
		s.paused = true
		r.view.counts.of["pauses"]++
		return "SIGSTOP", r.harness(r.cluster.Pause(c.Node))
	case sim.Resume:
		r.view.servers[c.Node].paused = false
		return "SIGCONT", r.harness(r.cluster.Resume(c.Node))
	}
	panic(fmt.Sprintf("harness: nobody has refused %q", command))
}

// harness marks an error as the harness's own.
func (r *replay) harness(err error) error {
	if err == nil {
		return nil
	}
	return &harnessError{err}
}

// able returns a server that can be told something.
func (r *replay) able(id raft.ServerID) (*server, error) {
	s := r.view.servers[id]
	if !s.running || s.paused {
		return nil, errors.New("that server is down, or paused")
	}
	return s, nil
}

func (r *replay) tell(id raft.ServerID, what string) error {
	if _, err := r.able(id); err != nil {
		return err
	}
	return r.harness(r.cluster.Say(id, what))
}

func (r *replay) each(name sim.Actor, do func(*server) error) error {
	for _, id := range r.view.ids() {
		if s := r.view.servers[id]; s.is(name) {
			if err := do(s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *replay) crash(s *server) error {
	if !s.running {
		return nil
	}
	s.running = false
	r.view.counts.of["crashes"]++
	return r.harness(r.cluster.Kill(s.id))
}

func (r *replay) restart(s *server) error {
	if s.running {
		return errors.New("it is running")
	}
	r.view.counts.of["restarts"]++
	if err := r.cluster.Restart(r.ctx, s.id); err != nil {
		return r.harness(err)
	}
	return r.harness(r.view.follow(s.id, r.traceFile(s.id)))
}

// doNetwork cuts, heals, holds and releases links.
func (r *replay) doNetwork(command sim.Command) (string, error) {
	links := r.cluster.Links()
	switch c := command.(type) {
	case sim.Cut:
		r.view.counts.of["cuts"]++
		for i, group := range c.Groups {
			for j, other := range c.Groups {
				if i != j {
					r.between(group, other, links.Cut)
				}
			}
		}
	case sim.CutOne:
		r.view.counts.of["cuts"]++
		r.links(c.From, c.To, links.Cut)
	case sim.Isolate:
		r.view.counts.of["cuts"]++
		me := sim.NodeActor(c.Node)
		r.links(me, sim.Everyone, links.Cut)
		r.links(sim.Everyone, me, links.Cut)
	case sim.Heal:
		lost := 0
		r.links(c.From, c.To, func(from, to string) {
			lost += links.Lost(from, to)
			links.Heal(from, to)
		})
		return fmt.Sprintf("%d bytes were lost", lost), nil
	case sim.Hold:
		return r.hold(c), nil
	default:
		panic(fmt.Sprintf("harness: nobody has refused %q", command))
	}
	return "", nil
}

// hold keeps back what is sent on links, or lets it go and says how much that is.
func (r *replay) hold(c sim.Hold) string {
	links, kept := r.cluster.Links(), 0
	if !c.Again {
		r.links(c.From, c.To, links.Hold)
		return ""
	}
	r.links(c.From, c.To, func(from, to string) {
		kept += links.Kept(from, to)
		links.Release(from, to)
	})
	return fmt.Sprintf("%d bytes go on", kept)
}

func (r *replay) between(group, other []sim.Actor, do func(from, to string)) {
	for _, a := range group {
		for _, b := range other {
			if a != b {
				do(string(a), string(b))
			}
		}
	}
}
