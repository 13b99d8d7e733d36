package sim

import (
	"fmt"

	"ticketing/raft"
)

// electionSafety: Figure 3. Two leaders at one moment are legal if their terms differ, so it keeps
// the history: which server led which term, for ever.
func electionSafety() invariant {
	leaders := map[raft.Term]raft.ServerID{}
	return invariant{
		name:     "election-safety",
		sentence: "at most one server ever leads a term",
		change: func(w *World, n *node, before, after *raft.Status) string {
			if !becameLeader(before, after) {
				return ""
			}
			if other, led := leaders[after.Term]; led && other != n.id {
				return fmt.Sprintf("term %d has a second leader; the first was S%d", after.Term, other)
			}
			leaders[after.Term] = n.id
			return ""
		},
	}
}

func becameLeader(before, after *raft.Status) bool {
	return after.Role == raft.Leader && (before.Role != raft.Leader || before.Term != after.Term)
}
