package raft_test

import (
	"bytes"
	"fmt"
	"testing"

	"ticketing/raft"
)

// chunk is InstallSnapshot(term, last=index@lastTerm, offset, data) from 2 to 1.
func chunk(
	term raft.Term, index raft.Index, lastTerm raft.Term, offset uint64, data string, done bool,
) raft.Message {
	return message(2, 1, term, raft.InstallSnapshot{
		LastIncludedIndex: index, LastIncludedTerm: lastTerm, Members: servers(1, 2, 3),
		Offset: offset, Data: []byte(data), Done: done,
	})
}

// chunkReply answers a chunk that server 1 has sent in this term.
func chunkReply(
	from raft.ServerID, term raft.Term, index raft.Index, offset uint64, installed bool,
) raft.Message {
	return message(from, 1, term, raft.InstallSnapshotReply{
		RequestTerm: term, LastIncludedIndex: index, Offset: offset, Installed: installed,
	})
}

// chunks returns the parts of snapshots that a server has sent to another since the last outbox.
func (c *cluster) chunks(from, to raft.ServerID) (sent []raft.InstallSnapshot) {
	for _, m := range c.node(from).sent {
		if s, ok := m.Body.(raft.InstallSnapshot); ok && m.To == to {
			sent = append(sent, s)
		}
	}
	return sent
}

// snapshots counts the whole ones among them.
func (c *cluster) snapshots(from, to raft.ServerID) (n int) {
	for _, s := range c.chunks(from, to) {
		if s.Done {
			n++
		}
	}
	return n
}

// behind returns a cluster of three whose third server has missed everything, and whose leader, 1, has
// committed some entries and then compacted its log to all but a few of them.
func behind(t testing.TB, s setup, entries, but int) *cluster {
	t.Helper()
	c := newCluster(t, s)
	c.isolate(3)
	c.elect(1)
	for i := range entries {
		c.propose(1, fmt.Sprint("x", i))
	}
	c.run()
	c.heartbeat(1) // it tells server 2 the commit
	c.run()
	c.compact(1, c.status(1).CommitIndex-raft.Index(but))
	c.outbox(1)
	return c
}

// catchUp heals all links, and gives the leader the time to notice that a part was lost.
func (c *cluster) catchUp() {
	c.heal()
	c.elapse(c.clock + electionTimeout + 2*heartbeatTimeout)
}

// alike fails the test unless all servers have, and have applied, what server 1 has.
func (c *cluster) alike() {
	c.t.Helper()
	for _, n := range c.nodes {
		same(c.t, fmt.Sprint("log of ", n.id), c.log(1), c.log(n.id))
		same(c.t, fmt.Sprint("applied by ", n.id), c.log(1), n.applied)
	}
}

// S01: a follower that has missed more than the leader still has gets the snapshot, in parts, and then
// the entries behind it. The one that has missed nothing gets no snapshot.
//
//spec:test Snapshot.Need
//spec:test Snapshot.Chunk
//spec:test Snapshot.Save
func TestAServerFarBehindGetsTheSnapshotAndThenTheEntries(t *testing.T) {
	for _, size := range []int{0, 1, 7} {
		c := behind(t, setup{chunk: size}, 5, 2)
		same(t, "first entry of the leader", 5, c.core(1).FirstIndex())
		c.catchUp()
		c.alike()
		same(t, "installed", 1, c.observer.met.installed)
		same(t, "snapshots to 2", 0, len(c.chunks(1, 2)))
		same(t, "snapshots to 3", 1, c.snapshots(1, 3))
		data := c.core(1).Snapshot().Data
		if want := (len(data) + max(size, 1) - 1) / max(size, 1); size > 0 {
			same(t, "parts", want, len(c.chunks(1, 3)))
		}
		same(t, "the snapshot", c.core(1).Snapshot(), c.core(3).Snapshot())
		sent := filled(c.appends(1, 3))
		same(t, "the entries behind it", 4, sent[len(sent)-1].PrevLogIndex)
	}
}

// A follower that the log can still serve gets entries, however far it is behind.
//
//spec:test Snapshot.Need
func TestAServerThatTheLogCanServeGetsNoSnapshot(t *testing.T) {
	c := newCluster(t, setup{keep: 3})
	c.elect(1)
	for range 3 {
		c.propose(1, "x")
	}
	c.run()
	c.isolate(3)
	c.propose(1, "y")
	c.propose(1, "z")
	c.run()
	c.compact(1, 6)
	same(t, "first entry of the leader", 4, c.core(1).FirstIndex())
	c.outbox(1)
	c.catchUp()
	c.alike()
	same(t, "snapshots", 0, len(c.chunks(1, 3)))
}

// S04: the log matches where the snapshot ends, so what follows stays: it may have been acknowledged.
// The state machine applies entries and needs no reset.
//
//spec:test Snapshot.Suffix
func TestASnapshotOfAPrefixOfTheLogKeepsTheRest(t *testing.T) {
	c := alone(t, 3, state(2, 0, 1, 1, 1, 2, 2))
	c.slow(1)
	c.receive(chunk(2, 3, 1, 0, "abc", true))
	c.saveSnapshot(1)
	same(t, "committed", 3, c.status(1).CommitIndex)
	same(t, "applied", entries(1, 1, 1, 1), c.node(1).applied)
	same(t, "log", entries(1, 1, 1, 1, 2, 2), c.log(1))
	c.save(1)
	same(t, "answer", raft.Body(raft.InstallSnapshotReply{
		RequestTerm: 2, LastIncludedIndex: 3, Offset: 3, Installed: true}), c.answer())
	c.crash(1, 0)
	c.restart(1)
	same(t, "log after a crash", entries(4, 2, 2), logOf(c.core(1)))
	same(t, "committed", 3, c.status(1).CommitIndex)
}

// B25, S03: the log has another entry where the snapshot ends, so all of it goes. Were it to stay, the
// leader would find no entry that follows it, and send the snapshot again, for ever.
//
//spec:test Snapshot.Suffix
func TestASnapshotReplacesALogThatConflictsWithIt(t *testing.T) {
	c := newCluster(t, setup{states: map[raft.ServerID]raft.Durable{
		1: state(2, 0, 1, 2, 2, 2), 2: state(2, 0, 1, 2, 2, 2), 3: state(1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1),
	}})
	c.isolate(3)
	c.elect(1)
	c.heartbeat(1)
	c.run()
	c.compact(1, 5)
	c.outbox(1)
	c.catchUp()
	c.catchUp()
	c.alike()
	same(t, "snapshots", 1, c.snapshots(1, 3))
	same(t, "logs dropped", 1, c.observer.met.dropped)
}

// S05: a snapshot up to the leader's last entry on an idle cluster. The follower is sent what is next
// without being probed.
func TestAfterASnapshotOfTheWholeLogTheFollowerIsStreamedTo(t *testing.T) {
	c := behind(t, setup{}, 5, 0)
	c.catchUp()
	c.alike()
	next, match := c.core(1).Progress(3)
	same(t, "nextIndex, matchIndex", [2]raft.Index{7, 6}, [2]raft.Index{next, match})
	c.outbox(1)
	c.propose(1, "y")
	c.propose(1, "z")
	same(t, "messages without an answer", 2, len(filled(c.appends(1, 3))))
	c.catchUp()
	c.alike()
	same(t, "snapshots", 0, len(c.chunks(1, 3)))
}

// S07, B27: the follower crashes in the middle, or a part is lost. Nobody tells the leader; it sends
// again after an election timeout.
//
//spec:test Snapshot.Chunk
func TestASnapshotThatIsNotAnsweredIsSentAgain(t *testing.T) {
	for _, crash := range []bool{true, false} {
		c := behind(t, setup{chunk: 8}, 5, 0)
		c.heal()
		c.passes(electionTimeout)
		for range 6 {
			c.deliver(1, 3)
			for len(c.queues[link{3, 1}]) > 0 {
				c.deliver(3, 1)
			}
		}
		same(t, "on its way", true, len(c.chunks(1, 3)) > 2)
		if crash {
			c.crash(3, 0)
			c.restart(3)
		}
		c.drop(1, 3)
		sent := len(c.chunks(1, 3))
		c.passes(electionTimeout - 1)
		same(t, "sent within an election timeout", 0, len(c.chunks(1, 3))-sent)
		c.passes(1)
		same(t, "sent again after it", 1, len(c.chunks(1, 3))-sent)
		c.run()
		c.alike()
	}
}

// S08, B28: a server that has nothing, a leader that has compacted everything, and nobody who proposes.
func TestANewServerOfAQuietClusterCatchesUp(t *testing.T) {
	c := behind(t, setup{careful: true}, 3, 0)
	c.elapse(10 * electionTimeout)
	c.catchUp()
	same(t, "leader", 1, c.leader())
	c.alike()
}

// S11: a part that is not the next is answered with where the next begins, and nothing of it is kept.
// After a restart the next is the first.
//
//spec:test Snapshot.Offset
func TestAPartOutOfOrderIsAnsweredWithTheOffsetThatIsNext(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	expect := func(m raft.Message, offset uint64) {
		t.Helper()
		c.receive(m)
		same(t, "answer", raft.Body(raft.InstallSnapshotReply{
			RequestTerm: 1, LastIncludedIndex: 4, Offset: offset}), c.answer())
	}
	expect(chunk(1, 4, 1, 2, "cd", false), 0)
	expect(chunk(1, 4, 1, 0, "ab", false), 2)
	expect(chunk(1, 4, 1, 4, "ef", true), 2)
	expect(chunk(1, 4, 1, 0, "ab", false), 2)
	expect(chunk(1, 4, 1, 2, "cd", false), 4)
	c.crash(1, 0)
	c.restart(1)
	expect(chunk(1, 4, 1, 4, "ef", true), 0)
	expect(chunk(1, 4, 1, 0, "ab", false), 2)
	expect(chunk(1, 4, 1, 2, "cd", false), 4)
	c.receive(chunk(1, 4, 1, 4, "ef", true))
	same(t, "data", "abcdef", string(c.core(1).Snapshot().Data))
	same(t, "answer", raft.Body(raft.InstallSnapshotReply{
		RequestTerm: 1, LastIncludedIndex: 4, Offset: 6, Installed: true}), c.answer())
}

// A part of an older snapshot, late, does not undo what has arrived of a newer one. One of a later
// leader begins anew, though it stands for the same entries: its bytes may be others.
//
//spec:test Snapshot.Offset
func TestOnlyANewerSnapshotTakesThePlaceOfOneThatIsArriving(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	c.receive(chunk(1, 4, 1, 0, "ab", false))
	c.receive(chunk(1, 3, 1, 0, "xx", true))
	c.receive(chunk(1, 3, 1, 2, "yy", true))
	c.outbox(1)
	c.receive(chunk(1, 4, 1, 2, "cd", false))
	same(t, "expected", uint64(4), c.answer().(raft.InstallSnapshotReply).Offset)
	c.receive(chunk(2, 4, 1, 4, "zz", true))
	same(t, "expected by the next leader", uint64(0), c.answer().(raft.InstallSnapshotReply).Offset)
	c.receive(chunk(2, 4, 1, 0, "z", true))
	same(t, "data", "z", string(c.core(1).Snapshot().Data))
}

// Whoever sends a snapshot leads: a candidate gives way, and the election timer begins anew.
//
//spec:test Candidates.3
func TestAPartOfASnapshotIsAWordOfTheLeader(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	c.campaigns()
	c.tick(1, c.core(1).Deadline()-1)
	before := c.core(1).Deadline()
	c.receive(chunk(c.status(1).Term, 4, 1, 0, "ab", false))
	same(t, "rank", rank{raft.Follower, 2, 2}, c.rank(1))
	same(t, "it waits anew", true, c.core(1).Deadline() > before)
}

// A part that nobody will complete is forgotten: it may be large.
//
//spec:test Snapshot.Offset
func TestAPartThatIsOutOfDateIsForgotten(t *testing.T) {
	for name, m := range map[string]raft.Message{
		"a new term":               requestVote(3, 2, 9, 1),
		"the entries that it held": appendEntries(1, 0, 0, 4, 1, 1, 1, 1),
	} {
		c := alone(t, 3, state(1, 0))
		c.receive(chunk(1, 4, 1, 0, "only once", false))
		same(t, "kept", true, bytes.Contains(c.core(1).AppendState(nil), []byte("only once")))
		c.receive(m)
		same(t, "kept after "+name, false, bytes.Contains(c.core(1).AppendState(nil), []byte("only once")))
	}
}

// S13: a leader that was deposed and leads again begins anew; an answer to what it sent before is none.
func TestALeaderThatReturnsBeginsTheSnapshotAnew(t *testing.T) {
	c := alone(t, 3, raft.Durable{HardState: raft.HardState{Term: 1}, Snapshot: &raft.Snapshot{
		LastIncludedIndex: 4, LastIncludedTerm: 1, Members: servers(1, 2, 3), Data: []byte("abcdef"),
	}})
	c.setup.chunk = 2
	c.crash(1, 0)
	c.restart(1)
	begin := func(term raft.Term, last raft.Index) {
		c.leads()
		c.receive(refusal(2, term, last, 0, 1))
		same(t, "offset", uint64(0), c.chunks(1, 2)[0].Offset)
	}
	begin(2, 4)
	c.receive(chunkReply(2, 2, 4, 2, false))
	same(t, "second part", uint64(2), c.chunks(1, 2)[1].Offset)
	c.receive(requestVote(3, 3, 0, 0))
	c.outbox(1)
	begin(4, 5)
	c.receive(message(2, 1, 4, raft.InstallSnapshotReply{RequestTerm: 2, LastIncludedIndex: 4, Offset: 4}))
	same(t, "parts", 1, len(c.chunks(1, 2)))
	c.receive(chunkReply(2, 4, 4, 2, false))
	same(t, "second part", uint64(2), c.chunks(1, 2)[1].Offset)
}

// B70, S12: behind a snapshot the last entry of an empty log is the snapshot's.
//
//spec:test RV.UpToDate
func TestTheLastTermOfALogBehindASnapshotIsTheSnapshots(t *testing.T) {
	disk := raft.Durable{HardState: raft.HardState{Term: 5}, Snapshot: &raft.Snapshot{
		LastIncludedIndex: 4, LastIncludedTerm: 3, Members: servers(1, 2, 3)}}
	c := alone(t, 3, disk)
	c.receive(requestVote(2, 6, 9, 2))
	same(t, "a vote for a log of an earlier last term", false, c.granted())
	c.receive(requestVote(3, 6, 3, 3))
	same(t, "a vote for a shorter log", false, c.granted())
	c.campaigns()
	same(t, "it asks with", raft.Body(raft.RequestVote{LastLogIndex: 4, LastLogTerm: 3}), c.outbox(1)[0].Body)
	c.receive(vote(2, 7, true))
	same(t, "first entry", 5, c.core(1).FirstIndex())
	same(t, "heartbeat", raft.Index(4), c.appends(1, 2)[0].PrevLogIndex)
	same(t, "heartbeat", raft.Term(3), c.appends(1, 2)[0].PrevLogTerm)
}
