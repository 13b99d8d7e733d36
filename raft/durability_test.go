package raft_test

import (
	"fmt"
	"slices"
	"testing"

	"ticketing/raft"
)

// C02, zoo 03: a vote that a crash could take back has not been told to anyone.
//
//spec:test Durable.Before
func TestAVoteIsNotToldBeforeItIsSaved(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	c.slow(1)
	c.receive(requestVote(2, 2, 0, 0))
	same(t, "messages", 0, len(c.outbox(1)))
	c.crash(1, 0)
	c.restart(1)
	same(t, "term", 1, c.status(1).Term)
	c.receive(requestVote(3, 2, 0, 0)) // it may vote for another now
	c.save(1)
	same(t, "granted", true, c.granted())
}

// Zoo 04: the same for the vote for itself, in a cluster in which others vote.
//
//spec:test Candidates.1
//spec:test Durable.Before
func TestACandidateAsksNobodyBeforeItsOwnVoteIsSaved(t *testing.T) {
	c := newCluster(t, setup{})
	c.slow(1)
	c.timeout(1)
	same(t, "messages", 0, len(c.outbox(1)))
	c.crash(1, 0)
	c.restart(1)
	same(t, "on disk", raft.HardState{}, c.node(1).disk.HardState)
	c.timeout(1)
	c.crash(1, 1) // this time the write survives, though nobody was told so
	c.restart(1)
	same(t, "on disk", raft.HardState{Term: 1, VotedFor: 1}, c.node(1).disk.HardState)
	c.timeout(2)
	c.deliver(2, 1)
	c.save(1)
	same(t, "answer to 2", raft.Body(raft.RequestVoteReply{RequestTerm: 1}), c.deliver(1, 2).Body)
}

// The state that an answer rests on may be of an earlier input whose write has not come back. Zoo
// 46's "nothing new" path.
//
//spec:test Durable.Before
func TestTheAnswerToARepeatedRequestWaitsForTheFirstOnesWrite(t *testing.T) {
	for name, request := range map[string]raft.Message{
		"vote":   requestVote(2, 2, 5, 1),
		"append": appendEntries(2, 1, 1, 0, 2, 2),
	} {
		t.Run(name, func(t *testing.T) {
			c := alone(t, 3, state(1, 0, 1))
			c.slow(1)
			c.receive(request)
			c.receive(request)
			same(t, "messages", 0, len(c.outbox(1)))
			same(t, "writes", 1, len(c.newWrites(1)))
			c.save(1)
			sent := c.outbox(1)
			same(t, "messages", 2, len(sent))
			same(t, "second answer", sent[0].Body, sent[1].Body)
			c.receive(request)
			same(t, "answer to the third", sent[0].Body, c.answer())
		})
	}
}

// The same when all arrives before one Take: its write is not even begun when the answer is
// composed.
//
//spec:test Durable.Before
func TestInputsBeforeOneTakeShareOneWrite(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	c.slow(1)
	c.node(1).lazy = true
	c.receive(requestVote(3, 2, 0, 0))
	c.receive(appendEntries(3, 0, 0, 0, 2))
	c.receive(appendEntries(3, 1, 2, 0, 3, 3))
	c.receive(appendEntries(3, 3, 3, 2))
	c.node(1).lazy = false
	c.take(c.node(1))
	want := entries(1, 2, 3, 3)
	same(t, "writes", []raft.Write{
		{Seq: 1, HardState: raft.HardState{Term: 3}, Entries: want},
	}, c.newWrites(1))
	same(t, "applied", want[:2], c.node(1).applied)
	same(t, "messages", 0, len(c.outbox(1)))
	c.save(1)
	var bodies []raft.Body
	for _, m := range c.outbox(1) {
		bodies = append(bodies, m.Body)
	}
	same(t, "answers", []raft.Body{
		raft.RequestVoteReply{RequestTerm: 2, VoteGranted: true},
		raft.AppendEntriesReply{RequestTerm: 3, Success: true, MatchIndex: 1},
		raft.AppendEntriesReply{RequestTerm: 3, PrevLogIndex: 1, Success: true, MatchIndex: 3},
		raft.AppendEntriesReply{RequestTerm: 3, PrevLogIndex: 3, Success: true, MatchIndex: 0},
	}, bodies)
}

// An answer composed in one term leaves in that term, though the server has gone on: a vote of term
// 2 whose write is done in term 3.
//
//spec:test Durable.Before
func TestAnAnswerKeepsTheTermInWhichItWasGiven(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	c.slow(1)
	c.receive(requestVote(2, 2, 0, 0))
	c.receive(requestVote(3, 3, 0, 0))
	c.save(1)
	same(t, "answers", []raft.Message{
		message(1, 2, 2, raft.RequestVoteReply{RequestTerm: 2, VoteGranted: true}),
		message(1, 3, 3, raft.RequestVoteReply{RequestTerm: 3, VoteGranted: true}),
	}, c.outbox(1))
}

// A slow disk must not look like a lost follower: the answer to a heartbeat does not wait for
// entries, and claims none that are not on the disk.
//
//spec:test Durable.Heartbeat
func TestAHeartbeatIsAnsweredWhileEntriesAreBeingSaved(t *testing.T) {
	c := alone(t, 3, state(2, 0, 2))
	c.slow(1)
	c.receive(appendEntries(2, 1, 2, 0, 2, 2))
	same(t, "answer to the append", 0, len(c.outbox(1)))
	c.receive(appendEntries(2, 3, 2, 0))
	want := raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 3, Success: true, MatchIndex: 1}
	same(t, "answer to the heartbeat", raft.Body(want), c.answer())
	c.receive(appendEntries(2, 9, 2, 0))
	want = raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 9, ConflictIndex: 4}
	same(t, "answer to one that does not match", raft.Body(want), c.answer())
	c.save(1)
	want = raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 1, Success: true, MatchIndex: 3}
	same(t, "answer to the append", raft.Body(want), c.answer())
	c.receive(appendEntries(2, 3, 2, 0))
	want = raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 3, Success: true, MatchIndex: 3}
	same(t, "answer to the heartbeat", raft.Body(want), c.answer())
}

// But the term that the answer shows must be saved, and nothing more than that.
//
//spec:test Durable.Heartbeat
func TestAHeartbeatsAnswerWaitsForTheTerm(t *testing.T) {
	c := alone(t, 3, state(2, 0, 2))
	c.slow(1)
	c.receive(appendEntries(3, 1, 2, 0))
	c.receive(appendEntries(3, 1, 2, 0, 3))
	c.receive(appendEntries(3, 2, 3, 0))
	same(t, "writes", 2, len(c.newWrites(1)))
	same(t, "messages", 0, len(c.outbox(1)))
	c.save(1, 1)
	same(t, "heartbeats answered", 2, len(c.outbox(1)))
	c.save(1, 2)
	same(t, "append answered", 1, len(c.outbox(1)))
}

// The leader's own disk works beside the others': entries leave before they are on it.
//
//spec:test Durable.Leader
func TestALeaderSendsEntriesBeforeItHasSavedThem(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	c.slow(1)
	c.propose(1, "x")
	c.run()
	same(t, "last index of 2", 2, c.status(2).LastIndex)
	same(t, "Durable", 1, c.status(1).Durable)
	same(t, "commitIndex", 2, c.status(1).CommitIndex) // by 2 and 3
	same(t, "applied", 2, len(c.node(1).applied))
	c.crash(1, 0) // what was applied is on two other disks
	c.restart(1)
	c.node(1).slow = false
	c.elect(3)
	same(t, "log of 1", []string{"", "x", ""}, commands(c.log(1)))
	c.crash(2, 0)
	c.slow(3)
	c.propose(3, "y")
	c.run()
	same(t, "commitIndex with y on 1's disk alone", 3, c.status(3).CommitIndex)
	c.save(3)
	same(t, "commitIndex", 4, c.status(3).CommitIndex)
}

// C04, B09 (openraft#1960): the greatest unbroken run counts, and nothing is forgotten.
//
//spec:test Durable.Prefix
func TestWritesThatCompleteOutOfOrderCountOnceTheGapIsClosed(t *testing.T) {
	for _, row := range []struct {
		order   []uint64
		durable []raft.Index // after each completion
	}{
		{[]uint64{1, 2, 3, 4}, []raft.Index{1, 2, 3, 4}},
		{[]uint64{4, 3, 2, 1}, []raft.Index{0, 0, 0, 4}},
		{[]uint64{2, 1, 4, 3}, []raft.Index{0, 2, 2, 4}},
		{[]uint64{3, 1, 3, 2, 1, 4}, []raft.Index{0, 1, 1, 3, 3, 4}},
	} {
		c := newCluster(t, setup{size: 1, states: map[raft.ServerID]raft.Durable{1: state(3, 1)}})
		c.slow(1)
		c.timeout(1)
		c.save(1, 1)
		for _, command := range []string{"a", "b", "c"} {
			c.propose(1, command)
		}
		for i, seq := range row.order {
			c.save(1, seq+1)
			what := fmt.Sprint("after ", row.order[:i+1])
			same(t, what+": Durable", row.durable[i], c.status(1).Durable)
			same(t, what+": commitIndex", row.durable[i], c.status(1).CommitIndex)
			same(t, "disk", int(row.durable[i]), len(c.node(1).disk.Entries))
		}
	}
}

// A completion counts only for entries that still stand. Here 1@1 to 3@1 are written, then replaced
// behind the first; the end of the first write must not vouch for what replaces them.
//
//spec:test Durable.Prefix
func TestACompletionDoesNotCountForEntriesThatWereReplaced(t *testing.T) {
	c := alone(t, 3, state(2, 0))
	c.slow(1)
	c.receive(appendEntries(2, 0, 0, 0, 1, 1, 1))
	c.receive(appendEntries(3, 1, 1, 0, 3, 3))
	c.receive(appendEntries(3, 3, 3, 0))
	c.save(1, 1)
	same(t, "log on disk", []raft.Term{1, 1, 1}, terms(c.node(1).disk.Entries))
	same(t, "Durable", 1, c.status(1).Durable)
	sent := c.outbox(1)
	same(t, "answers", 1, len(sent)) // that of term 2
	c.save(1, 2)
	same(t, "Durable", 3, c.status(1).Durable)
	same(t, "answers", 2, len(c.outbox(1)))
}

// The other way round: the later write is on the disk first, but a crash may still lose the earlier
// one and with it both.
//
//spec:test Durable.Prefix
//spec:test Durable.Before
func TestNothingBehindAnUnfinishedWriteIsAcknowledged(t *testing.T) {
	c := alone(t, 3, state(2, 0))
	c.slow(1)
	c.receive(appendEntries(2, 0, 0, 0, 1))
	c.receive(appendEntries(2, 1, 1, 0, 2))
	c.save(1, 2)
	same(t, "Durable", 0, c.status(1).Durable)
	same(t, "messages", 0, len(c.outbox(1)))
	c.receive(appendEntries(2, 2, 2, 0))
	want := raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 2, Success: true, MatchIndex: 0}
	same(t, "answer to a heartbeat", raft.Body(want), c.answer())
	c.save(1, 1)
	same(t, "messages", 2, len(c.outbox(1)))
	same(t, "Durable", 2, c.status(1).Durable)
}

// A write that lost its reason is still a write: the term must be known to be saved before the
// answer that shows it, in whatever order writes of term and entries complete (C06).
//
//spec:test Durable.Before
func TestAnAnswerWaitsForEveryEarlierWrite(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	c.slow(1)
	c.receive(requestVote(2, 2, 0, 0))
	c.receive(requestVote(2, 3, 0, 0))
	c.save(1, 2)
	same(t, "messages", 0, len(c.outbox(1)))
	c.save(1, 1)
	same(t, "messages", 2, len(c.outbox(1)))
}

// C08, B07 (etcd#14370).
//
//spec:test Leaders.4
//spec:test Durable.Leader
func TestASoleServerAppliesOnlyWhatIsSaved(t *testing.T) {
	c := newCluster(t, setup{size: 1})
	c.elect(1)
	c.slow(1)
	c.propose(1, "x")
	c.propose(1, "y")
	same(t, "applied", []string{""}, commands(c.node(1).applied))
	c.save(1, 3)
	same(t, "applied", []string{"", "x"}, commands(c.node(1).applied))
	c.crash(1, 0)
	c.restart(1)
	c.save(1)
	c.timeout(1)
	c.save(1)
	c.save(1)
	same(t, "after the crash", []string{"", "x", ""}, commands(c.node(1).applied))
}

// The state machine starts from nothing after a crash, so it is given all entries again, from the
// first.
//
//spec:test State.Volatile
//spec:test All.1
func TestARestartedServerAppliesItsLogAgain(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	c.propose(1, "x")
	c.run()
	c.crash(2, 0)
	c.restart(2)
	same(t, "applied", 0, len(c.node(2).applied))
	c.heartbeat(1)
	c.run()
	same(t, "applied", []string{"", "x"}, commands(c.node(2).applied))
}

// A driver may take the committed entries by themselves; no entry comes twice.
//
//spec:test All.1
func TestCommittedEntriesAreTakenOnce(t *testing.T) {
	c := newCluster(t, setup{size: 1})
	c.elect(1)
	c.node(1).lazy = true
	c.propose(1, "x")
	c.take(c.node(1)) // writes it, and the completion commits it
	core := c.core(1)
	same(t, "by themselves", []string{"x"}, commands(core.TakeCommitted()))
	same(t, "again", 0, len(core.TakeCommitted()))
	same(t, "with the rest", 0, len(core.Take().Committed))
}

// C12: two of five are down in turn, always others.
//
//spec:test State.Persistent
func TestProgressGoesOnWhileServersComeAndGo(t *testing.T) {
	c := newCluster(t, setup{size: 5})
	c.elect(1)
	want := []string{""}
	for i := range raft.ServerID(30) {
		a, b := 2+i%4, 2+(i+1)%4
		c.crash(a, 0)
		c.crash(b, 0)
		command := fmt.Sprint(i)
		want = append(want, command)
		c.propose(1, command)
		c.heartbeat(1)
		c.run()
		same(t, "applied by 1", want, commands(c.node(1).applied))
		c.restart(a)
		c.restart(b)
	}
	c.heartbeat(1)
	c.run()
	for id := range raft.ServerID(5) {
		same(t, "applied", want, commands(c.node(id+1).applied))
	}
}

// C13, B06: the power fails everywhere at once, and each disk keeps as much of what was under way
// as it likes. What a client was told is committed is there afterwards; the rest may or may not be.
//
//spec:test Durable.Before
//spec:test Leaders.4
func TestCommittedEntriesSurviveAPowerFailureEverywhere(t *testing.T) {
	for keep := range 3 * 3 * 3 {
		c := newCluster(t, setup{})
		c.elect(1)
		c.propose(1, "a")
		c.run()
		for id := range raft.ServerID(3) {
			c.slow(id + 1)
		}
		c.propose(1, "b")
		c.run()
		c.save(2)
		c.save(3)
		c.run()
		told := commands(c.node(1).applied)
		same(t, "told", []string{"", "a", "b"}, told)
		c.propose(1, "c")
		c.propose(1, "d")
		c.run()
		c.save(2, c.node(2).writes[0].Seq) // c is on one disk
		c.run()
		for id, n := range []int{keep % 3, keep / 3 % 3, keep / 9} {
			c.crash(raft.ServerID(id+1), n)
		}
		for id := range raft.ServerID(3) {
			c.restart(id + 1)
			c.node(id + 1).slow = false
		}
		c.elapse(10 * electionTimeout)
		for id := range raft.ServerID(3) {
			same(t, "log", c.log(c.leader()), c.log(id+1))
			if applied := commands(c.node(id + 1).applied); !slices.Equal(applied[:3], told) {
				t.Errorf("keep %d: server %d applied %v", keep, id+1, applied)
			}
		}
	}
}

// Programmer's errors panic with a sentence.
func TestACompletionOfAWriteThatWasNeverBegunPanics(t *testing.T) {
	defer func() {
		want := "raft: write 1 reported as saved, but only 0 were handed out"
		same(t, "panic", any(want), recover())
	}()
	alone(t, 3, state(1, 0)).core(1).Saved(1)
}
