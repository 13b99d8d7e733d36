package raft_test

import (
	"testing"

	"ticketing/raft"
)

// in puts server 1 of three, in term 1, into a role.
func in(t *testing.T, role raft.Role) *cluster {
	t.Helper()
	c := alone(t, 3, state(0, 0))
	switch role {
	case raft.Follower:
		c.receive(appendEntries(1, 0, 0, 0))
	case raft.Candidate:
		c.timeout(1)
	case raft.Leader:
		c.leads()
	}
	same(t, "role", role, c.status(1).Role)
	c.outbox(1)
	c.newWrites(1)
	return c
}

var roles = []raft.Role{raft.Follower, raft.Candidate, raft.Leader}

// P01, P02, P03 and their neighbours: not only AppendEntries, every request and reply of a later
// term makes a follower of whoever reads it, and the term is on disk before anything is said in it.
//
//spec:test All.2
func TestAnyMessageOfALaterTermMakesAFollowerOfThatTerm(t *testing.T) {
	later := map[string]struct {
		message raft.Message
		leader  raft.ServerID
	}{
		"AppendEntries":      {appendEntries(2, 0, 0, 0), 2},
		"RequestVote":        {requestVote(2, 2, 9, 1), 0},
		"RequestVote, short": {requestVote(2, 2, 0, 0), 0},
		"vote refused":       {message(2, 1, 2, raft.RequestVoteReply{RequestTerm: 1}), 0},
		"append refused":     {message(2, 1, 2, raft.AppendEntriesReply{RequestTerm: 1}), 0},
	}
	for _, role := range roles {
		for name, row := range later {
			t.Run(role.String()+", "+name, func(t *testing.T) {
				c := in(t, role)
				c.slow(1)
				c.receive(row.message)
				same(t, "rank", rank{raft.Follower, 2, row.leader}, c.rank(1))
				same(t, "writes", 1, len(c.newWrites(1)))
				same(t, "sent before the write is done", 0, len(c.outbox(1)))
				c.save(1)
				same(t, "term on disk", 2, c.node(1).disk.Term)
			})
		}
	}
}

// P04. The answer is what tells a deposed leader or a late candidate of the new term (the paper's
// RPCs are always answered; etcd drops these).
//
//spec:test AE.1
//spec:test RV.1
//spec:test Followers.1
func TestARequestOfAnOldTermIsAnsweredAndChangesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		request raft.Message
		answer  raft.Body
	}{
		"heartbeat": {appendEntries(1, 0, 0, 1), raft.AppendEntriesReply{RequestTerm: 1}},
		"conflict": {
			appendEntries(1, 1, 1, 2, 1), raft.AppendEntriesReply{RequestTerm: 1, PrevLogIndex: 1},
		},
		"append": {
			appendEntries(1, 2, 1, 2, 1), raft.AppendEntriesReply{RequestTerm: 1, PrevLogIndex: 2},
		},
		"vote": {requestVote(2, 1, 0, 0), raft.RequestVoteReply{RequestTerm: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := alone(t, 3, state(2, 0, 1, 2))
			fromThree := appendEntries(2, 2, 2, 1)
			fromThree.From = 3
			c.receive(fromThree) // 3 leads term 2, and has committed entry 1
			c.outbox(1)
			c.newWrites(1)
			c.tick(1, electionTimeout/2)
			before, deadline, log := c.status(1), c.core(1).Deadline(), c.log(1)
			c.receive(row.request)
			same(t, "state", before, c.status(1))
			same(t, "election timer", deadline, c.core(1).Deadline())
			same(t, "log", log, c.log(1))
			same(t, "writes", 0, len(c.newWrites(1)))
			want := []raft.Message{message(1, 2, 2, row.answer)}
			same(t, "answer", want, c.outbox(1))
		})
	}
}

// P05.
//
//spec:test State.Volatile
func TestAServerStartsAsAFollowerThatKnowsNoLeaderAndSaysNothing(t *testing.T) {
	fresh := alone(t, 3, state(0, 0))
	crashed := alone(t, 3, state(0, 0))
	crashed.leads()
	crashed.propose(1, "x")
	crashed.receive(success(2, 1, 0, 2))
	same(t, "commitIndex before the crash", 2, crashed.status(1).CommitIndex)
	crashed.crash(1, 0)
	crashed.restart(1)
	for name, c := range map[string]*cluster{"fresh": fresh, "after a crash": crashed} {
		t.Run(name, func(t *testing.T) {
			term := c.node(1).disk.Term
			same(t, "rank", rank{raft.Follower, term, 0}, c.rank(1))
			same(t, "commitIndex", 0, c.status(1).CommitIndex)
			same(t, "lastApplied", 0, c.status(1).LastApplied)
			c.tick(1, 0)
			same(t, "messages", 0, len(c.outbox(1)))
			same(t, "writes", 0, len(c.newWrites(1)))
		})
	}
}

// C02's other half.
//
//spec:test State.Persistent
func TestTermVoteAndLogSurviveARestart(t *testing.T) {
	c := alone(t, 3, state(1, 0, 1))
	c.receive(requestVote(3, 4, 5, 3))
	c.receive(appendEntries(4, 1, 1, 0, 4, 4)) // the fourth term's leader is 2: 3 lost
	c.crash(1, 0)
	c.restart(1)
	c.outbox(1)
	same(t, "term", 4, c.status(1).Term)
	same(t, "vote", 3, c.status(1).VotedFor)
	same(t, "log", entries(1, 1, 4, 4), c.log(1))
	c.receive(requestVote(2, 4, 9, 3))
	same(t, "a second vote in the term", false, c.granted())
}

// P07, P08, P24: the RequestVote names the last entry's own term, not the server's; a candidate
// without answers tries again in the next term.
//
//spec:test Followers.2
//spec:test Candidates.1
//spec:test Candidates.4
func TestSilenceStartsAnElectionInANewTerm(t *testing.T) {
	for name, row := range map[string]struct {
		durable raft.Durable
		ask     raft.RequestVote
	}{
		"empty log": {state(1, 2), raft.RequestVote{}},
		"[1]":       {state(1, 2, 1), raft.RequestVote{LastLogIndex: 1, LastLogTerm: 1}},
		"[1 2]":     {state(6, 2, 1, 2), raft.RequestVote{LastLogIndex: 2, LastLogTerm: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			c := alone(t, 3, row.durable)
			now := raft.Time(0)
			for round := range raft.Term(3) {
				wait := c.core(1).Deadline() - now
				if wait < electionTimeout || wait >= 2*electionTimeout {
					t.Fatalf("it waits %d, not between one and two election timeouts", wait)
				}
				now += wait
				c.tick(1, now-1)
				same(t, "messages before the time", 0, len(c.outbox(1)))
				c.slow(1)
				c.tick(1, now)
				term := row.durable.Term + 1 + round
				same(t, "rank", rank{raft.Candidate, term, 0}, c.rank(1))
				same(t, "asked before its own vote is saved", 0, len(c.outbox(1)))
				c.save(1)
				want := raft.HardState{Term: term, VotedFor: 1}
				same(t, "on disk", want, c.node(1).disk.HardState)
				same(t, "messages", []raft.Message{
					message(1, 2, term, row.ask), message(1, 3, term, row.ask),
				}, c.outbox(1))
			}
		})
	}
}

// P09, R21, B37b. An even cluster needs more than half as well: 3 of 4.
//
//spec:test Candidates.2
//spec:test Election.Refused
func TestACampaignEndsWhenAMajorityHasDecided(t *testing.T) {
	for name, row := range map[string]struct {
		size    int
		yes, no int
		role    raft.Role
	}{
		"1 of 1":                {1, 0, 0, raft.Leader},
		"2 of 2":                {2, 1, 0, raft.Leader},
		"1 of 2":                {2, 0, 0, raft.Candidate},
		"1 of 2, one against":   {2, 0, 1, raft.Candidate},
		"3 of 3":                {3, 2, 0, raft.Leader},
		"2 of 3":                {3, 1, 0, raft.Leader},
		"2 of 3, one against":   {3, 1, 1, raft.Leader},
		"1 of 3":                {3, 0, 0, raft.Candidate},
		"1 of 3, one against":   {3, 0, 1, raft.Candidate},
		"1 of 3, two against":   {3, 0, 2, raft.Follower},
		"2 of 4":                {4, 1, 0, raft.Candidate},
		"3 of 4":                {4, 2, 0, raft.Leader},
		"1 of 4, two against":   {4, 0, 2, raft.Candidate},
		"1 of 4, three against": {4, 0, 3, raft.Follower},
		"5 of 5":                {5, 4, 0, raft.Leader},
		"4 of 5":                {5, 3, 0, raft.Leader},
		"3 of 5":                {5, 2, 0, raft.Leader},
		"2 of 5":                {5, 1, 0, raft.Candidate},
		"1 of 5":                {5, 0, 0, raft.Candidate},
		"1 of 5, two against":   {5, 0, 2, raft.Candidate},
		"1 of 5, four against":  {5, 0, 4, raft.Follower},
		"2 of 5, three against": {5, 1, 3, raft.Follower},
	} {
		t.Run(name, func(t *testing.T) {
			c := alone(t, row.size, state(0, 0))
			c.timeout(1)
			for id := range raft.ServerID(row.yes + row.no) {
				c.receive(vote(id+2, 1, int(id) < row.yes))
			}
			same(t, "role", row.role, c.status(1).Role)
			same(t, "term", 1, c.status(1).Term)
		})
	}
}

// Zoo 07: counted votes instead of voters.
//
//spec:test Candidates.2
func TestAVoteThatArrivesTwiceIsOneVote(t *testing.T) {
	c := alone(t, 5, state(0, 0))
	c.timeout(1)
	for range 3 {
		c.receive(vote(2, 1, true))
	}
	same(t, "role", raft.Candidate, c.status(1).Role)
	for range 3 {
		c.receive(vote(3, 1, false))
	}
	same(t, "role", raft.Candidate, c.status(1).Role)
}

// Zoo 06. Both answers arrive in term 2: one was given in term 1, for term 1; one was refused in
// term 2 to the request of term 1.
//
//spec:test Election.Reply
func TestAnAnswerToAnEarlierCampaignIsNoVote(t *testing.T) {
	c := alone(t, 3, state(0, 0))
	c.timeout(1)
	c.timeout(1)
	c.receive(vote(2, 1, true))
	same(t, "rank", rank{raft.Candidate, 2, 0}, c.rank(1))
	c.receive(message(2, 1, 2, raft.RequestVoteReply{RequestTerm: 1}))
	c.receive(message(3, 1, 2, raft.RequestVoteReply{RequestTerm: 1}))
	same(t, "rank", rank{raft.Candidate, 2, 0}, c.rank(1))
	c.receive(vote(2, 2, true))
	same(t, "rank", rank{raft.Leader, 2, 1}, c.rank(1))
	c.receive(vote(3, 2, false)) // too late to change anything
	same(t, "rank", rank{raft.Leader, 2, 1}, c.rank(1))
}

// A server that gave up its campaign within the term, because another won it, counts no more votes.
//
//spec:test Election.Reply
func TestAFollowerCountsNoVotes(t *testing.T) {
	c := alone(t, 3, state(0, 0))
	c.timeout(1)
	c.receive(appendEntries(1, 0, 0, 0, 1))
	c.receive(vote(3, 1, true))
	same(t, "rank", rank{raft.Follower, 1, 2}, c.rank(1))
}

// P11, zoo 18.
//
//spec:test Candidates.3
func TestACandidateYieldsToALeader(t *testing.T) {
	for _, term := range []raft.Term{1, 2} {
		c := in(t, raft.Candidate)
		c.receive(appendEntries(term, 0, 0, 0))
		same(t, "rank", rank{raft.Follower, term, 2}, c.rank(1))
	}
}

// E03.
//
//spec:test Candidates.2
//spec:test All.2
func TestOfTwoCandidatesOneWinsAndTheLoserCannotWinLater(t *testing.T) {
	c := newCluster(t, setup{})
	c.cut(1, 3)
	c.timeout(1)
	c.timeout(3)
	c.run()
	same(t, "1", rank{raft.Leader, 1, 1}, c.rank(1))
	same(t, "3", rank{raft.Candidate, 1, 0}, c.rank(3))
	c.heal()
	c.timeout(3)
	c.run()
	for id := range raft.ServerID(3) {
		same(t, "rank", rank{raft.Follower, 2, 0}, c.rank(id+1))
	}
}

// E06.
//
//spec:test AE.1
func TestAnOldLeadersMessageIsIgnored(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	c.elect(2)
	c.elect(1)
	log := c.log(1)
	c.receive(appendEntries(2, 2, 2, 0, 2))
	c.run()
	same(t, "rank", rank{raft.Leader, 3, 1}, c.rank(1))
	same(t, "log", log, c.log(1))
	c.propose(1, "x")
	c.run()
	for id := range raft.ServerID(3) {
		same(t, "terms", []raft.Term{1, 2, 3, 3}, terms(c.log(id+1)))
	}
}

// E07: what a server that was alone for long does to the others, as PreVote is not yet here.
//
//spec:test All.2
//spec:test AE.1
func TestALeaderLearnsOfALaterTermFromTheAnswerToItsHeartbeat(t *testing.T) {
	c := newCluster(t, setup{})
	c.elect(1)
	c.isolate(3)
	for range 5 {
		c.timeout(3)
	}
	same(t, "term of 3", 6, c.status(3).Term)
	c.heal()
	c.heartbeat(1)
	c.run()
	same(t, "deposed", rank{raft.Follower, 6, 0}, c.rank(1))
	c.elect(1)
	for id := range raft.ServerID(3) {
		same(t, "term", 7, c.status(id+1).Term)
		same(t, "log", c.log(1), c.log(id+1))
	}
}

// In a cluster of one there is nobody to ask, and still its own vote must be on the disk first.
//
//spec:test Candidates.2
//spec:test Durable.Before
func TestASoleServerLeadsOnlyAfterItsOwnVoteIsSaved(t *testing.T) {
	c := newCluster(t, setup{size: 1})
	c.slow(1)
	c.timeout(1)
	same(t, "rank", rank{raft.Candidate, 1, 0}, c.rank(1))
	c.timeout(1)
	c.save(1, 1) // the vote of term 1, which is over
	same(t, "rank", rank{raft.Candidate, 2, 0}, c.rank(1))
	c.node(1).lazy = true
	c.timeout(1)
	c.save(1, 2) // of term 2, which is over; the write of term 3 has not even begun
	same(t, "rank", rank{raft.Candidate, 3, 0}, c.rank(1))
	c.node(1).lazy = false
	c.take(c.node(1))
	same(t, "rank", rank{raft.Candidate, 3, 0}, c.rank(1))
	c.save(1)
	same(t, "rank", rank{raft.Leader, 3, 1}, c.rank(1))
	same(t, "messages", 0, len(c.outbox(1)))
}
