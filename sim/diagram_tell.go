package sim

import (
	"fmt"
	"slices"
	"strings"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// state tells elections: who asks, who wins, who steps down.
func (s *teller) state(m *moment, e *trace.Event) {
	column, ok := s.column[e.Node]
	if !ok {
		return
	}
	look := &s.nodes[column]
	before, after := *look, stateOf(e)
	look.role, look.term = after.Role, after.Term
	switch {
	case after.Role == raft.PreCandidate.String() && before.role != after.Role:
		words := fmt.Sprintf("%s asks whether it would win term %d", e.Node, after.Term+1)
		s.add(e, words, toneElects).wouldAsk = true
	case after.Role == raft.Candidate.String() && (before.role != after.Role || before.term != after.Term):
		s.candidate(e, column, after.Term)
	case after.Role == raft.Leader.String() && before.role != after.Role:
		s.winner(e, column, after.Term)
	case before.role == raft.Leader.String() && after.Role != before.role:
		words := fmt.Sprintf("%s steps down: it hears of term %d", e.Node, after.Term)
		if after.Term == before.term {
			words = e.Node + " steps down"
		}
		s.add(e, words, toneElects)
	}
}

func (s *teller) candidate(e *trace.Event, column int, term raft.Term) {
	if r := s.last(); r != nil && r.wouldAsk && r.node == column && s.quick(s.event(r.event), e) {
		s.rows = s.rows[:len(s.rows)-1] // it would, and now it does
	}
	r := s.add(e, fmt.Sprintf("%s asks for votes, term %d", e.Node, term), toneElects)
	r.asks = term
	r.arrows = map[int]rune{}
	for to, name := range s.Header.Nodes {
		if sent := s.firstVote[sentEntry{from: e.Node, to: name, term: term}]; s.quick(e, sent) {
			r.arrows[to] = s.head(sent)
		}
	}
}

// winner tells who leads now, in the row that told of its candidacy if that is the last one.
func (s *teller) winner(e *trace.Event, column int, term raft.Term) {
	mark := fmt.Sprintf("★t%d", term)
	if r := s.last(); r != nil && r.asks == term && r.node == column && s.quick(s.event(r.event), e) {
		arrows := r.arrows
		s.rows = s.rows[:len(s.rows)-1]
		r = s.add(e, fmt.Sprintf("%s asks for votes and wins term %d", e.Node, term), toneElects)
		r.arrows, r.mark = arrows, mark
		return
	}
	s.add(e, fmt.Sprintf("%s wins term %d", e.Node, term), toneElects).mark = mark
}

// head is the arrow head that says how a message fares.
func (s *teller) head(sent *trace.Event) rune {
	switch fate := s.fate[sent.ID]; {
	case fate == nil:
		return '▷'
	case fate.Kind == trace.KindLost:
		return '✕'
	case s.quick(sent, fate):
		return '▶'
	}
	return '▷'
}

// appends tells what a leader proposes, and what arrives at a follower late.
func (s *teller) appends(m *moment, appended []*trace.Event) {
	var proposed, stored []*trace.EntryRecord
	var event *trace.Event
	for _, e := range appended {
		entry := entryOf(e)
		switch {
		case isOpen(entry):
		case entry.Cause != "":
			at := position{entry.Index, entry.Term}
			s.meant[at], s.subject[at] = entry.Meant, entry.Cause == fsm.ForLease.String()
			proposed = append(proposed, entry)
			event = e
		case m.Kind == trace.KindReceive && s.isNews(m, e) && !s.stored[sentEntry{"", e.Node, entry.Term, entry.Index}]:
			stored = append(stored, entry)
			event = e
		}
	}
	switch {
	case len(proposed) > 0:
		s.proposes(event, proposed)
	case len(stored) > 0:
		s.arrives(m, event, stored)
	}
}

// isNews reports whether an entry that is stored is more than the no-op with which a leader has
// just begun.
func (s *teller) isNews(m *moment, e *trace.Event) bool {
	return !isEmpty(entryOf(e)) || entryOf(e).Term < messageOf(m.Event).Term || e.Rule == ruleReplaces
}

// proposes tells a leader's new entries and how they travel.
func (s *teller) proposes(e *trace.Event, entries []*trace.EntryRecord) {
	column, ok := s.column[e.Node]
	if !ok {
		return
	}
	about := toneEntries
	if slices.ContainsFunc(entries, s.isSubject) {
		about = toneSubject
	}
	words := s.why(e, entries) + " → " + s.proposals(entries)
	if one := entries[0]; len(entries) == 1 && one.Members != "" {
		words = e.Node + " " + s.changeWords(*one)
	}
	r := s.add(e, words, about)
	r.mark, r.arrows = "●", map[int]rune{}
	for name, to := range s.column {
		if to == column {
			continue
		}
		last := entries[len(entries)-1]
		sent := s.firstSent[sentEntry{e.Node, name, s.nodes[column].term, last.Index}]
		if !s.quick(e, sent) {
			continue // it goes out later, and is told when it arrives
		}
		r.arrows[to] = s.head(sent)
		if r.arrows[to] == '▶' {
			for _, entry := range entries {
				s.stored[sentEntry{"", name, entry.Term, entry.Index}] = true
			}
		}
	}
}

// why says what made a leader propose: a client who has just asked, the end of a lease, or who is
// next.
func (s *teller) why(e *trace.Event, entries []*trace.EntryRecord) string {
	var reasons []string
	for _, entry := range entries {
		envelope, err := fsm.Decode([]byte(entry.Command))
		if err != nil {
			continue
		}
		switch entry.Cause {
		case fsm.ForLease.String():
			reasons = append(reasons, fmt.Sprintf("%s's clock: the lease of %s is over",
				e.Node, tenureName(s.owners[entry.Meant], entry.Meant)))
		case fsm.ForCleanup.String():
			reasons = append(reasons, s.owners[entry.Meant]+" has left")
		default:
			if ask := s.ask(envelope, e); s.repeats[e.ID] {
				reasons = append(reasons, s.asks(ask)+", again")
			} else if s.quick(ask, e) {
				reasons = append(reasons, s.asks(ask))
			}
		}
	}
	if len(reasons) > 0 {
		return strings.Join(reasons, "; ")
	}
	envelope, err := fsm.Decode([]byte(entries[0].Command))
	if err == nil && envelope.Kind == fsm.Grant {
		return ownerOf(envelope) + " is next"
	}
	return e.Node + " proposes"
}

func (s *teller) asks(ask *trace.Event) string {
	c := clientOf(ask)
	switch c.Op {
	case fsm.Release.String():
		return c.Client + " releases " + c.Key
	case fsm.Extend.String():
		return fmt.Sprintf("%s extends #%d by %s", c.Client, c.Token, leaseWords(c.LeaseMS))
	}
	return c.Client + " asks for " + c.Key
}
