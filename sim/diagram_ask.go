package sim

import (
	"ticketing/fsm"
	"ticketing/fsm/trace"
)

// This file finds who asked for a command.

// ask is the request that a command comes from, nil if the trace has none. Without numbers in the
// log it is the last one like it, if that is not too long ago.
func (p *plot) ask(e fsm.Envelope, appended *trace.Event) *trace.Event {
	key := askedFor{ownerOf(e), e.Seq, e.Kind.String()}
	if e.Client != 0 || key.client == "" {
		return p.firstAsk[key]
	}
	for id := appended.ID - 1; id > 0; id-- {
		ask := p.event(id)
		if ask == nil || appended.At-ask.At > quickEnough {
			return nil
		}
		if c := clientOf(ask); ask.Kind == trace.KindRequest && c.Client == key.client && c.Op == key.op {
			return ask
		}
	}
	return nil
}

// ownerOf is the client that a command is for.
func ownerOf(e fsm.Envelope) string {
	if e.Client == 0 {
		return e.Owner
	}
	return trace.ClientName(e.Owner, e.Client)
}

// isOpen reports whether an entry begins a session. Pictures leave that out: it happens before
// anything that they are about, and all clients do it.
func isOpen(entry *trace.EntryRecord) bool {
	e, err := fsm.Decode([]byte(entry.Command))
	return err == nil && e.Kind == fsm.Open
}
