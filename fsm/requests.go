package fsm

import (
	"cmp"
	"fmt"
	"slices"
)

// This file is what a leader does with requests: the gate, the queue behind it, and attempts that
// come again. All of it is order and courtesy. None of it is needed for the table to be right,
// since whatever gets past it meets Table.Apply.

// admit looks at a request for the first time.
func (r *Replica) admit(q Request) {
	if r.reattach(q) {
		return
	}
	if r.leader.heir != 0 { // nor does it wait: it would be sent away when the other one leads
		r.reply(r.leader.refusal(q.Call))
		return
	}
	r.leader.arrivals++
	w := waiter{q, r.leader.arrivals}
	switch q.Kind {
	case Grant:
		r.admitGrant(w)
	case Release:
		r.proposeFor(w, q.Token)
	case Extend:
		r.admitExtend(w)
	case Noop, Open:
		r.proposeFor(w, 0)
	}
}

// proposeFor proposes what a client asks for, or refuses it.
func (r *Replica) proposeFor(q waiter, meant Token) {
	if !r.propose(q.envelope(), meant, ForClient, q) {
		r.reply(r.leader.refusal(q.Call))
	}
}

// admitExtend proposes an Extend, unless an Expire of the tenure is in the log: that one will end it,
// and to take the Extend behind it would be to promise what is lost already. It is answered at once.
// Should the Expire be lost with this leadership, the tenure lives on and the client has heard that
// it will not: an error to the safe side.
func (r *Replica) admitExtend(q waiter) {
	if r.leader.ending[tenureOf{q.Key, q.Token}] > 0 {
		r.reply(Reply{Call: q.Call, Status: Expiring})
		return
	}
	r.proposeFor(q, q.Token)
}

// reattach finds a request that is here already, from an earlier attempt, and lets it answer this
// call.
func (r *Replica) reattach(q Request) bool {
	if q.Client == 0 || r.config.Rules.NoRequestIDs {
		return false
	}
	for i := range r.leader.proposals {
		// The proposal's own attempt stays: the Grant was proposed on that one.
		if o := &r.leader.proposals[i].request; o.sameNumber(q) {
			r.supersede(o, q)
			return true
		}
	}
	queue := r.leader.waiting[q.Key]
	for i := range queue {
		if o := &queue[i].Request; o.sameNumber(q) {
			r.supersede(o, q)
			return true
		}
	}
	return false
}

func (q *Request) sameNumber(o Request) bool { return q.Seq == o.Seq && q.Client == o.Client }

// supersede puts a newer attempt in the place of an older one. Two programs that use one session do
// not know of each other's numbers; where they wish for different things that shows here, or in the
// table (see NumberReused). Where they wish for the same, nothing can tell them apart.
func (r *Replica) supersede(old *Request, q Request) {
	if old.envelope().Command != q.envelope().Command {
		r.reply(Reply{Call: q.Call, Status: Invalid, Err: fmt.Errorf("%w: %d", ErrReused, q.Seq)})
		return
	}
	if old.Call != 0 {
		r.reply(Reply{Call: old.Call, Status: Superseded})
	}
	*old = q
}

// admitGrant is the gate: a Grant is proposed only when it can succeed, and others wait their turn.
// A request that is spent, or whose session is over, takes no lock and waits for none. It asks for
// its answer, which comes through the log as well: its client may hold the very key, and not know.
//
//spec:rule L2
func (r *Replica) admitGrant(q waiter) {
	l := r.leader
	_, known := r.table.sessions[q.Client]
	spent := q.Client != 0 && (!known || r.table.spent(q.envelope()))
	if r.config.Rules.NoGate || spent && !r.config.Rules.NoRequestIDs {
		r.proposeFor(q, 0)
		return
	}
	waits := len(l.waiting[q.Key]) > 0 || !r.free(q.Key)
	if q.Try && waits {
		r.reply(Reply{Call: q.Call, Status: Held})
		return
	}
	if waits && l.waiters >= maxWaiters {
		r.reply(Reply{Call: q.Call, Status: Full})
		return
	}
	l.queue(q)
}

// queue lets a Grant wait for its turn. One that was rejected has an earlier turn than those that
// came since.
func (l *leadership) queue(q waiter) {
	queue := l.waiting[q.Key]
	i, _ := slices.BinarySearchFunc(queue, q, func(a, b waiter) int { return cmp.Compare(a.turn, b.turn) })
	l.waiting[q.Key] = slices.Insert(queue, i, q)
	l.waiters++
	l.touched = append(l.touched, q.Key)
}

// grantWaiting lets the queues of all keys that were touched move on, and keeps those that have to
// be put off.
func (r *Replica) grantWaiting() {
	l := r.leader
	kept := 0
	for i := 0; i < len(l.touched); i++ { // grantNext may add to them
		if key := l.touched[i]; !r.grantNext(key) {
			l.touched[kept] = key
			kept++
		}
	}
	l.touched, l.behind = l.touched[:kept], kept > 0
}

// grantNext proposes a Grant for the first in a key's queue if the key is free. If that one's number
// was closed while it waited, the key stays free for the next. It reports whether the queue has moved
// as far as it can: if the log takes no more, the first keeps its place, but for one that came only
// to try.
func (r *Replica) grantNext(key string) bool {
	l := r.leader
	for len(l.waiting[key]) > 0 && r.free(key) {
		first := l.waiting[key][0]
		proposed := r.propose(first.envelope(), 0, ForClient, first)
		if !proposed && !first.Try {
			return false
		}
		l.leave(key)
		if !proposed {
			r.reply(l.refusal(first.Call))
		}
	}
	return true
}

// leave takes the first out of a key's queue.
func (l *leadership) leave(key string) {
	l.waiters--
	if queue := l.waiting[key]; len(queue) > 1 {
		l.waiting[key] = queue[1:]
	} else {
		delete(l.waiting, key)
	}
}

func (q Request) envelope() Envelope {
	e := Envelope{Client: q.Client, Seq: q.Seq, Lowest: q.Lowest, Owner: q.Owner}
	switch q.Kind {
	case Open:
		e.Command = Command{Kind: Open}
	case Extend:
		e.Command = Command{Kind: Extend, Key: q.Key, Token: q.Token, LeaseMS: uint32(q.LeaseMS)}
	case Grant:
		e.Command = Command{Kind: Grant, Key: q.Key, LeaseMS: uint32(q.LeaseMS)}
	case Release:
		e.Command = Command{Kind: Release, Key: q.Key, Token: q.Token}
	case Noop:
		e.Command = Command{Kind: Noop, Text: q.Text}
	}
	return e
}

// giveBack ends a tenure whose Granted could not be handed over, unless its client has come back for
// it: then it was told again, or will be.
func (r *Replica) giveBack(g ghost) {
	l := r.leader
	again := func(q Request) bool { return q.Client != 0 && g.request.sameNumber(q) }
	back := l.retold[g.request.Key] == g.token || slices.ContainsFunc(l.early, again) ||
		slices.ContainsFunc(l.proposals, func(p proposal) bool { return again(p.request) })
	if !back || r.config.Rules.NoRequestIDs {
		r.cleanUp(g)
	}
}

// disconnect forgets a call. A request that still waits goes with it; one that was proposed stays
// in the log.
func (l *leadership) disconnect(gone Request) {
	same := func(q Request) bool { return q.Call == gone.Call }
	l.early = slices.DeleteFunc(l.early, same)
	for i := range l.proposals {
		if same(l.proposals[i].request) {
			l.proposals[i].request.Call = 0
		}
	}
	before := len(l.waiting[gone.Key])
	queue := slices.DeleteFunc(l.waiting[gone.Key], func(w waiter) bool { return same(w.Request) })
	l.waiters -= before - len(queue)
	if len(queue) == 0 {
		delete(l.waiting, gone.Key)
	} else {
		l.waiting[gone.Key] = queue
	}
}
