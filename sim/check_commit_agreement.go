package sim

import (
	"fmt"

	"ticketing/raft"
)

// commitAgreement compares before anything is applied. It also keeps the ledger's list of what is
// committed: the first to commit an index is always a leader.
func commitAgreement() invariant {
	return invariant{
		name:     "commit-agreement",
		sentence: "any two servers agree on the entries that both know to be committed",
		change: func(w *World, n *node, before, after *raft.Status) string {
			l := &w.ledger
			core := n.replica.Core()
			for i := raft.Index(len(l.committed)) + 1; i <= after.CommitIndex; i++ {
				// One that is removed steps down in the step in which it commits that.
				led := before.Role == raft.Leader && before.Term == after.Term
				if after.Role != raft.Leader && !led {
					return fmt.Sprintf("it counts entry %d as committed, which no leader has", i)
				}
				term, _ := core.Term(i)
				chain, _ := chainAt(n.chains, i)
				l.committed = append(l.committed, commitRecord{chain, term, after.Term})
				if e := at(n.sets, i); e.index == i {
					l.sets = append(l.sets, e)
				}
			}
			if after.CommitIndex == before.CommitIndex {
				return ""
			}
			record, _ := l.committedAt(after.CommitIndex)
			if chain, has := chainAt(n.chains, after.CommitIndex); !has || after.CommitIndex > 0 && chain != record.chain {
				return fmt.Sprintf("its entries up to %d are not those that were committed", after.CommitIndex)
			}
			return ""
		},
	}
}
