package sim

import (
	"fmt"

	"ticketing/raft"
)

// leaderAuthentic: being the leader of a term is a fact at the moment of sending and of appending,
// not when either was decided.
func leaderAuthentic() invariant {
	leaders := map[raft.Term]raft.ServerID{}
	return invariant{
		name:     "leader-authentic",
		sentence: "only the elected leader of a term sends AppendEntries of it or makes entries of it",
		change: func(w *World, n *node, before, after *raft.Status) string {
			if becameLeader(before, after) {
				if _, led := leaders[after.Term]; !led {
					leaders[after.Term] = n.id
				}
			}
			return ""
		},
		send: func(w *World, n *node, m *raft.Message) string {
			if _, ok := m.Body.(raft.AppendEntries); ok && leaders[m.Term] != n.id {
				return fmt.Sprintf("it sends AppendEntries of term %d, which S%d leads", m.Term, leaders[m.Term])
			}
			return ""
		},
		append: func(w *World, n *node, before *raft.Status, entries []raft.Entry) string {
			for _, e := range entries {
				maker, led := leaders[e.Term]
				// The leader's own first entry is appended with the very step that makes it leader.
				own := n.status.Role == raft.Leader && n.status.Term == e.Term
				if !led && !own && !w.atStart(e) {
					return fmt.Sprintf("entry %d is of term %d, which nobody led", e.Index, e.Term)
				}
				if own && led && maker != n.id {
					return fmt.Sprintf("it makes entry %d of term %d, which S%d leads", e.Index, e.Term, maker)
				}
			}
			return ""
		},
	}
}
