package sim

import (
	"ticketing/fsm"
	"ticketing/fsm/trace"
)

// This file is what locks guard: a resource for each key, which looks at the token that comes with a
// call. docs/fenced is one on a real disk; the mistakes are the same there.

// Mistakes that a resource can be made with, as "resource door mistake=…" names them.
const (
	mistakeEquality     = "equality"       // it takes the first token that it sees, and no other ever
	mistakeCheckThenAct = "check-then-act" // it checks when a call comes in, and not when it is done
	mistakeStrict       = "strict"         // it wants a greater token each time
	mistakeZero         = "zero-accepted"  // it takes a call without a token
	mistakeNotDurable   = "not-durable"    // it forgets what it has seen when it restarts
	mistakeReadUnfenced = "read-unfenced"  // it looks at no token when it is read
)

func mistakeNames() []string {
	return []string{
		mistakeEquality, mistakeCheckThenAct, mistakeStrict, mistakeZero, mistakeNotDurable, mistakeReadUnfenced,
	}
}

// write sends a write to the resource that a lock guards, with the client's last token for it unless
// another is named. It does not look at its clock: a client that does is still wrong when it is
// stopped right after looking.
func (w *World) write(c *client, a Write) {
	token := c.tokens[a.Key].token
	if a.TokenSet {
		token = fsm.Token(a.Token)
	}
	if token == 0 && !a.TokenSet {
		w.nothingToShow(c, opWrite, a.Key)
		return
	}
	w.call(c, &clientMessage{request: fsm.Request{Key: a.Key}, token: token, takes: micros(a.Takes)})
}

// read asks the resource for what it holds. That is a call like any other, with a token.
func (w *World) read(c *client, key string) {
	token := c.tokens[key].token
	if token == 0 {
		w.nothingToShow(c, opRead, key)
		return
	}
	w.call(c, &clientMessage{request: fsm.Request{Key: key}, token: token, read: true})
}

// What clients do to resources, in traces.
const (
	opWrite = "write"
	opRead  = "read"
)

func (w *World) nothingToShow(c *client, op, key string) {
	c.state = stateNothing
	w.traceClient(c, trace.KindAnswer, trace.ClientRecord{Op: op, Key: key, Status: stateNothing})
}

func (w *World) call(c *client, m *clientMessage) {
	f := flight{from: c.index, to: int32(len(w.actors)) - 1, kind: messageWrite, client: m}
	f.id = w.traceClientFlight(c, trace.KindRequest, &f)
	w.cause = f.id
	w.send(&f)
}

// resourceReceives is a call's arrival, or the end of the time that it takes there. The check and
// what is checked are one step, at that end. A resource that checks at the beginning has forgotten
// that others come in between.
func (w *World) resourceReceives(f *flight) {
	key := f.client.request.Key
	high := w.highest[key]
	early := w.mistakes[key] == mistakeCheckThenAct
	switch begins := f.client.takes > 0 && !f.inside; {
	case begins && early:
		if w.passes(f) {
			w.traceResource(f, stateChecked, high)
			w.work(f)
		}
	case begins:
		w.work(f)
	case f.inside && early, w.passes(f):
		w.perform(f, high)
	}
}

// work keeps a call inside the resource for as long as it takes.
func (w *World) work(f *flight) {
	inside := *f
	inside.inside = true
	w.launch(&inside, f.client.takes)
}

// passes is a fenced resource: it takes a call iff its token is at least the greatest that it has
// seen, and remembers that, whatever the call is for. This is what makes a client harmless that
// wrongly believes to hold a lock.
//
//spec:rule Fence
func (w *World) passes(f *flight) bool {
	key, token := f.client.request.Key, f.client.token
	high := w.highest[key]
	remembers := true
	passes := token >= high && token != 0
	switch w.mistakes[key] {
	case mistakeEquality:
		passes = token != 0 && (high == 0 || token == high)
	case mistakeStrict:
		passes = token > high
	case mistakeZero:
		passes = passes || token == 0
	case mistakeReadUnfenced:
		remembers = !f.client.read
		passes = passes || f.client.read
	}
	if passes && remembers {
		w.highest[key] = max(high, token)
	}
	if !passes {
		c := w.actors[f.from].client
		c.state, c.token = stateRefused, token
		w.counters[countRefused]++
		w.traceResource(f, stateRefused, high)
	}
	w.checks.shown(w, key, token, passes)
	return passes
}

// perform does what a call is for. High is what the resource had seen before it.
func (w *World) perform(f *flight, high fsm.Token) {
	c := w.actors[f.from].client
	c.state, c.token = stateWritten, f.client.token
	count := countWritten
	if f.client.read {
		c.state, count = stateRead, countRead
	}
	w.counters[count]++
	w.traceResource(f, c.state, high)
	if !f.client.read {
		w.performed = f.client
		w.checks.landed(w, f.client.request.Key, f.client.token)
	}
}

// restartResource takes a resource's power away and gives it back. What it was about to do is lost;
// what it has seen is not, for that is on the disk with the data.
func (w *World) restartResource(key string) {
	if w.mistakes[key] == mistakeNotDurable {
		delete(w.highest, key)
	}
	for slot := range w.flights {
		if f := &w.flights[slot]; f.flying && f.inside && f.client.request.Key == key {
			w.discard(uint32(slot), "the resource restarts")
		}
	}
}

// setResource carries out a line about a resource.
func (w *World) setResource(c SetResource) {
	if c.Restart {
		w.traceCommand(c)
		w.restartResource(c.Key)
		return
	}
	w.mistakes[c.Key] = c.Mistake
}
