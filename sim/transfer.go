package sim

import (
	"ticketing/raft"
)

// This file hands leadership over.

// opTransfer is what a scenario asks of a leader, in a trace.
const opTransfer = "transfer"

// handing is a transfer that a leader has begun.
type handing struct {
	to   raft.ServerID // 0 if there is none
	term raft.Term     // of the leader
}

// doTransfer tells a server to hand its leadership to another. One that does not lead, or does not run,
// refuses.
func (w *World) doTransfer(c Transfer) {
	w.instruct(c, c.From, opTransfer, countTransfersRefused, func(n *node) error {
		err := n.replica.Transfer(c.To)
		if err == nil && n.handing.to != c.To {
			w.counters[countTransfers]++
			n.handing = handing{c.To, n.status.Term}
		}
		return err
	})
}

// observeTransfer counts what transfers come to: the server that was named leads the next term, or the
// old leader still leads and has stopped trying.
func (w *World) observeTransfer(n *node, changed bool) {
	if n.handing.to != 0 && n.status.Role == raft.Leader && n.replica.Core().Transferring() == 0 {
		w.counters[countTransfersGivenUp]++
		n.handing = handing{}
	}
	if !changed || !becameLeader(&n.before, &n.status) {
		return
	}
	for _, old := range w.nodes {
		if old.handing == (handing{n.id, n.status.Term - 1}) {
			w.counters[countTransfersDone]++
			old.handing = handing{}
		}
	}
}
