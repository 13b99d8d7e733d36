package sim

import (
	"ticketing/fsm"
	"ticketing/sim/linear"
)

// This file takes down what clients see, for linear.Check at the end of a run. What a client was
// told counts when it arrives, whether or not it still waits for it.

// history is the operations of a run. Its times are those of a clock that is never slower than any
// server's, so that no lease can be over there before it is over here; and never slower than true
// time, so that what happened later is later.
type history struct {
	clock clock
	all   []linear.Operation
	asked map[requestID]int // which of them a request is
	keys  []string          // in the order in which they were first asked for
	full  bool
}

type requestID struct {
	client int32
	seq    uint64
}

// A history of so many operations is no longer added to. Its beginning is a history, too.
const historyMost = 8192

// historyPlaces is how long to search for an order of one key's operations.
const historyPlaces = 20_000

// rounding, in µs, is more than a lease may seem shorter for clocks being read in whole µs.
const rounding = 1000

func (w *World) historyTime() int64 { return int64(w.history.clock.at(w.now)) }

// paceHistory keeps the history's clock as fast as the fastest server's.
func (w *World) paceHistory() {
	rate := int64(trueRate)
	for _, n := range w.nodes {
		rate = max(rate, n.clock.rate)
	}
	if rate != w.history.clock.rate {
		w.history.clock.setRate(w.now, rate)
	}
}

// noteAsked takes down that a client asks for something.
func (w *World) noteAsked(c *client, q *fsm.Request) {
	h := &w.history
	if h.full = h.full || len(h.all) >= historyMost; h.full {
		return
	}
	o := linear.Operation{
		Client: string(c.name), Key: q.Key, Call: w.historyTime(), Return: linear.Never, Outcome: linear.Unknown,
	}
	switch q.Kind {
	case fsm.Grant:
		o.Kind, o.Lease = linear.Acquire, max(q.LeaseMS*1000-rounding, 0)
	case fsm.Extend:
		o.Kind, o.Token, o.Lease = linear.Extend, q.Token, max(q.LeaseMS*1000-rounding, 0)
	case fsm.Release:
		o.Kind, o.Token = linear.Release, q.Token
	}
	known := false
	for _, key := range h.keys {
		known = known || key == q.Key
	}
	if !known {
		h.keys = append(h.keys, q.Key)
	}
	if h.asked == nil {
		h.asked = map[requestID]int{}
	}
	h.asked[requestID{c.index, q.Seq}] = len(h.all)
	h.all = append(h.all, o)
}

// noteHeard takes down an answer's arrival: the first that says what the request came to. All others
// leave open whether an attempt at it is carried out some day.
func (w *World) noteHeard(c *client, q *fsm.Request, y *fsm.Reply) {
	h := &w.history
	i, asked := h.asked[requestID{c.index, q.Seq}]
	if h.full || !asked || q.Kind == fsm.Open || y.Status != fsm.Answered || h.all[i].Outcome != linear.Unknown {
		return
	}
	o := &h.all[i]
	switch y.Result.Kind {
	case fsm.Granted:
		o.Token, o.Outcome = y.Result.Token, linear.OK
	case fsm.Released, fsm.Extended:
		o.Outcome = linear.OK
	case fsm.NotFound:
		if q.Kind == fsm.Extend {
			// Nobody keeps what an Extend came to. So an earlier copy of it may have given the tenure
			// another lease, and this one came when that was over.
			h.noteNo(*o, w.historyTime())
			return
		}
		o.Outcome = linear.No
	case fsm.GrantRejected:
		// The table has carried out nothing, so a copy of the request that comes late can still be
		// granted.
		h.noteNo(*o, w.historyTime())
		return
	default:
		return
	}
	o.Return = w.historyTime()
}

// noteNo takes down an answer beside its request, which stays open: what was seen is one thing.
func (h *history) noteNo(o linear.Operation, now int64) {
	o.Outcome, o.Return = linear.No, now
	h.all = append(h.all, o)
}

// noteLeft takes down that a connection is closed on which a client waits, perhaps by one that it has
// turned away from long ago: a late end of the old ends the new. If it waits for a lock, that may be
// given back for it from now on.
func (w *World) noteLeft(client int32, q *fsm.Request) {
	i, asked := w.history.asked[requestID{client, q.Seq}]
	if asked && q.Kind == fsm.Grant && w.history.all[i].Left == 0 {
		w.history.all[i].Left = max(w.historyTime(), 1)
	}
}

// noteRead takes down what a read of the table has shown of each key that somebody has asked for.
func (w *World) noteRead(n *node, r *openRead) {
	h := &w.history
	for _, key := range h.keys {
		if h.full = h.full || len(h.all) >= historyMost; h.full {
			return
		}
		tenure, _ := n.replica.Table().Holder(key)
		h.all = append(h.all, linear.Operation{
			Client: string(n.name), Kind: linear.Get, Key: key, Token: tenure.Token, Owner: tenure.Owner,
			Call: r.began, Return: w.historyTime(), Outcome: linear.OK,
		})
	}
}
