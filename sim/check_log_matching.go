package sim

import (
	"fmt"

	"ticketing/raft"
)

// logMatchingCheck: Figure 3. Each entry that any server stores is entered under (index, term) with
// the hash of its whole prefix; the same pair must always bring the same hash.
func logMatchingCheck() invariant {
	first := []stored{{}}               // by index, what was stored there first; of term 0 where nothing was
	others := map[raft.Index][]stored{} // and later, in other terms: there are few
	one := func(i raft.Index, term raft.Term, chain uint64) string {
		p := stored{term, chain}
		for int(i) >= len(first) { // what lies before may be in snapshots only
			first = append(first, stored{})
		}
		if first[i].term == 0 {
			first[i] = p
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
	check := func(n *node, entries []raft.Entry) string {
		for _, e := range entries {
			if problem := one(e.Index, e.Term, n.chains[e.Index-1]); problem != "" {
				return problem
			}
		}
		return ""
	}
	return invariant{
		name:     logMatching,
		sentence: "two logs with an entry of the same index and term are equal up to it",
		append: func(w *World, n *node, before *raft.Status, entries []raft.Entry) string {
			return check(n, entries)
		},
		restart: func(w *World, n *node) string {
			return check(n, n.disk.durable.Entries)
		},
	}
}

// stored is an entry in some log, with all that stands before it.
type stored struct {
	term  raft.Term
	chain uint64
}
