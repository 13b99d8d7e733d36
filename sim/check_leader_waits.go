package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// leaderWaits is rule L1. Like the gate it keeps needless entries out of the log, and the table does
// not rely on it: so it is not watched where the rule is taken away.
func leaderWaits() invariant {
	starts := map[raft.Term]raft.Index{} // of terms, the leader's first entry
	return invariant{
		name:     "leader-waits",
		sentence: "a leader proposes nothing before its own first entry is applied",
		append: func(w *World, n *node, before *raft.Status, entries []raft.Entry) string {
			if n.status.Role != raft.Leader {
				return ""
			}
			for _, e := range entries {
				if _, known := starts[e.Term]; !known && e.Term == n.status.Term {
					starts[e.Term] = e.Index
				}
			}
			return ""
		},
		propose: func(w *World, n *node, p *fsm.Proposed) string {
			start := starts[p.Term]
			if w.config.rules.NoNoopWait || n.status.LastApplied >= start {
				return ""
			}
			return fmt.Sprintf("it proposes entry %d in term %d; its first entry is %d, and it has applied %d",
				p.Index, p.Term, start, n.status.LastApplied)
		},
	}
}
