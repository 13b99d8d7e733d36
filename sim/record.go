package sim

import (
	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file writes nodes and messages down, if the run is recorded.

// traceStart is a node's start and the log that it starts with.
func (w *World) traceStart(n *node, kind trace.EventKind) {
	if w.trace == nil {
		return
	}
	text := ""
	if kind == trace.KindRestart && n.disk.torn {
		text = "a torn record is dropped"
	}
	w.cause = w.emitNode(n, trace.Event{
		Kind: kind, State: trace.OfStatus(n.status), Text: text, Snapshot: trace.OfSnapshot(n.disk.durable.Snapshot),
	})
	for _, e := range n.disk.durable.Entries {
		r := trace.OfEntry(e)
		w.emitNode(n, trace.Event{Kind: trace.KindAppend, Entry: &r})
	}
}

// traceInput is an input other than a message; what follows has it as its cause.
func (w *World) traceInput(n *node, kind trace.EventKind, text string) {
	if w.trace != nil {
		w.cause = w.emitNode(n, trace.Event{Kind: kind, Text: text})
	}
}

// traceWake is a reading of a node's clock, and the timer that has run out by it.
func (w *World) traceWake(n *node, local raft.Time) {
	switch {
	case w.trace == nil:
	case local < n.replica.Core().Deadline():
		w.traceInput(n, trace.KindWake, "")
	case n.status.Role == raft.Leader:
		w.traceInput(n, trace.KindHeartbeatTimeout, "")
	default:
		w.traceInput(n, trace.KindElectionTimeout, "")
	}
}

func (w *World) traceSaved(n *node, seq uint64) {
	if w.trace != nil {
		w.cause = w.traceDisk(n, trace.KindSaved, seq)
	}
}

// traceDisk tells what is durable now that a write has finished.
func (w *World) traceDisk(n *node, kind trace.EventKind, seq uint64) int64 {
	if w.trace == nil {
		return 0
	}
	return w.emitNode(n, trace.Event{Kind: kind, Write: &trace.WriteRecord{
		Seq: seq, Term: n.disk.durable.Term, Vote: n.disk.durable.VotedFor,
		Last: n.disk.last(), Snapshot: trace.OfSnapshot(n.disk.durable.Snapshot),
	}})
}

func (w *World) traceStop(n *node, err error) {
	if w.trace != nil {
		w.emitNode(n, trace.Event{Kind: trace.KindStop, Text: err.Error()})
	}
}

func (w *World) traceViolation(v Violation) int64 {
	if w.trace == nil {
		return 0
	}
	return w.emit(trace.Event{Node: string(v.Node), Kind: trace.KindViolation, Rule: v.Invariant, Text: v.Detail})
}

func (w *World) traceState(n *node, before, after *raft.Status, received *raft.Message, left bool) {
	if e, ok := trace.Changed(before, after, received); ok {
		if left {
			e.Rule = "Members.Leave"
		}
		w.emitNode(n, e)
	}
}

func (w *World) traceWrite(n *node, write *raft.Write) {
	if write.Seq != 0 {
		w.emitNode(n, trace.Event{Kind: trace.KindWrite, Write: trace.OfWrite(write)})
	}
}

func (w *World) traceApply(n *node, a *fsm.Applied) {
	entry := n.replica.Core().Entries(a.Index, a.Index)[0]
	w.emitNode(n, trace.Applied(a, entry.Command))
}

// traceSend is a message's leaving. Clients' messages are traced where they are made.
func (w *World) traceSend(f *flight) int64 {
	if w.trace == nil {
		return 0
	}
	if f.client != nil {
		return f.id
	}
	node := w.actors[f.from].node
	return w.emitNode(node, trace.Event{Kind: trace.KindSend, Message: trace.OfMessage(&f.raft), Rule: node.voted.RuleOfReply(&f.raft)})
}

// traceReceive is a message's arrival at a node; what follows has it as its cause.
func (w *World) traceReceive(n *node, f *flight) {
	if w.trace == nil {
		return
	}
	e := trace.Event{Kind: trace.KindReceive, Cause: f.id}
	if f.client != nil {
		e.Client = w.clientRecord(f)
	} else {
		e.Message = trace.OfMessage(&f.raft)
	}
	w.cause = w.emitNode(n, e)
}

func (w *World) traceLost(f *flight, why string) {
	if w.trace == nil {
		return
	}
	e := trace.Event{Kind: trace.KindLost, Cause: f.id, Text: why, Node: string(w.actors[f.to].name)}
	if f.client != nil {
		e.Client = w.clientRecord(f)
	} else {
		e.Message = trace.OfMessage(&f.raft)
	}
	w.emit(e)
}

// clientRecord writes down what travels between a client and a server.
func (w *World) clientRecord(f *flight) *trace.ClientRecord {
	r := trace.OfRequest(&f.client.request)
	client, server := f.from, f.to
	switch f.kind {
	case messageRequestReply:
		client, server = f.to, f.from
		r = trace.OfReply(&f.client.request, &f.client.reply)
	case messageDisconnect:
		r.Op = "disconnect"
	case messageWrite:
		r.Op, r.Token = opWrite, uint64(f.client.token)
		if f.client.read {
			r.Op = opRead
		}
	}
	r.Client, r.Server = string(w.actors[client].name), string(w.actors[server].name)
	return r
}
