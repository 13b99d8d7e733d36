package sim

import (
	"strconv"

	"ticketing/fsm"
	"ticketing/raft"
)

// This file writes nodes and messages down, if the run is recorded.

func stateRecord(s raft.Status) *StateRecord {
	return &StateRecord{
		Role: s.Role.String(), Term: s.Term, Vote: s.VotedFor, Leader: s.Leader,
		Commit: s.CommitIndex, Applied: s.LastApplied, Last: s.LastIndex, LastTerm: s.LastTerm,
	}
}

func entryRecord(e raft.Entry) EntryRecord {
	return EntryRecord{Index: e.Index, Term: e.Term, Command: string(e.Command)}
}

// traceStart is a node's start and the log that it starts with.
func (w *World) traceStart(n *node, kind EventKind) {
	if w.trace == nil {
		return
	}
	text := ""
	if kind == KindRestart && n.disk.torn {
		text = "a torn record is dropped"
	}
	w.cause = w.emitNode(n, Event{Kind: kind, State: stateRecord(n.status), Text: text})
	for _, e := range n.disk.durable.Entries {
		r := entryRecord(e)
		w.emitNode(n, Event{Kind: KindAppend, Entry: &r})
	}
}

// traceInput is an input other than a message; what follows has it as its cause.
func (w *World) traceInput(n *node, kind EventKind, text string) {
	if w.trace != nil {
		w.cause = w.emitNode(n, Event{Kind: kind, Text: text})
	}
}

func (w *World) traceSaved(n *node, seq uint64) {
	if w.trace != nil {
		w.cause = w.traceDisk(n, KindSaved, seq)
	}
}

// traceDisk tells what is durable now that a write has finished.
func (w *World) traceDisk(n *node, kind EventKind, seq uint64) int64 {
	if w.trace == nil {
		return 0
	}
	return w.emitNode(n, Event{Kind: kind, Write: &WriteRecord{
		Seq: seq, Term: n.disk.durable.Term, Vote: n.disk.durable.VotedFor,
		Last: raft.Index(len(n.disk.durable.Entries)),
	}})
}

func (w *World) traceStop(n *node, err error) {
	if w.trace != nil {
		w.emitNode(n, Event{Kind: KindStop, Text: err.Error()})
	}
}

func (w *World) traceViolation(v Violation) int64 {
	if w.trace == nil {
		return 0
	}
	return w.emit(Event{Node: string(v.Node), Kind: KindViolation, Rule: v.Invariant, Text: v.Detail})
}

func (w *World) traceState(n *node, before, after *raft.Status, received *raft.Message) {
	if *before == *after {
		return
	}
	// What is durable changes with the disk alone and is no part of Figure 2's state.
	b := *before
	b.Durable = after.Durable
	if b != *after {
		w.emitNode(n, Event{Kind: KindState, State: stateRecord(*after), Rule: ruleOfChange(before, after, received)})
	}
}

func (w *World) traceWrite(n *node, write raft.Write) {
	if write.Seq == 0 {
		return
	}
	r := &WriteRecord{Seq: write.Seq, Term: write.Term, Vote: write.VotedFor}
	if k := len(write.Entries); k > 0 {
		r.First, r.Last = write.Entries[0].Index, write.Entries[k-1].Index
	}
	w.emitNode(n, Event{Kind: KindWrite, Write: r})
}

func (w *World) traceAppend(n *node, e raft.Entry, lastBefore raft.Index, p *fsm.Proposed) {
	r := entryRecord(e)
	rule := "AE.4"
	switch {
	case e.Index <= lastBefore:
		rule = "AE.3"
	case p != nil:
		r.Cause, r.Meant = p.Cause.String(), uint64(p.Meant)
		rule = "Leaders.2"
	case n.status.Role == raft.Leader:
		rule = "Leaders.Noop"
	}
	w.emitNode(n, Event{Kind: KindAppend, Entry: &r, Rule: rule})
}

func (w *World) traceApply(n *node, a *fsm.Applied) {
	r := &EntryRecord{
		Index: a.Index, Term: a.Term, Command: string(n.replica.Core().Entries(a.Index, a.Index)[0].Command), Result: a.Result.String(),
		Hash: strconv.FormatUint(a.Hash, 16),
	}
	w.emitNode(n, Event{Kind: KindApply, Entry: r, Rule: ruleOfResult(a.Result)})
}

// messageRecord writes down every field of a message between servers.
func (w *World) messageRecord(f *flight) *MessageRecord {
	r := &MessageRecord{
		From: string(w.actors[f.from].name), To: string(w.actors[f.to].name), Kind: f.kind.String(),
		Term: f.raft.Term, Call: f.raft.Call,
	}
	switch b := f.raft.Body.(type) {
	case raft.RequestVote:
		r.LastIndex, r.LastTerm = b.LastLogIndex, b.LastLogTerm
	case raft.RequestVoteReply:
		r.RequestTerm, r.Granted = b.RequestTerm, b.VoteGranted
	case raft.AppendEntries:
		r.PrevIndex, r.PrevTerm, r.Commit = b.PrevLogIndex, b.PrevLogTerm, b.LeaderCommit
		for _, e := range b.Entries {
			r.Entries = append(r.Entries, entryRecord(e))
		}
	case raft.AppendEntriesReply:
		r.RequestTerm, r.PrevIndex, r.Success, r.Match = b.RequestTerm, b.PrevLogIndex, b.Success, b.MatchIndex
		r.ConflictTerm, r.ConflictIndex = b.ConflictTerm, b.ConflictIndex
	}
	return r
}

// traceSend is a message's leaving. Clients' messages are traced where they are made.
func (w *World) traceSend(f *flight) int64 {
	if w.trace == nil {
		return 0
	}
	if f.client != nil {
		return f.id
	}
	return w.emitNode(w.actors[f.from].node, Event{Kind: KindSend, Message: w.messageRecord(f), Rule: w.ruleOfReply(f)})
}

// traceReceive is a message's arrival at a node; what follows has it as its cause.
func (w *World) traceReceive(n *node, f *flight) {
	if w.trace == nil {
		return
	}
	e := Event{Kind: KindReceive, Cause: f.id}
	if f.client != nil {
		e.Client = w.clientRecord(f)
	} else {
		e.Message = w.messageRecord(f)
	}
	w.cause = w.emitNode(n, e)
}

func (w *World) traceLost(f *flight, why string) {
	if w.trace == nil {
		return
	}
	e := Event{Kind: KindLost, Cause: f.id, Text: why, Node: string(w.actors[f.to].name)}
	if f.client != nil {
		e.Client = w.clientRecord(f)
	} else {
		e.Message = w.messageRecord(f)
	}
	w.emit(e)
}

// clientRecord writes down what travels between a client and a server.
func (w *World) clientRecord(f *flight) *ClientRecord {
	q := f.client.request
	r := &ClientRecord{
		Op: q.Kind.String(), Key: q.Key, Seq: q.Seq, Attempt: q.Attempt, LeaseMS: q.LeaseMS, Token: uint64(q.Token),
	}
	client, server := f.from, f.to
	switch f.kind {
	case messageRequestReply:
		client, server = f.to, f.from
		r.Status, r.Token = f.client.reply.Status.String(), uint64(f.client.reply.Result.Token)
		if f.client.reply.Status == fsm.Answered {
			r.Result = f.client.reply.Result.String()
		}
	case messageDisconnect:
		r.Op = "disconnect"
	case messageWrite:
		r.Op, r.Token = "write", uint64(f.client.token)
	}
	r.Client, r.Server = string(w.actors[client].name), string(w.actors[server].name)
	return r
}
