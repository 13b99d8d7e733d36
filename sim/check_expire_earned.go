package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// expireEarned measures again, by the proposer's own clock and from its own apply, what the leases
// in fsm have measured. What sets the lease may be a Grant or an Extend; one that stands in the log
// before the Expire and that the proposer has not applied, it cannot have measured.
func expireEarned() invariant {
	return invariant{
		name: "expire-earned",
		sentence: "who proposes an Expire has measured the whole lease on its own clock " +
			"since its own apply of the Grant or Extend that set it",
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
			if i := extendAhead(n, p); i != 0 {
				return fmt.Sprintf("it expires token %d behind the Extend in entry %d, which it has not applied", p.Meant, i)
			}
			return ""
		},
	}
}

// extendAhead returns the first entry that extends what an Expire ends, among those before it that
// its proposer has not applied; 0 if there is none.
func extendAhead(n *node, p *fsm.Proposed) raft.Index {
	core := n.replica.Core()
	for i := n.status.LastApplied + 1; i < p.Index; i++ {
		e, err := fsm.Decode(core.Entries(i, i)[0].Command)
		if err == nil && e.Kind == fsm.Extend && e.Key == p.Envelope.Key && e.Token == p.Meant {
			return i
		}
	}
	return 0
}

// localString writes a duration of some node's own clock.
func localString(t raft.Time) string { return trace.Time(t).String() }
