package raft_test

import (
	"fmt"
	"strings"
	"testing"

	"ticketing/raft"
)

// placed is server 1 in term 2 with the log [1], and in a role: it follows 2, asks, campaigns or
// leads.
func placed(t *testing.T, role raft.Role) *cluster {
	t.Helper()
	start := state(1, 0, 1)
	if role == raft.Follower || role == raft.PreCandidate {
		start = state(2, 0, 1)
	}
	c := careful(t, 3, start)
	switch role {
	case raft.Follower:
		c.receive(appendEntries(2, 1, 1, 0))
	case raft.PreCandidate:
		c.timeout(1)
	case raft.Candidate:
		c.campaigns()
	case raft.Leader:
		c.elected()
	}
	same(t, "placed", role, c.status(1).Role)
	same(t, "term", 2, c.status(1).Term)
	c.outbox(1)
	return c
}

// outcome is what becomes of a message, in few words: the role, the term if it is not 2 any more, and
// what is said to its sender.
func outcome(c *cluster, m raft.Message) string {
	if err := c.core(1).Clone().Receive(m); err != nil {
		return "malformed"
	}
	c.receive(m)
	words := []string{c.status(1).Role.String()}
	if term := c.status(1).Term; term != 2 {
		words = append(words, fmt.Sprint("in ", term))
	}
	for _, m := range c.outbox(1) {
		if m.To == 2 {
			words = append(words, said(m.Body))
		}
	}
	return strings.Join(words, ", ")
}

func said(b raft.Body) string {
	yes := false
	switch b := b.(type) {
	case raft.RequestVoteReply:
		yes = b.VoteGranted
	case raft.PreVoteReply:
		yes = b.VoteGranted
	case raft.AppendEntriesReply:
		yes = b.Success
	case raft.InstallSnapshotReply:
		yes = b.Installed
	case raft.ReadIndexReply:
		yes = b.Success
	default:
		return strings.TrimPrefix(fmt.Sprintf("%T", b), "raft.")
	}
	return map[bool]string{true: "yes", false: "no"}[yes]
}

// Every message means something in every role, be it nothing. All are of server 2, in the term that
// both are in: a candidate's, that of a leader beside whom there is another, and answers to what was
// not asked are among them.
//
//spec:test Followers.1
//spec:test Candidates.3
//spec:test Election.Reply
func TestEveryMessageHasAnOutcomeInEveryRole(t *testing.T) {
	roles := []raft.Role{raft.Follower, raft.PreCandidate, raft.Candidate, raft.Leader}
	const nothing = "follower | pre-candidate | candidate | leader"
	snapshot := raft.InstallSnapshot{
		LastIncludedIndex: 9, LastIncludedTerm: 1, Members: servers(1, 2, 3), Done: true,
	}
	for _, row := range []struct {
		body raft.Body
		want string // of each role
	}{
		{raft.RequestVote{LastLogIndex: 1, LastLogTerm: 1},
			"follower, yes | pre-candidate, yes | candidate, no | leader, no"},
		{raft.PreVote{LastLogIndex: 1, LastLogTerm: 1},
			"follower, no | pre-candidate, yes | candidate, yes | leader, no"},
		{raft.AppendEntries{PrevLogIndex: 1, PrevLogTerm: 1},
			"follower, yes | follower, yes | follower, yes | malformed"},
		{raft.AppendEntries{PrevLogIndex: 5, PrevLogTerm: 2},
			"follower, no | follower, no | follower, no | malformed"},
		{snapshot, "follower, yes | follower, yes | follower, yes | malformed"},
		{raft.ReadIndex{ID: 7}, "follower, no | pre-candidate, no | candidate, no | leader"},
		{raft.TimeoutNow{}, "candidate, in 3, RequestVote, TimeoutNowReply | " +
			"pre-candidate, TimeoutNowReply | candidate, TimeoutNowReply | leader, TimeoutNowReply"},
		{raft.RequestVoteReply{RequestTerm: 2, VoteGranted: true},
			"follower | pre-candidate | leader, AppendEntries | leader"},
		{raft.PreVoteReply{RequestTerm: 2, VoteGranted: true},
			"follower | candidate, in 3, RequestVote | candidate | leader"},
		{raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 1, Success: true, MatchIndex: 1},
			"follower | pre-candidate | candidate | leader, AppendEntries"},
		{raft.InstallSnapshotReply{RequestTerm: 2, LastIncludedIndex: 1}, nothing},
		{raft.ReadIndexReply{RequestTerm: 2, ID: 7, Success: true}, nothing},
		{raft.TimeoutNowReply{RequestTerm: 2}, nothing},
	} {
		var got []string
		for _, role := range roles {
			got = append(got, outcome(placed(t, role), message(2, 1, 2, row.body)))
		}
		if s := strings.Join(got, " | "); s != row.want {
			t.Errorf("%T:\n%s, want\n%s", row.body, s, row.want)
		}
	}
}
