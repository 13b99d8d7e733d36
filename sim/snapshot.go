package sim

import (
	"fmt"
	"slices"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file takes snapshots, and writes their files beside the log.

// part names a part of a snapshot, and the leader that sends it.
type part struct {
	term   raft.Term
	end    raft.Index
	offset uint64
}

// opSnapshot is what a scenario asks of a server, in a trace.
const opSnapshot = "snapshot"

// doSnapshot tells a server to take a snapshot. It refuses if it is taking one, or if there is nothing
// new to take.
func (w *World) doSnapshot(c Compact) {
	w.instruct(c, c.Node, opSnapshot, countSnapshotsRefused, func(n *node) error { return n.replica.Compact() })
}

// beginFile hands a snapshot to the disk. In a manual run its file is finished at once, and there is
// more to take.
func (w *World) beginFile(n *node, s *raft.Snapshot) (again bool) {
	if s == nil {
		return false
	}
	if n.disk.files.saving != nil {
		w.violate(snapshotDurable, n.name, "it saves two snapshots at once")
		return false
	}
	n.disk.files.begun++
	nth := n.disk.files.begun
	long := n.disk.save(s, draw(w.seed, streamFile, uint64(n.id), 0, nth))
	switch {
	case n.disk.failNext:
		w.stop(n, fmt.Errorf("saving the snapshot up to entry %d failed: the disk returned an error", s.LastIncludedIndex))
		return false
	case n.disk.stalled:
		return false
	case w.manual:
		w.finishFile(n)
		return true
	}
	w.schedule(event{at: w.now + long, kind: eventFile, actor: n.index, slot: uint32(nth), gen: n.boots})
	return false
}

// fileIsDue is the completion of a scheduled file.
func (w *World) fileIsDue(n *node, boots uint32, nth uint64) {
	files := &n.disk.files
	if n.boots != boots || !n.alive || n.disk.stalled || files.saving == nil || files.begun != nth {
		return // lost in a crash, or finished by hand
	}
	w.completeFile(n)
}

// completeFile finishes a file and tells the process, once that runs.
func (w *World) completeFile(n *node) {
	if n.paused {
		n.inbox = append(n.inbox, input{file: n.disk.saved()})
		return
	}
	if !w.tick(n) {
		return
	}
	w.finishFile(n)
	w.step(n, nil)
}

func (w *World) finishFile(n *node) { w.fileSaved(n, n.disk.saved()) }

// fileSaved tells the process that a snapshot is durable.
func (w *World) fileSaved(n *node, s *raft.Snapshot) {
	if w.trace != nil {
		w.cause = w.emitNode(n, trace.Event{Kind: trace.KindKept, Snapshot: trace.OfSnapshot(s)})
	}
	n.replica.SnapshotSaved(s.LastIncludedIndex)
}

// loseFiles counts what a crash makes of snapshots: of one that was being written nothing is left, and
// of one that the log does not name yet only bytes that nobody will read.
func (w *World) loseFiles(n *node) {
	files := &n.disk.files
	if files.saving != nil {
		w.counters[countSnapshotsLost]++
	}
	if files.durable != n.disk.durable.Snapshot {
		w.counters[countSnapshotsUnnamed]++
		files.durable = n.disk.durable.Snapshot
	}
}

// startHistory settles what snapshots stand for that servers start with. If another server's log has
// the last entry, it is what that log has up to there; if not, no-ops of that term. It is committed.
func (w *World) startHistory() {
	var full, cut []*node
	for _, n := range w.nodes {
		if n.disk.durable.Snapshot == nil {
			full = append(full, n)
		} else {
			cut = append(cut, n)
		}
	}
	slices.SortStableFunc(cut, func(a, b *node) int { return int(a.disk.base()) - int(b.disk.base()) })
	for _, n := range cut {
		s := n.disk.durable.Snapshot
		s.Members = w.config.first()
		n.disk.chains = w.historyOf(full, s.LastIncludedIndex, s.LastIncludedTerm)
		for i := len(w.ledger.committed); i < len(n.disk.chains); i++ {
			record := commitRecord{n.disk.chains[i], s.LastIncludedTerm, n.disk.durable.Term}
			w.ledger.committed = append(w.ledger.committed, record)
		}
		w.ledger.applied = len(w.ledger.committed)
		for _, e := range n.disk.durable.Entries {
			n.disk.chains = append(n.disk.chains, chain(last(n.disk.chains), e))
		}
		full = append(full, n)
	}
}

// historyOf returns the chain hashes of a log up to an entry.
func (w *World) historyOf(known []*node, index raft.Index, term raft.Term) []uint64 {
	for _, n := range known {
		if t, has := n.disk.term(index); has && t == term {
			return slices.Clone(n.disk.chains[:index])
		}
	}
	var hashes []uint64
	for i := raft.Index(1); i <= index; i++ {
		hashes = append(hashes, chain(last(hashes), w.config.startEntry(i, term)))
	}
	return hashes
}

// finishByHand finishes the file of a stalled disk.
func (w *World) finishByHand(n *node, c SetDisk) error {
	if !n.alive || n.disk.files.saving == nil {
		return fmt.Errorf("%s: no snapshot is being saved", c)
	}
	w.cause = 0
	w.completeFile(n)
	return nil
}

// countPart counts snapshots that a server begins to send, and parts that it sends again.
func (w *World) countPart(n *node, to raft.ServerID, p part) {
	switch before := n.parts[to]; {
	case p == before:
		w.counters[countSnapshotsResent]++
	case p.offset == 0:
		w.counters[countSnapshotsSent]++
	}
	n.parts[to] = p
}
