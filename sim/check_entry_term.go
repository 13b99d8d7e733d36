package sim

import (
	"fmt"

	"ticketing/raft"
)

// entryTerm is the cheapest oracle of a log: a tail that was kept though it conflicts shows here at
// once.
func entryTerm() invariant {
	return invariant{
		name:     "entry-term",
		sentence: "terms never fall along a log and never exceed the server's current term",
		append: func(w *World, n *node, before *raft.Status, entries []raft.Entry) string {
			term, _ := n.replica.Core().Term(entries[0].Index - 1)
			for _, e := range entries {
				if e.Term < term || e.Term > n.status.Term {
					return fmt.Sprintf("entry %d has term %d, after %d and in term %d", e.Index, e.Term, term, n.status.Term)
				}
				term = e.Term
			}
			return ""
		},
		change: func(w *World, n *node, before, after *raft.Status) string {
			if after.LastTerm > after.Term {
				return fmt.Sprintf("its log ends in term %d, its term is %d", after.LastTerm, after.Term)
			}
			return ""
		},
	}
}
