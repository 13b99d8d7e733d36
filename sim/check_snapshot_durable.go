package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// snapshotDurableCheck is the order of the two writes: the file first, and only then the record by
// which the log begins behind it. The other way round a crash between them leaves neither.
func snapshotDurableCheck() invariant {
	return invariant{
		name:     snapshotDurable,
		sentence: "no log begins behind a snapshot whose file is not durable, and a server saves one at a time",
		took: func(w *World, n *node, out *fsm.Output) string {
			s, file := out.Write.Snapshot, n.disk.files.durable
			if s == nil || file != nil && sameSnapshot(s, file) {
				return ""
			}
			return fmt.Sprintf("its log is to begin behind entry %d, and the disk has no such snapshot", s.LastIncludedIndex)
		},
	}
}

// sameSnapshot reports whether two snapshots end alike.
func sameSnapshot(a, b *raft.Snapshot) bool {
	return a.LastIncludedIndex == b.LastIncludedIndex && a.LastIncludedTerm == b.LastIncludedTerm
}
