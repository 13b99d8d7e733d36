package sim

import (
	"slices"

	"ticketing/fsm"
	"ticketing/raft"
)

// A door stands before each server in one arm of an experiment, and in no product. It makes what
// Chubby and Consul call a lock-delay: after a lock has expired, not when it was given back, the
// leader grants its key to nobody for a while, so that what a lost holder still has on its way comes
// to an end. Acquires wait outside until the key is free and the time is over, and go in one by one,
// so that none waits inside, where nothing would delay it.
//
// Every server counts the delay on its own clock since it applied the Expire, as it counts leases.
// The door is looked at whenever its server does anything, at the latest with the next heartbeat.
type door struct {
	delay  raft.Time
	behind []doorway // by node
}

type doorway struct {
	closed  raft.Time // until when, on the server's clock
	outside []flight
	let     map[int32]uint64 // of each client, the latest request that went in
}

// hang puts doors before all servers of a world that has not begun.
func (d *door) hang(w *World) {
	w.door = d
	d.behind = make([]doorway, len(w.nodes))
	for i := range d.behind {
		d.behind[i].let = map[int32]uint64{}
	}
	w.checks.add(invariant{step: d.open})
	w.checks.add(invariant{apply: d.shut})
}

// shut closes the door when a tenure has ended by an Expire.
func (d *door) shut(w *World, n *node, a *fsm.Applied) string {
	if a.Result.Kind == fsm.Expired && a.Result.Existed && !a.Result.Again {
		d.behind[n.index].closed = n.clock.at(w.now) + d.delay
	}
	return ""
}

// keeps takes what a client sends, if it has to wait outside. One who leaves need not wait.
func (d *door) keeps(n *node, f *flight) bool {
	way := &d.behind[n.index]
	mine := func(o flight) bool { return o.from == f.from }
	switch {
	case f.kind == messageDisconnect:
		way.outside = slices.DeleteFunc(way.outside, mine)
		return false
	case f.kind != messageRequest || f.client.request.Kind != fsm.Grant:
		return false
	case n.status.Role != raft.Leader || way.let[f.from] >= f.client.request.Seq:
		return false
	}
	if i := slices.IndexFunc(way.outside, mine); i >= 0 {
		way.outside[i] = *f // the same again, or what it wants instead
		return true
	}
	way.outside = append(way.outside, *f)
	return true
}

// open lets the next one in, if it is time. A server that does not lead lets all in, and tells them.
func (d *door) open(w *World, n *node) string {
	way := &d.behind[n.index]
	leads := n.status.Role == raft.Leader
	for len(way.outside) > 0 && (!leads || d.free(w, n)) {
		f := way.outside[0]
		way.outside = way.outside[1:]
		if leads {
			way.let[f.from] = f.client.request.Seq
		}
		w.takeRequest(n, &f)
	}
	return ""
}

// free reports whether the key can be granted: nobody holds it or is about to, and no delay runs.
func (d *door) free(w *World, n *node) bool {
	_, held := n.replica.Table().Holder(experimentKey)
	if held || n.clock.at(w.now) < d.behind[n.index].closed {
		return false
	}
	for _, call := range n.calls {
		if call.request.Kind == fsm.Grant {
			return false
		}
	}
	return true
}
