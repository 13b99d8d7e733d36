package raft_test

import (
	"fmt"
	"slices"
	"testing"

	"ticketing/raft"
)

// A snapshot takes effect when it is durable, and not before: until then the log stays, in memory and on
// the disk. The write that says so comes after.
//
//spec:test Snapshot.Save
func TestTheLogStaysUntilTheSnapshotIsDurable(t *testing.T) {
	c := newCluster(t, setup{size: 1, keep: 1})
	c.elect(1)
	for range 4 {
		c.propose(1, "x")
	}
	c.slow(1)
	c.newWrites(1)
	c.compact(1, 4)
	same(t, "first entry", 1, c.core(1).FirstIndex())
	same(t, "writes", 0, len(c.newWrites(1)))
	c.saveSnapshot(1)
	same(t, "first entry", 4, c.core(1).FirstIndex())
	written := c.newWrites(1)
	same(t, "writes", 1, len(written))
	same(t, "the write's snapshot", 4, written[0].Snapshot.LastIncludedIndex)
	same(t, "the write's entries", 0, len(written[0].Entries))
	same(t, "the disk's", (*raft.Snapshot)(nil), c.node(1).disk.Snapshot)
	same(t, "durable", 5, c.status(1).Durable)
	c.save(1)
	same(t, "the disk's", entries(5, 1)[0].Index, c.node(1).disk.Entries[0].Index)
	c.propose(1, "y")
	same(t, "the next write's snapshot", (*raft.Snapshot)(nil), c.newWrites(1)[0].Snapshot)
}

// A crash at each step of taking and of installing a snapshot: whatever is durable by then, the server
// starts, has forgotten nothing that it has said, and catches up.
//
//spec:test Snapshot.Save
//spec:test Snapshot.Installed
func TestACrashAtAnyStepOfASnapshotLosesNothing(t *testing.T) {
	run := func(t *testing.T, victim raft.ServerID, states map[raft.ServerID]raft.Durable, steps, keep int) (done bool) {
		c := newCluster(t, setup{states: states, chunk: 20})
		c.isolate(3)
		c.elect(1)
		for _, command := range []string{"a", "b", "c"} {
			c.propose(1, command)
		}
		c.run()
		c.slow(victim)
		c.propose(1, "d")
		last := c.core(2).Status().LastIndex - 1
		if victim == 3 {
			c.compact(1, last)
			c.heal()
			c.passes(electionTimeout)
		} else {
			c.compact(1, last)
		}
		for ; steps > 0; steps-- { // each completes one write, or one snapshot
			c.run()
			switch n := c.node(victim); {
			case len(n.writes) > 0:
				c.save(victim, n.writes[0].Seq)
			case n.saving != nil:
				c.saveSnapshot(victim)
			default:
				return true
			}
		}
		c.run()
		c.crash(victim, keep)
		c.restart(victim)
		c.node(victim).slow = false
		c.heal()
		c.drop(1, 3)
		c.elapse(c.clock + 20*electionTimeout)
		leader := c.leader()
		if leader == 0 {
			c.fatal("no leader")
		}
		c.propose(leader, "z")
		c.elapse(c.clock + electionTimeout)
		c.alike()
		return false
	}
	old := map[raft.ServerID]raft.Durable{3: state(1, 0, 1, 1, 1, 1, 1)}
	young := map[raft.ServerID]raft.Durable{3: state(0, 0)}
	for id := range raft.ServerID(2) {
		old[id+1], young[id+1] = state(2, 0, 1, 2), state(0, 0)
	}
	for name, states := range map[string]map[raft.ServerID]raft.Durable{"empty": young, "conflicting": old} {
		for _, victim := range []raft.ServerID{1, 3} {
			t.Run(fmt.Sprint(name, victim), func(t *testing.T) {
				steps := 0
				for ; !run(t, victim, states, steps, 0); steps++ {
					run(t, victim, states, steps, 1)
				}
				if steps < 3 {
					t.Errorf("only %d steps: not a snapshot and the write that names it", steps)
				}
			})
		}
	}
}

// The last part is answered with yes when the write that names the snapshot is durable: before that a
// crash leaves the old log. Everything before is answered at once, however slow the disk is.
//
//spec:test Snapshot.Installed
func TestASnapshotIsNotSaidToBeInstalledBeforeItsWriteIsDurable(t *testing.T) {
	c := alone(t, 3, state(1, 0, 1))
	c.slow(1)
	c.receive(appendEntries(1, 1, 1, 0, 1))
	c.receive(chunk(1, 4, 1, 0, "ab", false))
	same(t, "answers while a write is on its way", 1, len(c.outbox(1)))
	c.receive(chunk(1, 4, 1, 2, "cd", true))
	c.receive(chunk(1, 4, 1, 2, "cd", true))
	same(t, "answer to a repetition", raft.Body(raft.InstallSnapshotReply{
		RequestTerm: 1, LastIncludedIndex: 4, Offset: 4}), c.answer())
	c.saveSnapshot(1)
	same(t, "committed", 4, c.status(1).CommitIndex)
	same(t, "answers", 0, len(c.outbox(1)))
	c.receive(chunk(1, 4, 1, 0, "ab", false))
	same(t, "answers to what is installed", 0, len(c.outbox(1)))
	c.save(1)
	for _, m := range c.outbox(1)[1:] { // the first is about the entries of before
		same(t, "installed", true, m.Body.(raft.InstallSnapshotReply).Installed)
	}
	c.receive(chunk(1, 4, 1, 0, "ab", false))
	same(t, "installed", true, c.answer().(raft.InstallSnapshotReply).Installed)
}

// The same between two Takes: a heartbeat's answer leaves at once, and counts nothing of a log that no
// write has taken the place of yet.
//
//spec:test Snapshot.Installed
//spec:test Durable.Heartbeat
func TestAHeartbeatsAnswerDoesNotCountASnapshotThatNoWriteHasNamed(t *testing.T) {
	c := alone(t, 3, state(2, 0, 1, 1, 1))
	c.slow(1)
	c.receive(chunk(2, 3, 2, 0, "ab", true))
	c.node(1).lazy = true
	c.saveSnapshot(1)
	c.receive(appendEntries(2, 3, 2, 3))
	c.take(c.node(1))
	same(t, "answer", raft.Body(raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 3, Success: true}), c.answer())
	same(t, "durable", 0, c.status(1).Durable)
	c.save(1)
	same(t, "durable", 3, c.status(1).Durable)
}

// A leader that has been deposed meanwhile is told so, and not that its snapshot is installed: by its
// rules a yes comes in the term of the request.
func TestALeaderOfThePastIsNotToldThatItsSnapshotIsInstalled(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	c.slow(1)
	c.receive(chunk(1, 4, 1, 0, "ab", true))
	c.receive(requestVote(3, 2, 9, 1))
	c.saveSnapshot(1)
	c.save(1)
	sent := c.outbox(1)
	same(t, "answer", message(1, 2, 2, raft.InstallSnapshotReply{
		RequestTerm: 1, LastIncludedIndex: 4, Offset: 2}), sent[len(sent)-1])
	same(t, "installed all the same", 4, c.status(1).CommitIndex)
	c.receive(chunk(1, 9, 1, 0, "ab", true))
	same(t, "answer to an old term", message(1, 2, 2, raft.InstallSnapshotReply{
		RequestTerm: 1, LastIncludedIndex: 9}), c.outbox(1)[0])
}

// Between the last part and the disk's answer, entries may have brought the log as far, or farther, and
// some of that may be applied. Then the snapshot stands for what is there, and nothing is reset.
//
//spec:test Snapshot.Suffix
func TestALogThatOvertakesTheSnapshotIsKept(t *testing.T) {
	for _, lazy := range []bool{true, false} {
		for commit := range raft.Index(6) {
			c := alone(t, 3, state(1, 0, 1))
			c.slow(1)
			c.receive(chunk(1, 3, 1, 0, "ab", true))
			c.node(1).lazy = lazy
			c.receive(appendEntries(1, 0, 0, commit, 1, 1, 1, 1, 1))
			c.node(1).applied = append(c.node(1).applied, c.core(1).TakeCommitted()...)
			c.saveSnapshot(1)
			c.node(1).lazy = false
			c.take(c.node(1))
			want := max(commit, 3)
			same(t, "applied", entries(1, slices.Repeat([]raft.Term{1}, int(want))...), c.node(1).applied)
			same(t, "log", entries(4, 1, 1), logOf(c.core(1))[3-c.core(1).FirstIndex()+1:])
			c.save(1)
			same(t, "disk", entries(4, 1, 1), c.node(1).disk.Entries)
			same(t, "durable", 5, c.status(1).Durable)
			c.crash(1, 0)
			c.restart(1)
			same(t, "log", entries(4, 1, 1), logOf(c.core(1)))
		}
	}
}

// A driver whose state machine proposes on what it sees asks for the committed entries ahead of Take. It
// gets none that belong behind a snapshot before it has had that.
//
//spec:test Snapshot.Restore
func TestNothingIsAppliedBeforeTheStateMachineIsReset(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	core := c.core(1)
	receive := func(m raft.Message) {
		t.Helper()
		if err := core.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	receive(chunk(1, 3, 1, 0, "ab", true))
	save := core.Take().Save
	core.SnapshotSaved(3)
	receive(appendEntries(1, 3, 1, 5, 1, 1))
	same(t, "committed, before the snapshot", 0, len(core.TakeCommitted()))
	clone := core.Clone()
	same(t, "restore", save, core.TakeRestore())
	same(t, "restore, again", (*raft.Snapshot)(nil), core.TakeRestore())
	same(t, "committed behind it", entries(4, 1, 1), core.TakeCommitted())
	same(t, "restore, with the rest", (*raft.Snapshot)(nil), core.Take().Restore)
	out := clone.Take()
	same(t, "restore in one", save, out.Restore)
	same(t, "committed in one", entries(4, 1, 1), out.Committed)
}

// B31: a snapshot takes as long as it takes. A leader that saves one has no slow disk.
//
//spec:test CheckQuorum.StepDown
func TestALeaderThatSavesASnapshotForLongGoesOnLeading(t *testing.T) {
	c := newCluster(t, setup{careful: true})
	c.elect(1)
	c.propose(1, "x")
	c.run()
	c.slow(1)
	c.compact(1, 2)
	c.elapse(c.clock + 20*electionTimeout)
	same(t, "being saved", true, c.node(1).saving != nil)
	same(t, "leader", rank{raft.Leader, 1, 1}, c.rank(1))
}

// One at a time: a leader's snapshot that is whole waits until the server's own is saved, and the last
// part is sent again.
func TestALeadersSnapshotWaitsForTheServersOwn(t *testing.T) {
	c := alone(t, 3, state(1, 0, 1, 1))
	c.slow(1)
	c.receive(appendEntries(1, 2, 1, 2))
	c.compact(1, 2)
	c.outbox(1)
	c.receive(chunk(1, 9, 1, 0, "ab", true))
	same(t, "answer", raft.Body(raft.InstallSnapshotReply{RequestTerm: 1, LastIncludedIndex: 9, Offset: 2}), c.answer())
	c.saveSnapshot(1)
	same(t, "another to save", true, c.node(1).saving == nil)
	c.save(1)
	c.receive(chunk(1, 9, 1, 2, "", true))
	c.saveSnapshot(1)
	c.save(1)
	same(t, "installed", true, c.answer().(raft.InstallSnapshotReply).Installed)
	same(t, "data", "ab", string(c.core(1).Snapshot().Data))
}

// While a part of a snapshot has arrived, a clone and its original each go on with their own.
func TestACloneGoesOnWithItsOwnPartOfASnapshot(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	c.receive(chunk(1, 9, 1, 0, "abcde", false)) // five bytes leave room for more in the array
	c.receive(chunk(1, 9, 1, 5, "f", false))
	original := c.core(1)
	clone := original.Clone()
	for core, data := range map[*raft.Core]string{original: "x", clone: "y"} {
		if err := core.Receive(chunk(1, 9, 1, 6, data, true)); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "the original's", "abcdefx", string(original.Take().Save.Data))
	same(t, "the clone's", "abcdefy", string(clone.Take().Save.Data))
}
