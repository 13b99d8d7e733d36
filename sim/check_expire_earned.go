package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// expireEarned measures again, by the proposer's own clock and from its own apply, what the leases
// in fsm have measured.
func expireEarned() invariant {
	return invariant{
		name:     "expire-earned",
		sentence: "who proposes an Expire has measured the whole lease on its own clock since its own apply of the Grant",
		propose: func(w *World, n *node, p *fsm.Proposed) string {
			if p.Cause != fsm.ForLease {
				return ""
			}
			seen := n.tenures[p.Envelope.Key]
			if seen.token != p.Meant {
				return fmt.Sprintf("it expires token %d, whose Grant it has not applied since it started", p.Meant)
			}
			if waited := n.clock.at(w.now) - seen.local; waited < seen.lease {
				return fmt.Sprintf("it expires token %d after %s of a lease of %s by its own clock",
					p.Meant, localString(waited), localString(seen.lease))
			}
			return ""
		},
	}
}

// localString writes a duration of some node's own clock.
func localString(t raft.Time) string { return trace.Time(t).String() }
