package raft_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"ticketing/raft"
)

// P16.
//
//spec:test Leaders.2
//spec:test Leaders.3
func TestALeaderAppendsAndSendsAProposal(t *testing.T) {
	c := in(t, raft.Leader)
	c.receive(success(2, 1, 0, 1))
	c.receive(success(3, 1, 0, 1))
	c.outbox(1)
	c.newWrites(1)
	same(t, "index", 2, c.propose(1, "x"))
	want := raft.AppendEntries{
		PrevLogIndex: 1, PrevLogTerm: 1, LeaderCommit: 1,
		Entries: []raft.Entry{{Index: 2, Term: 1, Command: []byte("x")}},
	}
	same(t, "sent", []raft.Message{message(1, 2, 1, want), message(1, 3, 1, want)}, c.outbox(1))
	same(t, "written", []raft.Write{{
		Seq: 3, HardState: raft.HardState{Term: 1, VotedFor: 1}, Entries: want.Entries,
	}}, c.newWrites(1))
	same(t, "commitIndex", 1, c.status(1).CommitIndex)
}

// P16's counterpart.
//
//spec:test State.Leader
func TestANewLeaderKnowsNothingOfTheOthersLogs(t *testing.T) {
	c := newCluster(t, setup{states: map[raft.ServerID]raft.Durable{
		1: state(1, 0, 1, 1), 2: state(1, 0, 1, 1),
	}})
	for range 2 { // the second time forgets what the first has learned
		c.elect(2)
		c.timeout(1)
		c.deliver(1, 2)
		c.deliver(2, 1)
		last := c.status(1).LastIndex
		for _, id := range []raft.ServerID{2, 3} {
			next, match := c.core(1).Progress(id)
			same(t, "nextIndex", last, next) // the no-op is its first own entry
			same(t, "matchIndex", 0, match)
		}
		c.run()
		for _, id := range []raft.ServerID{2, 3} {
			next, match := c.core(1).Progress(id)
			same(t, "nextIndex", last+1, next)
			same(t, "matchIndex", last, match)
		}
	}
	next, match := c.core(1).Progress(9)
	same(t, "of a stranger", [2]raft.Index{}, [2]raft.Index{next, match})
}

// Zoo 32: evidence is what was sent, not what the leader has by the time of the answer. R16, zoo 37
// and B43 (eliben/raft#16): answers out of order take nothing back, and cause no traffic.
//
//spec:test Leaders.3a
func TestAnAnswerCountsForWhatItAnswers(t *testing.T) {
	c := in(t, raft.Leader)
	c.propose(1, "x")
	c.propose(1, "y")
	c.receive(success(2, 1, 0, 1))
	progress := func() [2]raft.Index {
		next, match := c.core(1).Progress(2)
		return [2]raft.Index{next, match}
	}
	same(t, "next and match", [2]raft.Index{4, 1}, progress())
	same(t, "commitIndex", 1, c.status(1).CommitIndex)
	c.receive(success(2, 1, 1, 3))
	same(t, "next and match", [2]raft.Index{4, 3}, progress())
	c.outbox(1)
	for _, old := range []raft.Message{
		success(2, 1, 0, 1), success(2, 1, 1, 2),
		success(2, 1, 3, 2), // from a heartbeat, while its disk was slow
		refusal(2, 1, 3, 0, 2), refusal(2, 1, 1, 0, 1), refusal(2, 1, 0, 0, 0),
	} {
		c.receive(old)
		same(t, "next and match", [2]raft.Index{4, 3}, progress())
	}
	same(t, "commitIndex", 3, c.status(1).CommitIndex)
	same(t, "messages", 0, len(c.outbox(1)))
	c.propose(1, "a")
	c.receive(refusal(2, 1, 3, 0, 2))
	c.propose(1, "b")
	streamed := c.appends(1, 2)
	same(t, "messages, still without waiting", 2, len(streamed))
	same(t, "prevLogIndex", 3, streamed[0].PrevLogIndex)
	same(t, "prevLogIndex", 4, streamed[1].PrevLogIndex)
}

// Zoo 36, as script: 2 acknowledged in term 1 what 3 has replaced at 1 since; in term 3 the old
// answer would make a commit with two copies of five.
//
//spec:test Leaders.Reply
func TestAnAnswerToAnEarlierLeadershipCountsForNothing(t *testing.T) {
	c := newCluster(t, setup{size: 5})
	c.timeout(1)
	for _, id := range []raft.ServerID{2, 3} {
		c.deliver(1, id)
		c.deliver(id, 1)
	}
	c.propose(1, "x")
	c.propose(1, "y")
	c.deliver(1, 2)
	c.deliver(2, 1)
	c.deliver(1, 2) // x and y; 2's answer is slow
	slow := c.queues[link{2, 1}]
	same(t, "slow answers", 1, len(slow))
	for id := range raft.ServerID(5) {
		for other := range raft.ServerID(5) {
			c.drop(id+1, other+1)
		}
	}
	c.isolate(2)
	c.elect(3) // by 4 and 5, and 1 follows; nothing of term 1 was on 3, 4 or 5
	same(t, "log of 1", []raft.Term{2}, terms(c.log(1)))
	c.timeout(1)
	for _, id := range []raft.ServerID{4, 5} {
		c.deliver(1, id)
		c.deliver(id, 1)
	}
	same(t, "rank", rank{raft.Leader, 3, 1}, c.rank(1))
	c.propose(1, "z")
	c.deliver(1, 4)
	c.deliver(4, 1)
	c.deliver(1, 4)
	c.deliver(4, 1) // z is on 1 and 4
	same(t, "last index", 3, c.status(4).LastIndex)
	c.queues[link{2, 1}] = slow
	c.deliver(2, 1)
	_, match := c.core(1).Progress(2)
	same(t, "matchIndex of 2", 0, match)
	same(t, "commitIndex", 1, c.status(1).CommitIndex)
}

// The same for a refusal, and for answers to a server that does not lead any more.
//
//spec:test Leaders.Reply
func TestOnlyAnswersToThisLeadershipAreRead(t *testing.T) {
	c := alone(t, 3, state(4, 0, 1, 1, 1))
	c.leads()
	c.outbox(1)
	refused := raft.AppendEntriesReply{RequestTerm: 4, PrevLogIndex: 3, ConflictIndex: 1}
	for _, m := range []raft.Message{
		success(2, 4, 0, 3), success(2, 1, 0, 3), refusal(2, 4, 3, 0, 1),
		message(2, 1, 5, refused),
	} {
		c.receive(m)
		next, match := c.core(1).Progress(2)
		same(t, "next and match", [2]raft.Index{4, 0}, [2]raft.Index{next, match})
	}
	same(t, "messages", 0, len(c.outbox(1)))
	c.receive(appendEntries(6, 0, 0, 0, 6))
	c.outbox(1)
	for _, term := range []raft.Term{5, 6} { // of 6 it has asked nobody
		c.receive(success(2, term, 0, 1))
		c.receive(success(3, term, 0, 1))
		same(t, "commitIndex", 0, c.status(1).CommitIndex)
	}
	same(t, "messages", 0, len(c.outbox(1)))
}

// B45 (CCF#5674): a deposed leader keeps what it has appended; it may have been counted on.
//
//spec:test All.2
func TestADeposedLeaderKeepsItsLog(t *testing.T) {
	c := in(t, raft.Leader)
	c.propose(1, "x")
	log := c.log(1)
	c.receive(requestVote(2, 2, 0, 0))
	same(t, "role", raft.Follower, c.status(1).Role)
	same(t, "log", log, c.log(1))
	same(t, "log on disk", log, c.node(1).disk.Entries)
}

// The number of entries in a message.
//
//spec:test Leaders.3
func TestAMessageHoldsAtMostABatchAndEntriesFollowOneAnother(t *testing.T) {
	c := newCluster(t, setup{batch: 3, window: 2})
	c.elect(1)
	c.isolate(3)
	for range 20 {
		c.propose(1, "x")
	}
	c.run()
	c.heal()
	c.outbox(1)
	c.heartbeat(1)
	c.run()
	next, largest := raft.Index(2), 0
	for _, a := range c.appends(1, 3) {
		largest = max(largest, len(a.Entries))
		if len(a.Entries) > 0 {
			same(t, "prevLogIndex", next-1, a.PrevLogIndex)
			next += raft.Index(len(a.Entries))
		}
	}
	same(t, "largest message", 3, largest)
	same(t, "sent up to", 22, next)
	same(t, "log", c.log(1), c.log(3))
}

// R12, B41 (etcd#14633): a full window stops, a window that is lost altogether is noticed by the
// next heartbeat, and only answers open it again.
//
//spec:test Pipeline.Window
func TestAWindowOfUnansweredMessagesIsNotExceeded(t *testing.T) {
	c := newCluster(t, setup{window: 3})
	c.elect(1)
	c.cut(1, 3)
	c.outbox(1)
	for range 10 {
		c.propose(1, "x")
	}
	same(t, "messages to 2", 3, len(c.appends(1, 2)))
	c.deliver(1, 2)
	c.deliver(2, 1)
	same(t, "messages to 2, one answered", 4, len(filled(c.appends(1, 2))))
	c.drop(1, 2)
	c.outbox(1)
	c.propose(1, "y")
	same(t, "messages into a lost window", 0, len(c.appends(1, 2)))
	c.heartbeat(1)
	same(t, "heartbeats", 1, len(c.appends(1, 2)))
	c.run()
	same(t, "log", c.log(1), c.log(2))
	same(t, "commitIndex", 12, c.status(2).CommitIndex)
	c.heal()
	c.heartbeat(1)
	c.run()
	same(t, "log", c.log(1), c.log(3))
	same(t, "commitIndex", 12, c.status(3).CommitIndex)
}

// filled leaves the messages that carry entries.
func filled(as []raft.AppendEntries) []raft.AppendEntries {
	return slices.DeleteFunc(slices.Clone(as), func(a raft.AppendEntries) bool {
		return len(a.Entries) == 0
	})
}

// A success tells that a log reaches so far, whichever of the messages it answers; one for the last
// message of the window opens all of it, and lost answers cost nothing.
//
//spec:test Pipeline.Window
//spec:test Leaders.3a
func TestAnAnswerOpensTheWindowForAllItCovers(t *testing.T) {
	c := alone(t, 3, state(0, 0))
	c.leads()
	c.receive(success(2, 1, 0, 1))
	for range 9 {
		c.propose(1, "x")
	}
	same(t, "messages", 4, len(filled(c.appends(1, 2)))-1)
	c.outbox(1)
	c.receive(success(2, 1, 2, 3)) // the second of four
	sent := filled(c.appends(1, 2))
	same(t, "messages", 1, len(sent)) // the rest fits into one
	same(t, "entries", 5, len(sent[0].Entries))
	c.outbox(1)
	c.propose(1, "y")
	same(t, "messages", 1, len(filled(c.appends(1, 2))))
	c.propose(1, "z")
	same(t, "messages", 1, len(filled(c.appends(1, 2))))
	c.receive(success(2, 1, 10, 11))
	same(t, "messages", 2, len(filled(c.appends(1, 2))))
}

// R17: a follower that missed a hundred entries, and a deposed leader with a tail of its own.
//
//spec:test Leaders.3
//spec:test AE.3
func TestServersThatWereAwayCatchUp(t *testing.T) {
	c := newCluster(t, setup{batch: 10})
	c.elect(1)
	c.isolate(1)
	for i := range 20 {
		c.propose(1, fmt.Sprint("lost ", i))
	}
	c.elect(2)
	for i := range 100 {
		c.propose(2, fmt.Sprint(i))
		c.run()
	}
	c.heal()
	c.heartbeat(2)
	c.run()
	same(t, "rank", rank{raft.Follower, 2, 2}, c.rank(1))
	same(t, "log", c.log(2), c.log(1))
	same(t, "applied", c.node(2).applied, c.node(1).applied)
	same(t, "entries", 102, len(c.node(1).applied))
}

// R18, raft's part: who does not lead says so, and who does if it knows.
//
//spec:test Leaders.2
func TestOnlyALeaderTakesProposals(t *testing.T) {
	for _, role := range []raft.Role{raft.Follower, raft.Candidate} {
		c := in(t, role)
		_, _, err := c.core(1).Propose([]byte("x"))
		if !errors.Is(err, raft.ErrNotLeader) {
			t.Errorf("%s: %v", role, err)
		}
		same(t, "last index", 0, c.status(1).LastIndex)
		if role == raft.Follower {
			same(t, "hint", 2, c.status(1).Leader)
		}
	}
}
