package raft_test

import (
	"errors"
	"slices"
	"testing"

	"ticketing/raft"
)

// asks lets a server read, and fails the test if it cannot.
func (c *cluster) asks(id raft.ServerID, read uint64) {
	c.t.Helper()
	c.note("%d reads as %d", id, read)
	c.input(c.node(id), func(core *raft.Core) {
		if err := core.Read(read); err != nil {
			c.fatal("server %d: read: %v", id, err)
		}
	})
}

// reads are the answers that a server has got since the last call.
func (c *cluster) reads(id raft.ServerID) []raft.ReadState {
	n := c.node(id)
	reads := n.reads
	n.reads = nil
	return reads
}

// beat answers server 1's round of heartbeats for another server, which has nothing of its log.
func beat(from raft.ServerID, term raft.Term, round uint64) raft.Message {
	return message(from, 1, term, raft.AppendEntriesReply{RequestTerm: term, ConflictIndex: 1, Round: round})
}

// rounds are the rounds of the heartbeats that server 1 has sent to 2 since the last outbox.
func (c *cluster) rounds() (rounds []uint64) {
	for _, a := range c.appends(1, 2) {
		if len(a.Entries) == 0 {
			rounds = append(rounds, a.Round)
		}
	}
	c.outbox(1)
	return rounds
}

// Q05. A read is answered when a majority has answered a round that began after it came; what one
// follower of four says is not enough, and neither is what it says twice.
//
//spec:test Read.Index
func TestAReadWaitsForARoundThatAMajorityAnswers(t *testing.T) {
	for size, needed := range map[int]int{1: 0, 2: 1, 3: 1, 4: 2, 5: 2} {
		c := alone(t, size, state(1, 0))
		c.leads()
		for id := raft.ServerID(2); int(id) <= size; id++ {
			c.receive(success(id, 2, 0, 1))
		}
		c.outbox(1)
		c.asks(1, 7)
		for i := range needed {
			same(t, "answers before a majority's", 0, len(c.reads(1)))
			c.receive(beat(raft.ServerID(i+2), 2, 1))
			c.receive(beat(raft.ServerID(i+2), 2, 1))
		}
		same(t, "answers", []raft.ReadState{{ID: 7, OK: true, Index: 1}}, c.reads(1))
	}
}

// B32 (etcd#20418): the answer to an earlier round says nothing about a later question.
//
//spec:test Read.Index
func TestAnAnswerToAnEarlierRoundConfirmsNoLaterRead(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	c.leads()
	c.receive(success(2, 2, 0, 1))
	c.rounds()
	c.asks(1, 1)
	same(t, "rounds", []uint64{1}, c.rounds())
	c.receive(beat(2, 2, 1))
	same(t, "answers", 1, len(c.reads(1)))
	c.asks(1, 2)
	same(t, "rounds", []uint64{2}, c.rounds())
	c.receive(beat(3, 2, 1)) // late
	c.receive(beat(2, 2, 1)) // a copy
	c.receive(success(2, 2, 0, 1))
	same(t, "answers", 0, len(c.reads(1)))
	c.receive(beat(3, 2, 2))
	same(t, "answers", []raft.ReadState{{ID: 2, OK: true, Index: 1}}, c.reads(1))
}

// Reads that come while a round is under way share the next one.
//
//spec:test Read.Index
func TestManyReadsShareARound(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	c.leads()
	c.receive(success(2, 2, 0, 1))
	c.rounds()
	for id := range uint64(100) {
		c.asks(1, id+1)
	}
	same(t, "rounds", []uint64{1}, c.rounds())
	c.receive(beat(2, 2, 1))
	same(t, "answers", 1, len(c.reads(1)))
	same(t, "rounds", []uint64{2}, c.rounds())
	c.receive(beat(3, 2, 2))
	same(t, "answers", 99, len(c.reads(1)))
}

// Q01, B34 (etcd#7331): what its predecessor had committed may look uncommitted to a new leader, so
// it answers nothing before an entry of its own term is committed.
//
//spec:test Read.OwnTerm
func TestANewLeaderAnswersNoReadBeforeItsOwnEntryIsCommitted(t *testing.T) {
	c := alone(t, 3, state(1, 0, 1, 1))
	c.leads()
	c.asks(1, 7)
	c.receive(success(2, 2, 2, 2)) // the old entries, which it does not know to be committed
	c.receive(beat(2, 2, 0))
	c.receive(beat(3, 2, 0))
	same(t, "answers", 0, len(c.reads(1)))
	c.receive(success(2, 2, 2, 3))
	c.receive(beat(2, 2, 1))
	same(t, "answers", []raft.ReadState{{ID: 7, OK: true, Index: 3}}, c.reads(1))
}

// Q05: a leader that hears of a later term has not led when the answers came.
//
//spec:test Read.Index
func TestALeaderThatIsDeposedFailsItsReads(t *testing.T) {
	c := alone(t, 5, state(1, 0))
	c.leads()
	c.receive(success(2, 2, 0, 1))
	c.receive(success(3, 2, 0, 1))
	c.asks(1, 7)
	c.receive(beat(2, 2, 1))
	c.receive(message(3, 1, 5, raft.AppendEntriesReply{RequestTerm: 2, Round: 1}))
	same(t, "answers", []raft.ReadState{{ID: 7}}, c.reads(1))
	if err := c.core(1).Read(8); !errors.Is(err, raft.ErrNotLeader) {
		t.Errorf("a server without a leader takes a read: %v", err)
	}
}

// A leader that is not sure yet keeps a follower's question, and refuses it in the moment in which it
// stops to lead, not when the question has waited for an election timeout: another server may know.
//
//spec:test Read.Index
func TestALeaderThatStepsDownRefusesAtOnceWhatItWasAsked(t *testing.T) {
	for name, ends := range map[string]func(*cluster){
		"hears nobody": func(c *cluster) { c.passes(electionTimeout / 2) },
		"is deposed":   func(c *cluster) { c.receive(message(3, 1, 5, raft.AppendEntriesReply{RequestTerm: 2})) },
	} {
		for _, sure := range []bool{false, true} {
			c := careful(t, 3, state(1, 0))
			c.leads()
			if sure {
				c.receive(success(2, 2, 0, 1))
			}
			c.passes(electionTimeout / 2)
			c.outbox(1)
			c.receive(message(2, 1, 2, raft.ReadIndex{ID: 6}))
			asked := c.now()
			same(t, name+": answers", 0, len(c.readReplies()))
			ends(c)
			same(t, name+": role", raft.Follower, c.status(1).Role)
			same(t, name+": within the timeout", true, c.now() < asked+electionTimeout)
			same(t, name+": refusals", []raft.ReadIndexReply{{RequestTerm: 2, ID: 6}}, c.readReplies())
		}
	}
}

// readReplies are what server 1 has answered to ReadIndex since the last outbox.
func (c *cluster) readReplies() (answers []raft.ReadIndexReply) {
	for _, m := range c.node(1).sent {
		if r, ok := m.Body.(raft.ReadIndexReply); ok {
			answers = append(answers, r)
		}
	}
	return answers
}

// A leader that nobody answers does not keep those who ask for ever, with CheckQuorum or without.
//
//spec:test Read.Index
func TestAReadThatCannotBeConfirmedFailsAfterAnElectionTimeout(t *testing.T) {
	for _, start := range []func(testing.TB, int, raft.Durable) *cluster{alone, careful} {
		c := start(t, 3, state(1, 0))
		c.leads()
		c.receive(success(2, 2, 0, 1))
		c.asks(1, 7)
		c.passes(electionTimeout - 1)
		same(t, "answers", 0, len(c.reads(1)))
		c.passes(2 * electionTimeout)
		same(t, "answers", []raft.ReadState{{ID: 7}}, c.reads(1))
	}
}

// Q02: a follower asks its leader, and hears of an index that is at least what was committed then.
//
//spec:test Read.Index
func TestAFollowerMayRead(t *testing.T) {
	c := newCluster(t, setup{careful: true})
	c.elect(2)
	i := c.propose(2, "x")
	c.run()
	c.asks(3, 9)
	c.run()
	same(t, "answers", []raft.ReadState{{ID: 9, OK: true, Index: i}}, c.reads(3))
	same(t, "answers at the leader", 0, len(c.reads(2)))
	c.isolate(2)
	c.asks(3, 10)
	c.run()
	c.elapse(c.now() + 2*electionTimeout)
	same(t, "answers, with the leader away", []raft.ReadState{{ID: 10}}, c.reads(3))
}

// What a follower has asked its leader nobody else answers, and no answer out of an earlier term
// counts, be the number the same: servers choose them, and a message may outlive the one that chose.
//
//spec:test Read.Index
func TestAFollowerTakesAnAnswerFromTheLeaderThatItAskedAlone(t *testing.T) {
	c := alone(t, 3, state(3, 0, 1))
	c.receive(appendEntries(3, 1, 1, 1))
	c.asks(1, 7)
	for _, of := range []struct {
		from raft.ServerID
		term raft.Term
	}{{3, 3}, {2, 2}} {
		yes := raft.ReadIndexReply{RequestTerm: of.term, ID: 7, Success: true}
		c.receive(message(of.from, 1, of.term, yes))
		same(t, "answers", 0, len(c.reads(1)))
	}
	c.receive(message(2, 1, 3, raft.ReadIndexReply{RequestTerm: 3, ID: 7, Success: true, Index: 1}))
	same(t, "answers", []raft.ReadState{{ID: 7, OK: true, Index: 1}}, c.reads(1))
}

// Q07 (openraft#1747): leadership is on its way, and the old leader is still asked. It answers what
// a majority confirms in its term. Once the next leader is elected, that is nothing.
//
//spec:test Read.Index
func TestALeaderThatHandsOverAnswersNoReadOnceTheNextIsElected(t *testing.T) {
	c := newCluster(t, setup{careful: true})
	c.elect(1)
	c.heartbeat(1)
	c.run()
	c.transfers(1, 2)
	c.asks(1, 7)
	c.deliver(1, 2) // TimeoutNow
	c.deliver(2, 3) // the request for a vote, and the vote
	c.deliver(3, 2)
	same(t, "new leader", rank{raft.Leader, 2, 2}, c.rank(2))
	c.deliver(2, 3) // its first entry
	c.deliver(3, 2)
	same(t, "committed", 2, c.status(2).CommitIndex)
	same(t, "old leader", rank{raft.Leader, 1, 1}, c.rank(1))
	c.asks(1, 8)
	c.deliver(1, 3) // the round, which is answered in the new term
	c.deliver(3, 1)
	same(t, "answers", []raft.ReadState{{ID: 7}, {ID: 8}}, c.reads(1))
}

// Q07 again: however much is read, leadership goes where it is sent, and a dead leader is replaced.
//
//spec:test Read.Index
func TestReadsThatNeverEndHoldUpNoElection(t *testing.T) {
	for _, careful := range []bool{true, false} {
		c := newCluster(t, setup{careful: careful})
		c.elect(1)
		c.heartbeat(1)
		c.run()
		asked := uint64(0)
		everybodyReads := func() {
			for id := raft.ServerID(1); id <= 3; id++ {
				if c.status(id).Leader != 0 {
					asked++
					c.asks(id, asked)
				}
			}
		}
		everybodyReads()
		c.transfers(1, 2)
		everybodyReads()
		c.run()
		same(t, "leader", rank{raft.Leader, 2, 2}, c.rank(2))
		c.isolate(2)
		for end := c.now() + 10*electionTimeout; c.now() < end && c.rank(1).Leader%2 == 0; {
			everybodyReads()
			c.elapse(c.now() + electionTimeout/10)
			c.tick(2, c.now()+electionTimeout/10)
		}
		if leader := c.rank(1).Leader; leader != 1 && leader != 3 {
			t.Errorf("%d leads, after %d questions", leader, asked)
		}
		if asked < 20 {
			t.Errorf("%d questions hold nobody up", asked)
		}
	}
}

// Who does not lead says so: to a follower that believes that it does.
//
//spec:test Followers.1
func TestAReadAtTheWrongServerIsRefused(t *testing.T) {
	c := alone(t, 3, state(3, 0, 1))
	c.receive(message(2, 1, 3, raft.ReadIndex{ID: 5}))
	same(t, "answer", raft.Body(raft.ReadIndexReply{RequestTerm: 3, ID: 5}), c.answer())
	c.leads()
	c.outbox(1)
	c.receive(message(2, 1, 3, raft.ReadIndex{ID: 6})) // of the term before
	same(t, "answer", raft.Body(raft.ReadIndexReply{RequestTerm: 3, ID: 6}), c.answer())
}

// A deposed leader that does not know it must not answer: the new leader has committed something
// since.
//
//spec:test Read.Index
func TestADeposedLeaderAnswersNoRead(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	c.isolate(1)
	c.elect(2)
	i := c.propose(2, "new")
	c.run()
	c.asks(1, 1)
	c.asks(2, 2)
	c.run()
	c.heartbeat(1)
	c.run()
	same(t, "answers at the deposed leader", 0, len(c.reads(1)))
	same(t, "answers at the leader", []raft.ReadState{{ID: 2, OK: true, Index: i}}, c.reads(2))
	c.heal()
	c.heartbeat(1)
	c.run()
	if got := c.reads(1); !slices.Equal(got, []raft.ReadState{{ID: 1}}) {
		t.Errorf("answers at the deposed leader: %+v", got)
	}
}
