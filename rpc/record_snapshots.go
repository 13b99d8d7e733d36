package rpc

import (
	"cmp"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// kept notes that a snapshot is on the disk.
func (w *witness) kept(s *raft.Snapshot) {
	if w == nil {
		return
	}
	w.keeping = w.input(trace.Event{Kind: trace.KindKept, Snapshot: trace.OfSnapshot(s)})
	w.look(nil)
}

// trims notes that the log begins behind a snapshot from now on.
func (w *witness) trims(out *fsm.Output, last int) {
	s := out.Write.Snapshot
	if s == nil {
		return
	}
	rule := "Snapshot.Save"
	if s == w.foreign {
		rule, w.foreign = "Snapshot.Suffix", nil
	}
	w.follows(trace.Event{Kind: trace.KindTrim, Snapshot: trace.OfSnapshot(s), Rule: rule},
		cmp.Or(w.keeping, last))
}

// keeps notes that a snapshot is given to the disk.
func (w *witness) keeps(out *fsm.Output, turning int) {
	s := out.Save
	if s == nil {
		return
	}
	if s.LastIncludedIndex > w.status.LastApplied {
		w.foreign = s
	}
	w.follows(trace.Event{Kind: trace.KindKeep, Snapshot: trace.OfSnapshot(s)}, turning)
}
