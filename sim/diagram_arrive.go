package sim

import (
	"slices"
	"strings"

	"ticketing/fsm/trace"
)

// ruleReplaces is the rule by which a follower deletes entries of its own for the leader's.
const ruleReplaces = "AE.3"

// arrives tells entries that reach a follower later than their row could show. What arrives at the
// same time is one row, and so is a network that lets go of it.
func (s *teller) arrives(m *moment, e *trace.Event, entries []*trace.EntryRecord) {
	column, ok := s.column[e.Node]
	if !ok {
		return
	}
	r := s.last()
	if r == nil || r.reached == nil || r.at != e.At || !s.quick(s.event(r.event), e) {
		opening := ""
		if r != nil && r.letGo && r.at == e.At {
			opening = "let go: "
			s.rows = s.rows[:len(s.rows)-1]
		}
		r = s.add(e, "", toneEntries)
		r.opening, r.node, r.from = opening, -1, s.columnOf(messageOf(m.Event).From)
		r.reached = map[int][]*trace.EntryRecord{}
	}
	r.reached[column] = append(r.reached[column], entries...)
	if e.Rule == ruleReplaces {
		r.replaced = append(r.replaced, e.Node)
	}
	if slices.ContainsFunc(entries, s.isSubject) {
		r.tone = toneSubject
	}
	last := entries[len(entries)-1]
	sent := s.firstSent[sentEntry{messageOf(m.Event).From, e.Node, messageOf(m.Event).Term, last.Index}]
	r.words = r.opening + s.reachWords(r, sent)
}

// isSubject reports whether an entry is what the picture is about: what was proposed at a lease's
// end.
func (s *teller) isSubject(entry *trace.EntryRecord) bool {
	return s.subject[position{entry.Index, entry.Term}]
}

// reachWords says what reached whom. What came together is told by its last entry.
func (s *teller) reachWords(r *row, sent *trace.Event) string {
	type group struct {
		entries []*trace.EntryRecord
		names   []string
	}
	var groups []*group
	for column, name := range s.Header.Nodes {
		entries := r.reached[column]
		if len(entries) == 0 {
			continue
		}
		same := func(g *group) bool { return slices.Equal(positions(g.entries), positions(entries)) }
		i := slices.IndexFunc(groups, same)
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{entries: entries})
		}
		groups[i].names = append(groups[i].names, name)
	}
	var words []string
	for _, g := range groups {
		n := len(g.entries)
		text := s.proposal(g.entries[n-1]) + " reaches "
		plain := n > 1 && slices.ContainsFunc(g.entries, isEmpty)
		if plain {
			text = "entries " + span(g.entries[0].Index, g.entries[n-1].Index) + " reach "
		}
		text += strings.Join(g.names, ", ")
		if sent != nil && r.at-sent.At >= trace.Millisecond {
			text += " after " + millis(r.at-sent.At) + " ms"
		}
		if n > 1 && !plain {
			text += " behind " + s.proposals(g.entries[:n-1])
		}
		words = append(words, text)
	}
	if len(r.replaced) > 0 {
		words = append(words, "what "+listed(r.replaced)+" had there is gone")
	}
	return strings.Join(words, "; ")
}

func isEmpty(e *trace.EntryRecord) bool { return e.Command == "" && e.Members == "" }

func positions(entries []*trace.EntryRecord) []position {
	var all []position
	for _, e := range entries {
		all = append(all, position{e.Index, e.Term})
	}
	return all
}

func (s *teller) columnOf(name string) int {
	if column, ok := s.column[name]; ok {
		return column
	}
	return -1
}
