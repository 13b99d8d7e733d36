package raft_test

import (
	"slices"
	"testing"

	"ticketing/raft"
)

// Zoo 44 (etcd-io/raft#33): original and clone share entries. Both append, so the second would
// write into the slot that the first has filled, if they shared what lies behind the log's end.
func TestALeaderAndItsCloneAppendWithoutSeeingEachOther(t *testing.T) {
	for length := range 9 { // one of them leaves room in the log's array
		c := alone(t, 3, state(0, 0))
		c.leads()
		for range length {
			c.propose(1, "x")
		}
		original := c.core(1)
		clone := original.Clone()
		grandchild := clone.Clone()
		for core, command := range map[*raft.Core]string{
			original: "original", clone: "clone", grandchild: "grandchild",
		} {
			if _, _, err := core.Propose([]byte(command)); err != nil {
				t.Fatal(err)
			}
		}
		for core, command := range map[*raft.Core]string{
			original: "original", clone: "clone", grandchild: "grandchild",
		} {
			log := logOf(core)
			same(t, "last command", command, string(log[len(log)-1].Command))
		}
	}
}

// A follower replaces a suffix. A clone, a message that it sent when it led, a write that is under
// way, and entries that were applied all still show what they showed.
//
//spec:test AE.3
func TestReplacingASuffixChangesNothingThatHasLeftTheLog(t *testing.T) {
	c := alone(t, 3, state(0, 0))
	c.slow(1)
	c.timeout(1)
	c.save(1)
	c.receive(vote(2, 1, true))
	c.receive(refusal(2, 1, 0, 0, 1))
	for _, command := range []string{"a", "b", "c"} {
		c.propose(1, command)
	}
	core := c.core(1)
	clone, log := core.Clone(), core.Entries(1, 4)
	sent, written := c.appends(1, 2), c.node(1).writes
	if err := core.Receive(appendEntries(2, 0, 0, 0, 2, 2)); err != nil {
		t.Fatal(err)
	}
	core.Take()
	if err := core.Receive(appendEntries(2, 2, 2, 0, 2, 2, 2)); err != nil {
		t.Fatal(err)
	}
	want := []string{"", "a", "b", "c"}
	same(t, "entries taken before", want, commands(log))
	same(t, "clone", want, commands(logOf(clone)))
	for _, a := range sent {
		for _, e := range a.Entries {
			same(t, "sent", want[e.Index-1], string(e.Command))
		}
	}
	for _, w := range written {
		for _, e := range w.Entries {
			same(t, "written", want[e.Index-1], string(e.Command))
		}
	}
	same(t, "log", entries(1, 2, 2, 2, 2, 2), c.log(1))
}

// Entries are shared to read. To append to such a slice is the caller's right, and must not reach
// the log.
func TestAppendingToTheLogsEntriesDoesNotReachTheLog(t *testing.T) {
	c := alone(t, 3, state(1, 0, 1, 1, 1))
	_ = append(c.core(1).Entries(1, 1), raft.Entry{Index: 2, Term: 9})
	same(t, "log", entries(1, 1, 1, 1), c.log(1))
}

// Whatever the original goes through, its clone stays as it was: its log, its votes, its windows,
// what it holds back and what it waits for.
func TestACloneIsUntouchedByItsOriginal(t *testing.T) {
	for _, role := range roles {
		c := in(t, role)
		c.slow(1)
		if role == raft.Leader {
			c.receive(success(2, 1, 0, 0)) // streaming, with nothing committed
			c.propose(1, "x")
		}
		c.tick(1, c.core(1).Deadline())
		original := c.core(1)
		clone, model := original.Clone(), original.Clone()
		for _, m := range []raft.Message{
			vote(2, original.Status().Term, role == raft.Candidate),
			appendEntries(9, 0, 0, 0, 7, 8, 9), requestVote(3, 10, 9, 9),
		} {
			if err := original.Receive(m); err != nil {
				t.Fatal(err)
			}
			original.Take()
		}
		original.ElectionTimeout()
		original.Take()
		for seq := range c.node(1).seq {
			original.Saved(seq + 1)
		}
		for range 2 {
			same(t, "state", model.Status(), clone.Status())
			same(t, "log", logOf(model), logOf(clone))
			same(t, "output", model.Take(), clone.Take())
			for seq := range c.node(1).seq { // what was held back goes now
				model.Saved(seq + 1)
				clone.Saved(seq + 1)
			}
		}
		same(t, "output", model.Take(), clone.Take())
		same(t, "deadline", model.Deadline(), clone.Deadline())
	}
}

// And the other way round.
func TestAnOriginalIsUntouchedByItsClone(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	c.slow(2)
	c.propose(1, "x")
	c.propose(1, "y")
	for _, n := range c.nodes {
		clone := n.core.Clone()
		for seq := range n.seq {
			clone.Saved(seq + 1)
		}
		clone.Take()
		if err := clone.Receive(message(n.id%3+1, n.id, 9, raft.AppendEntries{})); err != nil {
			t.Fatal(err)
		}
		clone.ElectionTimeout()
		clone.Take()
	}
	c.run()
	c.save(2)
	c.run()
	for id := range raft.ServerID(3) {
		same(t, "applied", []string{"", "x", "y"}, commands(c.node(id+1).applied))
	}
}

// Each of a core's lists is copied: what a leader knows of its peers, which messages are
// unanswered, which writes are under way. Here the clone learns something in each, and the original
// must not.
func TestALeadersBooksAreItsOwn(t *testing.T) {
	c := alone(t, 3, state(0, 0))
	c.leads()
	c.receive(success(2, 1, 0, 1))
	c.slow(1)
	for range 4 { // the window is full, and four writes are under way
		c.propose(1, "x")
	}
	original := c.core(1)
	clone := original.Clone()
	if err := clone.Receive(success(2, 1, 1, 2)); err != nil {
		t.Fatal(err)
	}
	clone.Saved(4)
	clone.Saved(3)
	same(t, "the clone's Durable", 3, clone.Status().Durable)
	_, match := original.Progress(2)
	same(t, "matchIndex", 1, match)
	same(t, "Durable", 1, original.Status().Durable)
	c.outbox(1)
	c.propose(1, "y")
	same(t, "messages into the full window", 0, len(c.appends(1, 2)))
	c.save(1, 4)
	same(t, "Durable behind an unfinished write", 1, c.status(1).Durable)
	c.receive(success(2, 1, 1, 2))
	sent := filled(c.appends(1, 2))
	same(t, "messages after one answer", 1, len(sent))
	same(t, "prevLogIndex", 5, sent[0].PrevLogIndex)
	c.save(1)
	same(t, "Durable", 6, c.status(1).Durable)
}

// Nor does a clone write into the output that its original has given out.
func TestAnOutputIsUntouchedByAClone(t *testing.T) {
	c := in(t, raft.Leader)
	original := c.core(1)
	original.HeartbeatTimeout()
	out := original.Take()
	want := slices.Clone(out.Messages)
	clone := original.Clone()
	if err := clone.Receive(requestVote(3, 2, 9, 1)); err != nil {
		t.Fatal(err)
	}
	clone.Saved(clone.Take().Write.Seq)
	same(t, "the clone's messages", 1, len(clone.Take().Messages))
	same(t, "the original's", want, out.Messages)
}

// An Output's slices are the core's until the next Take, but a message's entries are kept: by the
// time it is delivered the leader has appended more, and its log has moved to a larger array.
func TestWhatWasTakenStaysAsItWas(t *testing.T) {
	c := newCluster(t, setup{window: 100})
	c.elect(1)
	c.timeout(2) // a rival, so that the log is replaced too while messages lie in the queues
	for range 40 {
		c.propose(1, "x")
	}
	c.run() // deliver compares each message's entries with a copy made when it was sent
	same(t, "leader", 0, c.leader())
	c.elect(1)
	for id := range raft.ServerID(3) {
		same(t, "log", c.log(1), c.log(id+1))
	}
}
