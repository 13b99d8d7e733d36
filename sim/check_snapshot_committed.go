package sim

import (
	"fmt"

	"ticketing/raft"
)

// snapshotCommittedCheck looks at the one history: what a snapshot stands for nobody can take back.
func snapshotCommittedCheck() invariant {
	check := func(w *World, s *raft.Snapshot) string {
		record, committed := w.ledger.committedAt(s.LastIncludedIndex)
		switch {
		case !committed:
			return fmt.Sprintf("a snapshot stands for the log up to entry %d, which is not committed", s.LastIncludedIndex)
		case record.term != s.LastIncludedTerm:
			return fmt.Sprintf("a snapshot ends with entry %d of term %d; that of term %d is committed there",
				s.LastIncludedIndex, s.LastIncludedTerm, record.term)
		}
		return ""
	}
	return invariant{
		name:     snapshotCommitted,
		sentence: "a snapshot stands for committed entries only, and names the last of them",
		saves:    func(w *World, n *node, s *raft.Snapshot) string { return check(w, s) },
		restart: func(w *World, n *node) string {
			if n.disk.durable.Snapshot == nil {
				return ""
			}
			return check(w, n.disk.durable.Snapshot)
		},
	}
}
