package sim

import (
	"slices"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// files are the snapshots on a disk, each in a file of its own. The log says which of them counts:
// a write names it, and until that write is durable the one before does. Files are written beside
// the log, which goes on, one at a time.
type files struct {
	saving  *raft.Snapshot // on its way; nil if there is none
	durable *raft.Snapshot // the last one that is whole
	begun   uint64         // how many were begun since the run began: the draws' ordinal
}

// fileWrites is how many writes of the log a snapshot's file takes as long as, and fileRate how many
// bytes go into a file in a microsecond besides.
const (
	fileWrites = 4
	fileRate   = 100
)

// save begins a file and returns how long it takes.
func (d *disk) save(s *raft.Snapshot, bits uint64) trace.Time {
	d.files.saving = s
	return fileWrites*between(bits, d.syncMin, d.syncMax) + trace.Time(len(s.Data)/fileRate)
}

// saved ends a file. From now on it survives a crash.
func (d *disk) saved() *raft.Snapshot {
	d.files.durable, d.files.saving = d.files.saving, nil
	return d.files.durable
}

// beginBehind makes the log begin behind a snapshot. If the stored log has the snapshot's last entry,
// what stands behind that stays; if not, the log is another one, and all of it goes.
func (d *disk) beginBehind(s *raft.Snapshot, history []uint64) {
	term, has := d.term(s.LastIncludedIndex)
	if has && term == s.LastIncludedTerm {
		d.durable.Entries = behind(d.durable.Entries, s.LastIncludedIndex)
	} else {
		d.durable.Entries = nil
		d.chains = make([]uint64, s.LastIncludedIndex)
		copy(d.chains, history)
	}
	d.durable.Entries = slices.Clip(d.durable.Entries)
	d.durable.Snapshot = s
}

// base is the last index that the durable snapshot stands for, 0 if there is none.
func (d *disk) base() raft.Index {
	if d.durable.Snapshot == nil {
		return 0
	}
	return d.durable.Snapshot.LastIncludedIndex
}

// last is the last index that the disk has.
func (d *disk) last() raft.Index { return d.base() + raft.Index(len(d.durable.Entries)) }

// term returns the term of the durable entry at an index from the snapshot's end on, and whether
// there is one.
func (d *disk) term(i raft.Index) (raft.Term, bool) {
	switch base := d.base(); {
	case i == base && base > 0:
		return d.durable.Snapshot.LastIncludedTerm, true
	case i <= base || i > d.last():
		return 0, false
	default:
		return d.durable.Entries[i-base-1].Term, true
	}
}

// behind returns those of some entries that stand behind an index.
func behind(entries []raft.Entry, i raft.Index) []raft.Entry {
	if len(entries) == 0 || entries[0].Index > i {
		return entries
	}
	return entries[min(i-entries[0].Index+1, raft.Index(len(entries))):]
}
