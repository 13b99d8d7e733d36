package storetest

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"ticketing/raft"
)

func TestTheStoreInMemoryPasses(t *testing.T) {
	for _, c := range slices.Concat(Cases(), SnapshotCases()) {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(func() Disk { return NewMemory() }); err != nil {
				t.Error(err)
			}
		})
	}
}

// A flaw is a store with something wrong: what it does to writes, to errors and to what it loads,
// or what a crash leaves of its records.
type flaw struct {
	*Memory
	onSave   func(raft.Write) raft.Write
	forgets  func(*Memory, error) bool // whether Save goes on after this error
	onLoad   func(*Memory) (raft.Durable, error)
	onCrash  func(*Memory, func(Unsynced) Survivors)
	unsynced bool // Save does not wait

	onSnapshot func(*memoryStore, *raft.Snapshot, error) error // what SaveSnapshot does besides
}

func (f *flaw) Open() (Store, raft.Durable, error) {
	if f.onLoad != nil {
		d, err := f.onLoad(f.Memory)
		return &flawed{f, &memoryStore{disk: f.Memory}}, d, err
	}
	s, d, err := f.Memory.Open()
	if err != nil {
		return nil, d, err
	}
	return &flawed{f, s.(*memoryStore)}, d, nil
}

func (f *flaw) Crash(choose func(Unsynced) Survivors) {
	if f.onCrash == nil || f.Memory.unsynced == nil {
		f.Memory.Crash(choose)
		return
	}
	f.onCrash(f.Memory, choose)
	f.Memory.unsynced, f.failing = nil, 0
}

type flawed struct {
	*flaw
	store *memoryStore
}

func (f *flawed) Close() error { return nil }

func (f *flawed) SaveSnapshot(s *raft.Snapshot) error {
	err := f.store.SaveSnapshot(s)
	if f.onSnapshot != nil {
		return f.onSnapshot(f.store, s, err)
	}
	return err
}

func (f *flawed) Save(w raft.Write) error {
	if f.onSave != nil {
		w = f.onSave(w)
	}
	err := f.store.Save(w)
	if err != nil && f.forgets != nil && f.forgets(f.Memory, err) {
		f.store.err = nil
	}
	if n := len(f.synced); f.unsynced && err == nil && n > 0 {
		f.Memory.unsynced, f.synced = &f.synced[n-1], slices.Clone(f.synced[:n-1])
	}
	return err
}

// torn is a record of the part of its entries that a crash has left, one a byte and a sector,
// behind those of the term and the vote. Only one that is chosen by sectors is taken apart by them.
func torn(m *Memory, s Survivors, bySector bool) {
	w := m.unsynced.Write
	switch {
	case s.Sectors == nil && s.Prefix == 0:
		return
	case s.Sectors == nil && !bySector:
		w.Entries = w.Entries[:s.Prefix-1]
	case s.Sectors == nil && s.Prefix <= len(w.Entries): // the end is not there: dropped, rightly
		return
	case s.Sectors != nil && !bySector && slices.Contains(s.Sectors, false):
		return
	case s.Sectors != nil && bySector && !s.Sectors[len(w.Entries)]:
		return
	case s.Sectors != nil && bySector: // the end is there, and so the rest is believed to be
		w.Entries = slices.Clone(w.Entries)
		for i := range w.Entries {
			if !s.Sectors[i] {
				w.Entries[i].Command = nil
			}
		}
	}
	m.synced = append(m.synced, record{Write: w})
}

func tears(bySector bool) func(*Memory, func(Unsynced) Survivors) {
	return func(m *Memory, choose func(Unsynced) Survivors) {
		n := 1 + len(m.unsynced.Entries)
		torn(m, choose(Unsynced{Bytes: n, Sectors: n}), bySector)
	}
}

// replayed is a flawed way to play the records back.
func replayed(apply func(*raft.Durable, raft.Write)) func(*Memory) (raft.Durable, error) {
	return func(m *Memory) (d raft.Durable, err error) {
		_, want, err := m.Open()
		for _, r := range m.synced {
			apply(&d, r.Write)
		}
		d.HardState = want.HardState
		return d, err
	}
}

// rewritten writes everything anew, and first deletes it.
func rewritten(m *Memory) (raft.Durable, error) {
	_, d, err := m.Open()
	if err != nil {
		return d, err
	}
	all := m.synced
	m.synced = nil
	return d, m.operation(func() { m.synced = all })
}

// cached returns what is not known to be on the disk.
func cached(m *Memory) (d raft.Durable, err error) {
	for _, r := range m.synced {
		Apply(&d, r.Write)
	}
	if m.unsynced != nil {
		Apply(&d, m.unsynced.Write)
	}
	return d, nil
}

// The suite is worth what it catches.
func TestEachFlawIsCaughtByItsCase(t *testing.T) {
	caught := map[string]bool{}
	for name, c := range map[string]struct {
		flaw flaw
		by   string
	}{
		"the vote is not saved": {
			flaw{onSave: func(w raft.Write) raft.Write { w.VotedFor = 0; return w }},
			"term and vote survive with and without entries"},
		"a write without entries is skipped": {
			flaw{onLoad: func(m *Memory) (d raft.Durable, err error) {
				_, _, err = m.Open()
				for _, r := range m.synced {
					if len(r.Entries) > 0 {
						Apply(&d, r.Write)
					}
				}
				return d, err
			}},
			"term and vote survive with and without entries"},
		"truncation keeps one entry too many": {
			flaw{onLoad: replayed(func(d *raft.Durable, w raft.Write) {
				if n := len(w.Entries); n > 0 {
					keep := min(int(w.Entries[0].Index), len(d.Entries))
					d.Entries = append(slices.Clip(d.Entries[:keep]), w.Entries...)
				}
			})},
			"a log of any length is truncated at any index"},
		"what is behind the new entries stays": {
			flaw{onLoad: replayed(func(d *raft.Durable, w raft.Write) {
				for _, e := range w.Entries {
					d.Entries = append(d.Entries, e)
					d.Entries[e.Index-1] = e
					d.Entries = d.Entries[:max(int(e.Index), len(d.Entries)-1)]
				}
			})},
			"a log of any length is truncated at any index"},
		"who is in the cluster is forgotten": {
			flaw{onSave: func(w raft.Write) raft.Write {
				w.Entries = slices.Clone(w.Entries)
				for i := range w.Entries {
					w.Entries[i].Members = nil
				}
				return w
			}},
			"changes of the servers survive"},
		"a snapshot is forgotten": {
			flaw{onSave: func(w raft.Write) raft.Write { w.Snapshot = nil; return w }},
			"a snapshot stands for the log before it"},
		"a log of another history stays behind a snapshot": {
			flaw{onLoad: replayed(func(d *raft.Durable, w raft.Write) {
				if s := w.Snapshot; s != nil {
					for i, e := range d.Entries {
						if e.Index == s.LastIncludedIndex {
							d.Entries = slices.Clone(d.Entries)
							d.Entries[i].Term = s.LastIncludedTerm // so that it seems to be the same
						}
					}
				}
				Apply(d, w)
			})},
			"a snapshot stands for the log before it"},
		"a log of the same history goes with a snapshot": {
			flaw{onLoad: replayed(func(d *raft.Durable, w raft.Write) {
				if w.Snapshot != nil {
					d.Entries = nil
				}
				Apply(d, w)
			})},
			"any history of writes and snapshots survives"},
		"a snapshot counts before a write names it": {
			flaw{onSnapshot: func(m *memoryStore, s *raft.Snapshot, err error) error {
				if err == nil {
					w := raft.Write{Snapshot: s}
					for _, r := range m.disk.synced {
						w.HardState = r.HardState
					}
					m.disk.synced = append(m.disk.synced, record{Write: w})
				}
				return err
			}},
			"a snapshot that no write names is none"},
		"an error of SaveSnapshot ends the log": {
			flaw{onSnapshot: func(m *memoryStore, _ *raft.Snapshot, err error) error {
				m.err = err
				return err
			}},
			"an error of SaveSnapshot ends nothing, one of Save does"},
		"an error of a snapshot's write is forgotten": {
			flaw{forgets: func(*Memory, error) bool { return true }},
			"an error of SaveSnapshot ends nothing, one of Save does"},
		"what is there of a snapshot's cut write is taken": {
			flaw{onCrash: tears(false)}, "a crash at every byte of a snapshot and its write"},
		"a snapshot's write whose end is there is taken for whole": {
			flaw{onCrash: tears(true)}, "a crash with any sectors of a snapshot and its write"},
		"Open writes snapshots anew, and first deletes all": {
			flaw{onLoad: rewritten}, "a crash after any operation among snapshots"},
		"a snapshot in the cache is taken to be on the disk": {
			flaw{onLoad: cached}, "what Open returned of a snapshot survives"},
		"an entry without a command is none": {
			flaw{onSave: func(w raft.Write) raft.Write {
				empty := func(e raft.Entry) bool { return len(e.Command) == 0 }
				w.Entries = slices.DeleteFunc(slices.Clone(w.Entries), empty)
				return w
			}},
			"large and empty commands survive"},
		"Save does not wait for the disk": {
			flaw{unsynced: true}, "all that Save has answered survives a crash"},
		"only three entries of a write are saved": {
			flaw{onSave: func(w raft.Write) raft.Write {
				w.Entries = w.Entries[:min(3, len(w.Entries))]
				return w
			}},
			"entries are appended"},
		"what is there of a cut record is taken": {
			flaw{onCrash: tears(false)}, "a crash at every byte of the last record"},
		"a record whose end is there is taken for whole": {
			flaw{onCrash: tears(true)}, "a crash with any sectors of the last record"},
		"Open writes everything anew, and first deletes it": {
			flaw{onLoad: rewritten},
			"a crash after any operation, and one more while it recovers"},
		"an error is forgotten": {
			flaw{forgets: func(*Memory, error) bool { return true }}, "an error is final"},
		"a full disk is tried again": {
			flaw{forgets: func(_ *Memory, err error) bool { return errors.Is(err, syscall.ENOSPC) }},
			"an error is final"},
		"an error is forgotten if the record is there to be read": {
			flaw{forgets: func(m *Memory, _ error) bool { return m.unsynced == nil && m.how == After }},
			"an error is final"},
		"a write that failed before anything was done is tried again": {
			flaw{forgets: func(m *Memory, _ error) bool { return m.unsynced == nil && m.how == Before }},
			"an error is final"},
		"a short write is tried again": {
			flaw{forgets: func(m *Memory, _ error) bool { return m.unsynced == nil && m.how == Short }},
			"an error is final"},
		"a sync is tried again": {
			flaw{forgets: func(m *Memory, _ error) bool { return m.unsynced != nil }},
			"an error is final"},
		"what is in the cache is taken to be on the disk": {
			flaw{onLoad: cached},
			"what Open returned survives though its sync had failed"},
		"the log ends quietly where it is damaged": {
			flaw{onLoad: func(m *Memory) (d raft.Durable, err error) {
				for _, r := range m.synced {
					if r.damaged {
						break
					}
					Apply(&d, r.Write)
				}
				return d, nil
			}},
			"damage below what was synced is refused"},
	} {
		t.Run(name, func(t *testing.T) {
			all := slices.Concat(Cases(), SnapshotCases())
			i := slices.IndexFunc(all, func(known Case) bool { return known.Name == c.by })
			if i < 0 {
				t.Fatalf("there is no case %q", c.by)
			}
			err := all[i].Run(func() Disk {
				f := c.flaw
				f.Memory = NewMemory()
				return &f
			})
			if err == nil {
				t.Errorf("not caught by %q", c.by)
			}
			caught[c.by] = true
		})
	}
	for _, c := range slices.Concat(Cases(), SnapshotCases()) {
		if !caught[c.Name] {
			t.Errorf("there is no flaw for %q", c.Name)
		}
	}
}
