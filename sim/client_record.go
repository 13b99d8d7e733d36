package sim

import (
	"ticketing/fsm"
	"ticketing/fsm/trace"
)

// This file writes clients and resources down.

// emitClient adds an event of a client, with the reading of its clock.
func (w *World) emitClient(c *client, e trace.Event) int64 {
	e.Node, e.Local = string(c.name), c.clock.at(w.now)
	return w.emit(e)
}

func (w *World) traceClient(c *client, kind trace.EventKind, r trace.ClientRecord) {
	if w.trace != nil {
		r.Client = string(c.name)
		w.emitClient(c, trace.Event{Kind: kind, Client: &r})
	}
}

func (w *World) traceClientFlight(c *client, kind trace.EventKind, f *flight) int64 {
	if w.trace == nil {
		return 0
	}
	return w.emitClient(c, trace.Event{Kind: kind, Client: w.clientRecord(f)})
}

func (w *World) traceReply(n *node, f *flight) int64 {
	if w.trace == nil {
		return 0
	}
	return w.emitNode(n, trace.Event{Kind: trace.KindReply, Client: w.clientRecord(f)})
}

func (w *World) traceAnswer(c *client, f *flight, state string) {
	if w.trace == nil {
		return
	}
	r := w.clientRecord(f)
	if state == stateGranted || state == stateExtended {
		r.Until = int64(c.tokens[r.Key].deadline)
	}
	w.cause = w.emitClient(c, trace.Event{Kind: trace.KindAnswer, Cause: f.id, Client: r, Text: state})
}

func (w *World) traceResource(f *flight, state string, high fsm.Token) {
	if w.trace == nil {
		return
	}
	r := w.clientRecord(f)
	r.Status, r.High, r.Server = state, uint64(high), ""
	e := trace.Event{Kind: trace.KindResource, Cause: f.id, Node: r.Key, Client: r}
	if w.mistakes[r.Key] == "" {
		e.Rule = "Fence"
	}
	w.cause = w.emit(e)
}
