package sim

import (
	"fmt"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file tells snapshots in a transcript.

// snapshotWords says what followed from an input about snapshots, "" if the event is about none.
func snapshotWords(e *trace.Event) string {
	s := snapshotOf(e)
	switch e.Kind {
	case trace.KindTrim:
		return fmt.Sprintf("its log begins behind entry %d", s.Index) + inSquare(e.Rule)
	case trace.KindTable:
		return fmt.Sprintf("its table becomes the snapshot's, as of entry %d", s.Index) + inSquare(e.Rule)
	case trace.KindKeep:
		return fmt.Sprintf("begins to save a snapshot up to entry %d, %s", s.Index, count(s.Size, "byte", "bytes"))
	}
	return ""
}

// sendsSnapshot says what a message about a snapshot is, and to whom if that is not its end.
func sendsSnapshot(r *trace.MessageRecord) (text, receiver string) {
	if r.Kind == trace.SnapshotReply {
		return answersSnapshot(r), ""
	}
	return fmt.Sprintf("sends %s to", partOf(r)), r.To
}

func answersSnapshot(r *trace.MessageRecord) string {
	if r.Installed {
		return fmt.Sprintf("tells %s that it has the snapshot up to entry %d", r.To, r.LastIndex)
	}
	return fmt.Sprintf("asks %s for the snapshot from byte %d on", r.To, r.Offset)
}

// hearsOfSnapshot is receives for messages about snapshots.
func hearsOfSnapshot(r *trace.MessageRecord) string {
	switch {
	case r.Kind == trace.Snapshot:
		return fmt.Sprintf("receives %s from %s", partOf(r), r.From)
	case r.Installed:
		return fmt.Sprintf("hears that %s has the snapshot up to entry %d", r.From, r.LastIndex)
	}
	return fmt.Sprintf("hears that %s wants the snapshot from byte %d on", r.From, r.Offset)
}

// partOf names a part of a snapshot.
func partOf(r *trace.MessageRecord) string {
	whole := fmt.Sprintf("the snapshot up to entry %d", r.LastIndex)
	switch {
	case r.Done && r.Offset == 0:
		return whole
	case r.Done:
		return fmt.Sprintf("%s, byte %d to its end,", whole, r.Offset)
	}
	return fmt.Sprintf("%s, bytes %d–%d,", whole, r.Offset, r.Offset+uint64(max(r.Size, 1))-1)
}

// holdsWords says what a server has of the log: a snapshot, entries, both or nothing.
func holdsWords(s *trace.SnapshotRecord, last raft.Index) string {
	switch {
	case s == nil && last == 0:
		return "an empty log"
	case s == nil:
		return "entries " + span(1, last)
	case s.Index == last:
		return fmt.Sprintf("a snapshot up to entry %d", s.Index)
	}
	return fmt.Sprintf("a snapshot up to entry %d and entries %s", s.Index, span(s.Index+1, last))
}

func snapshotOf(e *trace.Event) *trace.SnapshotRecord {
	if e.Snapshot == nil {
		return &trace.SnapshotRecord{}
	}
	return e.Snapshot
}
