package main

import (
	"fmt"
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/sim"
)

// wait looks at the servers and lets time pass, until something is so or the time is there. It asks
// after every event, and returns the event's time.
func (r *replay) wait(until time.Duration, done func() bool) (met bool, at time.Duration, err error) {
	for {
		err := r.look(func(e time.Duration) {
			if !met && done() {
				met, at = true, e
			}
		})
		if err != nil {
			return false, 0, err
		}
		if err := r.doScheduled(); err != nil || r.failed != nil {
			return false, 0, err
		}
		if met {
			return true, at, nil
		}
		if done() { // a client has its answer, say
			return true, r.now(), nil
		}
		left := until - r.now()
		if left <= 0 {
			return false, 0, nil
		}
		select {
		case <-r.ctx.Done():
			return false, 0, &harnessError{r.ctx.Err()}
		case <-time.After(min(left, poll)):
		}
	}
}

// doScheduled does the lines whose time has come.
func (r *replay) doScheduled() error {
	for len(r.scheduled) > 0 && r.scheduled[0].at <= r.now() && r.failed == nil {
		s := r.scheduled[0]
		r.scheduled = r.scheduled[1:]
		said, err := r.do(s.line)
		if err != nil {
			return r.fail(s.line, err)
		}
		r.out.line(r.now(), s.line, said)
	}
	return nil
}

// look takes in what the servers and the clients' answers say, and tells of it. The function is
// called after each event.
func (r *replay) look(after func(at time.Duration)) error {
	for _, id := range r.view.ids() {
		s := r.view.servers[id]
		select {
		case <-r.cluster.Exited(id):
			if s.running {
				return &harnessError{fmt.Errorf("%w: %s has ended by itself: %v\n%s",
					errServer, s.name, r.cluster.ExitError(id), r.cluster.Log(id))}
			}
		default:
		}
	}
	events, err := r.view.look()
	if err != nil {
		return &harnessError{err}
	}
	for i := range events {
		e := &events[i]
		if err := r.view.take(e); err != nil {
			return &harnessError{err}
		}
		at := time.UnixMicro(int64(e.At)).Sub(r.start)
		r.out.event(at, &e.Event)
		r.meet(&e.Event, at)
		after(at)
	}
	for _, a := range r.actors {
		r.collect(a)
	}
	for {
		select {
		case then := <-r.told:
			then()
		default:
			return r.harness(r.compare())
		}
	}
}

// meet notes when requests of clients come to a leader, and when they are answered.
func (r *replay) meet(e *trace.Event, at time.Duration) {
	if e.Client == nil || e.Client.Op == trace.Disconnect {
		return
	}
	name := sim.Actor(e.Client.Client)
	switch l := r.view.leader(); {
	case e.Kind == trace.KindReply:
		r.replied[name] = at
	case l != nil && l.name == e.Node:
		r.arrived[name]++
	}
}

// settle gives the servers a moment to apply what is committed, so that all of it is judged.
func (r *replay) settle() error {
	_, _, err := r.wait(r.now()+grace, func() bool {
		most := raft.Index(0)
		for _, s := range r.view.servers {
			most = max(most, s.state.Commit)
		}
		for _, s := range r.view.servers {
			if s.running && !s.paused && s.state.Applied < most {
				return false
			}
		}
		return true
	})
	return err
}
