package spec

import (
	"slices"
	"strings"

	"ticketing/fsm/trace"
)

// The actions, by their names in the specification. An action whose guard does not hold is not
// taken, and says so; whoever calls it decides what that means.

// timeout is Timeout(i). The specification clears votedFor and lets the candidate's own vote travel
// as a message; here that round is part of it.
func (s *server) timeout() bool {
	if s.role != follower && s.role != candidate {
		return false
	}
	s.role, s.term, s.vote = candidate, s.term+1, s.name
	s.granted = map[string]bool{s.name: true}
	return true
}

// becomeLeader is BecomeLeader(i).
func (j *judge) becomeLeader(s *server) bool {
	if s.role != candidate || !j.quorum(s, func(id string) bool { return s.granted[id] }) {
		return false
	}
	s.role, s.matchIndex = leader, map[string]int{}
	return true
}

// clientRequest is ClientRequest(i, v).
func (s *server) clientRequest(e trace.EntryRecord) bool {
	if s.role != leader || uint64(e.Term) != s.term || int(e.Index) != len(s.log)+1 {
		return false
	}
	s.log = append(s.log[:len(s.log):len(s.log)], e)
	return true
}

// advanceCommitIndex is AdvanceCommitIndex(i), to a given index. The specification goes to the
// highest that a quorum has, counting the leader; a leader here counts itself when its disk has the
// entry, so it may be behind that.
func (j *judge) advanceCommitIndex(s *server, to int) bool {
	agree := func(id string) bool { return id == s.name || s.matchIndex[id] >= to }
	if s.role != leader || to <= s.commitIndex || to > len(s.log) ||
		uint64(s.log[to-1].Term) != s.term || !j.quorum(s, agree) {
		return false
	}
	s.commitIndex = to
	return true
}

// handleRequestVoteRequest is HandleRequestVoteRequest(i, j, m), and reports the vote.
func (s *server) handleRequestVoteRequest(m *trace.MessageRecord) (granted bool) {
	lastTerm := s.lastTerm()
	logOK := uint64(m.LastTerm) > lastTerm ||
		uint64(m.LastTerm) == lastTerm && int(m.LastIndex) >= len(s.log)
	if uint64(m.Term) != s.term || !logOK || s.vote != "" && s.vote != m.From {
		return false
	}
	s.vote = m.From
	return true
}

// handleRequestVoteResponse is HandleRequestVoteResponse(i, j, m).
func (s *server) handleRequestVoteResponse(m *trace.MessageRecord) bool {
	if uint64(m.Term) != s.term || uint64(m.RequestTerm) != s.term || s.role != candidate {
		return false
	}
	if m.Granted {
		s.granted[m.From] = true
	}
	return true
}

// handleAppendEntriesRequest is HandleAppendEntriesRequest(i, j, m): the step back of a candidate,
// and then a refusal, or, for each entry in turn, "already done", "conflict" and "no conflict". The
// specification's messages have one entry and its conflict takes the log back by one; ours have
// several. And commitIndex never falls here, where the specification lets an old message lower it.
func (s *server) handleAppendEntriesRequest(m *trace.MessageRecord) (accepted bool) {
	if uint64(m.Term) != s.term {
		return false
	}
	if s.role == candidate {
		s.role = follower
	}
	prev := int(m.PrevIndex)
	logOK := prev == 0 || prev <= len(s.log) && s.log[prev-1].Term == m.PrevTerm
	if s.role != follower || !logOK {
		return false
	}
	for _, e := range m.Entries {
		i := int(e.Index)
		if i <= len(s.log) && s.log[i-1].Term != e.Term {
			s.log = s.log[: i-1 : i-1]
		}
		if i == len(s.log)+1 {
			s.log = append(s.log[:i-1:i-1], e)
		}
	}
	s.commitIndex = max(s.commitIndex, min(int(m.Commit), prev+len(m.Entries)))
	return true
}

// handleAppendEntriesResponse is HandleAppendEntriesResponse(i, j, m). Of nextIndex the judge keeps
// no account: what a leader sends has to be of its log, wherever that begins.
func (s *server) handleAppendEntriesResponse(m *trace.MessageRecord) bool {
	if uint64(m.Term) != s.term || uint64(m.RequestTerm) != s.term || s.role != leader {
		return false
	}
	if m.Success {
		s.matchIndex[m.From] = max(s.matchIndex[m.From], int(m.Match))
	}
	return true
}

// updateTerm is UpdateTerm(i, j, m).
func (s *server) updateTerm(term uint64) bool {
	if term <= s.term {
		return false
	}
	s.role, s.term, s.vote = follower, term, ""
	return true
}

// restart is Restart(i): what is not durable is gone. commitIndex begins at what a snapshot has.
func (s *server) restart(e *trace.Event) {
	s.role, s.granted, s.matchIndex = follower, nil, nil
	s.commitIndex = int(e.State.Commit)
}

func (s *server) lastTerm() uint64 {
	if len(s.log) == 0 {
		return 0
	}
	return uint64(s.log[len(s.log)-1].Term)
}

// quorum reports whether those for whom has holds are a majority.
func (j *judge) quorum(s *server, has func(id string) bool) bool {
	voters, _ := j.members(s)
	yes := 0
	for _, id := range voters {
		if has(id) {
			yes++
		}
	}
	return 2*yes > len(voters)
}

// members are the servers of the last configuration in a server's log. The specification's are fixed,
// and all of them vote.
func (j *judge) members(s *server) (voters, learners []string) {
	text := j.start
	for _, e := range s.log {
		if e.Members != "" {
			text = e.Members
		}
	}
	vote, learn, _ := strings.Cut(text, "+")
	return strings.Split(vote, ","), strings.Split(learn, ",")
}

func (j *judge) knows(s *server, id string) bool {
	voters, learners := j.members(s)
	return slices.Contains(voters, id) || slices.Contains(learners, id)
}
