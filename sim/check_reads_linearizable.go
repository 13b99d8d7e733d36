package sim

import (
	"fmt"

	"ticketing/fsm"
)

// readsLinearizable is what a read is asked for that is not local. Other reads are answers as well: of
// two, one after the other, the second never shows the older table.
func readsLinearizable() invariant {
	return invariant{
		name: "reads-linearizable",
		sentence: "a read shows all that anybody had been told of when it began, " +
			"whichever server it is asked from",
		read: func(w *World, n *node, r *openRead, y *fsm.Reply) string {
			switch applied := n.status.LastApplied; {
			case y.Status != fsm.Answered:
			case y.Index < r.floor:
				return fmt.Sprintf("a read began after somebody had been told of entry %d, and is answered as of entry %d",
					r.floor, y.Index)
			case applied < y.Index:
				return fmt.Sprintf("a read is answered as of entry %d, and the table has applied %d", y.Index, applied)
			}
			return ""
		},
	}
}
