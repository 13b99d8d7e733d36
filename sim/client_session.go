package sim

import (
	"errors"

	"ticketing/fsm"
)

// This file is how clients come to their sessions. A line may tell them to connect. When one of them
// wants something and has no session, it opens one, and all those do that no line has told anything
// yet: they come up together.

// doConnect opens sessions and lets the run go on until they are there.
func (w *World) doConnect(c Connect) error {
	if c.Others > 0 {
		return w.doConnectOthers(c)
	}
	w.traceCommand(c)
	w.connect(c)
	for _, name := range c.Clients {
		if err := w.awaitSessions(CondClient{Client: name, State: stateConnected}); err != nil {
			return err
		}
	}
	return nil
}

// connect lets clients ask for new sessions.
func (w *World) connect(c Connect) {
	for _, name := range c.Clients {
		w.steps++
		w.doClient(w.client(name), c)
	}
	w.connectOthers(c.Others)
}

// comeUp opens sessions for those who have done nothing yet.
func (w *World) comeUp() {
	for _, c := range w.clients {
		if c.session == 0 && c.seq == 0 && !c.open && !c.paused {
			w.openSession(c)
		}
	}
}

// openSession leaves what the client waits for, and begins anew.
func (w *World) openSession(c *client) {
	if c.open {
		w.disconnect(c)
	}
	c.session, c.wanted = 0, nil
	c.via, c.open = 0, true
	c.state, c.token = stateWaiting, 0
	w.pursue(c, fsm.Request{Kind: fsm.Open, Owner: string(c.name)})
}

// doConnectOthers opens so many sessions that others are forgotten over them.
func (w *World) doConnectOthers(c Connect) error {
	if w.leader() == nil {
		return errors.New("there is no leader to open sessions at")
	}
	w.traceCommand(c)
	wanted := w.counters[countSessions] + int64(c.Others)
	w.connectOthers(c.Others)
	return w.awaitSessions(CondCount{Name: "sessions", Op: ">=", N: wanted})
}

// connectOthers asks for sessions at the leader, if there is one, for clients that nobody plays.
func (w *World) connectOthers(count int) {
	n := w.leader()
	if n == nil || n.paused || count == 0 {
		return
	}
	if !w.tick(n) {
		return
	}
	for range count {
		n.replica.Request(fsm.Request{Kind: fsm.Open})
	}
	w.step(n, nil)
}

// awaitSessions waits; in a manual run it delivers what there is.
func (w *World) awaitSessions(cond Cond) error {
	if w.manual {
		if err := w.doDeliver(Deliver{Verb: "deliver", All: true}); err != nil {
			return err
		}
	}
	return w.await(Until{Cond: cond})
}
