// Package storetest says what a durable store of a Raft server owes, as cases that any store must
// pass.
//
// A store is tested on a disk that can fail. The disk belongs to the one who tests: it is made of
// bytes in sectors under package wal's log, and of whole records in [Memory], the plainest store
// that passes.
//
//	for _, c := range storetest.Cases() {
//		t.Run(c.Name, func(t *testing.T) {
//			if err := c.Run(newDisk); err != nil {
//				t.Error(err)
//			}
//		})
//	}
//
// What is owed: what Open returns is the state after some number of the writes, in order and each
// whole; after at least all that Save has answered; never less than an earlier Open has returned.
// An error of Save is final. What is damaged is refused if it was synced.
//
// A store that keeps snapshots too, a [SnapshotStore], also passes [SnapshotCases]. There a
// snapshot is made durable beside the writes, and counts once a write that names it is.
package storetest

import (
	"bytes"
	"fmt"
	"slices"

	"ticketing/raft"
)

// A Store makes writes durable. See wal.Log for the contract.
type Store interface {
	Save(raft.Write) error
	Close() error
}

// A SnapshotStore makes snapshots durable as well.
type SnapshotStore interface {
	Store
	SaveSnapshot(*raft.Snapshot) error
}

// A Disk holds one store and survives what happens to it.
type Disk interface {
	// Open starts the store on what the disk holds. If an earlier one was not closed, its process
	// has died, and the operating system still has what it wrote.
	Open() (Store, raft.Durable, error)

	// Crash cuts the power. Everything synced survives, and of the rest what choose says.
	Crash(choose func(Unsynced) Survivors)

	Faults
}

// Faults are what goes wrong with a disk while the power is on.
type Faults interface {
	// Fail makes the nth operation from now on fail in this way, counting from 1, among those that
	// change the disk. Those after it succeed. 0 takes it back.
	Fail(nth int, how Failure)

	// Damage flips a bit in the nth byte, from 0, of the record of the mth write that was saved,
	// from 0. It returns what an error about it must name. Asked again, it flips the bit back.
	// There may be no such byte.
	Damage(m, nth int) (names []string, ok bool)
}

// A Failure is what has happened when an operation returns an error. After a sync that failed
// before or in the middle, the system takes what is unsynced for synced.
type Failure int

const (
	Before Failure = iota // nothing of it is done
	Short                 // half of it is
	Full                  // the same, as the disk was full: the error wraps syscall.ENOSPC
	After                 // all of it is done, and there is an error nonetheless
	Dead                  // half of it is done, and nothing more until Crash or the next Fail
)

func failures() []Failure { return []Failure{Before, Short, Full, After} }

// Unsynced is what a crash may lose.
type Unsynced struct {
	Bytes   int // written and not synced
	Sectors int // the sectors and the names in directories that this concerns
}

// Survivors is what a crash leaves of it: the first Prefix bytes in the order of writing if Sectors
// is nil, and else the sectors that are true.
type Survivors struct {
	Prefix  int
	Sectors []bool
	Short   bool // a file ends behind the last byte that survived; else what is missing is zeros
}

// A Case is one thing that a store owes. Run returns what was wrong.
type Case struct {
	Name string
	Run  func(newDisk func() Disk) error
}

// Cases returns all of them.
func Cases() []Case {
	return []Case{
		{"entries are appended", appended},
		{"a log of any length is truncated at any index", truncated},
		{"term and vote survive with and without entries", hardStates},
		{"large and empty commands survive", commands},
		{"changes of the servers survive", changes},
		{"all that Save has answered survives a crash", answered},
		{"a crash at every byte of the last record", everyByte},
		{"a crash with any sectors of the last record", anySectors},
		{"a crash after any operation, and one more while it recovers", anyOperation},
		{"an error is final", final},
		{"what Open returned survives though its sync had failed", returned},
		{"damage below what was synced is refused", damaged},
	}
}

// Apply is what a write does to the durable state. If the last entry that a snapshot includes
// stands in the log, those behind it stay; else the log is of another history or ends before, and
// goes.
func Apply(d *raft.Durable, w raft.Write) {
	d.HardState = w.HardState
	if s := w.Snapshot; s != nil {
		d.Entries = behind(*d, s)
		d.Snapshot = s
	}
	if len(w.Entries) > 0 {
		keep := w.Entries[0].Index - base(*d) - 1
		d.Entries = append(slices.Clip(d.Entries[:keep]), w.Entries...)
	}
}

// behind returns the entries that stay with a snapshot.
func behind(d raft.Durable, s *raft.Snapshot) []raft.Entry {
	if d.Snapshot != nil && d.Snapshot.LastIncludedIndex == s.LastIncludedIndex {
		return d.Entries
	}
	for i, e := range d.Entries {
		if e.Index == s.LastIncludedIndex && e.Term == s.LastIncludedTerm {
			return d.Entries[i+1:]
		}
	}
	return nil
}

// base is the entry behind which the log begins.
func base(d raft.Durable) raft.Index {
	if d.Snapshot == nil {
		return 0
	}
	return d.Snapshot.LastIncludedIndex
}

// A run is one life of a disk, and what must be on it.
type run struct {
	Disk
	store Store
	seq   uint64
	want  raft.Durable
	maybe *raft.Durable // if not nil, this is allowed instead: a write failed
}

// start opens a new disk, on which nothing can be.
func start(newDisk func() Disk) (*run, error) {
	r := &run{Disk: newDisk()}
	return r, r.open()
}

// open starts the store and compares. What it returns must be there from now on.
func (r *run) open() error {
	store, got, err := r.Open()
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return r.adopt(store, got)
}

// adopt takes a store into use that has opened with a state.
func (r *run) adopt(store Store, got raft.Durable) error {
	r.store, r.seq = store, 0
	problem := difference(r.want, got)
	if problem != "" && r.maybe != nil && difference(*r.maybe, got) == "" {
		r.want, problem = *r.maybe, ""
	}
	r.maybe = nil
	if problem != "" {
		return fmt.Errorf("open: %s", problem)
	}
	return nil
}

// save saves, and notes what the disk must or may hold.
func (r *run) save(term raft.Term, vote raft.ServerID, entries ...raft.Entry) error {
	return r.write(raft.Write{HardState: raft.HardState{Term: term, VotedFor: vote}, Entries: entries})
}

func (r *run) write(w raft.Write) error {
	r.seq++
	w.Seq = r.seq
	after := r.want
	Apply(&after, w)
	if err := r.store.Save(w); err != nil {
		r.maybe = &after
		return fmt.Errorf("save %v with %d entries: %w", w.HardState, len(w.Entries), err)
	}
	r.want = after
	return nil
}

// reopen closes, opens, compares, and does so again after a crash that loses all it can.
func (r *run) reopen() error {
	if err := r.store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if err := r.open(); err != nil {
		return err
	}
	r.Crash(nothing)
	if err := r.open(); err != nil {
		return fmt.Errorf("after a crash: %w", err)
	}
	return nil
}

// goOn checks that the store still works: it appends, and that survives.
func (r *run) goOn() error {
	next := base(r.want) + raft.Index(len(r.want.Entries)) + 1
	if err := r.save(r.want.Term+1, 3, entries(next, 2, r.want.Term+1, 20)...); err != nil {
		return err
	}
	r.Crash(nothing)
	return r.open()
}

// nothing survives.
func nothing(u Unsynced) Survivors { return Survivors{Short: true} }

// entries returns n entries from an index on, with commands of a size.
func entries(first raft.Index, n int, term raft.Term, size int) []raft.Entry {
	list := make([]raft.Entry, n)
	for i := range list {
		e := raft.Entry{Index: first + raft.Index(i), Term: term}
		if size > 0 {
			text := fmt.Appendf(nil, "entry %d of term %d. ", e.Index, term)
			e.Command = bytes.Repeat(text, size/len(text)+1)[:size:size]
		}
		list[i] = e
	}
	return list
}

// difference says where two states differ, "" if nowhere.
func difference(want, got raft.Durable) string {
	if want.HardState != got.HardState {
		return fmt.Sprintf("the hard state is %v, want %v", got.HardState, want.HardState)
	}
	for i, w := range want.Entries {
		if i == len(got.Entries) {
			break
		}
		g := got.Entries[i]
		if g.Index != w.Index || g.Term != w.Term || !bytes.Equal(g.Command, w.Command) ||
			(g.Members == nil) != (w.Members == nil) || !slices.Equal(g.Members, w.Members) {
			return fmt.Sprintf("entry %d is %v, want %v", w.Index, g, w)
		}
	}
	if len(want.Entries) != len(got.Entries) {
		return fmt.Sprintf("there are %d entries, want %d", len(got.Entries), len(want.Entries))
	}
	return snapshotDifference(want.Snapshot, got.Snapshot)
}

func snapshotDifference(want, got *raft.Snapshot) string {
	if want == nil || got == nil {
		if want != got {
			return fmt.Sprintf("there is a snapshot: %v, want %v", got != nil, want != nil)
		}
		return ""
	}
	if got.LastIncludedIndex != want.LastIncludedIndex ||
		got.LastIncludedTerm != want.LastIncludedTerm ||
		!slices.Equal(got.Members, want.Members) || !bytes.Equal(got.Data, want.Data) {
		return fmt.Sprintf("the snapshot is %v, want %v", got, want)
	}
	return ""
}
