package trace

import (
	"maps"

	"ticketing/fsm"
	"ticketing/raft"
)

// This file names the rule that decided, from the state before, the input and the state after.

// ruleOfChange names the rule of Figure 2 by which a state became the next.
func ruleOfChange(before, after *raft.Status, received *raft.Message) string {
	switch {
	case after.Role == raft.PreCandidate && (before.Role != raft.PreCandidate || after.Leader != before.Leader):
		return "PreVote.Ask"
	case after.Role == raft.Leader && before.Role != raft.Leader:
		return "Candidates.2"
	case before.Role == raft.Leader && after.Role == raft.Follower && after.Term == before.Term:
		return "CheckQuorum.StepDown"
	case before.Role == raft.PreCandidate && after.Role == raft.Candidate:
		return "PreVote.Majority"
	case after.Role == raft.Candidate && received != nil && isTimeoutNow(received):
		return "Transfer.Now"
	case after.Role == raft.Candidate && before.Role == raft.Candidate && after.Term > before.Term:
		return "Candidates.4"
	case after.Role == raft.Candidate && after.Term > before.Term:
		return "Followers.2"
	case after.Term > before.Term:
		return "All.2"
	case before.Role != raft.Follower && after.Role == raft.Follower:
		switch {
		case isVoteReply(received):
			return "Election.Refused"
		case before.Role == raft.PreCandidate && received != nil && isAnswer(received):
			return "PreVote.Majority"
		}
		return "Candidates.3"
	case after.CommitIndex > before.CommitIndex:
		return ruleOfCommit(after, received)
	case after.VotedFor != before.VotedFor:
		return "RV.UpToDate"
	case after.LastIndex < before.LastIndex ||
		after.LastTerm != before.LastTerm && after.LastIndex == before.LastIndex:
		return "AE.3"
	case after.LastIndex > before.LastIndex && after.Role == raft.Leader:
		return "Leaders.2"
	case after.LastIndex > before.LastIndex:
		return "AE.4"
	}
	return ""
}

// ruleOfCommit names the rule by which commitIndex has grown. At a follower only a snapshot that has
// become durable commits anything without a message.
func ruleOfCommit(after *raft.Status, received *raft.Message) string {
	switch {
	case after.Role == raft.Leader:
		return "Leaders.4"
	case received == nil:
		return "Snapshot.Suffix"
	}
	return "AE.5"
}

func isAnswer(m *raft.Message) bool {
	_, ok := m.Body.(raft.PreVoteReply)
	return ok
}

func isTimeoutNow(m *raft.Message) bool {
	_, ok := m.Body.(raft.TimeoutNow)
	return ok
}

func isVoteReply(m *raft.Message) bool {
	if m == nil {
		return false
	}
	_, ok := m.Body.(raft.RequestVoteReply)
	return ok
}

func ruleOfAppend(e raft.Entry, lastBefore raft.Index, role raft.Role, p *fsm.Proposed) string {
	switch {
	case e.Index <= lastBefore:
		return "AE.3"
	case p != nil && e.Members != nil:
		return "Members.Append"
	case p != nil:
		return "Leaders.2"
	case role == raft.Leader:
		return "Leaders.Noop"
	}
	return "AE.4"
}

func ruleOfResult(e *fsm.Envelope, r fsm.Result) string {
	switch r.Kind {
	case fsm.SessionUnknown, fsm.NumberReused:
		return "Once"
	case fsm.ResultNoop:
		if e.Client != 0 && e.Kind != fsm.Noop {
			return "Once"
		}
		return ""
	}
	if r.Again {
		return "Once"
	}
	switch r.Kind {
	case fsm.Extended:
		return "Extend.Token"
	case fsm.Granted:
		return "Token.Grows"
	case fsm.GrantRejected:
		return "Grant.Held"
	case fsm.Expired:
		return "Expire.Token"
	case fsm.NotFound:
		if e.Kind == fsm.Extend {
			return "Extend.Token"
		}
		return "Release.Token"
	}
	return ""
}

// Votes remembers of each request for a vote whether the vote of its term was another's already
// when it was handled. The reply may leave much later, when that has changed.
type Votes map[candidacy]bool

// candidacy names a request for a vote.
type candidacy struct {
	from raft.ServerID
	term raft.Term
}

// forgetTerms is how many terms later no reply to a request for a vote can be waiting any more.
const forgetTerms = 100

// Asked notes a request for a vote, with the state that it is handled in. Other messages are none
// of its business.
func (v Votes) Asked(s *raft.Status, m *raft.Message) {
	if _, ok := m.Body.(raft.RequestVote); !ok {
		return
	}
	maps.DeleteFunc(v, func(c candidacy, _ bool) bool { return c.term+forgetTerms < m.Term })
	v[candidacy{m.From, m.Term}] = s.Term == m.Term && s.VotedFor != 0 && s.VotedFor != m.From
}

// RuleOfReply names the rule that decided a reply, "" if m is none or needs no reason.
func (v Votes) RuleOfReply(m *raft.Message) string {
	switch b := m.Body.(type) {
	case raft.RequestVoteReply:
		switch {
		case b.VoteGranted:
			return "RV.UpToDate"
		case b.RequestTerm < m.Term:
			return "RV.1"
		case b.RequestTerm > m.Term:
			return "CheckQuorum.Sticky"
		case v[candidacy{m.To, b.RequestTerm}]:
			return "RV.2"
		}
		return "RV.UpToDate"
	case raft.PreVoteReply:
		if b.RequestTerm > m.Term {
			return "CheckQuorum.Sticky"
		}
		return "PreVote.Grant"
	case raft.ReadIndexReply:
		if b.Success {
			return "Read.Index"
		}
	case raft.AppendEntriesReply:
		switch {
		case b.Success:
			return ""
		case b.RequestTerm < m.Term:
			return "AE.1"
		}
		return "AE.2"
	}
	return ""
}
