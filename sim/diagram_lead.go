package sim

import (
	"ticketing/fsm/trace"
)

// readsAndTransfers tells what a scenario's own questions come to, and who is told to lead. The rounds
// of heartbeats between are as little drawn as others.
func (s *teller) readsAndTransfers(m *moment) {
	for _, e := range m.tail {
		switch {
		case e.Kind == trace.KindReply && clientOf(e).Client == "" && !s.Header.Real:
			s.add(e, e.Node+" "+saysWords(e), toneNone)
		case e.Kind == trace.KindSend && messageOf(e).Kind == trace.TimeoutNow:
			s.toldToCampaign(e)
		}
	}
}

func (s *teller) toldToCampaign(e *trace.Event) {
	to, known := s.column[messageOf(e).To]
	if !known {
		return
	}
	r := s.add(e, e.Node+" tells "+messageOf(e).To+" to campaign", toneElects)
	r.arrows = map[int]rune{to: s.head(e)}
}
