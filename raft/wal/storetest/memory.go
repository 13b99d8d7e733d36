package storetest

import (
	"errors"
	"fmt"
	"syscall"

	"ticketing/raft"
)

// Memory is the plainest disk with a store on it: a list of writes. A write survives whole or not
// at all, which counts as one byte and one sector.
type Memory struct {
	synced   []record
	unsynced *record
	dead     bool
	failing  int // the operation, counted from now on, that fails
	how      Failure
}

type record struct {
	raft.Write
	damaged bool
}

// NewMemory returns an empty one.
func NewMemory() *Memory { return &Memory{} }

// operation is one that can fail. It may be done although it returns an error.
func (m *Memory) operation(do func()) error {
	m.failing--
	m.dead = m.dead || m.failing == 0 && m.how == Dead
	if m.failing != 0 && !m.dead {
		do()
		return nil
	}
	if m.how == After {
		do()
	}
	if m.how == Full {
		return fmt.Errorf("the disk is full, as it was told: %w", syscall.ENOSPC)
	}
	return errors.New("the disk failed, as it was told to")
}

// put writes one record and syncs it. Half a record is none.
func (m *Memory) put(w raft.Write) error {
	err := m.operation(func() { m.unsynced = &record{Write: w} })
	if err != nil {
		return err
	}
	return m.operation(func() {
		m.synced, m.unsynced = append(m.synced, *m.unsynced), nil
	})
}

// Open returns the state, after it has seen to it that it survives.
func (m *Memory) Open() (Store, raft.Durable, error) {
	var d raft.Durable
	for i, r := range m.synced {
		if r.damaged {
			return nil, d, fmt.Errorf("record %d is damaged", i)
		}
	}
	if m.unsynced != nil {
		if err := m.put(m.unsynced.Write); err != nil {
			return nil, d, err
		}
	}
	for _, r := range m.synced {
		Apply(&d, r.Write)
	}
	return &memoryStore{disk: m}, d, nil
}

// Crash loses the record that is not synced, or keeps it.
func (m *Memory) Crash(choose func(Unsynced) Survivors) {
	u := Unsynced{}
	if m.unsynced != nil {
		u = Unsynced{Bytes: 1, Sectors: 1}
	}
	s := choose(u)
	if m.unsynced != nil && (s.Prefix > 0 || len(s.Sectors) > 0 && s.Sectors[0]) {
		m.synced = append(m.synced, record{Write: m.unsynced.Write})
	}
	m.unsynced, m.failing, m.dead = nil, 0, false
}

// Fail makes the nth operation from now on fail.
func (m *Memory) Fail(nth int, how Failure) { m.failing, m.how, m.dead = nth, how, false }

// Damage damages a record, or repairs it.
func (m *Memory) Damage(i, nth int) (names []string, ok bool) {
	if i >= len(m.synced) || nth > 0 {
		return nil, false
	}
	m.synced[i].damaged = !m.synced[i].damaged
	return []string{fmt.Sprintf("record %d", i)}, true
}

type memoryStore struct {
	disk *Memory
	err  error
}

func (s *memoryStore) Save(w raft.Write) error {
	if s.err == nil {
		s.err = s.disk.put(w)
	}
	return s.err
}

// SaveSnapshot has nothing to keep: the write that names a snapshot has it. It can fail.
func (s *memoryStore) SaveSnapshot(*raft.Snapshot) error {
	for range 2 {
		if err := s.disk.operation(func() {}); err != nil {
			return err
		}
	}
	return nil
}

func (s *memoryStore) Close() error { return nil }
