package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// acknowledgedDurable starts from what clients were told. The answered request must be in the one
// history, and every later leader must have it.
func acknowledgedDurable() invariant {
	results := map[raft.Index]fsm.Result{}
	var acked raft.Index  // the highest that was answered,
	var ackedIn raft.Term // and the term of who answered
	return invariant{
		name:     "acknowledged-durable",
		sentence: "what a client was told to have happened is committed, and no later leader lacks it",
		firstApply: func(w *World, n *node, a *fsm.Applied) string {
			results[a.Index] = a.Result
			return ""
		},
		answer: func(w *World, n *node, q *fsm.Request, y *fsm.Reply) string {
			if y.Status != fsm.Answered {
				return ""
			}
			if result, ok := results[y.Index]; !ok || result != y.Result {
				return fmt.Sprintf("client %d was answered %s for request %d, in entry %d, which is not committed or came to something else",
					q.Client, y.Result, q.Seq, y.Index)
			}
			if y.Index > acked {
				acked, ackedIn = y.Index, n.status.Term
			}
			return ""
		},
		change: func(w *World, n *node, before, after *raft.Status) string {
			if !becameLeader(before, after) || after.Term <= ackedIn || acked == 0 {
				return ""
			}
			record, _ := w.ledger.committedAt(acked)
			if chain, has := chainAt(n.chains, acked); !has || chain != record.chain {
				return fmt.Sprintf("the leader of term %d lacks entry %d, for which a client has its answer", after.Term, acked)
			}
			return ""
		},
	}
}
