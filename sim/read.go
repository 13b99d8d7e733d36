package sim

import (
	"slices"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file reads the lock table at a server. Who reads stands beside the server: the question and
// the answer take no time, and an answer counts at once as something that somebody outside knows.
// That is stricter than with a reader behind a network, who learns it later.

// readings is what a node knows of reads.
type readings struct {
	open []openRead // in the order in which they were asked
	last string     // what became of the last one, as expect names it
}

// openRead is a read that is not over.
type openRead struct {
	call  uint64
	floor raft.Index // the last entry of which somebody outside knew when it began
	began int64      // by the history's clock
	led   bool       // the server led when it was asked
}

// What became of a read, in "expect S1 read=…".
const (
	readNone     = "none"
	readWaiting  = "waiting"
	readAnswered = "answered"
	readStale    = "stale"
	readFailed   = "failed"
)

func readStates() []string {
	return []string{readNone, readWaiting, readAnswered, readStale, readFailed}
}

// doRead asks a server. Nobody answers for one that is down; one that is paused looks at the question
// when it goes on.
func (w *World) doRead(c ReadTable) {
	w.steps++
	n := w.node(c.Node)
	w.lateTimer(n)
	w.traceCommand(c)
	switch {
	case !n.alive:
		w.readOver(n, readFailed)
		return
	case c.Local:
		w.readLocal(n)
		return
	}
	n.nextCall++
	led := n.status.Role == raft.Leader
	n.reading.open = append(n.reading.open, openRead{n.nextCall, w.told, w.historyTime(), led})
	n.reading.last = readWaiting
	if n.paused {
		n.inbox = append(n.inbox, input{read: n.nextCall})
		return
	}
	w.askTable(n, n.nextCall)
}

// askTable hands a question to the replica.
func (w *World) askTable(n *node, call uint64) {
	if !w.tick(n) {
		return
	}
	n.replica.Read(call)
	w.step(n, nil)
}

// answerRead takes a replica's answer to a read.
func (w *World) answerRead(n *node, y *fsm.Reply) {
	i := slices.IndexFunc(n.reading.open, func(r openRead) bool { return r.call == y.Call })
	if i < 0 {
		return
	}
	r := n.reading.open[i]
	n.reading.open = slices.Delete(n.reading.open, i, i+1)
	w.checks.read(w, n, &r, y)
	if y.Status != fsm.Answered {
		if r.led && n.status.Role != raft.Leader {
			w.counters[countReadsDeposed]++
		}
		w.readOver(n, readFailed)
		return
	}
	w.counters[countReads]++
	w.noteRead(n, &r)
	w.readOver(n, readAnswered)
	w.told = max(w.told, n.status.LastApplied)
}

// readLocal shows a server's table as it is. It promises nothing, so no invariant watches it; it only
// counts how often somebody outside knew better.
func (w *World) readLocal(n *node) {
	w.counters[countReadsLocal]++
	if n.status.LastApplied < w.told {
		w.readOver(n, readStale)
		return
	}
	w.readOver(n, readAnswered)
}

func (w *World) readOver(n *node, state string) {
	n.reading.last = state
	switch state {
	case readFailed:
		w.counters[countReadsFailed]++
	case readStale:
		w.counters[countReadsStale]++
	}
	if w.trace != nil {
		w.emitNode(n, trace.Event{Kind: trace.KindReply, Client: &trace.ClientRecord{
			Op: opRead, Server: string(n.name), Status: state, Index: uint64(n.status.LastApplied),
		}})
	}
}

// failReads ends the reads of a server that is no more.
func (w *World) failReads(n *node) {
	for range n.reading.open {
		w.readOver(n, readFailed)
	}
	n.reading.open = nil
}
