package raft_test

import (
	"fmt"
	"testing"

	"ticketing/raft"
)

// preVote is PV(term, last=index@lastTerm) to server 1.
func preVote(from raft.ServerID, term raft.Term, index raft.Index, lastTerm raft.Term) raft.Message {
	return message(from, 1, term, raft.PreVote{LastLogIndex: index, LastLogTerm: lastTerm})
}

// preAnswer answers server 1's PreVote of a term, in a term.
func preAnswer(from raft.ServerID, in, of raft.Term, granted bool) raft.Message {
	return message(from, 1, in, raft.PreVoteReply{RequestTerm: of, VoteGranted: granted})
}

// careful is alone with PreVote and CheckQuorum.
func careful(t testing.TB, size int, d raft.Durable) *cluster {
	t.Helper()
	return newCluster(t, setup{
		size: size, only: 1, careful: true, states: map[raft.ServerID]raft.Durable{1: d},
	})
}

// A server that asks whether it could win has promised nothing: its term and its vote are as they
// were, on disk as well.
//
//spec:test PreVote.Ask
func TestAskingWhetherOneWouldWinChangesNothingThatIsSaved(t *testing.T) {
	for _, term := range []raft.Term{0, 3} { // before the first election there is nothing else
		c := careful(t, 3, state(term, 0))
		c.timeout(1)
		same(t, "rank", rank{raft.PreCandidate, term, 0}, c.rank(1))
		same(t, "writes", 0, len(c.newWrites(1)))
		for _, m := range c.outbox(1) {
			same(t, "question", message(1, m.To, term, raft.PreVote{}), m)
		}
		c.receive(preAnswer(2, term, term, true))
		same(t, "rank", rank{raft.Candidate, term + 1, 0}, c.rank(1))
		if term > 0 {
			c.receive(vote(2, term+1, true))
			same(t, "rank", rank{raft.Leader, term + 1, 1}, c.rank(1))
		}
	}
}

// The asking ends as a campaign does, and yields to a leader in the same way.
//
//spec:test PreVote.Majority
func TestOnlyAMajorityMakesACandidateOfOneThatAsks(t *testing.T) {
	yes, no := true, false
	for name, row := range map[string]struct {
		size    int
		answers []bool // of servers 2, 3, …
		want    rank
	}{
		"nobody":             {3, nil, rank{raft.PreCandidate, 2, 0}},
		"one of two":         {3, []bool{yes}, rank{raft.Candidate, 3, 0}},
		"one no of two":      {3, []bool{no}, rank{raft.PreCandidate, 2, 0}},
		"no and no":          {3, []bool{no, no}, rank{raft.Follower, 2, 0}},
		"no, then yes":       {3, []bool{no, yes}, rank{raft.Candidate, 3, 0}},
		"one of four":        {5, []bool{yes}, rank{raft.PreCandidate, 2, 0}},
		"two of four":        {5, []bool{yes, yes}, rank{raft.Candidate, 3, 0}},
		"two of four refuse": {5, []bool{no, no}, rank{raft.PreCandidate, 2, 0}},
		"three of four":      {5, []bool{no, no, no}, rank{raft.Follower, 2, 0}},
		"alone":              {1, nil, rank{raft.Leader, 3, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := careful(t, row.size, state(2, 0, 1))
			c.timeout(1)
			for i, granted := range row.answers {
				c.receive(preAnswer(raft.ServerID(i+2), 2, 2, granted))
			}
			same(t, "rank", row.want, c.rank(1))
		})
	}
	c := careful(t, 3, state(2, 0, 1))
	c.timeout(1)
	c.receive(appendEntries(2, 1, 1, 0))
	same(t, "rank after AppendEntries", rank{raft.Follower, 2, 2}, c.rank(1))
	c.receive(preAnswer(3, 2, 2, true))
	same(t, "rank after a late yes", rank{raft.Follower, 2, 2}, c.rank(1))
}

// A yes to a question of another term says nothing about this one.
//
//spec:test PreVote.Majority
func TestAnAnswerToAnEarlierQuestionCountsForNothing(t *testing.T) {
	c := careful(t, 5, state(2, 0, 1))
	c.timeout(1)
	c.receive(preAnswer(2, 2, 2, true))
	c.receive(message(3, 1, 4, raft.PreVoteReply{RequestTerm: 2})) // it is ahead
	same(t, "rank", rank{raft.Follower, 4, 0}, c.rank(1))
	c.timeout(1)
	c.receive(preAnswer(2, 4, 4, true))
	c.receive(preAnswer(2, 4, 4, true)) // twice is once
	c.receive(preAnswer(3, 2, 2, true)) // a late yes to the first question
	same(t, "rank", rank{raft.PreCandidate, 4, 0}, c.rank(1))
	c.receive(preAnswer(4, 4, 4, true))
	same(t, "rank", rank{raft.Candidate, 5, 0}, c.rank(1))
}

// E02: to grant a PreVote changes nothing, in no role; a leader is not asked twice. E22: not the
// timer either. E20: whoever has forgotten its leader grants early, and never to a shorter log.
//
//spec:test PreVote.Grant
func TestAPreVoteIsGrantedToWhoeverCouldWinAndLeavesNoTrace(t *testing.T) {
	heard := func(c *cluster) { c.receive(appendEntries(2, 1, 1, 0)) }
	for name, row := range map[string]struct {
		before  func(*cluster)
		request raft.Message
		granted bool
	}{
		"no leader, equal log":       {nil, preVote(3, 2, 1, 1), true},
		"no leader, longer log":      {nil, preVote(3, 2, 9, 2), true},
		"no leader, shorter log":     {nil, preVote(3, 2, 0, 0), false},
		"old term":                   {nil, preVote(3, 1, 9, 1), false},
		"has voted for another":      {func(c *cluster) { c.receive(requestVote(2, 2, 1, 1)) }, preVote(3, 2, 1, 1), true},
		"hears a leader":             {heard, preVote(3, 2, 9, 2), false},
		"is a candidate":             {func(c *cluster) { c.timeout(1); c.receive(preAnswer(2, 2, 2, true)) }, preVote(3, 3, 9, 2), true},
		"asks itself":                {func(c *cluster) { heard(c); c.timeout(1) }, preVote(3, 2, 9, 2), true},
		"asks itself, shorter log":   {func(c *cluster) { heard(c); c.timeout(1) }, preVote(3, 2, 0, 0), false},
		"leads":                      {(*cluster).leads, preVote(3, 3, 9, 3), false},
		"heard a leader a while ago": {func(c *cluster) { heard(c); c.passes(electionTimeout) }, preVote(3, 2, 9, 2), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := careful(t, 3, state(2, 0, 1))
			if row.before != nil {
				row.before(c)
			}
			before, deadline := c.status(1), c.core(1).Deadline()
			c.outbox(1)
			c.newWrites(1)
			c.receive(row.request)
			same(t, "answer", raft.Body(raft.PreVoteReply{
				RequestTerm: row.request.Term, VoteGranted: row.granted,
			}), c.answer())
			same(t, "state", before, c.status(1))
			same(t, "deadline", deadline, c.core(1).Deadline())
			same(t, "writes", 0, len(c.newWrites(1)))
		})
	}
}

// A question waits for the disk only if the term in it does.
//
//spec:test PreVote.Ask
func TestAQuestionDoesNotShowATermThatIsNotDurable(t *testing.T) {
	c := careful(t, 3, state(2, 0, 1))
	c.slow(1)
	c.receive(message(2, 1, 5, raft.AppendEntriesReply{RequestTerm: 2}))
	c.timeout(1)
	same(t, "sent before the term is on disk", 0, len(c.outbox(1)))
	c.save(1)
	same(t, "sent after", 2, len(c.outbox(1)))
}

// B18 (openraft#1796), B15: one server has the longer log and the other the later term. The terms
// spread with the questions, so they do not refuse each other for ever.
//
//spec:test All.2
func TestALongLogAndALateTermMeet(t *testing.T) {
	c := newCluster(t, setup{careful: true, states: map[raft.ServerID]raft.Durable{
		1: state(3, 0, 1, 2, 2), 2: state(5, 0, 1, 2),
	}})
	c.isolate(3)
	c.elapse(6 * electionTimeout)
	same(t, "leader", 1, c.leader())
}

// B14 (etcd#8243): a server that was away asks in an old term, and is answered in the present one.
//
//spec:test All.2
func TestAServerThatWasAwayLearnsTheTermAndCanVote(t *testing.T) {
	c := newCluster(t, setup{careful: true})
	c.elapse(3 * electionTimeout)
	c.isolate(3)
	for range 3 { // 1 and 2 elect each other in turn, without 3
		leader := c.leader()
		c.cut(1, 2)
		c.elapse(c.now() + 3*electionTimeout)
		c.join(1, 2)
		c.timeout(3 - leader)
		c.run()
	}
	if c.status(3).Term >= c.status(1).Term {
		t.Fatal("server 3 is not behind")
	}
	leader := c.leader()
	c.heal()
	c.isolate(leader)
	c.elapse(c.now() + 10*electionTimeout)
	if now := c.leader(); now == leader || now == 0 {
		t.Fatalf("server %d leads", now)
	}
}

// E13 with PreVote, E27: a server that hears nobody, for as long as it likes, changes no term and
// deposes no leader when it comes back; without PreVote it does.
//
//spec:test PreVote.Ask
func TestAServerThatWasCutOffDeposesNobody(t *testing.T) {
	for _, careful := range []bool{true, false} {
		t.Run(fmt.Sprint(careful), func(t *testing.T) {
			c := newCluster(t, setup{careful: careful})
			c.elapse(3 * electionTimeout)
			leader := c.leader()
			before := c.rank(leader)
			away := leader%3 + 1
			c.isolate(away)
			c.elapse(c.now() + 30*electionTimeout)
			c.heal()
			c.elapse(c.now() + 5*electionTimeout)
			if same := c.rank(leader) == before; same != careful {
				t.Errorf("%+v before, %+v after", before, c.rank(leader))
			}
			if c.leader() == 0 {
				t.Error("nobody leads")
			}
		})
	}
}

// E27: links that fail in one direction. A server that nobody hears still hears the leader, and asks
// nobody. One that hears nobody asks and asks, is heard, and all terms stay; without PreVote each of
// its campaigns deposes the leader.
//
//spec:test PreVote.Ask
func TestALinkThatFailsInOneDirectionDeposesNobody(t *testing.T) {
	for name, row := range map[string]struct{ heard, careful bool }{
		"hears all, nobody hears it":                  {false, true},
		"hears all, nobody hears it, without PreVote": {false, false},
		"hears nobody, all hear it":                   {true, true},
		"hears nobody, all hear it, without PreVote":  {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, setup{careful: row.careful})
			c.elect(1)
			for _, other := range []raft.ServerID{1, 2} {
				c.down[link{other, 3}], c.down[link{3, other}] = row.heard, !row.heard
			}
			c.outbox(3)
			c.elapse(c.now() + 30*electionTimeout)
			asked := 0
			for _, m := range c.outbox(3) {
				switch m.Body.(type) {
				case raft.PreVote, raft.RequestVote:
					asked++
				}
			}
			if row.heard != (asked >= 30) || !row.heard && asked > 0 {
				t.Errorf("it has asked %d times", asked)
			}
			stays := c.rank(1) == rank{raft.Leader, 1, 1} && c.status(3).Term == 1
			if want := row.careful || !row.heard; stays != want {
				t.Errorf("all terms stay: %v, want %v: %+v", stays, want, c.rank(1))
			}
		})
	}
}

// E15: of two that win the asking and split the vote, one wins later.
//
//spec:test PreVote.Majority
func TestTwoThatWinTheAskingSplitTheVoteOnce(t *testing.T) {
	c := newCluster(t, setup{careful: true})
	c.isolate(1)
	c.timeout(2)
	c.timeout(3)
	c.deliver(2, 3)
	c.deliver(3, 2)
	c.deliver(2, 3) // a yes each
	c.deliver(3, 2)
	same(t, "2", rank{raft.Candidate, 1, 0}, c.rank(2))
	same(t, "3", rank{raft.Candidate, 1, 0}, c.rank(3))
	c.run()
	same(t, "leader", 0, c.leader())
	c.elapse(c.now() + 5*electionTimeout)
	if c.leader() == 0 {
		t.Error("nobody leads")
	}
}

// E33: requests that were sent before a leader was elected, and arrive afterwards, elect no second one,
// whether they are questions or campaigns.
//
//spec:test PreVote.Grant
//spec:test RV.2
func TestRequestsThatComeAfterTheElectionElectNobody(t *testing.T) {
	for _, careful := range []bool{true, false} {
		c := newCluster(t, setup{careful: careful})
		c.timeout(3)
		same(t, "late requests", 2, len(c.queues[link{3, 1}])+len(c.queues[link{3, 2}]))
		c.timeout(1)
		for range 2 { // the question and the campaign, or the campaign and the first entry
			c.deliver(1, 2)
			c.deliver(2, 1)
		}
		elected := rank{raft.Leader, 1, 1}
		same(t, "leader", elected, c.rank(1))
		c.outbox(1)
		c.outbox(2)
		c.deliver(3, 1)
		c.deliver(3, 2)
		for _, id := range []raft.ServerID{1, 2} {
			for _, m := range c.outbox(id) {
				if a, ok := m.Body.(raft.PreVoteReply); ok && a.VoteGranted {
					t.Errorf("server %d answers yes", id)
				}
				if a, ok := m.Body.(raft.RequestVoteReply); ok && a.VoteGranted {
					t.Errorf("server %d votes", id)
				}
			}
		}
		c.elapse(c.now() + 10*electionTimeout)
		same(t, "the leader stays", elected, c.rank(1))
		same(t, "the late one follows", rank{raft.Follower, 1, 1}, c.rank(3))
	}
}
