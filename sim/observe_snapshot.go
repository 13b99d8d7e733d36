package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file follows snapshots: a log that begins behind one, and a table that becomes one. What a
// snapshot stands for the observer knows from the one history. So the chain hashes of a log go back to
// its first entry, whether that is still there or not.

// observeTrim follows the log in memory when it begins behind a snapshot from now on. It returns the
// chain hashes of what that stands for, and whether the log behind it stays.
func (w *World) observeTrim(n *node, before *raft.Status, out *fsm.Output) (hashes []uint64, kept bool) {
	s := out.Write.Snapshot
	if s == nil {
		return nil, false
	}
	if w.trace != nil {
		w.emitNode(n, trace.Event{Kind: trace.KindTrim, Snapshot: trace.OfSnapshot(s), Rule: n.ruleOfTrim(s)})
	}
	end := s.LastIncludedIndex
	record, committed := w.ledger.committedAt(end)
	if !committed {
		w.violate(snapshotCommitted, n.name, fmt.Sprintf("its log begins behind entry %d, which is not committed", end))
		return nil, false
	}
	hash, has := chainAt(n.chains, end)
	switch {
	case s != n.foreign:
		w.counters[countSnapshots]++
	case has && hash == record.chain && before.LastIndex > end:
		w.counters[countSnapshotsSuffix]++
	case has && hash != record.chain:
		w.counters[countSnapshotsConflict]++
	}
	if s == n.foreign {
		w.counters[countSnapshotsInstalled]++
	}
	kept = has && hash == record.chain
	if !kept {
		n.chains = w.ledger.history(end)
	}
	return n.chains[:end:end], kept
}

func (n *node) ruleOfTrim(s *raft.Snapshot) string {
	if s == n.foreign {
		return "Snapshot.Suffix"
	}
	return "Snapshot.Save"
}

// history returns the chain hashes up to a committed entry.
func (l *ledger) history(end raft.Index) []uint64 {
	hashes := make([]uint64, end)
	for i := range hashes {
		hashes[i] = l.committed[i].chain
	}
	return hashes
}

// observeEnd looks whether a log ends where it must, by what was written of it. A snapshot that keeps
// too much of a log shows here, or too little.
func (w *World) observeEnd(n *node, out *fsm.Output) {
	if end := raft.Index(len(n.chains)); out.Write.Snapshot != nil && n.status.LastIndex != end {
		w.violate(logMatching, n.name, fmt.Sprintf(
			"behind the snapshot up to entry %d its log ends at %d, by what it wrote at %d",
			out.Write.Snapshot.LastIncludedIndex, n.status.LastIndex, end))
	}
}

// observeRestored follows a table that has become a snapshot's.
func (w *World) observeRestored(n *node, out *fsm.Output) {
	w.counters[countSnapshotsRestored]++
	if w.trace != nil {
		w.emitNode(n, trace.Event{Kind: trace.KindTable, Snapshot: trace.OfSnapshot(n.replica.Core().Snapshot())})
	}
	w.countLeases(n)
	w.checks.restored(w, n, out.Restored)
}

// countLeases notes which leases a node counts from now on, since it has them from a snapshot. One that
// it was counting already, it goes on counting.
func (w *World) countLeases(n *node) {
	seen := map[string]tenureSeen{}
	table := n.replica.Table()
	for _, key := range table.Keys() {
		tenure, _ := table.Holder(key)
		was, counted := n.tenures[key]
		if !counted || was.token != tenure.Token || was.since != tenure.Since {
			was = tenureSeen{tenure.Token, tenure.Since, n.clock.at(w.now), raft.Time(tenure.LeaseMS) * 1000}
		}
		seen[key] = was
	}
	n.tenures = seen
}

// observeSave sees a snapshot that is about to be made durable: one of its own, or one of a leader's, of
// entries that this server has not applied.
func (w *World) observeSave(n *node, out *fsm.Output) {
	if w.trace != nil {
		w.emitNode(n, trace.Event{Kind: trace.KindKeep, Snapshot: trace.OfSnapshot(out.Save)})
	}
	if out.Save.LastIncludedIndex > n.status.LastApplied {
		n.foreign = out.Save
	}
	w.checks.saves(w, n, out.Save)
}
