package sim

// isQuiet reports whether a moment brings no news, and how many messages leave in it.
func (w *scribe) isQuiet(m *moment) (messages int, quiet bool) {
	sent := 0
	for _, e := range m.tail {
		switch e.Kind {
		case KindWrite:
		case KindSend:
			k := e.message()
			heartbeat := k.Kind == messageAppend.String() && len(k.Entries) == 0 && m.Kind == KindHeartbeatTimeout
			agrees := k.Kind == messageAppendReply.String() && k.Success && m.Kind == KindReceive
			if !heartbeat && !agrees {
				return 0, false
			}
			sent++
		case KindLost:
		case KindReply:
			if e.asked().Status != "superseded" {
				return 0, false
			}
			w.repeats = true
			sent++
		default:
			return 0, false
		}
	}
	return sent, w.headIsQuiet(m)
}

func (w *scribe) headIsQuiet(m *moment) bool {
	switch m.Kind {
	case KindHeartbeatTimeout, KindSaved, KindWake:
		return true
	case KindLost:
		k := m.message().Kind
		return k == messageAppendReply.String() || k == messageAppend.String() && len(m.message().Entries) == 0
	case KindReceive:
		return w.receiptIsQuiet(m)
	case KindRequest:
		w.repeats = w.repeats || m.asked().Attempt > 1
		return m.asked().Attempt > 1
	case KindAnswer:
		return m.Text == stateWaiting
	}
	return false
}

func (w *scribe) receiptIsQuiet(m *moment) bool {
	r := m.message()
	switch r.Kind {
	case messageAppend.String():
		w.repeats = w.repeats || len(r.Entries) > 0
		return true
	case messageAppendReply.String():
		return r.Success && r.Match <= w.match[[2]string{r.To, r.From}]
	}
	return m.Client != nil && len(m.tail) > 0 // answered superseded
}
