package storetest

import (
	"fmt"

	"ticketing/raft"
)

// This file has the cases in which the disk does what it should, up to power failures between
// writes.

func appended(newDisk func() Disk) error {
	r, err := start(newDisk)
	if err != nil {
		return err
	}
	next := raft.Index(1)
	for _, n := range []int{1, 1, 2, 3, 5, 8, 1} {
		if err := r.save(1, 2, entries(next, n, 1, 30)...); err != nil {
			return err
		}
		next += raft.Index(n)
		if err := r.reopen(); err != nil {
			return fmt.Errorf("with %d entries: %w", next-1, err)
		}
	}
	return nil
}

// The classic is truncating exactly the last entry.
func truncated(newDisk func() Disk) error {
	for length := 1; length <= 8; length++ {
		for from := 1; from <= length+1; from++ {
			for replace := 1; replace <= 2; replace++ {
				if err := truncatedAt(newDisk, length, from, replace); err != nil {
					return fmt.Errorf("%d entries, %d from %d on: %w", length, replace, from, err)
				}
			}
		}
	}
	return nil
}

func truncatedAt(newDisk func() Disk, length, from, replace int) error {
	r, err := start(newDisk)
	if err != nil {
		return err
	}
	if err := r.save(1, 1, entries(1, length, 1, 10)...); err != nil {
		return err
	}
	if err := r.save(2, 0, entries(raft.Index(from), replace, 2, 7)...); err != nil {
		return err
	}
	if err := r.reopen(); err != nil {
		return err
	}
	return r.goOn()
}

func hardStates(newDisk func() Disk) error {
	r, err := start(newDisk)
	if err != nil {
		return err
	}
	for i, w := range []raft.Write{
		{HardState: raft.HardState{Term: 1}},
		{HardState: raft.HardState{Term: 1, VotedFor: 2}},
		{HardState: raft.HardState{Term: 2, VotedFor: 3}, Entries: entries(1, 2, 2, 10)},
		{HardState: raft.HardState{Term: 3}},
		{HardState: raft.HardState{Term: 3}, Entries: entries(2, 3, 3, 10)},
		{HardState: raft.HardState{Term: 3, VotedFor: 1}},
		{HardState: raft.HardState{Term: 1 << 63, VotedFor: 1 << 63}},
	} {
		if err := r.save(w.Term, w.VotedFor, w.Entries...); err != nil {
			return err
		}
		if err := r.reopen(); err != nil {
			return fmt.Errorf("after write %d: %w", i+1, err)
		}
	}
	return nil
}

func commands(newDisk func() Disk) error {
	r, err := start(newDisk)
	if err != nil {
		return err
	}
	next := raft.Index(1)
	for _, size := range []int{0, 1, 7, 8, 511, 512, 513, 100_000, 0} {
		if err := r.save(1, 1, entries(next, 2, 1, size)...); err != nil {
			return err
		}
		if err := r.reopen(); err != nil {
			return fmt.Errorf("after commands of %d bytes: %w", size, err)
		}
		next += 2
	}
	return nil
}

// An entry may name the servers, with a command or without one, among others that do not.
func changes(newDisk func() Disk) error {
	r, err := start(newDisk)
	if err != nil {
		return err
	}
	next := raft.Index(1)
	for n := range 4 {
		list := entries(next, 3, 1, 20*(n%2))
		list[n%3].Members = members(n)
		if err := r.save(1, 1, list...); err != nil {
			return err
		}
		if err := r.reopen(); err != nil {
			return fmt.Errorf("with %d servers: %w", n, err)
		}
		next += 3
	}
	return nil
}

// members returns n servers. The first one does not vote, and some have no address.
func members(n int) raft.Configuration {
	list := raft.Configuration{}
	for i := range n {
		m := raft.Member{ID: raft.ServerID(i) + 1, Voter: i > 0}
		if i != 1 {
			m.Address = fmt.Sprintf("host%d:7001", i)
		}
		list = append(list, m)
	}
	return list
}

// Several writes, none of which a restart has looked at, and then the power goes.
func answered(newDisk func() Disk) error {
	for writes := 1; writes <= 6; writes++ {
		r, err := start(newDisk)
		if err != nil {
			return err
		}
		for i := range writes {
			term := raft.Term(i + 1)
			if err := r.save(term, 1, entries(raft.Index(i+1), 2, term, 60)...); err != nil {
				return err
			}
		}
		r.Crash(nothing)
		if err := r.open(); err != nil {
			return fmt.Errorf("after %d writes: %w", writes, err)
		}
		if err := r.goOn(); err != nil {
			return fmt.Errorf("after %d writes and a restart: %w", writes, err)
		}
	}
	return nil
}
