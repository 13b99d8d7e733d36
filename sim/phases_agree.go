package sim

import (
	"slices"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// overdue looks at the locks that whoever leads has: the one whose lease has been over for the longest,
// by its leader's clock and in true time, and whether all are free. A leader is given its time anew: it
// may be the first for a while.
func (w *World) overdue() (key string, late trace.Time, free bool) {
	l := w.followed()
	if l == nil {
		w.lasting.leader = nil
		return "", 0, false
	}
	if now := (tenancy{l, l.status.Term, w.lasting.since}); now != w.lasting {
		w.lasting = tenancy{l, l.status.Term, w.now}
	}
	for k, t := range l.tenures {
		over := l.clock.at(w.now) - t.local - t.lease
		if over <= 0 || l.clock.rate <= 0 {
			continue
		}
		since := trace.Time(int64(over) * trueRate / l.clock.rate)
		if since = min(since, w.now-w.lasting.since); since > late || since == late && k < key {
			key, late = k, since
		}
	}
	return key, late, len(l.tenures) == 0
}

// tenancy is a leader, and since when a majority has followed it.
type tenancy struct {
	leader *node
	term   raft.Term
	since  trace.Time
}

// roundTrip is more than a message, a write and the answer take in a core.
const roundTrip = 2*defaultDelayMax + 2*defaultSyncMax

// converges waits until those of the core whom the leader reaches have the same log and table as it. A
// leader from outside the core may not reach all of it.
func (w *World) converges(core []*node) bool {
	return w.awaits(core, progressConverge, convergeWithin, w.backlog(core), func() bool {
		l := w.followed()
		return l != nil && l.status.CommitIndex == l.status.LastIndex && !slices.ContainsFunc(core, func(n *node) bool {
			return n != l && w.reaches(l, n) && !agree(l, n)
		})
	})
}

// reaches reports whether messages get through between two servers that both count.
func (w *World) reaches(l, n *node) bool {
	there, back := &w.links[l.index][n.index], &w.links[n.index][l.index]
	return w.belongs(n) && !there.cut && !back.cut && there.holds == 0 && back.holds == 0
}

func agree(l, n *node) bool {
	return n.alive && n.status.LastIndex == l.status.LastIndex && last(n.chains) == last(l.chains) &&
		n.status.CommitIndex == l.status.CommitIndex && n.status.LastApplied == l.status.LastApplied &&
		n.replica.Table().Hash() == l.replica.Table().Hash()
}

// backlog is what the entries, or the parts of a snapshot, take that somebody in the core lacks, if each
// waits for the one before.
func (w *World) backlog(core []*node) (long trace.Time) {
	l := w.followed()
	if l == nil {
		return 0
	}
	for _, n := range core {
		lacks := trace.Time(max(int64(l.status.LastIndex)-int64(n.status.CommitIndex), 0))
		trips := lacks / trace.Time(w.config.batch)
		if s := l.replica.Core().Snapshot(); s != nil && w.config.chunk > 0 && n.status.LastIndex < s.LastIncludedIndex {
			trips += trace.Time(len(s.Data)/w.config.chunk) + 1
		}
		long = max(long, trips*roundTrip)
	}
	return long
}
