package sim

import (
	"ticketing/fsm"
)

// This file writes clients and resources down.

// emitClient adds an event of a client, with the reading of its clock.
func (w *World) emitClient(c *client, e Event) int64 {
	e.Node, e.Local = string(c.name), c.clock.at(w.now)
	return w.emit(e)
}

func (w *World) traceClient(c *client, kind EventKind, r ClientRecord) {
	if w.trace != nil {
		r.Client = string(c.name)
		w.emitClient(c, Event{Kind: kind, Client: &r})
	}
}

func (w *World) traceClientFlight(c *client, kind EventKind, f *flight) int64 {
	if w.trace == nil {
		return 0
	}
	return w.emitClient(c, Event{Kind: kind, Client: w.clientRecord(f)})
}

func (w *World) traceReply(n *node, f *flight) int64 {
	if w.trace == nil {
		return 0
	}
	return w.emitNode(n, Event{Kind: KindReply, Client: w.clientRecord(f)})
}

func (w *World) traceAnswer(c *client, f *flight, state string) {
	if w.trace == nil {
		return
	}
	r := w.clientRecord(f)
	if state == stateGranted {
		r.Until = int64(c.tokens[r.Key].deadline)
	}
	w.cause = w.emitClient(c, Event{Kind: KindAnswer, Cause: f.id, Client: r, Text: state})
}

func (w *World) traceResource(c *client, f *flight, state string, high fsm.Token) {
	if w.trace == nil {
		return
	}
	r := w.clientRecord(f)
	r.Status, r.High, r.Server = state, uint64(high), ""
	w.emit(Event{Kind: KindResource, Cause: f.id, Node: r.Key, Client: r, Rule: "Fence"})
}
