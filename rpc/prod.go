package rpc

import (
	"ticketing/fsm"
	"ticketing/fsm/trace"
)

// ElectionTimeout makes the node's election timer run out now, whatever its clock reads. It is for
// demonstrations, as are the two below: a server has no use for them.
func (n *Node) ElectionTimeout() {
	n.enter(n.ctx, n.fromPeers, func() {
		n.replica.ElectionTimeout()
		n.witness.fired(trace.KindElectionTimeout)
	})
}

// HeartbeatTimeout does that to its heartbeat timer.
func (n *Node) HeartbeatTimeout() {
	n.enter(n.ctx, n.fromPeers, func() {
		n.replica.HeartbeatTimeout()
		n.witness.fired(trace.KindHeartbeatTimeout)
	})
}

// Propose appends an entry that does nothing and has a text, if the node leads.
func (n *Node) Propose(text string) {
	n.enter(n.ctx, n.fromPeers, func() {
		q := fsm.Request{Call: n.calls.Add(1), Kind: fsm.Noop, Text: text}
		n.replica.Request(q)
		n.witness.requested(q)
	})
}

// fired notes that a timer was made to run out.
func (w *witness) fired(kind trace.EventKind) {
	if w == nil {
		return
	}
	w.clock = w.input(trace.Event{Kind: kind})
	w.look(nil)
}
