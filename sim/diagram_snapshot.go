package sim

import (
	"fmt"

	"ticketing/fsm/trace"
)

// snapshots tells a log that is cut short, and a snapshot's way to another server: its first part and
// what it comes to there. The parts between are as little drawn as heartbeats.
func (s *teller) snapshots(m *moment) {
	var behind *trace.Event
	for _, e := range m.tail {
		switch {
		case e.Kind == trace.KindTrim:
			behind = e
		case e.Kind == trace.KindTable:
			words := fmt.Sprintf("%s has the snapshot up to entry %d", e.Node, snapshotOf(e).Index)
			s.add(e, words, toneEntries).mark = "◆"
			behind = nil
		case e.Kind == trace.KindSend && messageOf(e).Kind == trace.Snapshot && messageOf(e).Offset == 0:
			s.sendsSnapshot(e)
		}
	}
	if behind != nil {
		s.add(behind, fmt.Sprintf("%s's log begins behind entry %d", behind.Node, snapshotOf(behind).Index), toneNone)
	}
}

func (s *teller) sendsSnapshot(e *trace.Event) {
	to, known := s.column[messageOf(e).To]
	if !known {
		return
	}
	words := fmt.Sprintf("%s sends %s the snapshot up to entry %d", e.Node, messageOf(e).To, messageOf(e).LastIndex)
	r := s.add(e, words, toneEntries)
	r.arrows = map[int]rune{to: s.head(e)}
}
