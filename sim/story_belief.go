package sim

import "ticketing/fsm/trace"

// A belief is a time in which a client thinks that it holds a lock: from the answer that granted
// it, until it gives the lock back, hears that it is over, or its own clock reaches the deadline that
// it counts.
type belief struct {
	client, key string
	token       uint64
	from, to    trace.Time
}

// beliefs lists what clients believed, in the order of their grants. One that had not ended with
// the trace ends at its deadline.
func beliefs(t *trace.Trace) []belief {
	var all []belief
	for i := range t.Events {
		e := &t.Events[i]
		c := clientOf(e)
		switch {
		case e.Kind == trace.KindAnswer && e.Text == stateGranted && len(believed(all, e)) > 0: // told again
		case e.Kind == trace.KindAnswer && e.Text == stateGranted:
			all = append(all, belief{e.Node, c.Key, c.Token, e.At, deadline(t, e)})
		case e.Kind == trace.KindAnswer && e.Text == stateExtended:
			for _, b := range believed(all, e) {
				if b.to > e.At {
					b.to = deadline(t, e)
				}
			}
		case e.Kind == trace.KindRequest && c.Op == "release",
			e.Kind == trace.KindAnswer && e.Text == stateNotFound:
			for _, b := range believed(all, e) {
				b.to = min(b.to, e.At)
			}
		}
	}
	return all
}

// countBeliefs counts those who believe to hold what a client was just granted. Nothing in a lock
// service can keep that from happening, so it is told and not forbidden.
func (w *World) countBeliefs(c *client, key string) {
	for _, other := range w.clients {
		h := other.tokens[key]
		if other != c && !h.parted && other.clock.at(w.now) < h.deadline {
			w.counters[countBeliefsOverlap]++
		}
	}
}

// believed returns those that a client's request or answer is about.
func believed(all []belief, e *trace.Event) (about []*belief) {
	c := clientOf(e)
	for i := range all {
		if b := &all[i]; b.client == e.Node && b.key == c.Key && (c.Token == 0 || c.Token == b.token) {
			about = append(about, b)
		}
	}
	return about
}

// deadline is the true time at which a client's clock reaches what it was granted until, or has a
// new lease until, if its rate stays.
func deadline(t *trace.Trace, granted *trace.Event) trace.Time {
	left := trace.Time(clientOf(granted).Until) - trace.Time(granted.Local)
	if rate := rate(t, granted.Node); rate > 0 && rate != trueRate {
		left = left * trueRate / trace.Time(rate)
	}
	return granted.At + left
}

// overlap is a time in which two clients both believed to hold a key.
type overlap struct {
	one, other, key string
	from, to        trace.Time
}

// overlaps lists them, in the order of the later grants.
func overlaps(t *trace.Trace) []overlap {
	var all []overlap
	beliefs := beliefs(t)
	for i, later := range beliefs {
		for _, b := range beliefs[:i] {
			from, to := max(later.from, b.from), min(later.to, b.to)
			if b.key == later.key && b.client != later.client && from < to {
				all = append(all, overlap{b.client, later.client, b.key, from, to})
			}
		}
	}
	return all
}
