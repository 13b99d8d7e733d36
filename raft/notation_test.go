package raft_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

// The notation of the tests: a log is given by the terms of its entries, and a message in few words.
// Unless a test says otherwise, server 1 is the one under test and 2 speaks to it.

// entries makes the entries of these terms, the first one at this index. An index and a term always
// give the same command, as Log Matching wants it.
func entries(first raft.Index, terms ...raft.Term) []raft.Entry {
	var es []raft.Entry
	for i, t := range terms {
		index := first + raft.Index(i)
		command := fmt.Appendf(nil, "%d@%d", index, t)
		es = append(es, raft.Entry{Index: index, Term: t, Command: command})
	}
	return es
}

// state is the durable state {t=term v=vote log=terms}.
func state(term raft.Term, vote raft.ServerID, terms ...raft.Term) raft.Durable {
	return raft.Durable{
		HardState: raft.HardState{Term: term, VotedFor: vote},
		Entries:   entries(1, terms...),
	}
}

func terms(es []raft.Entry) []raft.Term {
	ts := []raft.Term{}
	for _, e := range es {
		ts = append(ts, e.Term)
	}
	return ts
}

func commands(es []raft.Entry) []string {
	cs := []string{}
	for _, e := range es {
		cs = append(cs, string(e.Command))
	}
	return cs
}

func message(from, to raft.ServerID, term raft.Term, body raft.Body) raft.Message {
	return raft.Message{From: from, To: to, Term: term, Body: body}
}

// requestVote is RV(term, last=index@lastTerm) to server 1.
func requestVote(
	from raft.ServerID, term raft.Term, index raft.Index, lastTerm raft.Term,
) raft.Message {
	return message(from, 1, term, raft.RequestVote{LastLogIndex: index, LastLogTerm: lastTerm})
}

// vote is the answer to server 1's request of this term, given in it.
func vote(from raft.ServerID, term raft.Term, granted bool) raft.Message {
	return message(from, 1, term, raft.RequestVoteReply{RequestTerm: term, VoteGranted: granted})
}

// appendEntries is AE(term, prev=index@prevTerm, entries of these terms, commit) from 2 to 1.
func appendEntries(
	term raft.Term, prev raft.Index, prevTerm raft.Term, commit raft.Index, terms ...raft.Term,
) raft.Message {
	return message(2, 1, term, raft.AppendEntries{
		PrevLogIndex: prev, PrevLogTerm: prevTerm,
		Entries: entries(prev+1, terms...), LeaderCommit: commit,
	})
}

// success answers server 1's AppendEntries of this term behind prev: durable up to match.
func success(from raft.ServerID, term raft.Term, prev, match raft.Index) raft.Message {
	return message(from, 1, term, raft.AppendEntriesReply{
		RequestTerm: term, PrevLogIndex: prev, Success: true, MatchIndex: match,
	})
}

// refusal answers it with a hint where to look next.
func refusal(
	from raft.ServerID, term raft.Term, prev raft.Index, conflict raft.Term, index raft.Index,
) raft.Message {
	return message(from, 1, term, raft.AppendEntriesReply{
		RequestTerm: term, PrevLogIndex: prev, ConflictTerm: conflict, ConflictIndex: index,
	})
}

// The rest: how tests look at a cluster.

// same fails the test unless got is want.
func same[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s: (-want +got)\n%s", what, diff)
	}
}

// rank is a server's role, term and whom it follows.
type rank struct {
	Role   raft.Role
	Term   raft.Term
	Leader raft.ServerID
}

func (c *cluster) rank(id raft.ServerID) rank {
	c.t.Helper()
	s := c.status(id)
	return rank{s.Role, s.Term, s.Leader}
}

// answer returns the body of the one message that server 1 has sent.
func (c *cluster) answer() raft.Body {
	c.t.Helper()
	sent := c.outbox(1)
	if len(sent) != 1 {
		c.fatal("%d messages, want one answer: %v", len(sent), sent)
	}
	return sent[0].Body
}

// granted returns whether the one message that server 1 has sent grants a vote.
func (c *cluster) granted() bool {
	c.t.Helper()
	reply, ok := c.answer().(raft.RequestVoteReply)
	if !ok {
		c.fatal("no answer to a RequestVote")
	}
	return reply.VoteGranted
}

// appends returns the AppendEntries that a server has sent to another since the last outbox.
func (c *cluster) appends(from, to raft.ServerID) []raft.AppendEntries {
	c.t.Helper()
	var as []raft.AppendEntries
	for _, m := range c.node(from).sent {
		if a, ok := m.Body.(raft.AppendEntries); ok && m.To == to {
			as = append(as, a)
		}
	}
	return as
}

// leads makes server 1, alone with servers that the test plays, the leader of the term after its
// present one. Its no-op has left and nothing is answered.
func (c *cluster) leads() { c.elected() }

// campaigns makes server 1 a candidate, without asking or after all others said that it would win.
func (c *cluster) campaigns() {
	c.timeout(1)
	for id := range raft.ServerID(c.setup.size / 2) {
		if s := c.status(1); s.Role == raft.PreCandidate {
			c.receive(preAnswer(id+2, s.Term, s.Term, true))
		}
	}
}

func (c *cluster) elected() {
	c.t.Helper()
	c.campaigns()
	for id := range raft.ServerID(c.setup.size / 2) {
		c.receive(vote(id+2, c.status(1).Term, true))
	}
	if s := c.status(1); s.Role != raft.Leader {
		c.fatal("server 1 does not lead: %+v", s)
	}
}

// alone returns server 1 in a durable state, in a cluster of which the test plays the rest.
func alone(t testing.TB, size int, d raft.Durable) *cluster {
	t.Helper()
	return newCluster(t, setup{size: size, only: 1, states: map[raft.ServerID]raft.Durable{1: d}})
}
