package fsm

import (
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
// Nothing is saved: a server that restarts applies the log again, or restores a snapshot, and counts
// in full again, which errs to the late side. A deadline from before a crash would mean nothing on a
// clock that stood still or started anew.
//
//spec:rule Clock.OwnApply
type Leases struct {
	running map[string]*countdown // by key
	alarms  []*countdown          // those that are not over: a heap by time
	lapsed  []lapse               // those that are over, in that order; some of them have ended since
	over    int                   // those that have not
	unsure  []walk                // keys whose countdowns may not be the table's, see Restore
}

// A countdown belongs to a tenure by its token and by the entry that last set its lease.
type countdown struct {
	key   string
	token Token
	since raft.Index
	at    raft.Time // at which it is over
	place int32     // among the alarms, so that one that is stopped leaves at once
	over  bool
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
		l.running = map[string]*countdown{}
	}
	at := now + raft.Time(tenure.LeaseMS)*1000
	c := &countdown{key: key, token: tenure.Token, since: tenure.Since, at: at}
	l.running[key] = c
	l.push(c)
}

// Stop ends a key's countdown, since its tenure has ended.
func (l *Leases) Stop(key string) {
	c, ok := l.running[key]
	if !ok {
		return
	}
	delete(l.running, key)
	if c.over {
		l.over--
	} else {
		l.drop(c)
	}
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
		l.Lapse(l.alarms[0].key, l.alarms[0].token)
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
	l.drop(c)
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
	// Behind a countdown in the heap stand only later ones. So the next is always among those whose
	// place is open: all before them are told.
	open := make([]int, min(1, len(l.alarms)))
	for len(open) > 0 && len(left) <= most {
		first := 0
		for i, place := range open {
			if l.alarms[place].before(l.alarms[open[first]]) {
				first = i
			}
		}
		place := open[first]
		c := l.alarms[place]
		left = append(left, LeaseTime{c.key, c.token, c.at - now})
		open = slices.Delete(open, first, first+1)
		for child := 2*place + 1; child <= 2*place+2 && child < len(l.alarms); child++ {
			open = append(open, child)
		}
	}
	if len(left) > most {
		return left[:most], true
	}
	return left, false
}

func (c *countdown) before(other *countdown) bool {
	return c.at < other.at || c.at == other.at && c.token < other.token
}

func (l *Leases) push(c *countdown) {
	l.alarms = append(l.alarms, nil)
	l.rise(len(l.alarms)-1, c)
}

// drop takes a countdown out of the alarms. The last one takes its place, and moves on from there.
func (l *Leases) drop(c *countdown) {
	end := len(l.alarms) - 1
	last := l.alarms[end]
	l.alarms[end] = nil // so that it can be freed
	l.alarms = l.alarms[:end]
	if last == c {
		return
	}
	l.sink(int(c.place), last)
	l.rise(int(last.place), last)
}

// rise puts a countdown at a place, or further up.
func (l *Leases) rise(place int, c *countdown) {
	for place > 0 {
		up := (place - 1) / 2
		if !c.before(l.alarms[up]) {
			break
		}
		l.put(place, l.alarms[up])
		place = up
	}
	l.put(place, c)
}

// sink puts a countdown at a place, or further down.
func (l *Leases) sink(place int, c *countdown) {
	for {
		down := 2*place + 1
		if down+1 < len(l.alarms) && l.alarms[down+1].before(l.alarms[down]) {
			down++
		}
		if down >= len(l.alarms) || !l.alarms[down].before(c) {
			break
		}
		l.put(place, l.alarms[down])
		place = down
	}
	l.put(place, c)
}

func (l *Leases) put(place int, c *countdown) {
	l.alarms[place], c.place = c, int32(place)
}

func (l *Leases) clone() Leases {
	c := Leases{lapsed: slices.Clone(l.lapsed), over: l.over}
	for _, w := range l.unsure {
		c.unsure = append(c.unsure, walk{slices.Clone(w.to)})
	}
	if len(l.running) == 0 {
		return c
	}
	c.running = make(map[string]*countdown, len(l.running))
	c.alarms = make([]*countdown, len(l.alarms))
	copies := make([]countdown, 0, len(l.running)) // in one piece: a search makes many clones
	for key, running := range l.running {
		copies = append(copies, *running)
		copied := &copies[len(copies)-1]
		c.running[key] = copied
		if !copied.over {
			c.alarms[copied.place] = copied
		}
	}
	return c
}
