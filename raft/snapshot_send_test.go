package raft_test

import (
	"bytes"
	"testing"

	"ticketing/raft"
)

// sender returns server 1, which leads term 2 with a snapshot of entry 4 and its own entry behind it, in
// a cluster of three of which the test plays the others. Server 2 needs the snapshot.
func sender(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, setup{only: 1, chunk: 2, states: map[raft.ServerID]raft.Durable{
		1: {HardState: raft.HardState{Term: 1}, Snapshot: &raft.Snapshot{
			LastIncludedIndex: 4, LastIncludedTerm: 1, Members: servers(1, 2, 3), Data: []byte("abcde"),
		}},
	}})
	c.leads()
	c.receive(success(3, 2, 4, 5))
	c.receive(refusal(2, 2, 4, 0, 1))
	same(t, "parts", 1, len(c.chunks(1, 2)))
	return c
}

// Heartbeats go on. The follower refuses each, since it has nothing before them, and the leader does not
// look for a lower place for that: it knows what the follower needs. What others need goes on as well.
//
//spec:test Snapshot.Chunk
func TestHeartbeatsGoOnWhileASnapshotIsSent(t *testing.T) {
	c := sender(t)
	c.outbox(1)
	for range 3 {
		c.heartbeat(1)
		c.receive(refusal(2, 2, 4, 0, 1))
	}
	beats := c.appends(1, 2)
	same(t, "heartbeats", 3, len(beats))
	for _, a := range beats {
		same(t, "place", [2]uint64{4, 1}, [2]uint64{uint64(a.PrevLogIndex), uint64(a.PrevLogTerm)})
		same(t, "entries", 0, len(a.Entries))
	}
	same(t, "parts", 0, len(c.chunks(1, 2)))
	c.propose(1, "x")
	c.receive(success(3, 2, 5, 6))
	same(t, "committed without it", 6, c.status(1).CommitIndex)
}

// One part at a time: what has been answered before, or asks for what is on its way, brings no other.
//
//spec:test Snapshot.Chunk
func TestAnOldAnswerToAPartBringsNoOther(t *testing.T) {
	c := sender(t)
	c.receive(chunkReply(2, 2, 4, 0, false))
	c.receive(chunkReply(2, 2, 3, 2, false))
	c.receive(chunkReply(2, 2, 4, 6, false)) // more than there is
	same(t, "parts", 1, len(c.chunks(1, 2)))
	c.receive(chunkReply(2, 2, 4, 2, false))
	c.receive(chunkReply(2, 2, 4, 2, false))
	same(t, "parts", 2, len(c.chunks(1, 2)))
	c.receive(chunkReply(2, 2, 4, 4, false))
	same(t, "the last", raft.InstallSnapshot{LastIncludedIndex: 4, LastIncludedTerm: 1,
		Members: servers(1, 2, 3), Offset: 4, Data: []byte("e"), Done: true}, c.chunks(1, 2)[2])
	c.receive(chunkReply(2, 2, 4, 5, false)) // it has all, and has not saved it
	c.receive(chunkReply(2, 2, 4, 5, false))
	same(t, "parts", 4, len(c.chunks(1, 2)))
	c.outbox(1)
	c.receive(chunkReply(2, 2, 4, 5, true))
	next, match := c.core(1).Progress(2)
	same(t, "nextIndex, matchIndex", [2]raft.Index{6, 4}, [2]raft.Index{next, match})
	same(t, "what follows", 5, filled(c.appends(1, 2))[0].Entries[0].Index)
	same(t, "parts", 0, len(c.chunks(1, 2)))
}

// A yes counts for the commit as an acknowledged entry does.
func TestAnInstalledSnapshotCountsAsACopy(t *testing.T) {
	c := newCluster(t, setup{only: 1, states: map[raft.ServerID]raft.Durable{1: state(1, 0, 1, 1)}})
	c.leads()
	c.receive(success(2, 2, 2, 3))
	c.compact(1, 3)
	c.receive(refusal(3, 2, 2, 0, 1))
	c.receive(chunkReply(3, 2, 3, 0, true))
	_, match := c.core(1).Progress(3)
	same(t, "matchIndex", 3, match)
	c.outbox(1)
	c.propose(1, "x")
	same(t, "entries", 1, len(filled(c.appends(1, 3))))
}

// S05: the follower has got there by other means, as its answer to a heartbeat shows. Then entries do.
//
//spec:test Snapshot.Need
func TestAHeartbeatThatIsAcceptedAtTheSnapshotsEndEndsIt(t *testing.T) {
	c := sender(t)
	c.outbox(1)
	c.heartbeat(1)
	c.receive(success(2, 2, 4, 4))
	same(t, "what follows", 5, filled(c.appends(1, 2))[0].Entries[0].Index)
	c.passes(5 * electionTimeout)
	same(t, "parts", 0, len(c.chunks(1, 2)))
}

// The leader compacts again while a snapshot is being sent. It goes on with that one to the end, and then
// sends the other if it has to: a follower that is slower than the leader compacts gets a whole one.
//
//spec:test Snapshot.Need
func TestASnapshotThatWasBegunIsSentToItsEnd(t *testing.T) {
	c := sender(t)
	c.propose(1, "x")
	c.receive(success(3, 2, 5, 6))
	c.compact(1, 6)
	same(t, "first entry", 7, c.core(1).FirstIndex())
	c.outbox(1)
	c.heartbeat(1)
	beat := c.appends(1, 2)[0]
	same(t, "place", [2]uint64{4, 1}, [2]uint64{uint64(beat.PrevLogIndex), uint64(beat.PrevLogTerm)})
	c.receive(chunkReply(2, 2, 4, 2, false))
	same(t, "part", "cd", string(c.chunks(1, 2)[0].Data))
	c.receive(chunkReply(2, 2, 4, 4, false))
	c.outbox(1)
	c.receive(chunkReply(2, 2, 4, 5, true))
	same(t, "the next snapshot", 6, c.chunks(1, 2)[0].LastIncludedIndex)
	c.receive(message(2, 1, 2, raft.InstallSnapshotReply{RequestTerm: 2, LastIncludedIndex: 6, Installed: true}))
	c.outbox(1)
	c.passes(5 * electionTimeout)
	same(t, "snapshots after two", 0, len(c.chunks(1, 2)))
}

// A follower that is down has nothing of what is sent to it. When the leader tries again it sends the
// newest snapshot that it has by then, from the first byte; and once a part has arrived, goes on with that.
//
//spec:test Snapshot.Need
func TestAFollowerThatHasNothingYetIsSentTheNewestSnapshot(t *testing.T) {
	c := sender(t)
	c.propose(1, "x")
	c.receive(success(3, 2, 5, 6))
	c.compact(1, 6)
	c.outbox(1)
	for due := c.now() + electionTimeout; c.now() < due; {
		same(t, "parts before it tries again", 0, len(c.chunks(1, 2)))
		c.passes(1)
	}
	first := c.chunks(1, 2)
	same(t, "parts", 1, len(first))
	same(t, "snapshot, offset", [2]uint64{6, 0}, [2]uint64{uint64(first[0].LastIncludedIndex), first[0].Offset})
	c.heartbeat(1)
	beats := c.appends(1, 2)
	same(t, "place", 6, beats[len(beats)-1].PrevLogIndex)

	c.receive(chunkReply(2, 2, 6, first[0].Offset+uint64(len(first[0].Data)), false))
	c.propose(1, "y")
	c.receive(success(3, 2, 6, 7))
	c.compact(1, 7)
	c.outbox(1)
	c.passes(electionTimeout)
	same(t, "goes on with", 6, c.chunks(1, 2)[0].LastIncludedIndex)

	c.outbox(1)
	c.receive(chunkReply(2, 2, 6, 0, false)) // it started anew
	same(t, "after a crash", 7, c.chunks(1, 2)[0].LastIncludedIndex)
}

// A leader that is deposed forgets what it was sending: there may be a newer snapshot by then.
func TestADeposedLeaderForgetsWhatItWasSending(t *testing.T) {
	c := sender(t)
	c.propose(1, "x")
	c.receive(success(3, 2, 5, 6))
	c.compact(1, 6)
	old := []byte("abcde")
	same(t, "kept", true, bytes.Contains(c.core(1).AppendState(nil), old))
	c.receive(requestVote(3, 3, 6, 2))
	same(t, "kept", false, bytes.Contains(c.core(1).AppendState(nil), old))
}

// A correct message may reach below what a snapshot covers: it is an old one. What is covered is taken as
// matching, for it is committed.
//
//spec:test Snapshot.Covered
func TestAnOldMessageMayReachBelowTheSnapshot(t *testing.T) {
	for _, row := range []struct {
		prev     raft.Index
		prevTerm raft.Term
		entries  []raft.Term
		match    raft.Index
		log      []raft.Term
	}{
		{0, 0, []raft.Term{1, 1}, 2, nil},
		{1, 1, []raft.Term{1, 2}, 3, nil},
		{1, 1, []raft.Term{1, 2, 2, 2}, 5, []raft.Term{2, 2}},
		{3, 2, []raft.Term{2}, 4, []raft.Term{2}},
		{2, 1, nil, 2, nil},
	} {
		c := alone(t, 3, raft.Durable{HardState: raft.HardState{Term: 2}, Snapshot: &raft.Snapshot{
			LastIncludedIndex: 3, LastIncludedTerm: 2, Members: servers(1, 2, 3)}})
		c.receive(appendEntries(2, row.prev, row.prevTerm, 2, row.entries...))
		same(t, "answer", raft.Body(raft.AppendEntriesReply{
			RequestTerm: 2, PrevLogIndex: row.prev, Success: true, MatchIndex: row.match}), c.answer())
		same(t, "log", entries(4, row.log...), logOf(c.core(1)))
		same(t, "committed", 3, c.status(1).CommitIndex)
	}
}

// A leader whose log begins behind the entries of a term still knows where that term ended.
//
//spec:test Backoff.Term
func TestALeaderFindsThePlaceAtTheSnapshotsEnd(t *testing.T) {
	c := alone(t, 3, raft.Durable{
		HardState: raft.HardState{Term: 4}, Entries: entries(5, 4, 4),
		Snapshot: &raft.Snapshot{LastIncludedIndex: 4, LastIncludedTerm: 3, Members: servers(1, 2, 3)},
	})
	c.leads()
	c.outbox(1)
	c.receive(refusal(2, 5, 6, 3, 2)) // it has entries of term 3 from 2 to 6
	same(t, "snapshots", 0, len(c.chunks(1, 2)))
	same(t, "place", 4, c.appends(1, 2)[0].PrevLogIndex)
	same(t, "place", 3, c.appends(1, 2)[0].PrevLogTerm)
}
