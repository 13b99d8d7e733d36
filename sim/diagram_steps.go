package sim

import (
	"ticketing/fsm"
	"ticketing/raft"
)

// A moment is an input and what followed from it at once: people think of it as one thing.
type moment struct {
	*Event          // the input
	tail   []*Event // what followed, in order
}

// moments puts a trace's events together.
func (t *Trace) moments() []moment {
	var all []moment
	for i := range t.Events {
		e := &t.Events[i]
		if n := len(all); n > 0 && all[n-1].owns(e) {
			all[n-1].tail = append(all[n-1].tail, e)
			continue
		}
		all = append(all, moment{Event: e})
	}
	return all
}

// owns reports whether the next event follows from this moment's input.
func (m *moment) owns(e *Event) bool {
	switch e.Kind {
	case KindState, KindAppend, KindWrite, KindApply, KindSend, KindReply, KindStop, KindViolation:
		return true
	case KindLost: // as it left; what is lost on arrival is a moment of its own
		for _, sent := range m.tail {
			if sent.ID == e.Cause {
				return true
			}
		}
	}
	return false
}

// sentEntry names an entry on its way to a server.
type sentEntry struct {
	from, to string
	term     raft.Term // the sender's
	index    raft.Index
}

// askedFor names a client's request.
type askedFor struct {
	client string
	seq    uint64
	op     string
}

// plot is a trace with what one must look up in it to tell it.
type plot struct {
	*Trace
	moments   []moment
	fate      map[int64]*Event     // of a sending, by its id: its first arrival, or its loss
	firstSent map[sentEntry]*Event // the first sending of an entry to a server by a leader
	firstVote map[sentEntry]*Event // the first request for a vote in a term, to a server
	firstAsk  map[askedFor]*Event  // the first sending of a request
	proposed  map[askedFor]*Event  // the entry that a request became
	ruptures  []int64              // by event: how many inputs came from outside until then
}

func newPlot(t *Trace) *plot {
	p := &plot{
		Trace: t, moments: t.moments(), fate: map[int64]*Event{}, firstSent: map[sentEntry]*Event{},
		firstVote: map[sentEntry]*Event{}, firstAsk: map[askedFor]*Event{}, proposed: map[askedFor]*Event{},
	}
	var outside int64
	for i := range t.Events {
		e := &t.Events[i]
		switch e.Kind {
		case KindReceive, KindLost, KindAnswer, KindResource:
			if p.fate[e.Cause] == nil {
				p.fate[e.Cause] = e
			}
		case KindSend:
			p.noteSend(e)
		case KindRequest:
			note(p.firstAsk, askedFor{e.Node, e.asked().Seq, e.asked().Op}, e)
		case KindAppend:
			p.noteAppend(e)
		}
		switch e.Kind {
		case KindCommand, KindElectionTimeout, KindHeartbeatTimeout, KindCrash, KindRestart, KindRequest,
			KindExpect:
			outside++
		}
		p.ruptures = append(p.ruptures, outside)
	}
	return p
}

func note[K comparable](in map[K]*Event, key K, e *Event) {
	if in[key] == nil {
		in[key] = e
	}
}

func (p *plot) noteSend(e *Event) {
	m := e.message()
	if m.Kind == messageVote.String() {
		note(p.firstVote, sentEntry{from: m.From, to: m.To, term: m.Term}, e)
	}
	for _, entry := range m.Entries {
		note(p.firstSent, sentEntry{m.From, m.To, m.Term, entry.Index}, e)
	}
}

func (p *plot) noteAppend(e *Event) {
	entry := e.entry()
	if entry.Cause == "" {
		return // stored, not proposed
	}
	envelope, err := fsm.Decode([]byte(entry.Command))
	if err == nil && envelope.Client != 0 {
		note(p.proposed, askedFor{p.owner(envelope), envelope.Seq, envelope.Kind.String()}, e)
	}
}

// owner is the client that a command is for.
func (p *plot) owner(e fsm.Envelope) string {
	if e.Client >= 1 && e.Client <= fsm.ClientID(len(p.Header.Clients)) {
		return p.Header.Clients[e.Client-1]
	}
	return e.Owner
}

// How long what is drawn in one row may take.
const quickEnough = 40 * Millisecond

// quick reports whether the second event follows the first so soon that one row tells both. When no
// time has passed, as in a run that is stepped by hand, nothing from outside may stand between
// them.
func (p *plot) quick(from, to *Event) bool {
	if from == nil || to == nil || to.At-from.At > quickEnough {
		return false
	}
	if to.At > from.At {
		return true
	}
	return p.outside(from) == p.outside(to)
}

// event returns the event with an id, nil if the trace has none.
func (p *plot) event(id int64) *Event {
	if id < 1 || id > int64(len(p.Events)) {
		return nil
	}
	return &p.Events[id-1]
}

func (p *plot) outside(e *Event) int64 {
	if e.ID < 1 || e.ID > int64(len(p.ruptures)) {
		return 0
	}
	return p.ruptures[e.ID-1]
}

// A trace may come from a file, and an event in it without its record. These give an empty one
// then.

func (e *Event) message() *MessageRecord {
	if e.Message == nil {
		return &MessageRecord{}
	}
	return e.Message
}

func (e *Event) entry() *EntryRecord {
	if e.Entry == nil {
		return &EntryRecord{}
	}
	return e.Entry
}

func (e *Event) state() *StateRecord {
	if e.State == nil {
		return &StateRecord{}
	}
	return e.State
}

func (e *Event) asked() *ClientRecord {
	if e.Client == nil {
		return &ClientRecord{}
	}
	return e.Client
}

// rate is how fast an actor's clock runs at first, in parts per million of true time, measured on
// the trace over as long a stretch as there is before the scenario first sets a clock.
func (t *Trace) rate(actor string) int64 {
	var first, last *Event
	for i := range t.Events {
		e := &t.Events[i]
		if e.Kind == KindCommand && isClockLine(e.Text, actor) {
			break
		}
		if e.Node != actor || e.Kind == KindResource || e.Kind == KindLost || e.Kind == KindViolation {
			continue
		}
		if first == nil {
			first = e
		}
		last = e
	}
	if first == nil || last.At-first.At < Millisecond {
		return trueRate
	}
	return (int64(last.Local-first.Local)*trueRate + int64(last.At-first.At)/2) / int64(last.At-first.At)
}

func isClockLine(text, actor string) bool {
	start := "clock " + actor + " "
	return len(text) > len(start) && text[:len(start)] == start
}
