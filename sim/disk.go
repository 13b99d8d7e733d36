package sim

import (
	"slices"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// disk is one server's stable storage. Writes finish one after another, each some time after the
// one before; a crash loses what has not finished.
type disk struct {
	durable raft.Durable // what would survive a crash now
	chains  []uint64     // chains[i] is the chain hash (see ledger) of the durable entry at index i+1

	unsynced []unsynced // handed out and not finished, oldest first
	busy     trace.Time // when the last scheduled completion is due
	writes   uint64     // how many were handed out since the run began: the draws' ordinal
	files    files      // of snapshots, beside the log

	syncMin, syncMax trace.Time
	stalled          bool
	failNext         bool
	reorder          bool   // completions come in any order
	cut              *Crash // to come with the next write
	torn             bool   // the last crash cut a record in the middle
	lost             bool   // for good, with all that was on it
}

type unsynced struct {
	raft.Write
	done    bool     // reported as saved, before an earlier one
	history []uint64 // of a write with a snapshot, the chain hashes of what that stands for
}

// finish reports the nth oldest unsynced write as done, counting from 0, and returns its number. It
// takes effect on the disk once all earlier ones have: a write reported out of order is not durable
// yet, and the core must know.
func (d *disk) finish(n int) (seq uint64) {
	d.unsynced[n].done = true
	seq = d.unsynced[n].Seq
	for len(d.unsynced) > 0 && d.unsynced[0].done {
		d.store(&d.unsynced[0])
		d.unsynced = append(d.unsynced[:0], d.unsynced[1:]...)
	}
	return seq
}

// store puts a write onto the disk.
func (d *disk) store(w *unsynced) {
	d.durable.HardState = w.HardState
	if w.Snapshot != nil {
		d.beginBehind(w.Snapshot, w.history)
	}
	entries := behind(w.Entries, d.base())
	if len(entries) == 0 {
		return
	}
	keep := entries[0].Index - 1
	d.durable.Entries = append(d.durable.Entries[:keep-d.base()], entries...)
	d.chains = d.chains[:keep]
	for _, e := range entries {
		d.chains = append(d.chains, chain(last(d.chains), e))
	}
}

// crash loses the unsynced writes. With a torn record the operating system had written all of them
// but the last, and of that one a part, which recovery recognises and drops.
func (d *disk) crash(torn bool) {
	d.torn = torn && len(d.unsynced) > 0
	for d.torn && len(d.unsynced) > 1 {
		d.finish(0)
	}
	d.unsynced = d.unsynced[:0]
	d.stalled, d.failNext, d.reorder, d.cut = false, false, false, nil
	d.files.saving = nil
}

// lose empties the disk for good.
func (d *disk) lose() {
	d.durable, d.chains, d.files = raft.Durable{}, nil, files{begun: d.files.begun}
	d.lost = true
}

// keepSome is what becomes of the unsynced writes in a crash that any of their sectors may survive.
// Recovery reads them in order and ends at the first that is not whole: nothing says that it had
// been synced. kept learns of those before it, each when it is on the disk. Of the rest at most
// that one is left, and the result says whether there is anything of it to be seen: a torn record.
func (d *disk) keepSome(survives func(seq uint64, sector int) bool, kept func(seq uint64)) bool {
	for len(d.unsynced) > 0 {
		seq, left, all := d.unsynced[0].Seq, 0, sectors(d.unsynced[0].Write)
		for i := range all {
			if survives(seq, i) {
				left++
			}
		}
		if left < all {
			d.unsynced = d.unsynced[:1]
			return left > 0
		}
		kept(d.finish(0))
	}
	return false
}

// sectors is how many sectors of 512 bytes a write takes. It begins anywhere in one, so even a
// short one can be cut in two.
func sectors(w raft.Write) int {
	bytes := 0
	for _, e := range w.Entries {
		bytes += 16 + len(e.Command)
	}
	return 2 + bytes/512
}

// chain hashes an entry and, through the hash of the one before, all that precede it: two logs with
// the same chain hash at an index are equal up to there.
func chain(before uint64, e raft.Entry) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range e.Command {
		h = (h ^ uint64(b)) * 1099511628211
	}
	for _, m := range e.Members {
		h = (h ^ uint64(m.ID)<<1) * 1099511628211
		if m.Voter {
			h++
		}
	}
	return scramble(scramble(before^uint64(e.Index)<<32) ^ h ^ uint64(e.Term)*0x9e3779b97f4a7c15)
}

// last returns the last of the chain hashes, 0 before the first entry.
func last(chains []uint64) uint64 {
	if len(chains) == 0 {
		return 0
	}
	return chains[len(chains)-1]
}

// chainAt returns the chain hash at an index, and whether the log reaches so far.
func chainAt(chains []uint64, i raft.Index) (uint64, bool) {
	if i == 0 {
		return 0, true
	}
	if i > raft.Index(len(chains)) {
		return 0, false
	}
	return chains[i-1], true
}

// startFrom puts a state onto an empty disk.
func (d *disk) startFrom(state raft.Durable) {
	d.durable = raft.Durable{HardState: state.HardState, Entries: slices.Clone(state.Entries)}
	d.durable.Snapshot, d.files.durable = state.Snapshot, state.Snapshot
	for _, e := range state.Entries {
		d.chains = append(d.chains, chain(last(d.chains), e))
	}
}
