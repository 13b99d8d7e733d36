package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// stateMachineSafety: Figure 3, and more: the digest of the table after each entry must be the same
// everywhere, so that a state machine which is not a function of the log shows as well.
func stateMachineSafety() invariant {
	type application struct {
		term raft.Term
		hash uint64
	}
	var first []application // by index
	next := map[raft.ServerID]raft.Index{}
	return invariant{
		name:     "state-machine-safety",
		sentence: "every server applies the same entries in order, each once, with the same table after each",
		restart: func(w *World, n *node) string {
			next[n.id] = 0
			return ""
		},
		apply: func(w *World, n *node, a *fsm.Applied) string {
			next[n.id]++
			if a.Index != next[n.id] {
				return fmt.Sprintf("it applies entry %d where %d is due", a.Index, next[n.id])
			}
			if int(a.Index) > len(first) {
				first = append(first, application{a.Term, a.Hash})
			}
			f := first[a.Index-1]
			if f.term != a.Term {
				return fmt.Sprintf("it applies an entry of term %d at %d; another applied one of term %d", a.Term, a.Index, f.term)
			}
			if f.hash != a.Hash {
				return fmt.Sprintf("after entry %d its table has hash %x, another server's had %x", a.Index, a.Hash, f.hash)
			}
			return ""
		},
	}
}
