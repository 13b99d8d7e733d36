package fsm

import (
	"cmp"
	"maps"
	"slices"

	"ticketing/raft"
)

// Leases counts down the leases of the tenures in one server's applied table, on that server's own
// clock. It removes nothing: it says when a leader should propose an Expire. A clock that is fast
// or slow makes that early or late and can do no other harm.
//
// A countdown starts when this server applies the Grant, and anew when it applies an Extend. The
// client counts from before it sent the request, which is earlier, so with equal clocks the
// client's own deadline always comes first.
// Nothing is saved: a server that restarts applies the log again and counts in full again, which
// errs to the late side. A deadline from before a crash would mean nothing on a clock that stood
// still or started anew.
//
//spec:rule Clock.OwnApply
type Leases struct {
	running map[string]countdown // by key
	alarms  []alarm              // a heap by time; holds ended countdowns too, until they come up
	lapsed  []lapse              // those that are over, in that order; some of them have ended since
	over    int                  // those that have not
}

// A countdown belongs to a tenure by its token and by the entry that last set its lease.
type countdown struct {
	token Token
	since raft.Index
	over  bool
}

type alarm struct {
	at    raft.Time
	key   string
	token Token
	since raft.Index
}

type lapse struct {
	key   string
	token Token
	since raft.Index
}

// Start begins the countdown of a lease that was set now, in place of any that the key has.
func (l *Leases) Start(key string, tenure Tenure, now raft.Time) {
	l.Stop(key)
	if l.running == nil {
		l.running = map[string]countdown{}
	}
	l.running[key] = countdown{token: tenure.Token, since: tenure.Since}
	at := now + raft.Time(tenure.LeaseMS)*1000
	l.push(alarm{at, key, tenure.Token, tenure.Since})
}

// Stop ends a key's countdown, since its tenure has ended.
func (l *Leases) Stop(key string) {
	if c := l.running[key]; c.over {
		l.over--
	}
	delete(l.running, key)
}

// Over returns those whose leases are over, in that order, and at most n of them. They are valid
// until the next call of any method. It drops what has ended since from the part that it looks
// through, so that no part is looked through twice in vain.
func (l *Leases) Over(n int) []lapse {
	n = min(n, l.over)
	seen, kept := 0, 0
	for ; kept < n; seen++ {
		if o := l.lapsed[seen]; !l.outlived(o) {
			l.lapsed[kept] = o
			kept++
		}
	}
	if kept == l.over {
		seen = len(l.lapsed) // nothing behind is over
	}
	copy(l.lapsed[seen-kept:seen], l.lapsed[:kept])
	clear(l.lapsed[:seen-kept]) // so that the keys can be freed
	l.lapsed = l.lapsed[seen-kept:]
	if l.over == 0 {
		l.lapsed = nil
	}
	return l.lapsed[:kept:kept]
}

// outlived reports whether a lapse is of a tenure that has ended, or has a new lease.
func (l *Leases) outlived(o lapse) bool {
	c, ok := l.running[o.key]
	return !ok || !c.over || c.token != o.token || c.since != o.since
}

// Next returns the time at which the next lease will be over.
func (l *Leases) Next() (raft.Time, bool) {
	l.skipEnded()
	if len(l.alarms) == 0 {
		return 0, false
	}
	return l.alarms[0].at, true
}

// Advance notes which leases are over by now, until as many are over as a leader expires at once. If
// a million end together, the others are found as those are removed, and no moment has to look at
// all of them.
func (l *Leases) Advance(now raft.Time) {
	for at, ok := l.Next(); ok && at <= now && !l.crowded(); at, ok = l.Next() {
		a := l.pop()
		l.Lapse(a.key, a.token)
	}
}

// crowded reports whether enough leases are over for now.
func (l *Leases) crowded() bool { return l.over >= maxExpiring }

// Lapse declares a tenure's lease over, whatever the clock says: for scripts, and for a search that
// lets every armed timer fire at any moment. It does nothing if there is no such countdown.
func (l *Leases) Lapse(key string, token Token) {
	c, ok := l.running[key]
	if !ok || c.token != token || c.over {
		return
	}
	c.over = true
	l.running[key] = c
	l.over++
	l.lapsed = append(l.lapsed, lapse{key, token, c.since})
}

// LeaseTime is what is left of a tenure's lease, by the clock of the server that tells it; 0 or less
// when it is over and the tenure's end is not applied.
type LeaseTime struct {
	Key   string
	Token Token
	Left  raft.Time
}

// Left returns what is left of each lease, the shortest first, and whether there are more than
// most.
func (l *Leases) Left(now raft.Time, most int) (left []LeaseTime, more bool) {
	for _, o := range l.Over(most + 1) {
		left = append(left, LeaseTime{o.key, o.token, 0})
	}
	rest := Leases{running: l.running, alarms: slices.Clone(l.alarms)}
	for _, ok := rest.Next(); ok && len(left) <= most; _, ok = rest.Next() {
		a := rest.pop()
		left = append(left, LeaseTime{a.key, a.token, a.at - now})
	}
	if len(left) > most {
		return left[:most], true
	}
	return left, false
}

// ended reports whether the countdown that an alarm belongs to has ended or was replaced.
func (l *Leases) ended(a alarm) bool {
	c, ok := l.running[a.key]
	return !ok || c.over || c.token != a.token || c.since != a.since
}

// skipEnded drops the alarms that have nothing to say, up to the first that has.
func (l *Leases) skipEnded() {
	for len(l.alarms) > 0 && l.ended(l.alarms[0]) {
		l.pop()
	}
}

// compact drops all alarms that have nothing to say, once they are the greater part: a lock that is
// given back early must not cost memory until its lease would have been over.
func (l *Leases) compact() {
	if len(l.alarms) < 2*len(l.running)+16 {
		return
	}
	l.alarms = slices.DeleteFunc(l.alarms, l.ended)
	slices.SortFunc(l.alarms, func(a, b alarm) int { // what is sorted is a heap
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.token, b.token))
	})
}

func (a alarm) before(b alarm) bool {
	return a.at < b.at || a.at == b.at && a.token < b.token
}

func (l *Leases) push(a alarm) {
	l.compact()
	l.alarms = append(l.alarms, a)
	for i := len(l.alarms) - 1; i > 0; {
		up := (i - 1) / 2
		if !l.alarms[i].before(l.alarms[up]) {
			return
		}
		l.alarms[i], l.alarms[up] = l.alarms[up], l.alarms[i]
		i = up
	}
}

func (l *Leases) pop() alarm {
	first, last := l.alarms[0], len(l.alarms)-1
	l.alarms[0] = l.alarms[last]
	l.alarms[last] = alarm{} // so that the key can be freed
	l.alarms = l.alarms[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return first
		}
		if down+1 < last && l.alarms[down+1].before(l.alarms[down]) {
			down++
		}
		if !l.alarms[down].before(l.alarms[i]) {
			return first
		}
		l.alarms[i], l.alarms[down] = l.alarms[down], l.alarms[i]
		i = down
	}
}

func (l *Leases) clone() Leases {
	return Leases{maps.Clone(l.running), slices.Clone(l.alarms), slices.Clone(l.lapsed), l.over}
}
