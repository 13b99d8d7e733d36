package sim

import (
	"fmt"

	"ticketing/raft"
)

// logMatchingCheck: Figure 3. Each entry that any server stores is entered under (index, term) with
// the hash of its whole prefix; the same pair must always bring the same hash.
func logMatchingCheck() invariant {
	type position struct {
		term  raft.Term
		chain uint64
	}
	first := []position{{}}               // by index, what was stored there first
	others := map[raft.Index][]position{} // and later, in other terms: there are few
	check := func(i raft.Index, term raft.Term, chain uint64) string {
		p := position{term, chain}
		if int(i) == len(first) {
			first = append(first, p)
		}
		for _, known := range append(others[i], first[i]) {
			if known.term == term && known.chain == chain {
				return ""
			}
			if known.term == term {
				return fmt.Sprintf("entry %d of term %d, or one before it, differs from another server's", i, term)
			}
		}
		others[i] = append(others[i], p)
		return ""
	}
	return invariant{
		name:     logMatching,
		sentence: "two logs with an entry of the same index and term are equal up to it",
		append: func(w *World, n *node, before *raft.Status, entries []raft.Entry) string {
			for _, e := range entries {
				if problem := check(e.Index, e.Term, n.chains[e.Index-1]); problem != "" {
					return problem
				}
			}
			return ""
		},
		restart: func(w *World, n *node) string {
			for i, e := range n.disk.durable.Entries {
				if problem := check(e.Index, e.Term, n.chains[i]); problem != "" {
					return problem
				}
			}
			return ""
		},
	}
}
