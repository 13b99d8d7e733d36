package raft_test

import (
	"fmt"
	"slices"
	"testing"

	"ticketing/raft"
)

// R10: Figure 7. The leader of term 8 brings each of the six logs in line, and asks each at most
// once for each term in its own log.
//
//spec:test Leaders.3b
//spec:test Backoff.Hint
//spec:test Backoff.Term
func TestFigure7(t *testing.T) {
	logs := map[raft.ServerID][]raft.Term{
		1: {1, 1, 1, 4, 4, 5, 5, 6, 6, 6},
		2: {1, 1, 1, 4, 4, 5, 5, 6, 6},
		3: {1, 1, 1, 4},
		4: {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6},
		5: {1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7},
		6: {1, 1, 1, 4, 4, 4, 4},
		7: {1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3},
	}
	states := map[raft.ServerID]raft.Durable{}
	for id, log := range logs {
		states[id] = state(7, 0, log...)
	}
	c := newCluster(t, setup{size: 7, states: states})
	c.elect(1)
	c.run()
	for id := raft.ServerID(2); id <= 7; id++ {
		same(t, fmt.Sprintf("log of %d", id), c.log(1), c.log(id))
		same(t, "applied", 11, len(c.node(id).applied))
		probes := 0
		for _, m := range c.outbox(id) {
			if r, ok := m.Body.(raft.AppendEntriesReply); ok && !r.Success {
				probes++
			}
		}
		if probes > 4 {
			t.Errorf("server %d refused %d times, the leader's log has 4 terms", id, probes)
		}
	}
}

// The leader's half of the back-off, message by message. It leads term 8 with log
// [1 1 1 4 4 5 5 6 6 6] and its no-op at 11.
//
//spec:test Leaders.3b
//spec:test Backoff.Term
func TestTheNextProbeStepsOverAWholeTerm(t *testing.T) {
	for _, row := range []struct {
		conflictTerm raft.Term
		index, next  raft.Index
	}{
		{0, 10, 10}, // the follower's log ends at 9
		{0, 5, 5},
		{0, 1, 1},
		{6, 9, 10}, // refused at 10@6 although it has term 6 there: impossible, and harmless
		{5, 6, 8},  // this log has term 5 up to 7
		{4, 4, 6},  // and term 4 up to 5
		{3, 7, 7},  // but none of 3: behind all of it
		{2, 4, 4},
		{7, 11, 10}, // a hint that does not lead back: by one
		{9, 99, 10},
		{0, 0, 1},
	} {
		c := alone(t, 3, state(7, 0, 1, 1, 1, 4, 4, 5, 5, 6, 6, 6))
		c.leads()
		c.outbox(1)
		c.receive(refusal(2, 8, 10, row.conflictTerm, row.index))
		next, _ := c.core(1).Progress(2)
		if next != row.next {
			t.Errorf("%+v: nextIndex %d", row, next)
		}
		probes := c.appends(1, 2)
		same(t, "probes", 1, len(probes))
		same(t, "prevLogIndex", row.next-1, probes[0].PrevLogIndex)
		c.receive(refusal(2, 8, 10, row.conflictTerm, row.index)) // once more: an old one
		same(t, "probes", 1, len(c.appends(1, 2)))
		c.receive(success(2, 8, row.next-1, 11))
		same(t, "commitIndex", 11, c.status(1).CommitIndex)
	}
}

// B42: more conflicting entries than fit into one message, on both sides.
//
//spec:test Leaders.3b
func TestALongConflictIsSettledInSmallMessages(t *testing.T) {
	long := func(term raft.Term) []raft.Term { return slices.Repeat([]raft.Term{term}, 100) }
	c := newCluster(t, setup{batch: 7, window: 2, states: map[raft.ServerID]raft.Durable{
		1: state(3, 0, long(3)...), 2: state(3, 0, long(2)...), 3: state(3, 0),
	}})
	c.elect(1)
	same(t, "log of 2", c.log(1), c.log(2))
	same(t, "log of 3", c.log(1), c.log(3))
	same(t, "commitIndex of 3", 101, c.status(3).CommitIndex)
}

// R13: 2 is up to date, but the leader has doubts, since its heartbeat overtook the entry.
//
//spec:test Pipeline.Window
//spec:test Leaders.3b
func TestAFollowerThatTurnsOutToBeUpToDateIsStreamedToAgain(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	c.isolate(3)
	c.propose(1, "x")
	c.heartbeat(1)
	c.deliverAt(1, 2, 1, true)
	c.deliver(2, 1) // refused: the leader probes
	c.propose(1, "y")
	c.run()
	c.outbox(1)
	c.propose(1, "a")
	c.propose(1, "b")
	same(t, "sent without an answer", 2, len(c.appends(1, 2)))
	c.run()
	same(t, "log", c.log(1), c.log(2))
}

// What a leader believes of a follower's log comes and goes with the answers. While it does not
// know, one message at a time; an old success below the probe teaches nothing, one for the place
// before it everything, even from a disk that is slow.
//
//spec:test Pipeline.Window
//spec:test Leaders.3b
func TestALeaderProbesWithOneMessageUntilTheProbeSucceeds(t *testing.T) {
	c := newCluster(t, setup{size: 3, only: 1, batch: 1})
	c.leads()
	c.receive(success(2, 1, 0, 1))
	for range 3 {
		c.propose(1, "x")
	}
	sent := func() (prevs []raft.Index) {
		for _, a := range filled(c.appends(1, 2)) {
			prevs = append(prevs, a.PrevLogIndex)
		}
		c.outbox(1)
		return prevs
	}
	same(t, "streamed", []raft.Index{0, 1, 2, 3}, sent())
	c.receive(refusal(2, 1, 3, 0, 3))
	same(t, "probe", []raft.Index{2}, sent())
	c.receive(success(2, 1, 0, 1))
	c.propose(1, "y")
	same(t, "after an old success", []raft.Index(nil), sent())
	c.receive(success(2, 1, 2, 1))
	same(t, "after the probe's place is verified", []raft.Index{2, 3, 4}, sent())
}
