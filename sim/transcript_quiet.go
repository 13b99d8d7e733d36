package sim

import (
	"slices"

	"ticketing/fsm/trace"
)

// isQuiet reports whether a moment brings no news, and how many messages leave in it.
func (w *scribe) isQuiet(m *moment) (messages int, quiet bool) {
	sent := 0
	for _, e := range m.tail {
		switch e.Kind {
		case trace.KindWrite:
		case trace.KindSend:
			k := messageOf(e)
			heartbeat := k.Kind == trace.Append && len(k.Entries) == 0 && m.has(trace.KindHeartbeatTimeout)
			agrees := k.Kind == trace.AppendReply && k.Success && m.has(trace.KindReceive)
			if !heartbeat && !agrees {
				return 0, false
			}
			sent++
		case trace.KindLost:
		case trace.KindReply:
			if clientOf(e).Status != "superseded" {
				return 0, false
			}
			w.repeats = true
			sent++
		default:
			return 0, false
		}
	}
	for _, e := range m.inputs() {
		if !w.headIsQuiet(&moment{Event: e, tail: m.tail}) {
			return sent, false
		}
	}
	return sent, true
}

// has reports whether one of the inputs is of a kind.
func (m *moment) has(kind trace.EventKind) bool {
	return slices.ContainsFunc(m.inputs(), func(e *trace.Event) bool { return e.Kind == kind })
}

func (w *scribe) headIsQuiet(m *moment) bool {
	switch m.Kind {
	case trace.KindHeartbeatTimeout, trace.KindSaved, trace.KindWake:
		return true
	case trace.KindLost:
		k := messageOf(m.Event).Kind
		return k == trace.AppendReply || k == trace.Append && len(messageOf(m.Event).Entries) == 0
	case trace.KindReceive:
		return w.receiptIsQuiet(m)
	case trace.KindRequest:
		w.repeats = w.repeats || clientOf(m.Event).Attempt > 1
		return clientOf(m.Event).Attempt > 1
	case trace.KindAnswer:
		return m.Text == stateWaiting
	}
	return false
}

func (w *scribe) receiptIsQuiet(m *moment) bool {
	r := messageOf(m.Event)
	switch r.Kind {
	case trace.Append:
		w.repeats = w.repeats || len(r.Entries) > 0
		return true
	case trace.AppendReply:
		return r.Success && r.Match <= w.match[[2]string{r.To, r.From}]
	}
	return m.Client != nil && len(m.tail) > 0 // answered superseded
}
