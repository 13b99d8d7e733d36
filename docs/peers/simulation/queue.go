package simulation

import "go.etcd.io/raft/v3/raftpb"

// event is a message that arrives, or a tick.
type event struct {
	at, order int64
	to        int
	message   *raftpb.Message // nil for a tick
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// queue is a heap with four children to a place, by time, as sim has one: values, no interface.
type queue []event

func (q *queue) push(e event) {
	*q = append(*q, e)
	h, i := *q, len(*q)-1
	for i > 0 {
		parent := (i - 1) / 4
		if !h[i].before(h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (q *queue) pop() event {
	h := *q
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	*q = h
	for i := 0; ; {
		least := i
		for c := 4*i + 1; c <= 4*i+4 && c < len(h); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
