package fsm

import (
	"errors"
	"fmt"

	"ticketing/raft"
)

// ErrNoSnapshot is wrapped by Compact's errors.
var ErrNoSnapshot = errors.New("no snapshot was begun")

// snapshots is how far a replica is with those that it takes.
type snapshots struct {
	last   raft.Index // the entry up to which the last one goes that is durable
	taking *encoding  // nil if none is under way
	saving raft.Index // the entry up to which one goes that is on its way to the disk; 0 for none
	read   *Table     // of the leader's that is about to be restored, if the driver has read it
}

// Compact begins a snapshot of the table as it is applied now. It is written in the next Takes, a
// part in each, and then handed to raft, which gives it out as Save.
func (r *Replica) Compact() error {
	s := &r.snapshots
	switch {
	case s.taking != nil:
		return fmt.Errorf("%w: one up to entry %d is under way", ErrNoSnapshot, s.taking.index)
	case s.saving != 0:
		return fmt.Errorf("%w: one up to entry %d is being saved", ErrNoSnapshot, s.saving)
	case r.reached <= s.last:
		return fmt.Errorf("%w: the last one, up to entry %d, has all that is applied", ErrNoSnapshot, s.last)
	}
	s.taking = newEncoding(&r.table, r.reached)
	return nil
}

// Compacting returns the entry up to which the snapshot goes that is being written or is on its way to
// the disk, 0 if there is none.
func (r *Replica) Compacting() raft.Index {
	if r.snapshots.taking != nil {
		return r.snapshots.taking.index
	}
	return r.snapshots.saving
}

// Recounting reports whether leases of a snapshot that was restored are still to be counted, a part of
// them in each Take.
func (r *Replica) Recounting() bool { return r.leases.Recounting() }

// ReadSnapshot reads the table in a snapshot, as a server does that restores it. A driver may do it
// beside its replica, with a leader's snapshot that is to be made durable: one that cannot be read is
// refused while the disk still has what this server had. A snapshot whose last token is below the floor
// is refused too: its cluster has begun with another floor, and from its table tokens would be given out
// that the resources have seen.
func (c Config) ReadSnapshot(s *raft.Snapshot) (Table, error) {
	table, err := DecodeTable(s.Data, s.LastIncludedIndex)
	if err == nil && table.tokens < c.TokenFloor {
		err = fmt.Errorf("its last token is %d and the cluster's floor is %d: it is another cluster's",
			table.tokens, c.TokenFloor)
	}
	if err != nil {
		return Table{}, fmt.Errorf("snapshot up to entry %d of term %d: %w",
			s.LastIncludedIndex, s.LastIncludedTerm, err)
	}
	return table, nil
}

// SnapshotRead hands over what ReadSnapshot has made of the snapshot of which SnapshotSaved comes next,
// so that it is not read once more while all else waits.
func (r *Replica) SnapshotRead(t Table) { r.snapshots.read = &t }

// saved notes that a snapshot is durable, this server's or a leader's. One under way that goes no
// further is of no use then.
func (s *snapshots) saved(index raft.Index) {
	s.last, s.saving = index, 0
	if s.taking != nil && s.taking.index <= index {
		s.taking = nil
	}
}

// compact goes on with the snapshot that is under way, or begins the one that is due.
func (r *Replica) compact() {
	s := &r.snapshots
	every := r.config.SnapshotEvery
	if s.taking == nil && s.saving == 0 && every > 0 && r.reached >= s.last+every {
		s.taking = newEncoding(&r.table, r.reached)
	}
	if s.taking == nil || !s.taking.step() {
		return
	}
	done := s.taking
	s.taking = nil
	switch err := r.core.Compact(done.index, done.whole); {
	case errors.Is(err, raft.ErrCompacting): // a leader's has come first, and takes this one's place
	case err != nil:
		panic("fsm: a snapshot of what is applied was refused: " + err.Error())
	}
}

// restore makes the table what a snapshot says. It is the disk's, as the replica starts, or came from
// a leader; then this server does not lead. One that cannot be read stops the server as an entry does.
func (r *Replica) restore(s *raft.Snapshot) error {
	table := r.snapshots.read
	if table == nil {
		t, err := r.config.ReadSnapshot(s)
		if err != nil {
			return err
		}
		table = &t
	}
	r.leases.Restore(&r.table, table)
	r.table, r.reached = *table, s.LastIncludedIndex
	r.leases.Recount(&r.table, r.now)
	r.snapshots.last = r.reached
	return nil
}

func (s snapshots) clone() snapshots {
	s.taking, s.read = s.taking.clone(), nil // to read it once more gives the same
	return s
}

// appendState writes of a snapshot under way what it is of and how far it is, and how long it is to
// the next.
func (s *snapshots) appendState(b []byte, applied, every raft.Index) []byte {
	since := raft.Index(0)
	if every > 0 {
		since = applied - s.last
	}
	b = appendNumbers(b, uint64(since), flag(s.saving != 0), flag(s.taking != nil))
	if e := s.taking; e != nil {
		b = appendNumbers(b, uint64(applied-e.index), e.hash, uint64(len(e.parts)), flag(e.complete))
	}
	return b
}
