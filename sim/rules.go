package sim

import (
	"ticketing/fsm"
	"ticketing/raft"
)

// This file names the rule that decided, from the state before, the input and the state after.

// ruleOfChange names the rule of Figure 2 by which a state became the next.
func ruleOfChange(before, after *raft.Status, received *raft.Message) string {
	switch {
	case after.Role == raft.Leader && before.Role != raft.Leader:
		return "Candidates.2"
	case after.Role == raft.Candidate && before.Role == raft.Candidate && after.Term > before.Term:
		return "Candidates.4"
	case after.Role == raft.Candidate && after.Term > before.Term:
		return "Followers.2"
	case after.Term > before.Term:
		return "All.2"
	case before.Role == raft.Candidate && after.Role == raft.Follower:
		if received != nil && kindOf(received.Body) == messageVoteReply {
			return "Election.Refused"
		}
		return "Candidates.3"
	case after.CommitIndex > before.CommitIndex && after.Role == raft.Leader:
		return "Leaders.4"
	case after.CommitIndex > before.CommitIndex:
		return "AE.5"
	case after.VotedFor != before.VotedFor:
		return "RV.UpToDate"
	case after.LastIndex < before.LastIndex || after.LastTerm != before.LastTerm && after.LastIndex == before.LastIndex:
		return "AE.3"
	case after.LastIndex > before.LastIndex && after.Role == raft.Leader:
		return "Leaders.2"
	case after.LastIndex > before.LastIndex:
		return "AE.4"
	}
	return ""
}

func ruleOfResult(r fsm.Result) string {
	switch {
	case r.Kind == fsm.Granted:
		return "Token.Grows"
	case r.Kind == fsm.GrantRejected:
		return "Grant.Held"
	case r.Kind == fsm.Expired:
		return "Expire.Token"
	case r.Kind == fsm.NotFound:
		return "Release.Token"
	}
	return ""
}

// request names a candidate's request for a vote.
type request struct {
	from raft.ServerID
	term raft.Term
}

// asked notes, when a request for a vote is handled, whether the vote of its term was another's
// already. The reply may leave much later, when that has changed.
func (n *node) asked(m *raft.Message) {
	if _, ok := m.Body.(raft.RequestVote); !ok {
		return
	}
	if n.voted == nil {
		n.voted = map[request]bool{}
	}
	s := &n.status
	n.voted[request{m.From, m.Term}] = s.Term == m.Term && s.VotedFor != 0 && s.VotedFor != m.From
}

// ruleOfReply names the rule that decided a reply.
func (w *World) ruleOfReply(f *flight) string {
	switch b := f.raft.Body.(type) {
	case raft.RequestVoteReply:
		voted := w.actors[f.from].node.voted[request{f.raft.To, b.RequestTerm}]
		switch {
		case b.VoteGranted:
			return "RV.UpToDate"
		case b.RequestTerm < f.raft.Term:
			return "RV.1"
		case voted:
			return "RV.2"
		}
		return "RV.UpToDate"
	case raft.AppendEntriesReply:
		switch {
		case b.Success:
			return ""
		case b.RequestTerm < f.raft.Term:
			return "AE.1"
		}
		return "AE.2"
	}
	return ""
}
