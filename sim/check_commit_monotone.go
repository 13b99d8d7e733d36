package sim

import (
	"fmt"

	"ticketing/raft"
)

// commitMonotone is about one run of a process: a restarted one learns its commitIndex anew.
func commitMonotone() invariant {
	return invariant{
		name:     "commit-monotone",
		sentence: "commitIndex never falls; lastApplied ≤ commitIndex ≤ the last index",
		change: func(w *World, n *node, before, after *raft.Status) string {
			switch {
			case after.CommitIndex < before.CommitIndex:
				return fmt.Sprintf("commitIndex fell from %d to %d", before.CommitIndex, after.CommitIndex)
			case after.LastApplied > after.CommitIndex || after.CommitIndex > after.LastIndex:
				return fmt.Sprintf("lastApplied %d, commitIndex %d, last index %d",
					after.LastApplied, after.CommitIndex, after.LastIndex)
			}
			return ""
		},
	}
}
