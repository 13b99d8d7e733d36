package sim

import (
	"bytes"
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// snapshotAgreesCheck compares every snapshot with a table of its own, to which it applies the one
// history. Equal bytes are more than equal tables: whoever is sent a snapshot could not tell who made
// it.
func snapshotAgreesCheck() invariant {
	r := &replay{}
	check := func(w *World, s *raft.Snapshot) string {
		want, known := r.upTo(s.LastIncludedIndex)
		if known && !bytes.Equal(want, s.Data) {
			return fmt.Sprintf("the snapshot up to entry %d has %d bytes that are not those of a table that has applied these entries",
				s.LastIncludedIndex, len(s.Data))
		}
		return ""
	}
	return invariant{
		name:     "snapshot-agrees",
		sentence: "a snapshot is what applying the committed entries up to its end comes to, byte for byte",
		firstApply: func(w *World, n *node, a *fsm.Applied) string {
			r.history = append(r.history, applied{a.Index, a.Envelope})
			return ""
		},
		saves: func(w *World, n *node, s *raft.Snapshot) string { return check(w, s) },
		restored: func(w *World, n *node, end raft.Index) string {
			want, known := r.upTo(end)
			if got := encoded(n.replica.Table()); known && !bytes.Equal(want, got) {
				return fmt.Sprintf("the table that it has from a snapshot is not that of entry %d", end)
			}
			return ""
		},
		restart: func(w *World, n *node) string {
			if n.disk.durable.Snapshot == nil {
				return ""
			}
			return check(w, n.disk.durable.Snapshot)
		},
	}
}

// replay is a table that applies the one history, as far as somebody asks.
type replay struct {
	history []applied
	table   fsm.Table
	done    int                   // how much of the history is in the table
	bytes   map[raft.Index][]byte // of the table after an entry
}

type applied struct {
	index    raft.Index
	envelope fsm.Envelope
}

// upTo returns the bytes of the table after an entry, and whether it is known: not so for what was
// over before the run began.
func (r *replay) upTo(end raft.Index) ([]byte, bool) {
	if b, known := r.bytes[end]; known {
		return b, true
	}
	if len(r.history) == 0 || end < r.history[0].index || end > r.history[len(r.history)-1].index {
		return nil, false
	}
	if r.done > 0 && end < r.history[r.done-1].index { // somebody is behind, and its snapshots end elsewhere
		r.table, r.done = fsm.Table{}, 0
	}
	for r.done < len(r.history) && r.history[r.done].index <= end {
		a := &r.history[r.done]
		r.table.Apply(a.index, a.envelope)
		r.done++
	}
	if r.bytes == nil {
		r.bytes = map[raft.Index][]byte{}
	}
	r.bytes[end] = encoded(&r.table)
	return r.bytes[end], true
}

// encoded is the table's bytes, as a snapshot has them.
func encoded(t *fsm.Table) []byte { return t.Encode() }
