package storetest

import (
	"slices"
	"testing"

	"ticketing/raft"
)

func TestTheStoreInMemoryPasses(t *testing.T) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(func() Disk { return NewMemory() }); err != nil {
				t.Error(err)
			}
		})
	}
}

// A flaw is a store with something wrong: what it does to writes, to errors and to what it loads.
type flaw struct {
	*Memory
	onSave   func(raft.Write) raft.Write
	onError  func(error) error
	onLoad   func(*Memory) (raft.Durable, error)
	unsynced bool // Save does not wait
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

type flawed struct {
	*flaw
	store *memoryStore
}

func (f *flawed) Close() error { return nil }

func (f *flawed) Save(w raft.Write) error {
	if f.onSave != nil {
		w = f.onSave(w)
	}
	err := f.store.Save(w)
	if f.onError != nil {
		err, f.store.err = f.onError(err), nil
	}
	if n := len(f.synced); f.unsynced && err == nil && n > 0 {
		f.Memory.unsynced, f.synced = &f.synced[n-1], slices.Clone(f.synced[:n-1])
	}
	return err
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

// The suite is worth what it catches.
func TestEachFlawIsCaughtByItsCase(t *testing.T) {
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
		"an entry without a command is none": {
			flaw{onSave: func(w raft.Write) raft.Write {
				empty := func(e raft.Entry) bool { return len(e.Command) == 0 }
				w.Entries = slices.DeleteFunc(slices.Clone(w.Entries), empty)
				return w
			}},
			"large and empty commands survive"},
		"Save does not wait for the disk": {
			flaw{unsynced: true}, "all that Save has answered survives a crash"},
		"an error is forgotten": {
			flaw{onError: func(err error) error { return err }}, "an error is final"},
		"what is in the cache is taken to be on the disk": {
			flaw{onLoad: func(m *Memory) (d raft.Durable, err error) {
				for _, r := range m.synced {
					Apply(&d, r.Write)
				}
				if m.unsynced != nil {
					Apply(&d, m.unsynced.Write)
				}
				return d, nil
			}},
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
			i := slices.IndexFunc(Cases(), func(known Case) bool { return known.Name == c.by })
			if i < 0 {
				t.Fatalf("there is no case %q", c.by)
			}
			err := Cases()[i].Run(func() Disk {
				f := c.flaw
				f.Memory = NewMemory()
				return &f
			})
			if err == nil {
				t.Errorf("not caught by %q", c.by)
			}
		})
	}
}
