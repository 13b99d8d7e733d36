package spec

import (
	"strings"

	"ticketing/fsm/trace"
)

// take carries out the actions that an input stands for. What the specification leaves open (whether
// a message is dropped, whether a candidate with its votes leads already) is read from the trace, and
// each guard is asked.
func (j *judge) take(s *server) error {
	n := &s.now
	after := n.state
	if after == nil {
		after = &s.said.state
	}
	switch n.input.Kind {
	case trace.KindElectionTimeout:
		if err := j.timedOut(s, after); err != nil {
			return err
		}
	case trace.KindReceive:
		if n.input.Message != nil {
			if err := j.received(s, n.input.Message, after); err != nil {
				return err
			}
		}
	}
	if roleOf(after) == leader && s.role == candidate && uint64(after.Term) == s.term {
		if !j.becomeLeader(s) {
			return j.refuse(s, "BecomeLeader: it has votes from %d, which is no majority", len(s.granted))
		}
		j.did("BecomeLeader")
	}
	if err := j.appended(s); err != nil {
		return err
	}
	if err := j.committedBy(s, int(after.Commit)); err != nil {
		return err
	}
	s.remember() // a leader that leaves tells of its removal's commit
	j.stepDown(s, after)
	return j.known(s)
}

func (j *judge) did(action string)   { j.report.Actions[action]++ }
func (j *judge) added(action string) { j.report.Additions[action]++ }

// timedOut is the end of an election timeout: Timeout(i), or the vote before the vote, or nothing for
// a leader and for whoever may not campaign.
func (j *judge) timedOut(s *server, after *trace.StateRecord) error {
	switch {
	case uint64(after.Term) == s.term:
		if after.Role == preCandidate {
			s.role = follower // a candidate gives up and asks before it asks
			j.added("PreVote")
		}
		return nil
	case !s.timeout():
		return j.refuse(s, "Timeout: a %s does not campaign", s.role)
	}
	j.did("Timeout")
	return nil
}

// received is a message's arrival. UpdateTerm comes first where it is due, unless the message was
// dropped: whoever hears a leader does not enter the term of one who asks for votes, and an answer
// from a server that is not a member, or no longer, is of no interest.
func (j *judge) received(s *server, m *trace.MessageRecord, after *trace.StateRecord) error {
	if uint64(m.Term) > s.term {
		if uint64(after.Term) < uint64(m.Term) {
			switch {
			case m.Kind == trace.Vote || m.Kind == trace.PreVote:
				j.added("CheckQuorum.Sticky")
			case strings.HasSuffix(m.Kind, "-reply") && !j.knows(s, m.From):
				j.added("answer of a stranger")
			default:
				return j.refuse(s, "UpdateTerm: it stays in term %d after a %s of term %d", s.term, m.Kind, m.Term)
			}
			return nil
		}
		s.updateTerm(uint64(m.Term))
		j.did("UpdateTerm")
	}
	switch m.Kind {
	case trace.Vote:
		if s.handleRequestVoteRequest(m) {
			s.said.grant(s.term, m.From)
		}
		j.did("HandleRequestVoteRequest")
	case trace.VoteReply:
		j.either(s.handleRequestVoteResponse(m), "HandleRequestVoteResponse")
	case trace.Append:
		if s.handleAppendEntriesRequest(m) {
			s.said.accept(s.term, s.log, int(m.PrevIndex)+len(m.Entries))
		}
		j.did("HandleAppendEntriesRequest")
	case trace.AppendReply:
		j.either(s.handleAppendEntriesResponse(m), "HandleAppendEntriesResponse")
	default:
		return j.beyond(s, m, after)
	}
	return nil
}

// either counts a reply that was handled, or was too old for that.
func (j *judge) either(handled bool, action string) {
	if !handled {
		action = "DropStaleResponse"
	}
	j.did(action)
}

// beyond is a message of a kind that the specification does not have. It may make its receiver
// campaign, if it is from a leader that hands over or the last vote before the vote; a chunk of a
// snapshot and a leader's answer say that there is a leader.
func (j *judge) beyond(s *server, m *trace.MessageRecord, after *trace.StateRecord) error {
	j.added(m.Kind)
	switch m.Kind {
	case trace.TimeoutNow, trace.PreVoteReply:
		if uint64(after.Term) > s.term {
			if !s.timeout() {
				return j.refuse(s, "Timeout: a %s does not campaign", s.role)
			}
			j.did("Timeout")
		}
	case trace.Snapshot:
		if uint64(m.Term) == s.term && s.role == candidate {
			s.role = follower
		}
	case trace.SnapshotReply:
		if m.Installed && s.role == leader && uint64(m.RequestTerm) == s.term && uint64(m.Term) == s.term {
			s.matchIndex[m.From] = max(s.matchIndex[m.From], int(m.LastIndex))
		}
	}
	return nil
}

// appended is what else has come to the log: a leader's own entries, and a snapshot.
func (j *judge) appended(s *server) error {
	n := &s.now
	if n.input.Kind == trace.KindKept && !sameLogs(s.log, n.log) {
		j.added("InstallSnapshot")
		s.log = n.log
		if n.state != nil {
			s.commitIndex = max(s.commitIndex, int(n.state.Commit))
		}
		return nil
	}
	for i := len(s.log); i < len(n.log) && s.role == leader; i++ {
		if !s.clientRequest(n.log[i]) {
			return j.refuse(s, "ClientRequest: entry %d of term %d in a log of %d, in term %d",
				n.log[i].Index, n.log[i].Term, len(s.log), s.term)
		}
		j.did("ClientRequest")
	}
	return nil
}

// committedBy is a commitIndex that has grown without a message from a leader.
func (j *judge) committedBy(s *server, to int) error {
	if to <= s.commitIndex {
		return nil
	}
	if s.now.input.Kind == trace.KindKept {
		s.commitIndex = to
		return nil
	}
	if s.role != leader {
		return nil // compare refuses it
	}
	if !j.advanceCommitIndex(s, to) {
		return j.refuse(s, "AdvanceCommitIndex: to %d in term %d; at the servers are %v", to, s.term, s.matchIndex)
	}
	j.did("AdvanceCommitIndex")
	return nil
}

// stepDown is how one that leads or campaigns becomes a follower of the same term without a message
// that makes it one. It gives something up and takes nothing.
func (j *judge) stepDown(s *server, after *trace.StateRecord) {
	if roleOf(after) == follower && s.role != follower && uint64(after.Term) == s.term {
		rule := s.now.rule
		switch rule {
		case "CheckQuorum.StepDown", "Members.Leave", "Election.Refused":
			s.role = follower
			j.added(rule)
		}
	}
}

// known holds what is committed at one server against what is at others: each index has one entry.
func (j *judge) known(s *server) error {
	if s.commitIndex > len(s.log) {
		return j.refuse(s, "commitIndex %d is beyond its log of %d", s.commitIndex, len(s.log))
	}
	if !sameEntries(j.committed, s.log[:s.commitIndex]) {
		return j.refuse(s, "up to entry %d another server has committed others", s.commitIndex)
	}
	if s.commitIndex > len(j.committed) {
		j.committed = s.log[:s.commitIndex:s.commitIndex]
	}
	return nil
}

func sameLogs(a, b []trace.EntryRecord) bool { return len(a) == len(b) && sameEntries(a, b) }
