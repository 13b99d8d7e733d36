package raft_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ticketing/raft"
)

// servers is a configuration: voters, and with a minus learners.
func servers(ids ...int) (members raft.Configuration) {
	for _, id := range ids {
		members = append(members, raft.Member{ID: raft.ServerID(max(id, -id)), Voter: id > 0})
	}
	return members
}

// change lets a leader change the servers, and returns the index of the entry.
func (c *cluster) change(id raft.ServerID, next raft.Configuration) (index raft.Index) {
	c.note("%d changes the servers to %v", id, next)
	c.input(c.node(id), func(core *raft.Core) {
		var err error
		if index, _, err = core.ChangeMembers(next); err != nil {
			c.fatal("server %d: %v", id, err)
		}
	})
	return index
}

// canChange returns the error of the same at a clone.
func (c *cluster) canChange(id raft.ServerID, next raft.Configuration) error {
	_, _, err := c.core(id).Clone().ChangeMembers(next)
	return err
}

// inEffect tells who is in the cluster by a server's log, and by which entry.
func (c *cluster) inEffect(id raft.ServerID) string {
	members, index := c.core(id).Members()
	text := fmt.Sprint(index, ":")
	for _, m := range members {
		sign := ""
		if !m.Voter {
			sign = "-"
		}
		text += fmt.Sprint(" ", sign, m.ID)
	}
	return text
}

// M01: a learner is added, catches up, is promoted, and its vote counts; then one is removed. What is
// in the log counts at once, on every server that has it.
//
//spec:test Members.Append
//spec:test Members.One
func TestServersAreAddedPromotedAndRemovedOneAtATime(t *testing.T) {
	c := newCluster(t, setup{size: 3, joining: 1, careful: true})
	c.elect(1)
	c.propose(1, "x")
	c.run()
	index := c.change(1, servers(1, 2, 3, -4))
	same(t, "in effect before it is committed", fmt.Sprint(index, ": 1 2 3 -4"), c.inEffect(1))
	if err := c.canChange(1, servers(1, 2, -4)); !errors.Is(err, raft.ErrChanging) {
		t.Errorf("another change before the first is committed: %v", err)
	}
	c.run()
	for id := raft.ServerID(1); id <= 4; id++ {
		same(t, "in effect", fmt.Sprint(index, ": 1 2 3 -4"), c.inEffect(id))
	}
	index = c.change(1, servers(1, 2, 3, 4))
	c.run()
	same(t, "its log", c.status(1).LastIndex, c.status(4).LastIndex)
	same(t, "promoted", fmt.Sprint(index, ": 1 2 3 4"), c.inEffect(4))
	index = c.change(1, servers(1, 3, 4))
	c.run()
	c.heartbeat(1)
	c.run()
	same(t, "the others", fmt.Sprint(index, ": 1 3 4"), c.inEffect(4))
	same(t, "the one that was removed has heard of it", fmt.Sprint(index, ": 1 3 4"), c.inEffect(2))
	if commit := c.status(2).CommitIndex; commit < index {
		t.Errorf("it has not heard that it is committed: %d of %d", commit, index)
	}
}

// B61: a leader that has committed nothing of its own may not know of a change that is on its way.
//
//spec:test Members.OwnTerm
func TestALeaderChangesNothingBeforeItHasCommittedSomething(t *testing.T) {
	c := careful(t, 4, state(1, 0))
	c.elected()
	if err := c.canChange(1, servers(1, 2, 3)); !errors.Is(err, raft.ErrChanging) {
		t.Errorf("at once: %v", err)
	}
	c.receive(success(2, 2, 0, 1))
	if err := c.canChange(1, servers(1, 2, 3)); !errors.Is(err, raft.ErrChanging) {
		t.Errorf("with two of four: %v", err) // R21
	}
	c.receive(success(3, 2, 0, 1))
	if err := c.canChange(1, servers(1, 2, 3)); err != nil {
		t.Errorf("then: %v", err)
	}
}

// A learner is no help before it has the log, and one that does not answer is none at all.
//
//spec:test Members.CaughtUp
func TestALearnerIsPromotedWhenItHasCaughtUp(t *testing.T) {
	c := careful(t, 3, state(1, 0))
	c.elected()
	c.receive(success(2, 2, 0, 1))
	index := c.change(1, servers(1, 2, 3, -4))
	c.receive(success(2, 2, 1, index))
	promoted := servers(1, 2, 3, 4)
	if err := c.canChange(1, promoted); !errors.Is(err, raft.ErrChanging) {
		t.Errorf("it has nothing: %v", err)
	}
	c.receive(success(4, 2, 1, index))
	if err := c.canChange(1, promoted); err != nil {
		t.Errorf("it has everything: %v", err)
	}
	c.receive(success(2, 2, 1, index))
	c.passes(c.setup.config(1).ElectionTimeout)
	if err := c.canChange(1, promoted); err == nil {
		t.Error("it has said nothing for an election timeout")
	}
}

// A learner's copy counts for nothing, nor does that of a leader which is no voter; when its removal
// is committed, that leader steps down.
//
//spec:test Members.Quorum
//spec:test Members.Leave
func TestOnlyVotersCount(t *testing.T) {
	c := careful(t, 3, state(1, 0))
	c.elected()
	c.receive(success(2, 2, 0, 1))
	index := c.change(1, servers(1, 2, 3, -4))
	c.receive(success(4, 2, 1, index))
	same(t, "with a learner's copy", 1, c.status(1).CommitIndex)
	c.receive(success(3, 2, 1, index))
	same(t, "with a voter's", index, c.status(1).CommitIndex)
	gone := c.change(1, servers(2, 3, -4))
	c.receive(success(4, 2, index, gone))
	c.receive(success(2, 2, index, gone))
	same(t, "with its own and another's", index, c.status(1).CommitIndex)
	same(t, "still", raft.Leader, c.status(1).Role)
	c.receive(success(3, 2, index, gone))
	same(t, "with both of the others'", gone, c.status(1).CommitIndex)
	same(t, "and then", raft.Follower, c.status(1).Role)
	c.timeout(1)
	same(t, "nor does it campaign", raft.Follower, c.status(1).Role)
}

// An entry that is replaced takes its configuration with it.
//
//spec:test Members.Fallback
func TestAChangeThatIsReplacedIsTakenBack(t *testing.T) {
	c := careful(t, 3, state(1, 0, 1))
	c.receive(message(2, 1, 2, raft.AppendEntries{PrevLogIndex: 1, PrevLogTerm: 1, Entries: []raft.Entry{
		{Index: 2, Term: 2, Members: servers(1, 2, 3, -4)}, {Index: 3, Term: 2},
	}}))
	same(t, "with the entry", "2: 1 2 3 -4", c.inEffect(1))
	c.receive(message(3, 1, 3, raft.AppendEntries{PrevLogIndex: 1, PrevLogTerm: 1, Entries: []raft.Entry{
		{Index: 2, Term: 3}, {Index: 3, Term: 3, Members: servers(1, 2)},
	}}))
	same(t, "with the one that replaces it", "3: 1 2", c.inEffect(1))
	c.receive(message(2, 1, 4, raft.AppendEntries{PrevLogIndex: 1, PrevLogTerm: 1, Entries: []raft.Entry{
		{Index: 2, Term: 4},
	}}))
	same(t, "with none", "0: 1 2 3", c.inEffect(1))
}

// M05: to remove a server that is down makes the majority smaller, and what waited is committed.
//
//spec:test Members.Quorum
func TestARemovalCommitsWhatWaited(t *testing.T) {
	c := careful(t, 4, state(1, 0))
	c.elected()
	c.receive(success(2, 2, 0, 1))
	c.receive(success(3, 2, 0, 1))
	x := c.propose(1, "x")
	c.receive(success(2, 2, 1, x))
	same(t, "with two of four", 1, c.status(1).CommitIndex)
	c.change(1, servers(1, 2, 3))
	same(t, "with two of three", x, c.status(1).CommitIndex)
}

// What can never be is refused, and says why.
func TestImpossibleChangesAreRefused(t *testing.T) {
	c := careful(t, 3, state(1, 0))
	c.elected()
	c.receive(success(2, 2, 0, 1))
	twice := servers(1, 2, 3, -4, -5)
	twice[3].Address, twice[4].Address = "a:1", "a:1"
	for reason, next := range map[string]raft.Configuration{
		"is there twice":                     servers(1, 2, 3, -3),
		"two servers have the address a:1":   twice,
		"has id 0":                           servers(0, 1, 2, 3),
		"no server votes":                    servers(-1),
		"added as a learner":                 servers(1, 2, 3, 4),
		"it changes 2 servers":               servers(1),
		"it is what there is":                servers(1, 2, 3),
		"it changes 2 servers, and can chan": servers(1, 2, -4),
	} {
		if err := c.canChange(1, next); !errors.Is(err, raft.ErrMembers) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v: error %v, want %q", next, err, reason)
		}
	}
	c.receive(message(2, 1, 3, raft.AppendEntries{PrevLogIndex: 1, PrevLogTerm: 2}))
	if err := c.canChange(1, servers(1, 2)); !errors.Is(err, raft.ErrNotLeader) {
		t.Errorf("a follower: %v", err)
	}
}
