package main

import (
	"ticketing/fsm/trace"
)

// stitcher puts more events into a trace: it gives all of them new numbers and keeps what caused
// what.
type stitcher struct {
	events []trace.Event
	moved  map[int64]int64 // where the trace's own events have gone
}

func newStitcher() *stitcher { return &stitcher{moved: map[int64]int64{}} }

// own adds an event of the trace, and extra one that was not in it, whose cause is a new number.
func (s *stitcher) own(e trace.Event) int64 {
	was := e.ID
	e.Cause = s.moved[e.Cause]
	s.moved[was] = s.extra(e)
	return s.moved[was]
}

func (s *stitcher) extra(e trace.Event) int64 {
	e.ID = int64(len(s.events)) + 1
	s.events = append(s.events, e)
	return e.ID
}

// insert puts events of the same time, in its order, into a trace. They do not stand in the middle
// of what one input has brought about.
func insert(t *trace.Trace, more []trace.Event) {
	s := newStitcher()
	for _, e := range t.Events {
		for len(more) > 0 && e.Cause == 0 && more[0].At-t.Header.Zero <= e.At {
			s.world(t, &more)
		}
		s.own(e)
	}
	for len(more) > 0 {
		s.world(t, &more)
	}
	t.Events = s.events
}

func (s *stitcher) world(t *trace.Trace, more *[]trace.Event) {
	e := (*more)[0]
	*more = (*more)[1:]
	e.At = max(e.At-t.Header.Zero, 0)
	if k := len(s.events); k > 0 {
		e.At = max(e.At, s.events[k-1].At)
	}
	s.extra(e)
}
