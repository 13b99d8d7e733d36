package raft_test

import (
	"fmt"
	"testing"

	"ticketing/raft"
)

// P06. The heartbeat of a leader whose follower has answered nothing claims nothing for it.
//
//spec:test Leaders.1
func TestAHeartbeatIsOneEmptyAppendEntriesToEachPeer(t *testing.T) {
	c := in(t, raft.Leader)
	for range 10 {
		c.propose(1, "x")
	}
	same(t, "sent while the first message is unanswered", 0, len(c.outbox(1)))
	c.tick(1, c.core(1).Deadline())
	same(t, "heartbeats", []raft.Message{
		message(1, 2, 1, raft.AppendEntries{}), message(1, 3, 1, raft.AppendEntries{}),
	}, c.outbox(1))
}

// B55 (openraft 5e15946d): due a period after the last one was due, or late wake-ups would add up.
// After a long sleep it does not catch up, and one that a script asks for early puts off none for
// longer.
//
//spec:test Leaders.1
func TestHeartbeatsKeepTheirRhythm(t *testing.T) {
	c := in(t, raft.Leader)
	due := c.core(1).Deadline()
	same(t, "first", heartbeatTimeout, due)
	c.tick(1, due-1)
	same(t, "messages before the time", 0, len(c.outbox(1)))
	c.tick(1, due+heartbeatTimeout/3)
	same(t, "messages", 2, len(c.outbox(1)))
	same(t, "after a late one", 2*heartbeatTimeout, c.core(1).Deadline())
	now := 10*heartbeatTimeout + 7
	c.tick(1, now)
	same(t, "messages", 2, len(c.outbox(1)))
	same(t, "after a sleep", now+heartbeatTimeout, c.core(1).Deadline())
	for range 5 {
		c.heartbeat(1)
	}
	same(t, "messages", 10, len(c.outbox(1)))
	same(t, "after early ones", now+heartbeatTimeout, c.core(1).Deadline())
}

// A follower that beat would be taken for a leader.
//
//spec:test Leaders.1
func TestOnlyALeaderBeats(t *testing.T) {
	for _, role := range []raft.Role{raft.Follower, raft.Candidate} {
		c := in(t, role)
		deadline := c.core(1).Deadline()
		c.heartbeat(1)
		same(t, "messages", 0, len(c.outbox(1)))
		same(t, "deadline", deadline, c.core(1).Deadline())
	}
}

// R03.
//
//spec:test Leaders.3b
func TestAHeartbeatsAnswerMakesTheLeaderResendOnlyToWhoLags(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	c.cut(1, 3)
	c.propose(1, "x")
	c.run()
	same(t, "last index of 3", 1, c.status(3).LastIndex)
	c.heal()
	c.outbox(1)
	c.heartbeat(1)
	c.run()
	same(t, "to 2", 1, len(c.appends(1, 2)))
	same(t, "to 3", 2, len(c.appends(1, 3)))
	same(t, "log of 3", c.log(1), c.log(3))
	same(t, "commitIndex of 3", 2, c.status(3).CommitIndex)
}

// A probe that is lost is found out by the next heartbeat, which asks for the same place.
//
//spec:test Pipeline.Window
//spec:test Leaders.1
func TestALostProbeIsRepeatedAfterAHeartbeat(t *testing.T) {
	for _, behind := range []bool{false, true} {
		states := map[raft.ServerID]raft.Durable{1: state(1, 0, 1, 1), 2: state(1, 0, 1, 1)}
		if behind {
			states[2] = state(1, 0)
		}
		c := newCluster(t, setup{states: states})
		c.cut(1, 3)
		c.timeout(1)
		c.deliver(1, 2)
		c.deliver(2, 1)
		c.drop(1, 2)
		c.propose(1, "x")
		c.run()
		same(t, "sent meanwhile", raft.Index(len(states[2].Entries)), c.status(2).LastIndex)
		c.heartbeat(1)
		c.run()
		same(t, "log", c.log(1), c.log(2))
		same(t, "commitIndex", 4, c.status(2).CommitIndex)
	}
}

// R14: the message that tells of the commit is lost.
//
//spec:test Leaders.1
func TestAFollowerLearnsTheCommitIndexWithinOneHeartbeat(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	c.propose(1, "x")
	c.deliver(1, 2)
	c.deliver(1, 3)
	c.deliver(2, 1)
	c.deliver(3, 1)
	same(t, "commitIndex of 1", 2, c.status(1).CommitIndex)
	c.drop(1, 2)
	c.drop(1, 3)
	c.run()
	same(t, "commitIndex of 2", 1, c.status(2).CommitIndex)
	c.heartbeat(1)
	c.run()
	for _, id := range []raft.ServerID{2, 3} {
		same(t, "applied", []string{"", "x"}, commands(c.node(id).applied))
	}
}

// B43, L3: an idle cluster sends heartbeats and nothing else, whatever has come twice or late
// before.
//
//spec:test Leaders.3b
func TestAnIdleClusterSendsOnlyHeartbeats(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	for i := range 5 {
		c.propose(1, fmt.Sprint(i))
	}
	for _, id := range []raft.ServerID{2, 3} {
		for n := len(c.queues[link{1, id}]); n > 0; n-- {
			c.deliverAt(1, id, n-1, false)
			c.deliverAt(1, id, n-1, true)
		}
		for n := len(c.queues[link{id, 1}]); n > 0; n-- {
			c.deliverAt(id, 1, n-1, false)
			c.deliverAt(id, 1, n-1, true)
		}
	}
	c.run()
	c.outbox(1)
	for range 3 {
		c.heartbeat(1)
		c.run()
	}
	for _, id := range []raft.ServerID{2, 3} {
		same(t, "messages", 3, len(c.appends(1, id)))
		same(t, "with entries", 0, len(filled(c.appends(1, id))))
		same(t, "log", c.log(1), c.log(id))
	}
}
