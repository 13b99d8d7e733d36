package raft_test

import (
	"testing"

	"ticketing/raft"
)

// E10: a leader that hears nobody for an election timeout steps down, in its term; with a majority
// it stays. Both kinds of answer count, and none to another leadership.
//
//spec:test CheckQuorum.StepDown
func TestALeaderThatHearsNoMajorityStepsDown(t *testing.T) {
	heard := func(term raft.Term, ids ...raft.ServerID) func(*cluster) {
		return func(c *cluster) {
			for _, id := range ids {
				c.receive(message(id, 1, term, raft.AppendEntriesReply{RequestTerm: term}))
			}
		}
	}
	for name, row := range map[string]struct {
		size   int
		during func(*cluster)
		stays  bool
	}{
		"nobody of two":               {3, func(*cluster) {}, false},
		"one of two":                  {3, heard(3, 2), true},
		"one of four":                 {5, heard(3, 4), false},
		"two of four":                 {5, heard(3, 2, 5), true},
		"one of three":                {4, heard(3, 2), false},
		"two of three":                {4, heard(3, 2, 3), true},
		"one of four twice":           {5, heard(3, 4, 4), false},
		"an answer to a vote request": {3, func(c *cluster) { c.receive(vote(2, 3, true)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := careful(t, row.size, state(2, 0))
			c.elected()
			c.passes(electionTimeout / 2)
			row.during(c)
			c.passes(electionTimeout / 2)
			want := rank{raft.Follower, 3, 0}
			if row.stays {
				want = rank{raft.Leader, 3, 1}
			}
			same(t, "rank", want, c.rank(1))
			c.passes(electionTimeout)
			if c.status(1).Role == raft.Leader {
				t.Error("it leads on after another election timeout")
			}
		})
	}
	c := careful(t, 1, state(2, 0))
	c.timeout(1)
	c.passes(10 * electionTimeout)
	same(t, "a sole server", rank{raft.Leader, 3, 1}, c.rank(1))
}

// Its log stays, and it may lead again, in a later term.
//
//spec:test CheckQuorum.StepDown
func TestALeaderThatSteppedDownKeepsItsLogAndAsksAgain(t *testing.T) {
	c := careful(t, 3, state(2, 0, 1))
	c.elected()
	c.propose(1, "x")
	c.passes(electionTimeout)
	same(t, "log", []raft.Term{1, 3, 3}, terms(c.log(1)))
	c.receive(success(2, 3, 3, 3)) // too late to count
	same(t, "committed", 0, c.status(1).CommitIndex)
	c.passes(2 * electionTimeout)
	same(t, "rank", rank{raft.PreCandidate, 3, 0}, c.rank(1))
	c.elected()
	c.receive(success(2, 4, 4, 4))
	same(t, "committed", 4, c.status(1).CommitIndex)
}

// B31 (hashicorp/raft#503): a leader whose disk stands still for an election timeout, while all
// others answer, makes room for another.
//
//spec:test CheckQuorum.StepDown
func TestALeaderWhoseDiskStandsStillStepsDown(t *testing.T) {
	for _, finishes := range []bool{true, false} {
		c := careful(t, 3, state(2, 0))
		c.elected()
		c.slow(1)
		c.propose(1, "x")
		for range 4 {
			c.passes(electionTimeout / 3)
			if finishes {
				c.save(1)
				c.propose(1, "y")
			}
			if c.status(1).Role == raft.Leader {
				c.receive(message(2, 1, 3, raft.AppendEntriesReply{RequestTerm: 3}))
			}
		}
		if leads := c.status(1).Role == raft.Leader; leads != finishes {
			t.Errorf("the disk works: %v; it leads: %v", finishes, leads)
		}
	}
}

// E11, E21: who hears a leader refuses every other candidate, without a trace, and not the leader
// itself; who has not heard it for an election timeout, and who has just started, helps.
//
//spec:test CheckQuorum.Sticky
func TestWhoHearsALeaderHelpsNobodyToDeposeIt(t *testing.T) {
	heard := func(c *cluster) { c.receive(appendEntries(2, 1, 1, 0)) }
	refused := rank{raft.Follower, 2, 2}
	for name, row := range map[string]struct {
		before  func(*cluster)
		request raft.Message
		granted bool
		want    rank
	}{
		"a follower":        {heard, requestVote(3, 7, 9, 6), false, refused},
		"a follower, asked": {heard, preVote(3, 7, 9, 6), false, refused},
		"a leader":          {(*cluster).elected, requestVote(3, 7, 9, 6), false, rank{raft.Leader, 3, 1}},
		"a leader, asked":   {(*cluster).elected, preVote(3, 7, 9, 6), false, rank{raft.Leader, 3, 1}},
		"silence": {
			func(c *cluster) { heard(c); c.passes(electionTimeout) },
			requestVote(3, 7, 9, 6), true, rank{raft.Follower, 7, 0},
		},
		"almost silence": {
			func(c *cluster) { heard(c); c.passes(electionTimeout - 1) },
			requestVote(3, 7, 9, 6), false, refused,
		},
		"a restart": {
			func(c *cluster) { heard(c); c.crash(1, 0); c.restart(1) },
			requestVote(3, 7, 9, 6), true, rank{raft.Follower, 7, 0},
		},
		"it asks itself": {
			func(c *cluster) { heard(c); c.timeout(1) },
			requestVote(3, 7, 9, 6), true, rank{raft.Follower, 7, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := careful(t, 3, state(2, 0, 1))
			row.before(c)
			c.outbox(1)
			c.receive(row.request)
			same(t, "rank", row.want, c.rank(1))
			sent := c.outbox(1)
			granted := false
			switch b := sent[len(sent)-1].Body.(type) {
			case raft.RequestVoteReply:
				granted = b.VoteGranted
			case raft.PreVoteReply:
				granted = b.VoteGranted
			}
			same(t, "granted", row.granted, granted)
		})
	}
}

// A refusal out of an earlier term than the request's is no protocol error: its sender was not to be
// disturbed. It counts as a refusal.
//
//spec:test CheckQuorum.Sticky
//spec:test Election.Refused
func TestARefusalFromAnEarlierTermCounts(t *testing.T) {
	c := careful(t, 3, state(6, 0, 1))
	c.campaigns()
	for _, id := range []raft.ServerID{2, 3} {
		c.receive(message(id, 1, 3, raft.RequestVoteReply{RequestTerm: 7}))
	}
	same(t, "rank", rank{raft.Follower, 7, 0}, c.rank(1))
}

// E12: a server whose term ran ahead is not shut out. It answers the leader's AppendEntries with its
// term; the leader steps down once, and all go on in a later term.
//
//spec:test CheckQuorum.Sticky
func TestAServerWhoseTermRanAheadJoinsAgain(t *testing.T) {
	c := newCluster(t, setup{careful: true, states: map[raft.ServerID]raft.Durable{3: state(9, 3)}})
	c.isolate(3)
	c.elapse(3 * electionTimeout)
	leader := c.leader()
	c.propose(leader, "x")
	c.run()
	c.heal()
	c.elapse(c.now() + 10*electionTimeout)
	if c.leader() == 0 || c.status(3).Term < 9 || c.status(3).Leader != c.leader() {
		t.Fatalf("%d leads, and server 3 is %+v", c.leader(), c.rank(3))
	}
	before := c.rank(c.leader())
	c.elapse(c.now() + 20*electionTimeout)
	same(t, "and it stays so", before, c.rank(c.leader()))
}

// B19 (openraft#2080): of five, a, b and the bridge reach each other, and the old leader reaches only
// the bridge. It cannot commit, and must not keep the bridge from voting.
//
//spec:test CheckQuorum.StepDown
func TestALeaderBehindABridgeMakesRoom(t *testing.T) {
	c := newCluster(t, setup{size: 5, careful: true})
	c.elapse(3 * electionTimeout)
	old := c.leader()
	others := []raft.ServerID{}
	for id := raft.ServerID(1); id <= 5; id++ {
		if id != old {
			others = append(others, id)
		}
	}
	bridge, a, b, gone := others[0], others[1], others[2], others[3]
	c.isolate(gone)
	c.cut(old, a)
	c.cut(old, b)
	c.elapse(c.now() + 10*electionTimeout)
	leader := c.leader()
	if leader == 0 || leader == old {
		t.Fatalf("%d leads, %d was cut off", leader, old)
	}
	i := c.propose(leader, "x")
	c.run()
	if got := c.status(leader).CommitIndex; got < i {
		t.Errorf("commit %d while the fault lasts, want %d", got, i)
	}
	same(t, "the bridge follows", leader, c.status(bridge).Leader)
}

// E16, B16 (etcd#8334): when the leader dies everyone still remembers it.
//
//spec:test PreVote.Ask
func TestWhenTheLeaderDiesTheOthersElectOne(t *testing.T) {
	for _, id := range []raft.ServerID{1, 2, 3} {
		c := newCluster(t, setup{careful: true})
		c.timeout(id)
		c.run()
		same(t, "leader", id, c.leader())
		c.isolate(id)
		c.elapse(c.now() + 10*electionTimeout)
		if now := c.leader(); now == id || now == 0 {
			t.Errorf("%d leads, %d was cut off", now, id)
		}
		same(t, "the old one", raft.Follower, plain(c.status(id).Role))
	}
}

// plain takes asking for following, in which nothing is decided.
func plain(r raft.Role) raft.Role {
	if r == raft.PreCandidate {
		return raft.Follower
	}
	return r
}

// E19: those who were made to ask have forgotten their leader, and a majority of them may replace one
// that is well. It is why transfer and tests can do so on purpose.
//
//spec:test PreVote.Ask
func TestAMajorityThatAsksMayReplaceALiveLeader(t *testing.T) {
	c := newCluster(t, setup{careful: true})
	c.timeout(3)
	c.run()
	c.timeout(2)
	c.drop(2, 1)
	c.drop(2, 3)
	c.timeout(1)
	c.run()
	same(t, "leader", 1, c.leader())
}
