package sim

import (
	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file is how a client extends its lease.

// extend asks for a new lease of what the client was last granted. While it waits for the lock it
// has nothing to extend, and goes on waiting.
func (w *World) extend(c *client, e Extend) {
	held := c.tokens[e.Key]
	if waits := c.waitsFor(e.Key); waits || held.token == 0 {
		if !waits {
			c.state = stateNothing
		}
		w.traceClient(c, trace.KindAnswer, trace.ClientRecord{Op: "extend", Key: e.Key, Status: stateNothing})
		return
	}
	w.begins(c, fsm.Request{
		Kind: fsm.Extend, Key: e.Key, Token: held.token, LeaseMS: leaseMS(e.Lease),
	}, e.Via)
}

// extended counts the new lease from before the request was first sent: the answer may be to any
// attempt.
func (w *World) extended(c *client, f *flight) {
	q := f.client.request
	if h := c.tokens[q.Key]; h.token == q.Token && h.deadline != 0 {
		h.deadline = max(h.deadline, c.sentAt[0]+raft.Time(q.LeaseMS)*1000)
		c.tokens[q.Key] = h
	}
	w.conclude(c, f, stateExtended)
}
