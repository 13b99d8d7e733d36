package raft_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"ticketing/raft"
)

// What no correct leader sends is refused, and leaves no trace.
func TestAMalformedPartOfASnapshotChangesNothing(t *testing.T) {
	with := func(term raft.Term, change func(*raft.InstallSnapshot)) raft.Message {
		m := chunk(term, 5, 1, 0, "ab", false)
		s := m.Body.(raft.InstallSnapshot)
		change(&s)
		m.Body = s
		return m
	}
	for name, m := range map[string]raft.Message{
		"index 0":               with(2, func(s *raft.InstallSnapshot) { s.LastIncludedIndex, s.LastIncludedTerm = 0, 0 }),
		"term 0":                with(2, func(s *raft.InstallSnapshot) { s.LastIncludedTerm = 0 }),
		"from the future":       with(2, func(s *raft.InstallSnapshot) { s.LastIncludedTerm = 3 }),
		"beyond all memory":     with(2, func(s *raft.InstallSnapshot) { s.Offset = 1<<64 - 1 }),
		"nothing, and not all":  with(2, func(s *raft.InstallSnapshot) { s.Data = nil }),
		"nobody at all":         with(2, func(s *raft.InstallSnapshot) { s.Members = nil }),
		"too much at once":      with(2, func(s *raft.InstallSnapshot) { s.Data = make([]byte, 9) }),
		"too much in the end":   with(2, func(s *raft.InstallSnapshot) { s.Offset = 7 }),
		"server 0":              with(2, func(s *raft.InstallSnapshot) { s.Members = raft.Configuration{{Voter: true}} }),
		"a server twice":        with(2, func(s *raft.InstallSnapshot) { s.Members = servers(1, 1) }),
		"nobody votes":          with(2, func(s *raft.InstallSnapshot) { s.Members = servers(-1, -2) }),
		"of another past":       with(2, func(s *raft.InstallSnapshot) { s.LastIncludedIndex, s.LastIncludedTerm = 2, 2 }),
		"a second leader":       message(3, 1, 2, with(2, func(*raft.InstallSnapshot) {}).Body),
		"an answer of tomorrow": chunkReply(2, 9, 5, 0, false),
		"a late yes": message(2, 1, 3, raft.InstallSnapshotReply{
			RequestTerm: 2, LastIncludedIndex: 5, Installed: true}),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, setup{only: 1, largest: 8, states: map[raft.ServerID]raft.Durable{
				1: state(2, 0, 1, 1, 1)}})
			c.receive(appendEntries(2, 3, 1, 2))
			core := c.core(1)
			before := core.AppendState(nil)
			if err := core.Receive(m); !errors.Is(err, raft.ErrMalformed) {
				t.Errorf("error %v", err)
			}
			if !bytes.Equal(before, core.AppendState(nil)) {
				t.Error("it left a trace")
			}
		})
	}
}

// A leader that never says Done, or sends more than any leader has, fills no memory: one byte more than
// may be is refused and nothing of it kept, whatever it does next. The most that may be is taken.
func TestASnapshotThatNeverEndsIsRefusedAtItsBound(t *testing.T) {
	c := newCluster(t, setup{only: 1, largest: 8})
	for offset := uint64(0); offset < 8; offset += 2 {
		c.receive(chunk(1, 5, 1, offset, "ab", false))
		same(t, "expected", offset+2, c.answer().(raft.InstallSnapshotReply).Offset)
	}
	for _, m := range []raft.Message{
		chunk(1, 5, 1, 8, "a", false), chunk(1, 5, 1, 7, "ab", true), chunk(2, 6, 1, 0, "123456789", true),
	} {
		if err := c.core(1).Receive(m); !errors.Is(err, raft.ErrMalformed) ||
			!strings.Contains(err.Error(), "one has at most 8") {
			t.Errorf("error %v", err)
		}
	}
	c.receive(chunk(1, 5, 1, 8, "", true))
	same(t, "data", "abababab", string(c.core(1).Snapshot().Data))
}

// A state machine that asks for what cannot be has lost its place; one that comes too early or too
// late has not.
func TestCompactRefusesWhatIsNotAppliedOrAlreadyDone(t *testing.T) {
	c := newCluster(t, setup{size: 1})
	c.elect(1)
	c.propose(1, "x")
	c.slow(1)
	core := c.core(1)
	panics(t, "only 2 are applied", func() { _ = core.Clone().Compact(3, nil) })
	panics(t, "was not given out", func() { core.Clone().SnapshotSaved(1) })
	if err := core.Compact(1, nil); err != nil {
		t.Fatal(err)
	}
	panics(t, "was not given out", func() { core.Clone().SnapshotSaved(1) })
	save := core.Take().Save
	same(t, "snapshot", &raft.Snapshot{LastIncludedIndex: 1, LastIncludedTerm: 1, Members: servers(1)}, save)
	same(t, "given out once", (*raft.Snapshot)(nil), core.Take().Save)
	if err := core.Compact(2, nil); !errors.Is(err, raft.ErrCompacting) {
		t.Errorf("while one is being saved: %v", err)
	}
	panics(t, "was not given out", func() { core.Clone().SnapshotSaved(2) })
	same(t, "durable", (*raft.Snapshot)(nil), core.Snapshot())
	core.SnapshotSaved(1)
	same(t, "durable", save, core.Snapshot())
	if err := core.Compact(1, nil); err == nil || !strings.Contains(err.Error(), "there is one of entry 1") {
		t.Errorf("of what is compacted: %v", err)
	}
	if err := core.Compact(2, nil); err != nil {
		t.Errorf("of what is new: %v", err)
	}
}

func panics(t *testing.T, reason string, do func()) {
	t.Helper()
	defer func() {
		if r, _ := recover().(string); !strings.Contains(r, reason) {
			t.Errorf("panic %q, want %q", r, reason)
		}
	}()
	do()
}

// A disk on which log and snapshot do not fit together is refused, and what the snapshot covers is not
// needed.
func TestNewTakesTheLogBehindTheSnapshot(t *testing.T) {
	disk := func(index raft.Index, term raft.Term, es []raft.Entry) raft.Durable {
		return raft.Durable{HardState: raft.HardState{Term: 3}, Entries: es, Snapshot: &raft.Snapshot{
			LastIncludedIndex: index, LastIncludedTerm: term, Members: servers(1, 2, 3)}}
	}
	for reason, d := range map[string]raft.Durable{
		"a snapshot of entry 0":        disk(0, 1, nil),
		"entry 4 of term 0":            disk(4, 0, nil),
		"entry 4 of term 4":            disk(4, 4, nil),
		"entry 6 stands where 5":       disk(4, 1, entries(6, 1)),
		"entry 4 stands where 5":       disk(4, 2, entries(1, 1, 1, 1, 1)),
		"entry 5 has term 1, after 2 ": disk(4, 2, entries(5, 1)),
	} {
		_, err := raft.New(setup{}.filled().config(1), d, 0)
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("error %v, want %q", err, reason)
		}
	}
	for _, es := range [][]raft.Entry{entries(5, 2, 3), entries(1, 1, 1, 1, 2, 2, 3), entries(4, 2, 2, 3)} {
		c := alone(t, 3, disk(4, 2, es))
		s := c.status(1)
		same(t, "commitIndex, lastApplied", [2]raft.Index{4, 4}, [2]raft.Index{s.CommitIndex, s.LastApplied})
		same(t, "log", entries(5, 2, 3), logOf(c.core(1)))
		term, ok := c.core(1).Term(4)
		same(t, "term at the snapshot's end", 2, term)
		_, below := c.core(1).Term(3)
		same(t, "known at its end, and before", [2]bool{true, false}, [2]bool{ok, below})
		same(t, "durable", 6, s.Durable)
	}
}
