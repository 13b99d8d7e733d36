package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// ghostCleaned is the half of rule L4 that can be seen: of a lock that it has granted, a leader tells
// somebody, or gives it back at once. It says nothing of a Grant that a leader finds in its log from
// before it led: whose that is only the lease can tell.
func ghostCleaned() invariant {
	type position struct {
		index raft.Index
		term  raft.Term
	}
	asked := map[position]raft.ServerID{} // Grants that a leader proposed for clients
	return invariant{
		name:     "ghost-cleaned",
		sentence: "a leader that grants a lock answers a client, or proposes to give it back, in that very step",
		propose: func(w *World, n *node, p *fsm.Proposed) string {
			if p.Cause == fsm.ForClient && p.Envelope.Kind == fsm.Grant {
				asked[position{p.Index, p.Term}] = n.id
			}
			return ""
		},
		took: func(w *World, n *node, out *fsm.Output) string {
			if n.status.Role != raft.Leader || n.replica.Transferring() != 0 {
				return "" // a leader that hands over takes no proposals, and gives it back later
			}
			for i := range out.Applied {
				a := &out.Applied[i]
				own := a.Term == n.status.Term && asked[position{a.Index, a.Term}] == n.id
				if own && a.Result.Kind == fsm.Granted && !a.Result.Again && !told(out, a) {
					return fmt.Sprintf("entry %d grants token %d, of which nobody is told and which is not given back",
						a.Index, a.Result.Token)
				}
			}
			return ""
		},
	}
}

// told reports whether a grant is answered, or given back.
func told(out *fsm.Output, a *fsm.Applied) bool {
	for _, y := range out.Replies {
		if y.Index == a.Index && y.Result == a.Result {
			return true
		}
	}
	for _, p := range out.Proposed {
		if p.Cause == fsm.ForCleanup && p.Meant == a.Result.Token {
			return true
		}
	}
	return false
}
