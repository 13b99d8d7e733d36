package sim

import (
	"fmt"
	"slices"

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
		if want := at(w.ledger.sets, s.LastIncludedIndex).members; !slices.Equal(s.Members, want) {
			return fmt.Sprintf("a snapshot up to entry %d says that the servers are %s; they are %s",
				s.LastIncludedIndex, membersText(s.Members), membersText(want))
		}
		return ""
	}
	return invariant{
		name:     snapshotCommitted,
		sentence: "a snapshot stands for committed entries only, and names the last of them and the servers there",
		saves:    func(w *World, n *node, s *raft.Snapshot) string { return check(w, s) },
		restart: func(w *World, n *node) string {
			if n.disk.durable.Snapshot == nil {
				return ""
			}
			return check(w, n.disk.durable.Snapshot)
		},
	}
}
