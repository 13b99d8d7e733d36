package raft_test

import (
	"testing"

	"ticketing/raft"
)

// The same for a candidate whose log is longer than the voter's: that election is over.
//
//spec:test RV.1
func TestNoVoteIsGivenInAnOldTerm(t *testing.T) {
	c := alone(t, 3, state(3, 0, 1))
	c.receive(requestVote(2, 2, 5, 1))
	same(t, "granted", false, c.granted())
	same(t, "vote", 0, c.status(1).VotedFor)
}

// P10, zoo 12. The repeated grant is what makes a lost reply harmless.
//
//spec:test RV.2
func TestAServerVotesForOneCandidateATerm(t *testing.T) {
	for _, row := range []struct {
		prior, candidate raft.ServerID
		granted          bool
	}{
		{0, 2, true}, {0, 3, true}, {2, 2, true}, {3, 3, true},
		{2, 3, false}, {3, 2, false}, {1, 2, false},
	} {
		c := alone(t, 3, state(1, row.prior))
		for range 2 {
			c.receive(requestVote(row.candidate, 1, 0, 0))
			same(t, "granted", row.granted, c.granted())
		}
	}
}

// E34.
//
//spec:test RV.2
func TestVotesOfDifferentTermsMayGoToDifferentServers(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	for term := raft.Term(1); term < 6; term++ {
		c.receive(requestVote(2+raft.ServerID(term%2), term, 0, 0))
		same(t, "granted", true, c.granted())
	}
}

// Zoo 01, B03 (eliben/raft#27): a candidate that yields to the winner of its own term has voted in
// it, and says no to the third.
//
//spec:test RV.2
//spec:test Candidates.3
func TestSteppingDownWithinATermKeepsTheVote(t *testing.T) {
	c := alone(t, 3, state(0, 0))
	c.timeout(1)
	c.receive(appendEntries(1, 0, 0, 0))
	c.outbox(1)
	c.receive(requestVote(3, 1, 0, 0))
	same(t, "granted", false, c.granted())
	same(t, "vote", 1, c.status(1).VotedFor)
}

// P25, and B22 (openraft a48a3282): terms first, lengths only among equal terms. The candidate asks
// in term 3, later than all that the voter knows.
//
//spec:test RV.UpToDate
func TestAVoteGoesOnlyToALogThatIsAtLeastAsUpToDate(t *testing.T) {
	for _, row := range []struct {
		voter   []raft.Term
		index   raft.Index
		term    raft.Term
		granted bool
	}{
		{nil, 0, 0, true},
		{nil, 1, 1, true},
		{[]raft.Term{1}, 0, 0, false},
		{[]raft.Term{1}, 1, 1, true},
		{[]raft.Term{1}, 2, 1, true},
		{[]raft.Term{1, 1}, 1, 1, false},
		{[]raft.Term{1}, 1, 2, true},
		{[]raft.Term{1}, 2, 2, true},
		{[]raft.Term{1, 1}, 1, 2, true},
		{[]raft.Term{2}, 1, 1, false},
		{[]raft.Term{2}, 2, 1, false},
		{[]raft.Term{2, 2}, 1, 1, false},
		{[]raft.Term{1, 1, 1}, 2, 2, true}, // B22, the one way …
		{[]raft.Term{1, 2}, 3, 1, false},   // … and the other
	} {
		c := alone(t, 3, state(2, 0, row.voter...))
		c.receive(requestVote(2, 3, row.index, row.term))
		if granted := c.granted(); granted != row.granted {
			t.Errorf("log %v, candidate %d@%d: granted %v", row.voter, row.index, row.term, granted)
		}
		same(t, "term", 3, c.status(1).Term) // adopted with a refusal too (zoo 15)
	}
}

// E02 without PreVote: whatever the server was in the earlier term.
//
//spec:test RV.2
func TestAServerInAnyRoleVotesInALaterTerm(t *testing.T) {
	for _, role := range roles {
		c := in(t, role)
		c.receive(requestVote(3, 2, 9, 1))
		same(t, "granted", true, c.granted())
		same(t, "rank", rank{raft.Follower, 2, 0}, c.rank(1))
		same(t, "vote", 3, c.status(1).VotedFor)
	}
}

// E01: an entry of a later term is lost, rightly, since it was never committed. Servers 4 and 5
// have voted for 3 in term 2 and hold nothing.
//
//spec:test RV.UpToDate
//spec:test AE.3
func TestALeaderMayReplaceNewerEntriesThatAreNotCommitted(t *testing.T) {
	c := newCluster(t, setup{size: 5, states: map[raft.ServerID]raft.Durable{
		1: state(1, 0, 1), 2: state(1, 0, 1), 3: state(2, 3, 2), 4: state(2, 3), 5: state(2, 3),
	}})
	c.timeout(1)
	c.run()
	same(t, "after the first campaign", rank{raft.Follower, 2, 0}, c.rank(1))
	c.elect(1)
	same(t, "term", 3, c.status(1).Term)
	for id := range raft.ServerID(5) {
		same(t, "log", []raft.Term{1, 3}, terms(c.log(id+1)))
	}
}
