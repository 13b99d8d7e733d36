package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"

	"ticketing/raft"
)

// This file has the cases of a store that keeps snapshots.

// SnapshotCases returns all of them. The disk's stores must be of type [SnapshotStore].
func SnapshotCases() []Case {
	return []Case{
		{"a snapshot stands for the log before it", snapshotAnywhere},
		{"a snapshot that no write names is none", unnamed},
		{"any history of writes and snapshots survives", histories},
		{"a crash at every byte of a snapshot and its write", func(newDisk func() Disk) error {
			return crashInLast(newDisk, snapshotLives(), Dead, bytePrefixes)
		}},
		{"a crash with any sectors of a snapshot and its write", func(newDisk func() Disk) error {
			return crashInLast(newDisk, snapshotLives(), Dead, sectorSubsets)
		}},
		{"a crash after any operation among snapshots", func(newDisk func() Disk) error {
			return anyOperationOf(newDisk, (*run).interruptedSnapshots)
		}},
		{"an error of SaveSnapshot ends nothing, one of Save does", snapshotErrors},
		{"what Open returned of a snapshot survives", func(newDisk func() Disk) error {
			return atEachFailure(newDisk, snapshotLives(), survives)
		}},
	}
}

// snapshotOf makes a snapshot with so many bytes of data.
func snapshotOf(index raft.Index, term raft.Term, size int) *raft.Snapshot {
	text := fmt.Appendf(nil, "all up to entry %d of term %d. ", index, term)
	return &raft.Snapshot{
		LastIncludedIndex: index, LastIncludedTerm: term, Members: members(1 + int(index)%3),
		Data: bytes.Repeat(text, size/len(text)+1)[:size:size],
	}
}

func (r *run) saveSnapshot(s *raft.Snapshot) error {
	store, ok := r.store.(SnapshotStore)
	if !ok {
		return fmt.Errorf("a %T keeps no snapshots", r.store)
	}
	if err := store.SaveSnapshot(s); err != nil {
		return fmt.Errorf("save the snapshot up to %d: %w", s.LastIncludedIndex, err)
	}
	return nil
}

// snapshot makes one durable, and then a write that names it.
func (r *run) snapshot(term raft.Term, s *raft.Snapshot, entries ...raft.Entry) error {
	if err := r.saveSnapshot(s); err != nil {
		return err
	}
	w := raft.Write{HardState: raft.HardState{Term: term}, Snapshot: s, Entries: entries}
	return r.write(w)
}

// A snapshot of any entry: of one in the log, of one behind it, and of one of another history.
func snapshotAnywhere(newDisk func() Disk) error {
	for length := range raft.Index(6) {
		for index := raft.Index(1); index <= length+2; index++ {
			for term := raft.Term(1); term <= 2; term++ {
				for more := range 2 {
					if err := snapshotAt(newDisk, length, index, term, more); err != nil {
						return fmt.Errorf("%d entries of term 1, a snapshot up to %d of term %d, "+
							"%d entries more: %w", length, index, term, more, err)
					}
				}
			}
		}
	}
	return nil
}

func snapshotAt(newDisk func() Disk, length, index raft.Index, term raft.Term, more int) error {
	r, err := start(newDisk)
	if err != nil {
		return err
	}
	for i := range length {
		if err := r.save(1, 1, entries(i+1, 1, 1, 40)...); err != nil {
			return err
		}
	}
	// The next one replaces what lies behind the snapshot, and a later snapshot follows.
	err = r.snapshot(3, snapshotOf(index, term, 100), entries(index+1, more, 3, 30)...)
	if err != nil {
		return err
	}
	if err := r.reopen(); err != nil {
		return err
	}
	if err := r.goOn(); err != nil {
		return err
	}
	if err := r.snapshot(9, snapshotOf(index+1, r.want.Entries[0].Term, 60)); err != nil {
		return err
	}
	return errors.Join(r.reopen(), r.goOn())
}

// unnamed saves a snapshot, and no write that names it.
func unnamed(newDisk func() Disk) error {
	for before := range 2 {
		for _, crash := range []bool{false, true} {
			r, err := start(newDisk)
			if err != nil {
				return err
			}
			if before == 1 {
				err = errors.Join(r.save(1, 1, entries(1, 3, 1, 20)...), r.snapshot(1, snapshotOf(1, 1, 10)))
			}
			if err = errors.Join(err, r.saveSnapshot(snapshotOf(2, 1, 700))); err != nil {
				return err
			}
			if crash {
				r.Crash(nothing)
			}
			if err := r.open(); err != nil { // else the process died
				return fmt.Errorf("a snapshot was saved, and nothing said so: %w", err)
			}
			if err := errors.Join(r.snapshot(1, snapshotOf(2, 1, 700)), r.reopen(), r.goOn()); err != nil {
				return fmt.Errorf("saved once more: %w", err)
			}
		}
	}
	return nil
}

// histories draws what cores may do: they append, they truncate behind the last snapshot, they take
// snapshots of what is there and are given those of what is not.
func histories(newDisk func() Disk) error {
	for seed := range uint64(200) {
		r, err := start(newDisk)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(seed, 1))
		term := raft.Term(1)
		for step := range 40 {
			if random.IntN(4) == 0 {
				term++
			}
			if err := r.anything(random, term); err != nil {
				return fmt.Errorf("seed %d, step %d: %w", seed, step, err)
			}
		}
	}
	return nil
}

// anything does one of the things that can happen in a term.
func (r *run) anything(random *rand.Rand, term raft.Term) error {
	first, n := base(r.want)+1, len(r.want.Entries)
	size := random.IntN(120)
	switch choice := random.IntN(10); {
	case choice < 5: // a few entries, most often behind the last one
		at := n
		if random.IntN(3) == 0 {
			at = random.IntN(n + 1)
		}
		return r.save(term, 1, entries(first+raft.Index(at), random.IntN(4), term, size)...)
	case choice < 7 && n > 0: // a snapshot of what is there
		e := r.want.Entries[random.IntN(n)]
		return r.snapshot(term, snapshotOf(e.Index, e.Term, size))
	case choice < 8: // a leader's snapshot
		index := first + raft.Index(random.IntN(n+4))
		return r.snapshot(term, snapshotOf(index, term, size),
			entries(index+1, random.IntN(3), term, size)...)
	case choice < 9 && r.want.Snapshot != nil && random.IntN(3) == 0: // the same once more
		return r.snapshot(term, r.want.Snapshot)
	case choice < 9:
		return r.reopen()
	}
	r.Crash(nothing)
	return r.open()
}

// snapshotLives are lives whose last act is a snapshot and the write that names it.
func snapshotLives() []life {
	begin := func(r *run) error { return nil }
	some := func(r *run) error {
		for i := range raft.Index(6) {
			if err := r.save(2, 2, entries(i+1, 1, 1+raft.Term(i)/3, 60)...); err != nil {
				return err
			}
		}
		return nil
	}
	second := func(r *run) error {
		return errors.Join(some(r), r.snapshot(3, snapshotOf(2, 1, 300)),
			r.save(3, 1, entries(7, 2, 3, 30)...))
	}
	return []life{
		{"one that was taken", some, func(r *run) error {
			return r.snapshot(2, snapshotOf(4, 2, 300))
		}},
		{"a second one that was taken", second, func(r *run) error {
			return r.snapshot(4, snapshotOf(5, 2, 20), entries(9, 1, 4, 20)...)
		}},
		{"one that was taken after a restart", func(r *run) error {
			return errors.Join(second(r), r.reopen())
		}, func(r *run) error {
			return r.snapshot(3, snapshotOf(8, 3, 600))
		}},
		{"one that was installed", second, func(r *run) error {
			return r.snapshot(4, snapshotOf(20, 3, 300))
		}},
		{"one that was installed over another history", some, func(r *run) error {
			return r.snapshot(4, snapshotOf(5, 3, 20), entries(6, 2, 4, 40)...)
		}},
		{"the first that a server knows", begin, func(r *run) error {
			return r.snapshot(4, snapshotOf(5, 3, 20), entries(6, 2, 4, 40)...)
		}},
	}
}

// interruptedSnapshots is interrupted with snapshots. One that cannot be saved is done without.
func (r *run) interruptedSnapshots() (bool, error) {
	failed := false
	for life := range raft.Term(3) {
		store, got, err := r.Open()
		if err != nil {
			return true, nil
		}
		if err := r.adopt(store, got); err != nil {
			return true, err
		}
		for range 2 {
			next := base(r.want) + raft.Index(len(r.want.Entries)) + 1
			if r.save(life+1, 1, entries(next, 2, life+1, 50)...) != nil {
				return true, nil
			}
			s := snapshotOf(next, life+1, 90)
			if r.saveSnapshot(s) != nil {
				failed = true
				continue
			}
			w := raft.Write{HardState: raft.HardState{Term: life + 1}, Snapshot: s}
			if r.write(w) != nil {
				return true, nil
			}
		}
		if r.store.Close() != nil {
			return true, nil
		}
	}
	return failed, nil
}

// A write that failed may be there or not, and nothing can be put behind it. A snapshot that failed
// is not there, and the log is what it was.
func snapshotErrors(newDisk func() Disk) error {
	ended, went := 0, 0
	err := atEachFailure(newDisk, snapshotLives(), func(r *run) error {
		if r.maybe != nil {
			ended++
			return r.stopped()
		}
		went++
		if err := r.goOn(); err != nil {
			return fmt.Errorf("after an error of SaveSnapshot: %w", err)
		}
		return nil
	})
	if err == nil && (ended == 0 || went == 0) {
		return fmt.Errorf("%d errors of Save and %d of SaveSnapshot came about", ended, went)
	}
	return err
}
