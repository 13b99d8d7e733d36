package spec

import (
	"slices"

	"ticketing/fsm/trace"
)

// said is what a server may tell: each is what an action gave it the right to. A message may leave
// later than the action, since it waits for the disk; to the specification it is on its way then.
type said struct {
	state    trace.StateRecord
	grants   map[uint64]string              // to whom it gave its vote, by term
	asks     map[uint64][]position          // where its log ended as it campaigned, by term
	led      map[uint64][]trace.EntryRecord // its log as a leader, by term: it only grew
	commits  map[uint64]int                 // and its commitIndex
	accepted map[uint64]acceptance          // from the leader of a term
}

type position struct {
	index int
	term  uint64
}

// acceptance is up to where a log agreed with a leader's, and the log then.
type acceptance struct {
	match int
	log   []trace.EntryRecord
}

func (s *said) grant(term uint64, to string) { set(&s.grants, term, to) }

func (s *said) accept(term uint64, log []trace.EntryRecord, match int) {
	if match >= s.accepted[term].match {
		set(&s.accepted, term, acceptance{match, log})
	}
}

func set[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// remember keeps what the server may tell in its present role and term.
func (s *server) remember() {
	switch s.role {
	case candidate:
		// A snapshot may come to a candidate, so its log may end at several places in one term.
		set(&s.said.asks, s.term, append(s.said.asks[s.term], position{len(s.log), s.lastTerm()}))
	case leader:
		set(&s.said.led, s.term, s.log)
		set(&s.said.commits, s.term, s.commitIndex)
	}
}

// wasSent refuses a message that nobody has sent.
func (j *judge) wasSent(s *server, e *trace.Event) error {
	if e.Message == nil {
		return nil
	}
	sent, ok := j.sent[e.Cause]
	if !ok || sent.Message.To != s.name || sent.Message.Kind != e.Message.Kind || sent.Message.Term != e.Message.Term {
		return j.refuse(s, "Receive: nobody has sent this %s", e.Message.Kind)
	}
	return nil
}

// maySend asks whether an action has made this message.
func (j *judge) maySend(s *server, m *trace.MessageRecord) error {
	term := uint64(m.Term)
	if term > s.term {
		return j.refuse(s, "Send: a %s of term %d, it is in term %d", m.Kind, term, s.term)
	}
	switch m.Kind {
	case trace.Vote:
		j.did("RequestVote")
		if !slices.Contains(s.said.asks[term], position{int(m.LastIndex), uint64(m.LastTerm)}) {
			return j.refuse(s, "RequestVote: it names %d/%d as the end of its log, which is not its log's in term %d",
				m.LastIndex, m.LastTerm, term)
		}
		return j.durableVote(s, term, s.name)
	case trace.VoteReply:
		if m.Granted {
			if s.said.grants[term] != m.To {
				return j.refuse(s, "HandleRequestVoteRequest: a vote for %s in term %d, which it has not given", m.To, term)
			}
			return j.durableVote(s, term, m.To)
		}
	case trace.Append:
		j.did("AppendEntries")
		return j.mayAppend(s, m)
	case trace.AppendReply:
		if m.Success {
			return j.mayAcknowledge(s, m)
		}
	}
	return nil
}

// mayAppend is the guard of AppendEntries(i, j): the entries and the one before them are the log's of
// the leader of that term, and it has committed what it says.
func (j *judge) mayAppend(s *server, m *trace.MessageRecord) error {
	term, prev := uint64(m.Term), int(m.PrevIndex)
	log, led := s.said.led[term]
	if !led {
		return j.refuse(s, "AppendEntries: it does not lead in term %d", term)
	}
	ok := prev+len(m.Entries) <= len(log) && (prev == 0 || log[prev-1].Term == m.PrevTerm)
	if !ok || !sameLogs(m.Entries, log[prev:prev+len(m.Entries)]) {
		return j.refuse(s, "AppendEntries: %d entries behind %d/%d, which are not its log's", len(m.Entries), prev, m.PrevTerm)
	}
	if int(m.Commit) > s.said.commits[term] {
		return j.refuse(s, "AppendEntries: commitIndex %d, it has committed up to %d", m.Commit, s.said.commits[term])
	}
	return nil
}

// mayAcknowledge is the guard of the reply in HandleAppendEntriesRequest, and that what is
// acknowledged is durable: the log is a persistent variable.
func (j *judge) mayAcknowledge(s *server, m *trace.MessageRecord) error {
	a, match := s.said.accepted[uint64(m.RequestTerm)], int(m.Match)
	if match > a.match {
		return j.refuse(s, "HandleAppendEntriesRequest: it acknowledges %d, and agrees with the leader of term %d up to %d",
			match, m.RequestTerm, a.match)
	}
	if d := s.disk.log; match > len(d) || !sameEntries(d, a.log[:match]) {
		return j.refuse(s, "HandleAppendEntriesRequest: it acknowledges %d, and its disk has not all of that (%d)", match, len(d))
	}
	return nil
}

func (j *judge) durableVote(s *server, term uint64, vote string) error {
	if d := s.disk; d.term > term || d.term == term && d.vote == vote {
		return nil
	}
	return j.refuse(s, "its vote for %s in term %d is told and not durable", vote, term)
}
