package raft_test

import (
	"slices"
	"testing"

	"ticketing/raft"
)

// P17. The followers hear of the commit at once, though there is nothing else to send.
//
//spec:test Leaders.4
//spec:test All.1
func TestWhatAMajorityHasIsCommittedAppliedAndAnnounced(t *testing.T) {
	c := in(t, raft.Leader)
	c.receive(success(2, 1, 0, 1))
	c.receive(success(3, 1, 0, 1))
	c.propose(1, "x")
	c.outbox(1)
	c.receive(success(2, 1, 1, 2))
	same(t, "applied", []string{"", "x"}, commands(c.node(1).applied))
	announce := raft.AppendEntries{PrevLogIndex: 2, PrevLogTerm: 1, LeaderCommit: 2}
	want := []raft.Message{message(1, 2, 1, announce), message(1, 3, 1, announce)}
	same(t, "announced", want, c.outbox(1))
	c.receive(success(3, 1, 1, 2))
	same(t, "announced again", 0, len(c.outbox(1)))
	c.propose(1, "y")
	next := c.appends(1, 2)
	same(t, "messages", 1, len(next))
	same(t, "LeaderCommit of the next entry", 2, next[0].LeaderCommit)
}

// P18, R21, B37b (hashicorp/raft 163a55f: off by one in even clusters), and the leader's own copy,
// which counts as one and only from its write's completion on (B07, zoo 47).
//
//spec:test Leaders.4
//spec:test Durable.Leader
func TestACommitNeedsAMajorityOfDisks(t *testing.T) {
	for _, row := range []struct {
		size      int
		acks      []raft.ServerID
		unsaved   bool // the leader's own write is not complete
		committed bool
	}{
		{1, nil, false, true},
		{1, nil, true, false},
		{2, nil, false, false},
		{2, []raft.ServerID{2}, false, true},
		{2, []raft.ServerID{2}, true, false},
		{3, nil, false, false},
		{3, []raft.ServerID{2}, false, true},
		{3, []raft.ServerID{2}, true, false},
		{3, []raft.ServerID{2, 3}, false, true},
		{3, []raft.ServerID{2, 3}, true, true}, // without itself
		{4, []raft.ServerID{2}, false, false},
		{4, []raft.ServerID{2, 3}, false, true},
		{4, []raft.ServerID{2, 3}, true, false},
		{4, []raft.ServerID{2, 3, 4}, true, true},
		{5, nil, false, false},
		{5, []raft.ServerID{2}, false, false},
		{5, []raft.ServerID{2, 2, 2}, false, false},
		{5, []raft.ServerID{2, 3}, false, true},
		{5, []raft.ServerID{2, 3}, true, false},
		{5, []raft.ServerID{2, 3, 4}, false, true},
		{5, []raft.ServerID{2, 3, 4}, true, true},
		{5, []raft.ServerID{2, 3, 4, 5}, false, true},
	} {
		c := alone(t, row.size, state(0, 0))
		c.leads()
		for id := range raft.ServerID(row.size - 1) {
			c.receive(success(id+2, 1, 0, 1))
		}
		if row.unsaved {
			c.slow(1)
		}
		c.outbox(1)
		c.propose(1, "x")
		same(t, "sent at once", row.size-1, len(c.outbox(1)))
		for _, id := range row.acks {
			c.receive(success(id, 1, 1, 2))
		}
		if committed := c.status(1).CommitIndex == 2; committed != row.committed {
			t.Errorf("%d servers, acks %v, own write unfinished %v: committed %v",
				row.size, row.acks, row.unsaved, committed)
		}
		if copies := 1 + len(slices.Compact(row.acks)); copies > row.size/2 {
			c.save(1)
			same(t, "commitIndex in the end", 2, c.status(1).CommitIndex)
			same(t, "applied", []string{"", "x"}, commands(c.node(1).applied))
		}
	}
}

// B37 (openraft#1802). The greatest index that three of five have, in whatever order the acks come,
// and with old ones among them.
//
//spec:test Leaders.4
//spec:test Leaders.3a
func TestTheCommitIndexIsWhatAMajorityHasReached(t *testing.T) {
	type ack struct {
		from  raft.ServerID
		match raft.Index
	}
	for _, row := range []struct {
		acks   []ack
		commit raft.Index
	}{
		{[]ack{{2, 6}, {3, 5}}, 5},
		{[]ack{{3, 5}, {2, 6}}, 5},
		{[]ack{{2, 6}, {3, 5}, {4, 4}, {5, 3}}, 5},
		{[]ack{{2, 3}, {3, 3}, {4, 6}, {5, 6}}, 6},
		{[]ack{{2, 6}, {3, 2}, {4, 2}, {2, 4}, {5, 3}}, 3},
		{[]ack{{2, 6}, {2, 1}, {3, 6}, {3, 1}}, 6},
		{[]ack{{2, 6}, {2, 1}, {3, 1}, {4, 1}}, 1},
	} {
		c := alone(t, 5, state(0, 0))
		c.leads()
		for range 5 {
			c.propose(1, "x")
		}
		for _, a := range row.acks {
			c.receive(success(a.from, 1, 0, a.match))
		}
		if got := c.status(1).CommitIndex; got != row.commit {
			t.Errorf("acks %v: commitIndex %d, want %d", row.acks, got, row.commit)
		}
	}
}

// P19, B39 (zhebrak/raftos#30: a scan upwards that stopped at the first old entry).
//
//spec:test Leaders.Noop
//spec:test Leaders.4
func TestALeadersFirstCommitCommitsAllBefore(t *testing.T) {
	for _, old := range [][]raft.Term{nil, {2}, {1, 2}, {1}} {
		c := alone(t, 3, state(2, 0, old...))
		c.leads()
		last := raft.Index(len(old))
		same(t, "index", last+2, c.propose(1, "data"))
		c.receive(success(2, 3, last, last+1))
		c.receive(success(2, 3, last+1, last+2))
		want := append(entries(1, old...),
			raft.Entry{Index: last + 1, Term: 3},
			raft.Entry{Index: last + 2, Term: 3, Command: []byte("data")})
		same(t, "applied", want, c.node(1).applied)
	}
}

// P26, and B36 (LogCabin#44): by counting copies a leader commits entries of its own term only.
// (Hazard 35.)
//
//spec:test Leaders.4
func TestALeaderCommitsByCountingOnlyEntriesOfItsOwnTerm(t *testing.T) {
	c := alone(t, 2, state(2, 0, 1, 2))
	c.leads()
	for _, row := range []struct{ match, commit raft.Index }{{1, 0}, {2, 0}, {3, 3}} {
		c.receive(success(2, 3, 0, row.match))
		same(t, "commitIndex", row.commit, c.status(1).CommitIndex)
	}
}

// R05, Figure 8, with three servers (zoo 30). Messages hold one entry, so x of term 1 reaches 3 in
// term 3 with nothing of term 3 behind it. Two disks of three hold it then, and still 2 can win and
// replace it.
//
//spec:test Leaders.4
func TestFigure8(t *testing.T) {
	c := newCluster(t, setup{batch: 1, states: map[raft.ServerID]raft.Durable{
		1: state(2, 1, 1), 2: state(2, 2, 2), 3: state(2, 2),
	}})
	c.cut(1, 2)
	c.timeout(1) // term 3, by 3's vote
	c.deliver(1, 3)
	c.deliver(3, 1)
	c.deliver(1, 3) // 3 has nothing at 1
	c.deliver(3, 1)
	c.deliver(1, 3)
	c.deliver(3, 1)
	same(t, "log of 3", []raft.Term{1}, terms(c.log(3)))
	_, match := c.core(1).Progress(3)
	same(t, "matchIndex of 3", 1, match)
	same(t, "commitIndex with x on two disks", 0, c.status(1).CommitIndex)
	c.drop(1, 3)
	c.heal()
	c.cut(1, 2)
	c.cut(1, 3)
	c.timeout(2)
	c.run()
	c.elect(2) // term 4; its entry of term 2 beats x
	c.heal()
	c.heartbeat(2)
	c.run()
	for id := range raft.ServerID(3) {
		same(t, "log", []raft.Term{2, 4}, terms(c.log(id+1)))
	}
}

// R04: what earlier terms left is committed with the leader's no-op, and not before.
//
//spec:test Leaders.Noop
//spec:test Leaders.4
func TestEarlierTermsEntriesCommitWithTheNoop(t *testing.T) {
	c := newCluster(t, setup{size: 5, batch: 1})
	c.elect(1)
	for _, id := range []raft.ServerID{3, 4, 5} {
		c.cut(1, id)
	}
	c.propose(1, "x")
	c.propose(1, "y")
	c.run()
	same(t, "commitIndex of 1", 1, c.status(1).CommitIndex)
	same(t, "last index of 2", 3, c.status(2).LastIndex)
	c.heal()
	c.isolate(1)
	c.timeout(2)
	for _, id := range []raft.ServerID{3, 4, 5} {
		c.deliver(2, id)
		c.deliver(id, 2)
	}
	same(t, "rank", rank{raft.Leader, 2, 2}, c.rank(2))
	for c.status(3).LastIndex < 3 || c.status(4).LastIndex < 3 || c.status(5).LastIndex < 3 {
		for _, id := range []raft.ServerID{3, 4, 5} {
			c.deliver(2, id)
			c.deliver(id, 2)
		}
	}
	same(t, "commitIndex with x and y on four disks", 1, c.status(2).CommitIndex)
	c.run()
	for _, id := range []raft.ServerID{2, 3, 4, 5} {
		same(t, "applied", []string{"", "x", "y", ""}, commands(c.node(id).applied))
	}
}

// R18, R19, B68: index and term together name the entry. (a) Another entry is committed in its
// place, so it never will be. (b) The leader is deposed, and its entry is committed under the next
// one.
//
//spec:test Leaders.2
func TestAProposalsFateIsDecidedByTheTermOfWhatIsCommittedThere(t *testing.T) {
	for _, reaches := range []bool{false, true} {
		c := newCluster(t, setup{})
		c.elect(1)
		c.newWrites(1)
		index := c.propose(1, "x")
		if reaches {
			c.deliver(1, 2) // and the answer is lost
			c.drop(2, 1)
		}
		c.drop(1, 2)
		c.drop(1, 3)
		c.isolate(1)
		c.elect(2)
		c.propose(2, "y")
		c.run()
		c.heal()
		c.heartbeat(2)
		c.run()
		for id := range raft.ServerID(3) {
			applied := c.node(id + 1).applied
			same(t, "term of what is applied there", !reaches, applied[index-1].Term != 1)
			want := []string{"", "", "y"}
			if reaches {
				want = []string{"", "x", "", "y"}
			}
			same(t, "applied", want, commands(applied))
		}
	}
}
