package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// neverWithdrawn is about what a client was told. Its lock may end by its own Release, by one that
// names no token, or with its lease, which expire-earned sees to; never because a leader believes
// that its client has gone.
func neverWithdrawn() invariant {
	type position struct {
		index raft.Index
		term  raft.Term
	}
	cleanups := map[position]bool{} // entries that leaders proposed
	heard := map[fsm.Token]Actor{}  // by token, who took the lock for its own
	cleaned := map[fsm.Token]bool{} // tokens of tenures that a clean-up has ended
	return invariant{
		name:     "never-withdrawn",
		sentence: "a lock that its client was told to hold is not taken away by a clean-up",
		propose: func(w *World, n *node, p *fsm.Proposed) string {
			if p.Cause == fsm.ForCleanup {
				cleanups[position{p.Index, p.Term}] = true
			}
			return ""
		},
		firstApply: func(w *World, n *node, a *fsm.Applied) string {
			if !cleanups[position{a.Index, a.Term}] || !removes(a.Result) {
				return ""
			}
			token := w.ledger.holder[a.Envelope.Key]
			cleaned[token] = true
			if who := heard[token]; who != "" {
				return fmt.Sprintf("entry %d cleans token %d up, which %s was told to hold", a.Index, token, who)
			}
			return ""
		},
		heard: func(w *World, c *client, token fsm.Token) string {
			heard[token] = c.name
			if cleaned[token] {
				return fmt.Sprintf("it is told to hold token %d, which a clean-up has ended", token)
			}
			return ""
		},
	}
}
