package fsm

import "ticketing/raft"

// recountKeys is how many keys are looked at in one go. It takes some milliseconds, which is what
// everything else in the server has to wait.
const recountKeys = 1 << 11

// Restore tells that next takes the place of before, since a snapshot says so. The countdowns become
// its own in parts, a part with each Recount: a million at once would keep a server silent for so long
// that its leader takes it for dead, or that it stands for election itself.
func (l *Leases) Restore(before, next *Table) {
	l.unsure = append(l.unsure, before.held.walk(), next.held.walk())
}

// Recounting reports whether some countdowns may not be the table's: of tenures that are over, or
// missing.
func (l *Leases) Recounting() bool { return len(l.unsure) > 0 }

// Recount goes on with what Restore has begun. The table may have changed since: what it says now is
// what counts. A lease that is being counted goes on, over or not, as if the entries between had come
// one by one: but only if it is the same one. The token alone does not tell: if an Extend was among
// those entries, the same tenure has a new lease, and without Since, which the table keeps for this, it
// would be ended early. All others count from now, in full: when they began on this server's clock
// nobody can say.
//
//spec:rule Snapshot.Lease
func (l *Leases) Recount(table *Table, now raft.Time) {
	for range recountKeys {
		key, more := l.nextUnsure()
		if !more {
			return
		}
		tenure, held := table.Holder(key)
		c, counted := l.running[key]
		switch {
		case !held:
			l.Stop(key)
		case !counted || c.token != tenure.Token || c.since != tenure.Since:
			l.Start(key, tenure, now)
		}
	}
}

// nextUnsure returns the next key to look at, and whether there is one.
func (l *Leases) nextUnsure() (key string, more bool) {
	for len(l.unsure) > 0 {
		if b := l.unsure[0].next(); b != nil {
			return b.key, true
		}
		l.unsure[0] = walk{} // so that the table of before can be freed
		l.unsure = l.unsure[1:]
	}
	return "", false
}
