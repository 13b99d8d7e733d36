package fsm

import "slices"

// This file is what a leader does with requests: the gate, the queue behind it, and attempts that
// come again. All of it is order and courtesy. None of it is needed for the table to be right,
// since whatever gets past it meets Table.Apply.

// admit looks at a request for the first time.
func (r *Replica) admit(q Request) {
	if r.reattach(q) {
		return
	}
	switch q.Kind {
	case Grant:
		r.admitGrant(q)
	case Release:
		r.propose(q.envelope(), q.Token, ForClient, q)
	case Noop:
		r.propose(q.envelope(), 0, ForClient, q)
	}
}

// reattach finds a request that is here already, from an earlier attempt, and lets it answer this
// call.
func (r *Replica) reattach(q Request) bool {
	if q.Client == 0 {
		return false
	}
	known := func(o Request) bool { return o.Client == q.Client && o.Seq == q.Seq }
	for i := range r.leader.proposals {
		if o := &r.leader.proposals[i].request; known(*o) {
			r.supersede(o.Call)
			*o = q // the proposal's own attempt stays: the Grant was proposed on that one
			return true
		}
	}
	queue := r.leader.waiting[q.Key]
	if i := slices.IndexFunc(queue, known); i >= 0 {
		r.supersede(queue[i].Call)
		queue[i] = q
		return true
	}
	return false
}

func (r *Replica) supersede(call uint64) {
	if call != 0 {
		r.reply(Reply{Call: call, Status: Superseded})
	}
}

// admitGrant is the gate: a Grant is proposed only when it can succeed, and others wait their turn.
//
//spec:rule L2
func (r *Replica) admitGrant(q Request) {
	l := r.leader
	if r.config.Rules.NoGate {
		r.propose(q.envelope(), 0, ForClient, q)
		return
	}
	if q.Try && (len(l.waiting[q.Key]) > 0 || !r.free(q.Key)) {
		r.reply(Reply{Call: q.Call, Status: Held})
		return
	}
	l.waiting[q.Key] = append(l.waiting[q.Key], q)
	l.touched = append(l.touched, q.Key)
}

// grantNext proposes a Grant for the first in a key's queue if the key is free.
func (r *Replica) grantNext(key string) {
	queue := r.leader.waiting[key]
	if len(queue) == 0 || !r.free(key) {
		return
	}
	if len(queue) == 1 {
		delete(r.leader.waiting, key)
	} else {
		r.leader.waiting[key] = queue[1:]
	}
	r.propose(queue[0].envelope(), 0, ForClient, queue[0])
}

func (q Request) envelope() Envelope {
	e := Envelope{Client: q.Client, Seq: q.Seq, Owner: q.Owner}
	switch q.Kind {
	case Grant:
		e.Command = Command{Kind: Grant, Key: q.Key, LeaseMS: uint32(q.LeaseMS)}
	case Release:
		e.Command = Command{Kind: Release, Key: q.Key, Token: q.Token}
	case Noop:
		e.Command = Command{Kind: Noop, Text: q.Text}
	}
	return e
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
	queue := slices.DeleteFunc(l.waiting[gone.Key], same)
	if len(queue) == 0 {
		delete(l.waiting, gone.Key)
	} else {
		l.waiting[gone.Key] = queue
	}
}
