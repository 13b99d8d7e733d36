package sim

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"ticketing/raft"
	"ticketing/raft/wal/storetest"
)

// storeDisk is a server's disk as storetest wants it. A Save hands the write out and finishes it:
// two operations, each of which can fail.
type storeDisk struct {
	disk
	failing int // the operation, counted from now on, that fails; 0 for none
	how     storetest.Failure
	short   bool // the last write that was handed out was cut by its failure
	dead    bool // an operation has failed, and so do all that follow
	kept    *outcomes
}

// outcomes counts what became of unsynced writes in crashes.
type outcomes struct{ gone, torn, whole int }

var errDisk = errors.New("the disk failed, as it was told to")

// operation says whether the next one is to be done and what it returns.
func (d *storeDisk) operation() (do bool, err error) {
	d.failing--
	switch {
	case d.dead:
		return false, errDisk
	case d.failing != 0:
		return true, nil
	case d.how == storetest.Dead:
		d.dead = true
	case d.how == storetest.Full:
		return false, fmt.Errorf("%w: %w", errDisk, syscall.ENOSPC)
	}
	return d.how == storetest.After, errDisk
}

// Open is a server's start. One that has stopped by itself has lost what its disk had not finished
// (see World.stop), and so has one whose process has died.
func (d *storeDisk) Open() (storetest.Store, raft.Durable, error) {
	d.disk.crash(false)
	d.short = false
	got := d.durable
	got.Entries = slices.Clone(got.Entries)
	return &diskStore{disk: d}, got, nil
}

func (d *storeDisk) Crash(choose func(storetest.Unsynced) storetest.Survivors) {
	count := 0
	for _, u := range d.unsynced {
		count += sectors(u.Write)
	}
	unit := 7 // bytes to a sector, so that a prefix can end inside of one
	s := choose(storetest.Unsynced{Bytes: count * unit, Sectors: count})
	next, had := 0, len(d.unsynced)
	torn := d.keepSome(func(_ uint64, i int) bool {
		next++
		if d.short && next > count/2 { // these were never written
			return false
		}
		if s.Sectors == nil {
			return s.Prefix >= next*unit
		}
		return s.Sectors[next-1]
	}, func(uint64) { d.kept.whole++ })
	switch {
	case torn:
		d.kept.torn++
	case len(d.unsynced) > 0 && had > 0:
		d.kept.gone++
	}
	d.disk.crash(torn)
	d.failing, d.short, d.dead = 0, false, false
}

func (d *storeDisk) Fail(nth int, how storetest.Failure) { d.failing, d.how, d.dead = nth, how, false }

// Damage is a thing that the simulator does not do: its records are values, not bytes.
func (d *storeDisk) Damage(int, int) ([]string, bool) { return nil, false }

// diskStore is what World makes of a disk: a server whose disk has failed stops.
type diskStore struct {
	disk *storeDisk
	err  error
}

func (s *diskStore) Close() error { return nil }

func (s *diskStore) Save(w raft.Write) error {
	if s.err == nil {
		s.err = s.disk.save(w)
	}
	return s.err
}

func (d *storeDisk) save(w raft.Write) error {
	do, err := d.operation()
	if do || d.how != storetest.Before {
		d.unsynced = append(d.unsynced, unsynced{Write: w})
		d.short = !do
	}
	if err != nil {
		return err
	}
	do, err = d.operation()
	if do {
		d.finish(0)
	}
	return err
}

// SaveSnapshot begins a file and finishes it: two operations.
func (s *diskStore) SaveSnapshot(snapshot *raft.Snapshot) error {
	if s.err != nil {
		return s.err
	}
	d := s.disk
	if do, err := d.operation(); !do || err != nil {
		return err
	}
	d.disk.save(snapshot, 0)
	do, err := d.operation()
	if do {
		d.saved()
	}
	d.files.saving = nil
	return err
}

func TestTheSimulatorsDiskPassesTheSuiteOfSnapshots(t *testing.T) {
	kept := &outcomes{}
	for _, c := range storetest.SnapshotCases() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(func() storetest.Disk { return &storeDisk{kept: kept} }); err != nil {
				t.Error(err)
			}
		})
	}
	if kept.gone == 0 || kept.torn == 0 || kept.whole == 0 {
		t.Errorf("of the unsynced writes %+v: something never happened", *kept)
	}
}

// The simulator's disk owes what the server's log owes, or a simulation proves nothing about it.
func TestTheSimulatorsDiskPassesTheStorageSuite(t *testing.T) {
	const damage = "damage below what was synced is refused"
	kept, skipped := &outcomes{}, 0
	for _, c := range storetest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if c.Name == damage {
				skipped++
				t.Skip("the simulator's records are values, not bytes: what is synced stays as it is")
			}
			if err := c.Run(func() storetest.Disk { return &storeDisk{kept: kept} }); err != nil {
				t.Error(err)
			}
		})
	}
	if skipped != 1 {
		t.Errorf("%d cases were skipped, want the one about damage", skipped)
	}
	if kept.gone == 0 || kept.torn == 0 || kept.whole == 0 {
		t.Errorf("of the unsynced writes %+v: something never happened", *kept)
	}
}

// Recovery cannot jump over a record, however whole those behind it are.
func TestNoWriteSurvivesBehindOneThatIsCut(t *testing.T) {
	for lost, want := range map[uint64]raft.Term{1: 0, 2: 1, 3: 2} {
		d := written(3)
		torn := d.keepSome(func(seq uint64, sector int) bool {
			return seq != lost || sector == 0
		}, func(uint64) {})
		if !torn {
			t.Errorf("write %d is cut, and not torn", lost)
		}
		d.crash(torn)
		d.is(t, want, 0)
	}
}

// What nobody was told of may survive or not. The cluster holds whatever it is.
func TestACrashKeepsAnyOfTheUnsyncedSectors(t *testing.T) {
	kept := map[int]int{} // runs, by how many of the three writes have survived
	torn := 0
	for seed := range 400 {
		w := played(t, fmt.Sprintf(`
			seed %d
			config election=1s
			timeout S1
			until leader S1
			until S2 durable.log=1
			disk S2 stall
			propose S1 one
			run 100ms
			propose S1 two
			run 100ms
			propose S1 three
			run 100ms
			expect S2 log=1,1,1,1 durable.log=1
			crash S2 some
			restart S2
			until converged`, seed))
		for _, e := range w.trace.Events {
			if e.Node != "S2" || e.Kind != "restart" {
				continue
			}
			kept[int(e.State.Last)-1]++
			if e.Text != "" {
				torn++
			}
		}
	}
	if kept[0] == 0 || kept[1] == 0 || kept[2] == 0 || kept[3] == 0 || len(kept) != 4 || torn == 0 {
		t.Errorf("%v runs kept so many of three writes, %d had a torn record", kept, torn)
	}
}

// With the process that waited for it gone, a write that has survived still counts: a vote too.
func TestAVoteThatSurvivedUnseenIsKept(t *testing.T) {
	seen := map[raft.ServerID]int{}
	for seed := range 40 {
		w := played(t, fmt.Sprintf(`
			seed %d
			manual
			config prevote=off
			disk S2 stall
			timeout S1
			deliver S1->S2 vote
			crash S2 some
			restart S2
			run 1ms`, seed))
		d := w.nodes[1].disk.durable
		seen[d.VotedFor]++
		if d.VotedFor == 1 && d.Term != 1 || d.VotedFor == 0 && d.Term != 0 {
			t.Errorf("seed %d: %+v: term and vote are one record", seed, d)
		}
	}
	if seen[0] == 0 || seen[1] == 0 || len(seen) != 2 {
		t.Errorf("votes on S2's disk: %v", seen)
	}
}
