package sim

import (
	"fmt"

	"ticketing/raft"
)

// leaderAppendOnly: Figure 3.
func leaderAppendOnly() invariant {
	return invariant{
		name:     "leader-append-only",
		sentence: "a leader never overwrites or deletes an entry of its own log",
		append: func(w *World, n *node, before *raft.Status, entries []raft.Entry) string {
			after := n.status
			led := before.Role == raft.Leader && after.Role == raft.Leader && before.Term == after.Term
			if led && entries[0].Index <= before.LastIndex {
				return fmt.Sprintf("the leader of term %d replaces entry %d; its log ended at %d",
					after.Term, entries[0].Index, before.LastIndex)
			}
			return ""
		},
	}
}
