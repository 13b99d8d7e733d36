package sim

import (
	"strings"

	"ticketing/fsm/trace"
)

// process tells what happens to a node's process.
func (s *teller) process(m *moment) {
	column, ok := s.column[m.Node]
	if !ok {
		return
	}
	look := &s.nodes[column]
	switch m.Kind {
	case trace.KindStart, trace.KindRestart:
		*look = nodeLook{role: stateOf(m.Event).Role, term: stateOf(m.Event).Term, cut: look.cut}
		switch {
		case m.Kind == trace.KindRestart:
			s.add(m.Event, m.Node+" restarts with "+logWords(m), toneNone).mark = "●"
		case s.Header.Real && stateOf(m.Event).Last > 0: // it has run before
			s.add(m.Event, m.Node+" starts with "+logWords(m), toneNone).mark = "●"
		}
	case trace.KindCrash:
		look.down = true
		s.add(m.Event, m.Node+" loses power"+inBrackets(m.Text), toneWrong).mark = "✕"
	case trace.KindStop:
		s.down(m.Event)
	case trace.KindPause:
		look.paused = true
		s.add(m.Event, m.Node+" stops running"+inBrackets(m.Text), toneNone)
	case trace.KindResume:
		look.paused = false
		s.add(m.Event, m.Node+" goes on", toneNone)
	}
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func logWords(m *moment) string {
	return holdsWords(m.Snapshot, stateOf(m.Event).Last) + inBrackets(m.Text)
}

// down is a node that stops itself.
func (s *teller) down(e *trace.Event) {
	if column, ok := s.column[e.Node]; ok {
		s.nodes[column].down = true
	}
	if e.Text == trace.ToldToStop {
		s.add(e, e.Node+" is stopped", toneNone).mark = "✕"
		return
	}
	s.add(e, e.Node+" stops itself: "+e.Text, toneWrong).mark = "✕"
}

// connectOthers is how a line begins that brings clients of no name.
const connectOthers = "connect others="

// command tells a scenario's line, and follows which links are cut.
func (s *teller) command(m *moment) {
	words := strings.Fields(m.Text)
	if len(words) == 0 || words[0] == "propose" {
		return // the proposal tells itself
	}
	if words[0] == "connect" && !strings.HasPrefix(m.Text, connectOthers) {
		return // all clients do that before anything that the picture is about
	}
	s.cut(words)
	s.shade()
	r := s.add(m.Event, commandText(words, m.Text), toneNone)
	r.node, r.letGo = -1, words[0] == "release"
}

// commandText says what a line does, where the line is not plain by itself.
func commandText(words []string, text string) string {
	switch {
	case words[0] == "connect":
		return strings.TrimPrefix(text, connectOthers) + " other clients open sessions"
	case words[0] == "cut":
		return "✂ " + strings.Join(words[1:], " ")
	case words[0] == "isolate":
		return "✂ " + words[len(words)-1] + " from all others"
	case words[0] == "hold":
		return text + ": the network keeps what is sent there"
	case words[0] == "release":
		return text + ": the network lets it go"
	case text == "heal":
		return "the network heals"
	}
	return text
}

// cut follows which links are cut.
func (s *teller) cut(words []string) {
	from, to, directed := strings.Cut(words[len(words)-1], "->")
	switch {
	case words[0] == "isolate":
		s.setCut(from, "*", true)
		s.setCut("*", from, true)
	case words[0] == "cut" && directed:
		s.setCut(from, to, true)
	case words[0] == "heal" && directed:
		s.setCut(from, to, false)
	case words[0] == "heal":
		clear(s.links)
	case words[0] == "cut":
		s.cutGroups(strings.Split(strings.Join(words[1:], " "), "|"))
	}
}

func (s *teller) cutGroups(groups []string) {
	for i, group := range groups {
		for j, other := range groups {
			if i == j {
				continue
			}
			for _, a := range strings.Fields(group) {
				for _, b := range strings.Fields(other) {
					s.setCut(a, b, true)
				}
			}
		}
	}
}

func (s *teller) setCut(from, to string, cut bool) {
	for _, a := range s.Header.Nodes {
		for _, b := range s.Header.Nodes {
			if a != b && (from == a || from == "*") && (to == b || to == "*") {
				s.links[[2]string{a, b}] = cut
			}
		}
	}
}

// shade marks the nodes that cannot exchange messages, both ways, with a majority.
func (s *teller) shade() {
	names := s.Header.Nodes
	for i, a := range names {
		reached := 1
		for _, b := range names {
			if a != b && !s.links[[2]string{a, b}] && !s.links[[2]string{b, a}] {
				reached++
			}
		}
		s.nodes[i].cut = reached <= len(names)/2
	}
}
