package storetest

import (
	"errors"
	"fmt"
	"strings"

	"ticketing/raft"
)

// This file has the cases in which the disk reports an error, or returns what was not written.

// After an error nobody knows what is on the disk, and the next write must not stand behind a gap.
func final(newDisk func() Disk) error {
	return atEachFailure(newDisk, lives(), func(r *run) error { return r.stopped() })
}

// atEachFailure lets each operation of each life's last write fail in turn and in each way, and
// then asks check.
func atEachFailure(newDisk func() Disk, list []life, check func(*run) error) error {
	for _, l := range list {
		for _, how := range failures() {
			nth := 1
			for ; ; nth++ {
				failed, err := failAt(newDisk, l, nth, how, check)
				if err != nil {
					return fmt.Errorf("%s, after operation %d failed in way %d: %w", l.name, nth, how, err)
				}
				if !failed {
					break
				}
			}
			if nth == 1 {
				return fmt.Errorf("%s: the last write has no operation that can fail", l.name)
			}
		}
	}
	return nil
}

// failAt reports whether there was such an operation.
func failAt(
	newDisk func() Disk, l life, nth int, how Failure, check func(*run) error,
) (bool, error) {
	r, err := start(newDisk)
	if err != nil {
		return false, err
	}
	if err := l.before(r); err != nil {
		return false, err
	}
	r.Fail(nth, how)
	if l.last(r) == nil {
		return false, nil
	}
	return true, check(r)
}

// stopped checks that nothing more is saved, not even what the disk would take.
func (r *run) stopped() error {
	for range 2 {
		r.seq++
		w := raft.Write{Seq: r.seq, HardState: raft.HardState{Term: 99, VotedFor: 2}}
		if r.store.Save(w) == nil {
			return errors.New("Save returned nil after an error")
		}
	}
	_ = r.store.Close() // it may complain or not
	r.Crash(func(u Unsynced) Survivors { return Survivors{Prefix: u.Bytes} })
	return r.open()
}

// A failed sync can leave bytes that can be read and will not survive, and a second sync succeeds
// without writing them. If Open returns them, it must see to it that they survive.
func returned(newDisk func() Disk) error {
	return atEachFailure(newDisk, lives(), survives)
}

// survives checks that what Open returns now, it returns after a crash too.
func survives(r *run) error {
	if err := r.open(); err != nil { // the process died, the power stays on
		return err
	}
	r.Crash(nothing)
	if err := r.open(); err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	return nil
}

// A later record tells that an earlier one was synced, and a restart tells it of the last.
func damaged(newDisk func() Disk) error {
	r, err := start(newDisk)
	if err != nil {
		return err
	}
	const writes = 6
	for i := range raft.Index(writes) {
		if err := r.save(raft.Term(i)+1, 1, entries(i+1, 1, 1, 50+int(i))...); err != nil {
			return err
		}
	}
	r.Crash(nothing)
	for m := range writes - 1 {
		if err := r.damagedRecord(m); err != nil {
			return err
		}
	}
	if err := r.open(); err != nil {
		return fmt.Errorf("with all damage undone: %w", err)
	}
	if err := r.goOn(); err != nil {
		return err
	}
	for m := range writes + 1 {
		if err := r.damagedRecord(m); err != nil {
			return fmt.Errorf("after a restart: %w", err)
		}
	}
	return r.open()
}

// damagedRecord checks each byte of a record.
func (r *run) damagedRecord(m int) error {
	for nth := 0; ; nth++ {
		names, ok := r.Damage(m, nth)
		if !ok && nth > 0 {
			return nil
		}
		if !ok {
			return fmt.Errorf("the record of write %d is not on the disk", m)
		}
		_, _, err := r.Open()
		if err == nil {
			return fmt.Errorf("byte %d of write %d is damaged, and Open returned no error", nth, m)
		}
		for _, name := range names {
			if !strings.Contains(err.Error(), name) {
				return fmt.Errorf("byte %d of write %d is damaged, this error does not name %q: %w",
					nth, m, name, err)
			}
		}
		r.Damage(m, nth)
	}
}
