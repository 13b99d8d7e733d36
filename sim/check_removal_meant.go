package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// removalMeant is the project's claim as a checker. It knows what a command does not say: which
// tenure its issuer had in mind. A client that releases means the tenure that it was granted, even
// if it sends no token; a leader that expires means the tenure whose lease it has seen run out.
func removalMeant() invariant {
	type position struct {
		index raft.Index
		term  raft.Term
	}
	meant := map[position]fsm.Token{} // of the leaders' own proposals
	return invariant{
		name:     "removal-meant",
		sentence: "a removal removes only the tenure that its issuer meant",
		propose: func(w *World, n *node, p *fsm.Proposed) string {
			if p.Envelope.Kind != fsm.Extend && p.Meant != 0 {
				meant[position{p.Index, p.Term}] = p.Meant
			}
			return ""
		},
		firstApply: func(w *World, n *node, a *fsm.Applied) string {
			key := position{a.Index, a.Term}
			token, known := meant[key]
			delete(meant, key)
			if !removes(a.Result) {
				return ""
			}
			if !known {
				token = w.clientMeant(a.Envelope)
			}
			removed := w.ledger.holder[a.Envelope.Key]
			if token != 0 && removed != token {
				return fmt.Sprintf("entry %d, %q, was meant for token %d and removed token %d from %q",
					a.Index, a.Envelope.String(), token, removed, a.Envelope.Key)
			}
			return ""
		},
	}
}
