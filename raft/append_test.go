package raft_test

import (
	"testing"

	"ticketing/raft"
)

// P20.
//
//spec:test All.1
//spec:test AE.5
func TestAFollowerAppliesWhatIsCommittedInOrder(t *testing.T) {
	for _, row := range []struct {
		terms  []raft.Term
		commit raft.Index
	}{
		{[]raft.Term{1}, 1}, {[]raft.Term{1, 1}, 2}, {[]raft.Term{1, 1}, 1}, {[]raft.Term{1, 1}, 0},
	} {
		c := alone(t, 3, state(1, 0))
		c.slow(1) // a majority's copies are durable; its own need not be
		c.receive(appendEntries(1, 0, 0, row.commit, row.terms...))
		same(t, "applied", entries(1, row.terms[:row.commit]...), c.node(1).applied)
		c.receive(appendEntries(1, 0, 0, row.commit, row.terms...))
		same(t, "applied twice", int(row.commit), len(c.node(1).applied))
	}
}

// P22, B04 (openraft 9540c904), zoo 24 and 26: what matches stays and is not written again, a
// conflict takes the whole rest with it.
//
//spec:test AE.3
//spec:test AE.4
func TestAFollowerReplacesOnlyWhatConflicts(t *testing.T) {
	for _, row := range []struct {
		durable  raft.Durable
		prev     raft.Index
		prevTerm raft.Term
		sent     []raft.Term
		log      []raft.Term
		written  []raft.Entry
	}{
		{state(2, 0, 1, 2), 2, 2, []raft.Term{3}, []raft.Term{1, 2, 3}, entries(3, 3)},
		{state(2, 0, 1, 2), 1, 1, []raft.Term{3, 4}, []raft.Term{1, 3, 4}, entries(2, 3, 4)},
		{state(2, 0, 1, 2), 0, 0, []raft.Term{1}, []raft.Term{1, 2}, nil},
		{state(2, 0, 1, 2), 0, 0, []raft.Term{3}, []raft.Term{3}, entries(1, 3)},
		{state(2, 0, 1, 2), 0, 0, []raft.Term{1, 2, 3}, []raft.Term{1, 2, 3}, entries(3, 3)},
		{state(2, 0, 1, 2), 2, 2, nil, []raft.Term{1, 2}, nil},
		{state(2, 0, 1, 2), 1, 1, nil, []raft.Term{1, 2}, nil},
		{state(2, 0, 1, 1, 1, 1), 1, 1, []raft.Term{1, 2}, []raft.Term{1, 1, 2}, entries(3, 2)},
		{state(2, 0), 0, 0, []raft.Term{1, 1, 2}, []raft.Term{1, 1, 2}, entries(1, 1, 1, 2)},
	} {
		c := alone(t, 3, row.durable)
		c.receive(appendEntries(4, row.prev, row.prevTerm, 0, row.sent...))
		same(t, "log", row.log, terms(c.log(1)))
		same(t, "log on disk", c.log(1), c.node(1).disk.Entries)
		writes := c.newWrites(1)
		same(t, "writes", 1, len(writes)) // of the term, at least
		same(t, "written", row.written, writes[0].Entries)
		same(t, "answer", raft.Body(raft.AppendEntriesReply{
			RequestTerm: 4, PrevLogIndex: row.prev, Success: true,
			MatchIndex: row.prev + raft.Index(len(row.sent)),
		}), c.answer())
	}
}

// R01, first half; zoo 23 (a heartbeat that is answered with success unchecked) and 15 (the term is
// adopted with the refusal). The hint is the first index of the term that is in the way.
//
//spec:test AE.2
//spec:test Backoff.Hint
func TestAnAppendBehindWhatTheLogLacksIsRefusedWithAHint(t *testing.T) {
	for _, row := range []struct {
		log           []raft.Term
		prev          raft.Index
		prevTerm      raft.Term
		conflictTerm  raft.Term
		conflictIndex raft.Index
	}{
		{[]raft.Term{1, 2}, 2, 3, 2, 2},
		{[]raft.Term{1, 2}, 3, 3, 0, 3},
		{[]raft.Term{1, 2}, 9, 2, 0, 3},
		{nil, 1, 1, 0, 1},
		{[]raft.Term{1, 1, 2, 2, 2, 3}, 5, 3, 2, 3},
		{[]raft.Term{1, 1, 2, 2, 2, 3}, 2, 2, 1, 1},
		{[]raft.Term{1, 1, 2, 2, 2, 3}, 6, 1, 3, 6},
		{[]raft.Term{1, 1, 2, 2, 2, 3}, 7, 3, 0, 7},
	} {
		for _, sent := range [][]raft.Term{nil, {3}} {
			c := alone(t, 3, state(3, 0, row.log...))
			c.receive(appendEntries(4, row.prev, row.prevTerm, 9, sent...))
			want := raft.AppendEntriesReply{
				RequestTerm: 4, PrevLogIndex: row.prev,
				ConflictTerm: row.conflictTerm, ConflictIndex: row.conflictIndex,
			}
			same(t, "answer", raft.Body(want), c.answer())
			same(t, "log", append([]raft.Term{}, row.log...), terms(c.log(1)))
			same(t, "commitIndex", 0, c.status(1).CommitIndex)
			same(t, "rank", rank{raft.Follower, 4, 2}, c.rank(1))
		}
	}
}

// R01, second half; zoo 27 and 28: what stands behind the last entry of the message may be a
// leftover.
//
//spec:test AE.5
func TestAFollowerCommitsOnlyWhatTheMessageVerified(t *testing.T) {
	for _, row := range []struct {
		prev   raft.Index
		commit raft.Index
		sent   []raft.Term
		want   raft.Index
	}{
		{0, 0, nil, 0},
		{0, 3, nil, 0},
		{1, 1, nil, 1},
		{1, 3, nil, 1},
		{1, 4, []raft.Term{2}, 2},
		{1, 1, []raft.Term{2}, 1},
		{2, 4, nil, 2},
		{2, 4, []raft.Term{2}, 3},
		{0, 2, []raft.Term{1}, 1},
	} {
		c := alone(t, 3, state(2, 0, 1, 2))
		prevTerm, _ := c.core(1).Term(row.prev)
		c.receive(appendEntries(2, row.prev, prevTerm, row.commit, row.sent...))
		if got := c.status(1).CommitIndex; got != row.want {
			t.Errorf("%+v: commitIndex %d", row, got)
		}
	}
}

// R24, B35: followers' logs, batches of one and a simple back-off make the case in which nothing
// but the receiver's cap helps. Entry 3@3 is committed elsewhere, 3@2 is what the follower has
// there.
//
//spec:test AE.5
func TestALeftoverBehindAMatchingEntryIsNotCommitted(t *testing.T) {
	c := alone(t, 3, state(3, 0, 1, 2, 2, 2))
	c.receive(appendEntries(3, 1, 1, 4, 2))
	same(t, "commitIndex", 2, c.status(1).CommitIndex)
	c.receive(appendEntries(3, 2, 2, 4, 2, 3))
	same(t, "commitIndex", 4, c.status(1).CommitIndex)
	same(t, "applied", entries(1, 1, 2, 2, 3), c.node(1).applied)
}

// R02, zoo 29.
//
//spec:test AE.5
func TestAFollowersCommitIndexNeverFalls(t *testing.T) {
	c := alone(t, 3, state(1, 0, 1, 1, 1))
	for _, row := range []struct{ prev, commit, want raft.Index }{
		{3, 2, 2}, {3, 1, 2}, {3, 0, 2}, {1, 3, 2}, {3, 3, 3}, {0, 0, 3},
	} {
		prevTerm := min(raft.Term(row.prev), 1)
		c.receive(appendEntries(1, row.prev, prevTerm, row.commit))
		same(t, "commitIndex", row.want, c.status(1).CommitIndex)
	}
	same(t, "applied", 3, len(c.node(1).applied))
}

// Zoo 33: a follower answers for what the message verified, not for all that it has.
//
//spec:test Leaders.3a
func TestAFollowerAcknowledgesOnlyWhatTheMessageVerified(t *testing.T) {
	for _, row := range []struct {
		prev  raft.Index
		sent  []raft.Term
		match raft.Index
	}{
		{0, nil, 0}, {1, nil, 1},
		{0, []raft.Term{1}, 1}, {1, []raft.Term{1}, 2}, {3, []raft.Term{2}, 4},
	} {
		c := alone(t, 3, state(1, 0, 1, 1, 1))
		c.receive(appendEntries(2, row.prev, min(raft.Term(row.prev), 1), 0, row.sent...))
		same(t, "answer", raft.Body(raft.AppendEntriesReply{
			RequestTerm: 2, PrevLogIndex: row.prev, Success: true, MatchIndex: row.match,
		}), c.answer())
	}
}

// R07 (LogCabin): an old message is no reason to cut the log, though it ends earlier.
//
//spec:test AE.3
func TestADelayedAppendRemovesNothing(t *testing.T) {
	c := alone(t, 3, state(1, 0, 1, 1, 1))
	c.receive(appendEntries(1, 3, 1, 0, 1))
	c.receive(appendEntries(1, 3, 1, 0, 1, 1))
	c.receive(appendEntries(1, 3, 1, 0, 1))
	c.receive(appendEntries(1, 2, 1, 0))
	same(t, "log", entries(1, 1, 1, 1, 1, 1), c.log(1))
	same(t, "log on disk", entries(1, 1, 1, 1, 1, 1), c.node(1).disk.Entries)
}
