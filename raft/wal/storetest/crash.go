package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"ticketing/raft"
)

// This file has the cases in which the power goes while something is being written.

// A pick returns the ith choice of what survives, and whether there are more.
type pick func(i int, u Unsynced) (s Survivors, more bool)

// bytePrefixes picks every prefix, with the file's end behind it and with zeros behind it.
func bytePrefixes(i int, u Unsynced) (Survivors, bool) {
	return Survivors{Prefix: i / 2, Short: i%2 == 0}, i < 2*u.Bytes+1
}

const (
	exhaustive = 7   // sectors, of which every subset is tried
	samples    = 150 // of the subsets of more
)

// sectorSubsets picks every subset of a few sectors, and a sample of those of many.
func sectorSubsets(i int, u Unsynced) (Survivors, bool) {
	s := Survivors{Sectors: make([]bool, u.Sectors), Short: i%2 == 0}
	random := rand.New(rand.NewPCG(uint64(i), uint64(u.Sectors)))
	for k := range s.Sectors {
		s.Sectors[k] = (i/2)>>min(k, 62)&1 == 1
		if u.Sectors > exhaustive {
			s.Sectors[k] = random.IntN(2) == 1
		}
	}
	if u.Sectors > exhaustive {
		return s, i+1 < samples
	}
	return s, i+1 < 2<<u.Sectors
}

// A life is what happens before the last write, and that write.
type life struct {
	name   string
	before func(*run) error
	last   func(*run) error
}

func lives() []life {
	begin := func(r *run) error { return nil }
	some := func(r *run) error {
		return errors.Join(
			r.save(1, 1, entries(1, 3, 1, 25)...),
			r.save(2, 2),
			r.save(2, 2, entries(3, 2, 2, 33)...))
	}
	restarted := func(r *run) error { return errors.Join(some(r), r.reopen()) }
	vote := func(r *run) error { return r.save(3, 1) }
	replace := func(r *run) error { return r.save(3, 0, entries(1, 2, 3, 40)...) }
	return []life{
		{"the first write", begin, replace},
		{"a vote", some, vote},
		{"a vote after a restart", restarted, vote},
		{"entries that replace others", some, replace},
		{"entries over several sectors", some, func(r *run) error {
			return r.save(3, 0, entries(5, 3, 3, 500)...)
		}},
		{"entries over many sectors", restarted, func(r *run) error {
			return r.save(3, 0, entries(2, 2, 3, 3000)...)
		}},
	}
}

// The last life has too many bytes to take them one by one, and none that is new.
func everyByte(newDisk func() Disk) error {
	all := lives()
	return crashInLast(newDisk, all[:len(all)-1], Short, bytePrefixes)
}

func anySectors(newDisk func() Disk) error {
	return crashInLast(newDisk, lives(), Short, sectorSubsets)
}

// crashInLast lets the power go at each operation of the last write, with each choice of what
// survives. The disk then holds the state before the write or after it, and goes on from there.
func crashInLast(newDisk func() Disk, list []life, how Failure, p pick) error {
	for _, l := range list {
		for nth := 1; ; nth++ {
			tries, err := crashAt(newDisk, p, l, nth, how)
			if err != nil {
				return fmt.Errorf("%s, operation %d: %w", l.name, nth, err)
			}
			if tries == 0 {
				break
			}
		}
	}
	return nil
}

// crashAt returns how many choices it tried: none if the last write has no such operation.
func crashAt(newDisk func() Disk, p pick, l life, nth int, how Failure) (int, error) {
	for i, more := 0, true; more; i++ {
		r, err := start(newDisk)
		if err != nil {
			return 0, err
		}
		if err := l.before(r); err != nil {
			return 0, err
		}
		r.Fail(nth, how)
		if l.last(r) == nil {
			return 0, nil
		}
		var s Survivors
		r.Crash(func(u Unsynced) Survivors {
			s, more = p(i, u)
			return s
		})
		if err := r.open(); err != nil {
			return 0, fmt.Errorf("with %+v left: %w", s, err)
		}
		if err := r.goOn(); err != nil {
			return 0, fmt.Errorf("going on with %+v left: %w", s, err)
		}
		if !more {
			return i + 1, nil
		}
	}
	return 0, nil
}

// anyOperation lets each operation of a whole life fail, restarts and closing included, cuts the
// power, and lets an operation of the next restart fail as well.
func anyOperation(newDisk func() Disk) error {
	return anyOperationOf(newDisk, (*run).interrupted)
}

// anyOperationOf does so in a life that reports whether it was interrupted.
func anyOperationOf(newDisk func() Disk, live func(*run) (bool, error)) error {
	for first := 1; ; first++ {
		for second := 0; second <= 8; second++ {
			for seed := range uint64(8) {
				failed, err := failTwice(newDisk, live, first, second, seed)
				if err != nil {
					return fmt.Errorf("operations %d and %d, seed %d: %w", first, second, seed, err)
				}
				if !failed {
					return nil
				}
			}
		}
	}
}

func failTwice(
	newDisk func() Disk, live func(*run) (bool, error), first, second int, seed uint64,
) (failed bool, err error) {
	r := &run{Disk: newDisk()}
	how := failures()[seed/2%4] // seed%2 is for something else
	r.Fail(first, how)
	if failed, err := live(r); err != nil || !failed {
		return failed, err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	draw := func(u Unsynced) Survivors {
		s := Survivors{Sectors: make([]bool, u.Sectors), Short: random.IntN(2) == 0}
		for i := range s.Sectors {
			s.Sectors[i] = random.IntN(2) == 0
		}
		return s
	}
	if seed%2 == 0 { // else the process dies alone
		r.Crash(draw)
	}
	if second > 0 {
		r.Fail(second, how)
		if store, got, err := r.Open(); err == nil {
			if err := r.adopt(store, got); err != nil {
				return true, err
			}
			_ = store.Close() // this may be where it fails
		}
		r.Fail(0, Short)
		r.Crash(draw)
	}
	if err := r.open(); err != nil {
		return true, err
	}
	return true, r.goOn()
}

// interrupted lives until something fails, and reports whether something did. What it returns as an
// error is wrong in any case.
func (r *run) interrupted() (bool, error) {
	for life := range 3 {
		store, got, err := r.Open()
		if err != nil {
			return true, nil
		}
		if err := r.adopt(store, got); err != nil {
			return true, err
		}
		for i := range 4 {
			term := raft.Term(life + 1)
			if r.save(term, 1, entries(raft.Index(i+life+1), 1, term, 90)...) != nil {
				return true, nil
			}
		}
		if r.store.Close() != nil {
			return true, nil
		}
	}
	return false, nil
}
