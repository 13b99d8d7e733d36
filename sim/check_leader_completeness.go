package sim

import (
	"fmt"

	"ticketing/raft"
)

// leaderCompleteness: Figure 3. Only of earlier terms: a leader of an old term may be elected, by
// slow messages, after a newer term has committed.
func leaderCompleteness() invariant {
	return invariant{
		name:     "leader-completeness",
		sentence: "a leader has every entry that was committed in an earlier term",
		change: func(w *World, n *node, before, after *raft.Status) string {
			if !becameLeader(before, after) {
				return ""
			}
			committed := w.ledger.committed
			i := len(committed)
			for i > 0 && committed[i-1].by >= after.Term {
				i--
			}
			if i == 0 {
				return ""
			}
			if chain, has := chainAt(n.chains, raft.Index(i)); !has || chain != committed[i-1].chain {
				return fmt.Sprintf("the leader of term %d lacks entry %d, committed in term %d",
					after.Term, i, committed[i-1].by)
			}
			return ""
		},
	}
}
