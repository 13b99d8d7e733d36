package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// oneExpire is rule L3. What a leader has appended stays in its log for as long as it leads, and an
// Expire that is applied ends the tenure; so one is enough for a whole term.
func oneExpire() invariant {
	type lease struct {
		term  raft.Term
		token fsm.Token
	}
	proposed := map[lease]raft.Index{}
	return invariant{
		name:     "one-expire",
		sentence: "a leader proposes the end of a tenure's lease once",
		propose: func(w *World, n *node, p *fsm.Proposed) string {
			if p.Cause != fsm.ForLease {
				return ""
			}
			of := lease{p.Term, p.Meant}
			if first, again := proposed[of]; again {
				return fmt.Sprintf("it proposes at %d, for token %d, what it has proposed at %d", p.Index, p.Meant, first)
			}
			proposed[of] = p.Index
			return ""
		},
	}
}
