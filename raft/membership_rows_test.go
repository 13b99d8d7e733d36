package raft_test

import (
	"errors"
	"fmt"
	"testing"

	"ticketing/raft"
)

// joined is a cluster led by server 1 in which all have the same log: four voters, and 5 a learner.
func joined(t *testing.T, careful bool) *cluster {
	t.Helper()
	c := newCluster(t, setup{size: 4, joining: 1, careful: careful})
	c.elect(1)
	c.change(1, servers(1, 2, 3, 4, -5))
	c.run()
	c.heartbeat(1)
	c.run()
	same(t, "the learner's log", c.log(1), c.log(5))
	return c
}

// B61, the schedule of 2015. Server 1 promotes 5 and is cut off before anybody has the entry. Server 2
// is elected and removes 1. If it may do so at once, it and 3 commit that; then 1 is elected by 4 and
// 5, who have heard of neither change, and the observer sees a leader without a committed entry.
//
//spec:test Members.OwnTerm
//spec:test Members.Quorum
func TestTwoLeadersCannotChangeTheSameConfiguration(t *testing.T) {
	c := joined(t, false)
	c.isolate(1)
	c.change(1, servers(1, 2, 3, 4, 5))
	c.run()
	c.timeout(2)
	c.deliver(2, 3) // the requests for votes
	c.deliver(2, 4)
	c.deliver(3, 2)
	c.isolate(4)
	c.isolate(5)
	c.deliver(4, 2)
	c.drop(2, 4)
	same(t, "rank", rank{raft.Leader, 2, 2}, c.rank(2))
	last := c.status(2).LastIndex
	if err := c.canChange(2, servers(2, 3, 4, -5)); !errors.Is(err, raft.ErrChanging) {
		t.Errorf("a change at once: %v", err)
	} else {
		c.run()
		same(t, "committed by 2 and 3", last-1, c.status(2).CommitIndex)
		c.join(2, 4)
		c.heartbeat(2)
		c.run()
		same(t, "committed by 2, 3 and 4", last, c.status(2).CommitIndex)
		c.isolate(4)
	}
	c.change(2, servers(2, 3, 4, -5))
	c.run()
	committed := c.status(2).CommitIndex // with 2 and 3
	same(t, "its removal", c.status(2).LastIndex, committed)
	c.join(1, 4)
	c.join(1, 5)
	c.join(4, 5)
	for range 3 {
		c.heartbeat(1)
		c.timeout(1)
		c.run()
	}
	if s := c.status(1); s.Role == raft.Leader {
		t.Errorf("server 1 leads term %d with the votes of 4 and 5", s.Term)
	}
	same(t, "5 has voted for it", raft.Term(0), max(c.status(5).Term, 3)-c.status(5).Term)
}

// M01: a leader that removes itself commits that with the others, tells them, and steps down. They
// elect another, and it is quiet.
//
//spec:test Members.Leave
func TestALeaderThatRemovesItselfIsFollowedByAnother(t *testing.T) {
	c := newCluster(t, setup{careful: true})
	c.elect(1)
	index := c.change(1, servers(2, 3))
	same(t, "rank", rank{raft.Leader, 1, 1}, c.rank(1))
	c.run()
	same(t, "rank", rank{raft.Follower, 1, 0}, c.rank(1))
	for id := raft.ServerID(1); id <= 3; id++ {
		same(t, "commitIndex", index, c.status(id).CommitIndex)
	}
	c.elapse(c.core(1).Deadline() + 10*electionTimeout)
	leader := c.leader()
	if leader != 2 && leader != 3 {
		t.Fatalf("server %d leads", leader)
	}
	same(t, "terms", 2, c.status(leader).Term)
	same(t, "term of the one that left", 1, c.status(1).Term)
	c.propose(leader, "x")
	c.run()
	same(t, "commitIndex", index+2, c.status(leader).CommitIndex)
}

// The only one that has the entry which removes it must still be able to lead: the other one of two
// cannot be elected without its vote, and its log is the longer one.
//
//spec:test Members.Leave
func TestALeaderThatCrashesWhileItLeavesIsElectedToFinishIt(t *testing.T) {
	for _, careful := range []bool{true, false} {
		c := newCluster(t, setup{size: 2, careful: careful})
		c.elect(1)
		c.heartbeat(1)
		c.run()
		c.cut(1, 2)
		index := c.change(1, servers(2))
		c.crash(1, 1)
		c.restart(1)
		c.heal()
		c.elapse(100 * electionTimeout)
		same(t, "leader", 2, c.leader())
		same(t, "in effect", fmt.Sprint(index, ": 2"), c.inEffect(2))
		same(t, "rank of the one that left", raft.Follower, c.status(1).Role)
	}
}

// M03, E24, B24: a server that was removed while nobody could reach it comes back, and asks and asks.
// Nobody's term changes, nor its own. Nor does a request of a term that it has counted up to.
//
//spec:test Members.Leave
//spec:test CheckQuorum.Sticky
func TestARemovedServerDisturbsNobody(t *testing.T) {
	c := newCluster(t, setup{size: 4, careful: true})
	c.elect(1)
	c.heartbeat(1)
	c.run()
	c.isolate(4)
	c.change(1, servers(1, 2, 3))
	c.run()
	c.elapse(c.now() + 2*electionTimeout) // it is forgotten, as it does not answer
	c.outbox(1)
	c.outbox(2)
	c.heal()
	c.elapse(c.now() + 100*electionTimeout)
	asked := 0
	for _, m := range c.outbox(4) {
		if _, ok := m.Body.(raft.PreVote); ok {
			asked++
		}
	}
	if asked < 100 {
		t.Errorf("it has asked %d times; that is no test", asked)
	}
	for id := raft.ServerID(1); id <= 3; id++ {
		c.receive(message(4, id, 99, raft.RequestVote{LastLogIndex: 1, LastLogTerm: 1}))
	}
	refused := 0
	for _, m := range append(c.outbox(1), c.outbox(2)...) {
		if r, ok := m.Body.(raft.RequestVoteReply); ok {
			same(t, "answer", raft.RequestVoteReply{RequestTerm: 99}, r)
			refused++
		}
		if _, ok := m.Body.(raft.AppendEntries); ok && m.To == 4 {
			t.Error("it is still sent the log")
		}
	}
	same(t, "refusals", 2, refused)
	for id := raft.ServerID(1); id <= 4; id++ {
		same(t, "term", 1, c.status(id).Term)
	}
	same(t, "leader", 1, c.leader())
}

// While a leader still sends to a server that was removed, an answer with a later term does not depose
// it; one that says that the server has the entry and was told ends the sending.
//
//spec:test Members.Leave
func TestAServerOnItsWayOutIsHeardAboutTheLogAlone(t *testing.T) {
	c := careful(t, 4, state(1, 0))
	c.elected()
	c.receive(success(2, 2, 0, 1))
	c.receive(success(3, 2, 0, 1))
	c.receive(success(4, 2, 0, 1))
	index := c.change(1, servers(1, 2, 3))
	c.receive(message(4, 1, 9, raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 1}))
	same(t, "rank", rank{raft.Leader, 2, 1}, c.rank(1))
	c.receive(success(4, 2, 1, index))
	same(t, "commitIndex", 1, c.status(1).CommitIndex)
	c.receive(success(2, 2, 1, index))
	same(t, "commitIndex", index, c.status(1).CommitIndex)
	told := c.appends(1, 4)
	same(t, "it is told", index, told[len(told)-1].LeaderCommit)
	c.outbox(1)
	c.heartbeat(1)
	same(t, "messages after that", 0, len(c.appends(1, 4)))
	c.receive(message(4, 1, 9, raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 1}))
	same(t, "an answer of a stranger", rank{raft.Leader, 2, 1}, c.rank(1))
}

// fourAgree is a leader of four whose first entry all have on their disks.
func fourAgree(t *testing.T) *cluster {
	c := careful(t, 4, state(1, 0))
	c.elected()
	for id := raft.ServerID(2); id <= 4; id++ {
		c.receive(success(id, 2, 0, 1))
	}
	return c
}

// That its removal is committed a server may be told before it has the entry, and then it is no wiser. So
// it is told again when it is known to have it, about the last that it surely has.
//
//spec:test Members.Leave
func TestAServerOnItsWayOutIsToldWhatItCanUnderstand(t *testing.T) {
	c := fourAgree(t)
	gone := c.change(1, servers(1, 2, 3))
	c.receive(success(2, 2, 1, gone))
	same(t, "commitIndex", gone, c.status(1).CommitIndex)
	sent := c.appends(1, 4)
	same(t, "it is told before it has the entry", gone, sent[len(sent)-1].LeaderCommit)
	c.propose(1, "x")
	c.outbox(1)
	c.receive(success(4, 2, 1, gone))
	farewell := []raft.AppendEntries{{PrevLogIndex: gone, PrevLogTerm: 2, LeaderCommit: gone}}
	same(t, "what is sent when it has", farewell, c.appends(1, 4))
	c.outbox(1)
	c.heartbeat(1)
	same(t, "messages after that", 0, len(c.appends(1, 4)))
}

// If the log begins behind what it has, there is nothing to tell it about, and it is sent the snapshot.
//
//spec:test Members.Leave
func TestAServerOnItsWayOutMayNeedTheSnapshot(t *testing.T) {
	c := fourAgree(t)
	gone := c.change(1, servers(1, 2, 3))
	last := c.propose(1, "x")
	c.receive(success(2, 2, 1, last))
	c.compact(1, last)
	same(t, "the log begins", last+1, c.core(1).FirstIndex())
	c.outbox(1)
	c.receive(success(4, 2, 1, gone))
	c.receive(refusal(4, 2, last, 0, last))
	same(t, "entries for it", 0, len(c.appends(1, 4)))
	installs := 0
	for _, m := range c.outbox(1) {
		_, install := m.Body.(raft.InstallSnapshot)
		if install && m.To == 4 {
			installs++
		}
	}
	same(t, "snapshots for it", 1, installs)
	c.receive(message(4, 1, 2, raft.InstallSnapshotReply{RequestTerm: 2, LastIncludedIndex: last, Installed: true}))
	same(t, "what is sent when it has that", []raft.AppendEntries{{PrevLogIndex: last, PrevLogTerm: 2, LeaderCommit: last}},
		c.appends(1, 4))
}

// M04 (etcd 10998): a learner does not campaign, not even if the leader says so, but it answers when it
// is asked for a vote: who asks may know of its promotion.
//
//spec:test Members.Quorum
func TestALearnerDoesNotCampaignAndAnswersWhoDoes(t *testing.T) {
	d := state(2, 0, 1, 2)
	d.Entries[1].Command, d.Entries[1].Members = nil, servers(-1, 2, 3)
	c := careful(t, 3, d)
	c.receive(appendEntries(2, 2, 2, 2)) // that it is no voter is committed
	c.timeout(1)
	same(t, "rank", rank{raft.Follower, 2, 2}, c.rank(1))
	c.outbox(1)
	c.receive(message(2, 1, 2, raft.TimeoutNow{}))
	same(t, "rank", rank{raft.Follower, 2, 2}, c.rank(1))
	c.passes(3 * electionTimeout)
	same(t, "rank", rank{raft.Follower, 2, 2}, c.rank(1))
	c.outbox(1)
	c.receive(message(9, 1, 2, raft.PreVote{LastLogIndex: 2, LastLogTerm: 2}))
	same(t, "answer", raft.Body(raft.PreVoteReply{RequestTerm: 2, VoteGranted: true}), c.answer())
	c.receive(message(9, 1, 3, raft.RequestVote{LastLogIndex: 2, LastLogTerm: 2})) // whom it does not know
	same(t, "granted", true, c.granted())
}

// E23: a learner comes with a later term than anybody has. The leader adopts it, once.
func TestALearnerWithALaterTermDeposesALeaderOnce(t *testing.T) {
	c := newCluster(t, setup{joining: 1, careful: true, states: map[raft.ServerID]raft.Durable{4: state(6, 4)}})
	c.elect(1)
	c.propose(1, "x")
	c.change(1, servers(1, 2, 3, -4))
	c.elapse(20 * electionTimeout)
	leader := c.leader()
	same(t, "term", 7, c.status(leader).Term)
	same(t, "leaders", 2, len(c.observer.leaders))
	same(t, "the learner's log", c.log(leader), c.log(4))
}

// Q08: a read waits for a majority, and a removal makes that smaller.
//
//spec:test Members.Quorum
func TestARemovalReleasesReadsThatWait(t *testing.T) {
	c := careful(t, 4, state(1, 0))
	c.elected()
	c.receive(success(2, 2, 0, 1))
	c.receive(success(3, 2, 0, 1))
	c.asks(1, 7)
	answer := raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 1, Success: true, MatchIndex: 1, Round: 1}
	c.receive(message(2, 1, 2, answer))
	same(t, "with two of four", 0, len(c.reads(1)))
	c.change(1, servers(1, 2, 3))
	same(t, "with two of three", []raft.ReadState{{ID: 7, OK: true, Index: 1}}, c.reads(1))
}

// T06: leadership goes to voters only. And while it goes the servers stay who they are.
//
//spec:test Transfer.Last
func TestLeadershipIsNotTransferredToALearner(t *testing.T) {
	c := joined(t, true)
	if err := c.core(1).Clone().Transfer(5); !errors.Is(err, raft.ErrTransfer) {
		t.Errorf("to a learner: %v", err)
	}
	c.cut(1, 2)
	c.propose(1, "x")
	c.transfers(1, 2)
	if err := c.canChange(1, servers(1, 2, 3, 4)); !errors.Is(err, raft.ErrTransferring) {
		t.Errorf("a change meanwhile: %v", err)
	}
}

// R21: a majority of four is three, for a vote as for a commit, and a learner is none of them.
//
//spec:test Members.Quorum
func TestFourVotersNeedThree(t *testing.T) {
	d := state(1, 0, 1)
	d.Entries[0].Command, d.Entries[0].Members = nil, servers(1, 2, 3, 4, -5)
	c := alone(t, 4, d)
	c.timeout(1)
	c.receive(vote(2, 2, true))
	c.receive(vote(5, 2, true))
	same(t, "with a learner's vote", raft.Candidate, c.status(1).Role)
	c.receive(vote(3, 2, true))
	same(t, "with three", raft.Leader, c.status(1).Role)
	for _, id := range []raft.ServerID{2, 5} {
		c.receive(success(id, 2, 1, 2))
		same(t, "commitIndex", 0, c.status(1).CommitIndex)
	}
	c.receive(success(4, 2, 1, 2))
	same(t, "commitIndex", 2, c.status(1).CommitIndex)
}

// A crash does not forget who the servers are: it is in the log.
//
//spec:test Members.Append
func TestARestartedServerKnowsTheServers(t *testing.T) {
	c := joined(t, true)
	for id := raft.ServerID(1); id <= 5; id++ {
		c.crash(id, 0)
		c.restart(id)
		same(t, "in effect", "2: 1 2 3 4 -5", c.inEffect(id))
	}
}

// Addresses may be written down, or changed, by a change of their own, and two servers have two.
func TestAddressesMayChange(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	for _, host := range []string{"a", "b"} {
		next := servers(1, 2, 3)
		for i := range next {
			next[i].Address = fmt.Sprint(host, next[i].ID)
		}
		c.change(1, next)
		c.run()
		got, _ := c.core(3).Members()
		same(t, "members", next, got)
	}
}

// A learner that has not answered for an election timeout is not promoted, by a leader that others do
// answer. How much it has matters as well: a message's entries, and not one more, may be missing.
//
//spec:test Members.CaughtUp
func TestALearnerThatIsSilentOrFarBehindIsNotPromoted(t *testing.T) {
	d := state(1, 0, 1)
	d.Entries[0].Command, d.Entries[0].Members = nil, servers(1, 2, 3, -4)
	c := newCluster(t, setup{careful: true, batch: 4, only: 1, states: map[raft.ServerID]raft.Durable{1: d}})
	c.elected()
	for range 5 {
		c.propose(1, "x")
	}
	promoted := servers(1, 2, 3, 4)
	c.receive(success(2, 2, 1, 7))
	same(t, "commitIndex", 7, c.status(1).CommitIndex)
	c.receive(success(4, 2, 1, 2))
	if err := c.canChange(1, promoted); !errors.Is(err, raft.ErrChanging) {
		t.Errorf("it lacks five entries: %v", err)
	}
	c.receive(success(4, 2, 2, 3))
	same(t, "it lacks four", nil, c.canChange(1, promoted))
	c.passes(electionTimeout / 2)
	c.receive(success(2, 2, 7, 7))
	c.passes(electionTimeout / 2)
	same(t, "rank", rank{raft.Leader, 2, 1}, c.rank(1))
	if err := c.canChange(1, promoted); !errors.Is(err, raft.ErrChanging) {
		t.Errorf("it has said nothing for an election timeout: %v", err)
	}
}

// A server that is removed and added again may come back with an empty disk, before the leader has
// forgotten it. What the leader knew of it counts no more: it is sent the log from where its own ends,
// and is not promoted before it has that.
//
//spec:test Members.CaughtUp
func TestAServerThatIsAddedAgainIsANewOne(t *testing.T) {
	c := fourAgree(t)
	gone := c.change(1, servers(1, 2, 3))
	c.receive(success(2, 2, 1, gone))
	same(t, "the removal is committed", gone, c.status(1).CommitIndex)
	back := c.change(1, servers(1, 2, 3, -4))
	c.receive(success(2, 2, gone, back))
	same(t, "and that it is back", back, c.status(1).CommitIndex)
	_, known := c.core(1).Progress(4)
	same(t, "known to be on its disk", 0, known)
	c.outbox(1)
	c.heartbeat(1)
	for _, a := range c.appends(1, 4) {
		c.receive(refusal(4, 2, a.PrevLogIndex, 0, 1))
	}
	if err := c.canChange(1, servers(1, 2, 3, 4)); !errors.Is(err, raft.ErrChanging) {
		t.Errorf("it has nothing: %v", err)
	}
	sent := c.appends(1, 4)
	last := sent[len(sent)-1]
	same(t, "it is sent everything", []int{0, int(back)}, []int{int(last.PrevLogIndex), len(last.Entries)})
	c.receive(success(4, 2, 0, back))
	same(t, "and then it is promoted", nil, c.canChange(1, servers(1, 2, 3, 4)))
}

// M05 again: what waited is committed with the removal itself, and not when the leader's disk, which is
// slow, has it.
//
//spec:test Members.Append
func TestARemovalDoesNotWaitForTheLeadersDisk(t *testing.T) {
	c := careful(t, 4, state(1, 0))
	c.elected()
	c.receive(success(2, 2, 0, 1))
	c.receive(success(3, 2, 0, 1))
	x := c.propose(1, "x")
	c.receive(success(2, 2, 1, x))
	c.slow(1)
	c.change(1, servers(1, 2, 3))
	same(t, "commitIndex", x, c.status(1).CommitIndex)
	same(t, "durable", x, c.status(1).Durable)
}

// A leader and its clone change the servers without seeing each other, however many changes there have
// been: one of them leaves room in the list's array.
func TestALeaderAndItsCloneChangeTheServersApart(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	for i := range 9 {
		c.change(1, [2]raft.Configuration{servers(1, 2, 3, -4), servers(1, 2, 3)}[i%2])
		c.run()
		now, _ := c.core(1).Members()
		original := c.core(1).Clone()
		clone := original.Clone()
		if _, _, err := original.ChangeMembers(append(servers(-8), now...)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := clone.ChangeMembers(append(servers(-9), now...)); err != nil {
			t.Fatal(err)
		}
		for id, core := range map[int]*raft.Core{-8: original, -9: clone} {
			got, _ := core.Members()
			same(t, "members", append(now[:len(now):len(now)], servers(id)...), got)
		}
	}
}
