package sim

import (
	"strings"

	"ticketing/fsm"
	"ticketing/fsm/trace"
)

// This file finds what is about the opening of sessions alone. Every client does that before it can
// want anything, so a transcript counts it and does not tell it.

// sessionsBegin reports whether a moment is about sessions that begin. The line that says so is
// written, and what follows from it is not.
func (w *scribe) sessionsBegin(m *moment) bool {
	if isConnect(m.Event) {
		w.line(m.Event, m.Text, paintPlain)
		return w.opens(m) || len(m.tail) == 0
	}
	return w.opens(m)
}

// opens reports whether a moment is about sessions that begin, and about nothing else.
func (w *scribe) opens(m *moment) bool {
	about := false
	for _, e := range append(m.inputs(), m.tail...) {
		switch w.opening(e) {
		case otherwise:
			return false
		case opensSession:
			about = true
		}
	}
	if about {
		w.countOpening(m)
	}
	return about
}

// What an event has to do with sessions that begin.
const (
	byTheWay     = iota // it goes along with either
	opensSession        // it is about that alone
	otherwise
)

func (w *scribe) opening(e *trace.Event) int {
	switch {
	case isConnect(e), e.Kind == trace.KindWrite, e.Kind == trace.KindSaved, e.Kind == trace.KindHeartbeatTimeout:
		return byTheWay
	case e.Kind == trace.KindState:
		before, after := w.states[e.Node], stateOf(e)
		if before.Role == after.Role && before.Term == after.Term {
			return byTheWay
		}
	case e.Client != nil:
		if e.Client.Op == fsm.Open.String() && e.Kind != trace.KindLost {
			return opensSession
		}
	case e.Entry != nil:
		if isOpen(e.Entry) {
			w.sessions[e.Entry.Index] = true
			return opensSession
		}
	case e.Message != nil && e.Kind != trace.KindLost:
		return w.openingMessage(e.Message)
	}
	return otherwise
}

// isConnect reports whether an event is the line that begins sessions.
func isConnect(e *trace.Event) bool {
	return e.Kind == trace.KindCommand && strings.HasPrefix(e.Text, "connect ")
}

func (w *scribe) openingMessage(r *trace.MessageRecord) int {
	switch r.Kind {
	case trace.Append:
		for i := range r.Entries {
			if !isOpen(&r.Entries[i]) {
				return otherwise
			}
		}
		if len(r.Entries) > 0 {
			return opensSession
		}
		return byTheWay
	case trace.AppendReply:
		if !r.Success && w.sessions[r.PrevIndex] {
			return opensSession // what came too early is sent again
		}
		if !r.Success {
			return otherwise
		}
		known := w.match[[2]string{r.To, r.From}]
		for i := known + 1; i <= r.Match; i++ {
			if !w.sessions[i] {
				return otherwise
			}
		}
		if r.Match > known {
			return opensSession
		}
		return byTheWay
	}
	return otherwise
}

// countOpening keeps the books for a moment that is not told.
func (w *scribe) countOpening(m *moment) {
	for _, e := range m.inputs() {
		if r := messageOf(e); e.Kind == trace.KindReceive && r.Kind == trace.AppendReply {
			key := [2]string{r.To, r.From}
			w.match[key] = max(w.match[key], r.Match)
		}
	}
	for _, e := range m.tail {
		if e.Kind == trace.KindState {
			w.states[e.Node] = *stateOf(e)
		}
		if e.Kind == trace.KindSend || e.Kind == trace.KindReply {
			w.quiet++
		}
	}
	if m.Kind == trace.KindRequest {
		w.quiet++
	}
	w.openings = true
}
