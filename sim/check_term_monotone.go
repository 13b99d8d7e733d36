package sim

import (
	"fmt"

	"ticketing/raft"
)

// termMonotone: section 5.1. Compared with what a server has said, not with what it remembers: the
// comparison spans its crashes.
func termMonotone() invariant {
	var said [maxNodes + 1]raft.Term // by server
	return invariant{
		name:     "term-monotone",
		sentence: "a server's term is never below one that it has told anyone",
		send: func(w *World, n *node, m *raft.Message) string {
			said[n.id] = max(said[n.id], m.Term)
			return ""
		},
		change: func(w *World, n *node, before, after *raft.Status) string {
			if after.Term < said[n.id] {
				return fmt.Sprintf("its term is %d, it has spoken in term %d", after.Term, said[n.id])
			}
			return ""
		},
		restart: func(w *World, n *node) string {
			if n.status.Term < said[n.id] {
				return fmt.Sprintf("it came back in term %d, it had spoken in term %d", n.status.Term, said[n.id])
			}
			return ""
		},
	}
}
