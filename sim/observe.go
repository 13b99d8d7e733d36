package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// The core has no logger. What an event was, and which rule decided it, is derived here from the
// state before, the input, and the state after.

// observe looks at what a node has just done, before any of it takes effect outside. Most inputs change
// nothing, and then there is little to look at.
func (w *World) observe(n *node, out *fsm.Output, received *raft.Message) {
	n.before, n.status = n.status, n.replica.Core().Status()
	changed, wrote := n.before != n.status, out.Write.Seq != 0
	if w.deep {
		w.checkDeep(n)
	}
	if wrote {
		w.observeWrite(n, out)
	}
	if changed || wrote {
		w.observeState(n, out, received, changed)
	}
	if received != nil {
		w.checks.received(w, n, received)
	}
	if out.Restored != 0 {
		w.observeRestored(n, out)
	}
	// What is committed is applied first, and what to propose is decided on that.
	for i := range out.Applied {
		w.observeApply(n, &out.Applied[i])
	}
	if k := len(out.Applied); k > 0 && int(out.Applied[k-1].Index) == w.ledger.applied {
		w.counters[countEvicted] = w.counters[countSessions] - int64(n.replica.Table().Sessions())
	}
	for i := range out.Proposed {
		w.countProposed(&out.Proposed[i])
		w.checks.propose(w, n, &out.Proposed[i])
	}
	if changed || wrote || len(out.Applied) > 0 {
		w.checks.took(w, n, out)
	}
	w.observeTransfer(n, changed)
	for i := range out.Messages {
		w.checks.send(w, n, &out.Messages[i])
	}
	if out.Save != nil {
		w.observeSave(n, out)
	}
}

// observeWrite follows the log in memory: every change of it is in a write.
func (w *World) observeWrite(n *node, out *fsm.Output) {
	kept := false
	n.behind, kept = w.observeTrim(n, &n.before, out)
	w.observeMembers(n, out, kept)
	if len(out.Write.Entries) > 0 {
		w.observeAppend(n, &n.before, out)
	}
	w.observeEnd(n, out)
}

// observeState sees a node's Raft state become another.
func (w *World) observeState(n *node, out *fsm.Output, received *raft.Message, changed bool) {
	before, after := &n.before, &n.status
	left := w.observeLeft(n, before, after)
	if w.trace != nil {
		w.traceState(n, before, after, received, left)
		w.traceWrite(n, &out.Write)
	}
	if changed {
		w.countState(before, after)
		w.countLead(n, before, after, left)
		w.checks.change(w, n, before, after)
	}
}

// observeAppend follows the entries that come into the log.
func (w *World) observeAppend(n *node, before *raft.Status, out *fsm.Output) {
	entries := out.Write.Entries
	first := entries[0].Index
	if first <= before.LastIndex {
		w.counters[countTruncations]++
	}
	if first > raft.Index(len(n.chains))+1 {
		w.violate(logMatching, n.name, fmt.Sprintf("entry %d was stored, the log ended at %d", first, len(n.chains)))
		return
	}
	n.chains = n.chains[:first-1]
	proposed := out.Proposed
	for _, e := range entries {
		n.chains = append(n.chains, chain(last(n.chains), e))
		var p *fsm.Proposed
		if len(proposed) > 0 && proposed[0].Index == e.Index {
			p, proposed = &proposed[0], proposed[1:]
		}
		if w.trace != nil {
			w.emitNode(n, trace.Appended(e, before.LastIndex, n.status.Role, p))
		}
	}
	w.checks.append(w, n, before, entries)
}

// observeApply follows the table of a node, and once for each entry the service's history.
func (w *World) observeApply(n *node, a *fsm.Applied) {
	if w.trace != nil {
		w.traceApply(n, a)
	}
	w.checks.apply(w, n, a)
	if n.status.Role == raft.Leader && int(a.Index) > len(n.disk.chains) {
		w.counters[countCommitsAhead]++
	}
	switch key := a.Envelope.Key; {
	case a.Result.Again:
	case a.Result.Kind == fsm.Granted, a.Result.Kind == fsm.Extended:
		n.tenures[key] = tenureSeen{a.Holder, a.Index, n.clock.at(w.now), raft.Time(a.Envelope.LeaseMS) * 1000}
	case removes(a.Result):
		delete(n.tenures, key)
	}
	if int(a.Index) != w.ledger.applied+1 {
		return // not the first node to apply it
	}
	w.ledger.applied++
	w.countApplied(a)
	w.countOutlived(a)
	w.checks.firstApply(w, n, a)
	w.ledger.note(a)
}

func (w *World) checkDeep(n *node) {
	core := n.replica.Core()
	if err := raft.Check(core); err != nil {
		w.violate(coreState, n.name, err.Error())
	}
	if n.shadow == nil {
		return
	}
	if err := raft.Delta(n.shadow, core); err != nil {
		w.violate(coreState, n.name, err.Error())
	}
	n.shadow = nil
}

// emit adds an event to the trace and returns its id.
func (w *World) emit(e trace.Event) int64 {
	if w.trace == nil {
		return 0
	}
	e.ID = int64(len(w.trace.Events)) + 1
	e.At = w.now
	if e.Cause == 0 {
		e.Cause = w.cause
	}
	w.trace.Events = append(w.trace.Events, e)
	if w.tell != nil {
		w.tell(w.trace)
	}
	return e.ID
}

// emitNode adds an event of a node, with the reading of its clock.
func (w *World) emitNode(n *node, e trace.Event) int64 {
	e.Node, e.Local = string(n.name), n.clock.at(w.now)
	return w.emit(e)
}
