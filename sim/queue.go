package sim

import "ticketing/fsm/trace"

// An event is something that will happen at a true time. Events at the same time happen in the
// order in which they were scheduled.
type event struct {
	at    trace.Time
	order uint64
	kind  eventKind
	actor int32  // index into World.actors, or a command's
	slot  uint32 // a flight's slot, or a timer's generation
	gen   uint32
}

type eventKind uint8

const (
	eventDeliver eventKind = iota + 1 // a message arrives
	eventTimer                        // an actor's own clock has reached its deadline
	eventSaved                        // the oldest write of a disk is finished
	eventFile                         // a snapshot's file is finished
	eventJoin                         // whoever adds a server looks whether it may vote
	eventClock                        // something about a clock changes by itself
	eventCommand                      // a scenario's line is due
)

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// queue is a heap of events with four children a node: values, not pointers, and no interface. It
// is the simulator's hottest loop; benchmarks in this package compare it with container/heap.
type queue []event

func (q *queue) push(e event) {
	*q = append(*q, e)
	h := *q
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

func (q *queue) pop() event {
	h := *q
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return first
	}
	i := 0
	for {
		down := 4*i + 1
		if down >= len(h) {
			break
		}
		for j, end := down+1, min(down+4, len(h)); j < end; j++ {
			if h[j].before(h[down]) {
				down = j
			}
		}
		if !h[down].before(last) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return first
}
