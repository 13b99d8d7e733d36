package sim

import (
	"slices"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// A moment is an input and what followed from it at once: people think of it as one thing.
type moment struct {
	*trace.Event                // the input, the last one if several were taken together
	also         []*trace.Event // those before it
	tail         []*trace.Event // what followed, in order
}

// inputs are all that were taken together.
func (m *moment) inputs() []*trace.Event {
	return append(slices.Clip(m.also), m.Event)
}

// moments puts a trace's events together.
func moments(t *trace.Trace) []moment {
	var all []moment
	for i := range t.Events {
		e := &t.Events[i]
		if n := len(all); n > 0 && all[n-1].owns(e) {
			all[n-1].tail = append(all[n-1].tail, e)
			continue
		} else if n > 0 && all[n-1].More && all[n-1].Node == e.Node {
			all[n-1].also = append(all[n-1].also, all[n-1].Event)
			all[n-1].Event = e
			continue
		}
		all = append(all, moment{Event: e})
	}
	return all
}

// owns reports whether the next event follows from this moment's input.
func (m *moment) owns(e *trace.Event) bool {
	switch e.Kind {
	case trace.KindState, trace.KindAppend, trace.KindWrite, trace.KindApply, trace.KindSend, trace.KindReply, trace.KindViolation,
		trace.KindTrim, trace.KindTable, trace.KindKeep:
		return true
	case trace.KindStop: // a real node is stopped from outside, too
		return e.Cause != 0
	case trace.KindLost: // as it left; what is lost on arrival is a moment of its own
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
	*trace.Trace
	moments   []moment
	fate      map[int64]*trace.Event     // of a sending, by its id: its first arrival, or its loss
	firstSent map[sentEntry]*trace.Event // the first sending of an entry to a server by a leader
	firstVote map[sentEntry]*trace.Event // the first request for a vote in a term, to a server
	firstAsk  map[askedFor]*trace.Event  // the first sending of a request
	proposed  map[askedFor]*trace.Event  // the entry that a request became first,
	repeats   map[int64]bool             // and by event, that it became another
	changes   map[position]string        // what an entry changes about the servers, in words
	ruptures  []int64                    // by event: how many inputs came from outside until then
}

func newPlot(t *trace.Trace) *plot {
	p := &plot{
		Trace: t, moments: moments(t), fate: map[int64]*trace.Event{}, firstSent: map[sentEntry]*trace.Event{},
		firstVote: map[sentEntry]*trace.Event{}, firstAsk: map[askedFor]*trace.Event{}, proposed: map[askedFor]*trace.Event{},
		repeats: map[int64]bool{}, changes: changesIn(t),
	}
	var outside int64
	for i := range t.Events {
		e := &t.Events[i]
		switch e.Kind {
		case trace.KindReceive, trace.KindLost, trace.KindAnswer, trace.KindResource:
			if p.fate[e.Cause] == nil {
				p.fate[e.Cause] = e
			}
		case trace.KindSend:
			p.noteSend(e)
		case trace.KindRequest:
			note(p.firstAsk, asking(e), e)
		case trace.KindAppend:
			p.noteAppend(e)
		}
		if isRealRequest(t, e) {
			note(p.firstAsk, asking(e), e)
		}
		switch e.Kind {
		case trace.KindCommand, trace.KindElectionTimeout, trace.KindHeartbeatTimeout, trace.KindCrash, trace.KindRestart, trace.KindRequest,
			trace.KindExpect:
			outside++
		}
		p.ruptures = append(p.ruptures, outside)
	}
	return p
}

func asking(e *trace.Event) askedFor {
	c := clientOf(e)
	return askedFor{c.Client, c.Seq, c.Op}
}

// isRealRequest reports whether an event is the first that is known of a real client's request:
// that a server has received it. Simulated clients write down the sending.
func isRealRequest(t *trace.Trace, e *trace.Event) bool {
	return t.Header.Real && e.Kind == trace.KindReceive && e.Client != nil
}

func note[K comparable](in map[K]*trace.Event, key K, e *trace.Event) {
	if in[key] == nil {
		in[key] = e
	}
}

func (p *plot) noteSend(e *trace.Event) {
	m := messageOf(e)
	if m.Kind == trace.Vote {
		note(p.firstVote, sentEntry{from: m.From, to: m.To, term: m.Term}, e)
	}
	for _, entry := range m.Entries {
		note(p.firstSent, sentEntry{m.From, m.To, m.Term, entry.Index}, e)
	}
}

func (p *plot) noteAppend(e *trace.Event) {
	entry := entryOf(e)
	if entry.Cause == "" {
		return // stored, not proposed
	}
	envelope, err := fsm.Decode([]byte(entry.Command))
	if err != nil {
		return
	}
	if ask := p.ask(envelope, e); ask != nil {
		p.repeats[e.ID] = p.proposed[asking(ask)] != nil
		note(p.proposed, asking(ask), e)
	}
}

// How long what is drawn in one row may take.
const quickEnough = 40 * trace.Millisecond

// quick reports whether the second event follows the first so soon that one row tells both. When no
// time has passed, as in a run that is stepped by hand, nothing from outside may stand between
// them.
func (p *plot) quick(from, to *trace.Event) bool {
	if from == nil || to == nil || to.At-from.At > quickEnough {
		return false
	}
	if to.At > from.At {
		return true
	}
	return p.outside(from) == p.outside(to)
}

// event returns the event with an id, nil if the trace has none.
func (p *plot) event(id int64) *trace.Event {
	if id < 1 || id > int64(len(p.Events)) {
		return nil
	}
	return &p.Events[id-1]
}

func (p *plot) outside(e *trace.Event) int64 {
	if e.ID < 1 || e.ID > int64(len(p.ruptures)) {
		return 0
	}
	return p.ruptures[e.ID-1]
}

// A trace may come from a file, and an event in it without its record. These give an empty one
// then.

func messageOf(e *trace.Event) *trace.MessageRecord {
	if e.Message == nil {
		return &trace.MessageRecord{}
	}
	return e.Message
}

func entryOf(e *trace.Event) *trace.EntryRecord {
	if e.Entry == nil {
		return &trace.EntryRecord{}
	}
	return e.Entry
}

func stateOf(e *trace.Event) *trace.StateRecord {
	if e.State == nil {
		return &trace.StateRecord{}
	}
	return e.State
}

func clientOf(e *trace.Event) *trace.ClientRecord {
	if e.Client == nil {
		return &trace.ClientRecord{}
	}
	return e.Client
}

// rate is how fast an actor's clock runs at first, in parts per million of true time, measured on
// the trace over as long a stretch as there is before the scenario first sets that clock, or it may
// stand still with its machine.
func rate(t *trace.Trace, actor string) int64 {
	var first, last *trace.Event
	for i := range t.Events {
		e := &t.Events[i]
		if e.Kind == trace.KindCommand && isClockLine(e.Text, actor) || e.Kind == trace.KindPause && e.Node == actor {
			break
		}
		if e.Node != actor || e.Kind == trace.KindResource || e.Kind == trace.KindLost || e.Kind == trace.KindViolation {
			continue
		}
		if first == nil {
			first = e
		}
		last = e
	}
	if first == nil || last.At-first.At < trace.Millisecond {
		return trueRate
	}
	return (int64(last.Local-first.Local)*trueRate + int64(last.At-first.At)/2) / int64(last.At-first.At)
}

func isClockLine(text, actor string) bool {
	start := "clock " + actor + " "
	return len(text) > len(start) && text[:len(start)] == start
}
