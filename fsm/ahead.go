package fsm

import "ticketing/raft"

// This file is the leader's view of its own log: what each key will be once everything in the log
// is applied. A Release that is on its way frees the key here already, so the next waiter's Grant
// can be appended right behind it, and a hand-over costs one commit instead of two. The view can be
// this exact because a leader only appends: what it has appended will be applied in that order, or
// this leadership ends and the view with it.
//
// Leases are not decided on this view but on the applied table (see Replica.expire). Between the
// two lies the moment in which the late Expire is born: the Release of a tenure and the next Grant
// are in the log, not yet committed, and the old lease runs out.

// A future is what a key will be once the leader's whole log is applied, as long as some entry of
// the log that is about this key is not applied.
type future struct {
	held     bool
	token    Token      // the holder's, 0 if its Grant is not yet applied
	granting raft.Index // that Grant's entry
	entries  int        // entries about this key that are not applied
	grants   int        // Grants among them
}

// free reports whether a Grant of key can succeed: after the whole log or, if so configured, by the
// applied table, with no other Grant on its way.
func (r *Replica) free(key string) bool {
	f := r.leader.ahead[key]
	if f != nil && !r.config.GrantOnApplied {
		return !f.held
	}
	_, held := r.table.Holder(key)
	return !held && (f == nil || f.grants == 0)
}

// note works an entry that was appended into the future of its key. An Expire, and a Release that
// is meant for one tenure, frees the key here only if the holder there is that tenure, whatever the
// command says: otherwise it is late, and to count on it would be to give the key away twice. A
// request that is spent changes nothing. What cannot be known before is whether a client's session
// will have ended by then. A Release in one that has frees nothing, the Grant behind it is rejected
// and waits again, in its old place.
func (l *leadership) note(table *Table, index raft.Index, e Envelope, meant Token) {
	switch e.Kind {
	case Noop, Open:
		return
	case Extend:
		l.extending[tenureOf{e.Key, e.Token}]++
		return // it neither frees the key nor takes it
	case Expire:
		l.ending[tenureOf{e.Key, e.Token}]++
	}
	f := l.ahead[e.Key]
	if f == nil {
		tenure, held := table.Holder(e.Key)
		f = &future{held: held, token: tenure.Token}
		l.ahead[e.Key] = f
	}
	f.entries++
	spent := table.spent(e)
	if e.Kind == Grant {
		f.grants++
		if !f.held && !spent {
			f.held, f.token, f.granting = true, 0, index
		}
		return
	}
	anyTenure := e.Kind == Release && meant == 0
	if f.held && !spent && (anyTenure || f.token != 0 && f.token == meant) {
		f.held = false
		l.touched = append(l.touched, e.Key)
	}
}

// settle works an entry that was applied out of the future of its key.
func (l *leadership) settle(table *Table, index raft.Index, e Envelope, result Result) {
	if result.Kind == Released || result.Kind == Expired && result.Existed {
		l.touched = append(l.touched, e.Key)
		delete(l.retold, e.Key)
	}
	switch e.Kind {
	case Noop, Open:
		return
	case Extend:
		less(l.extending, tenureOf{e.Key, e.Token})
		return
	case Expire:
		less(l.ending, tenureOf{e.Key, e.Token})
	}
	f := l.ahead[e.Key]
	if f == nil {
		return
	}
	f.entries--
	if e.Kind == Grant {
		f.grants--
	}
	if f.entries == 0 {
		delete(l.ahead, e.Key)
		l.touched = append(l.touched, e.Key)
		return
	}
	if f.held && f.granting == index {
		// Its own or, if it was rejected, the one that was in the way; none if its session was over.
		tenure, held := table.Holder(e.Key)
		f.held, f.token, f.granting = held, tenure.Token, 0
		if !held {
			l.touched = append(l.touched, e.Key)
		}
	}
}

// less takes one off a count.
func less(counts map[tenureOf]int, of tenureOf) {
	if counts[of]--; counts[of] <= 0 {
		delete(counts, of)
	}
}
