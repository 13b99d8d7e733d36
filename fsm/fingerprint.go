package fsm

import (
	"cmp"
	"maps"
	"slices"

	"ticketing/raft"
)

// AppendState appends all that decides what this replica will do, in one fixed form, as
// raft.Core.AppendState does: table, countdowns without their times, and what a leader remembers.
// What waits for the next Take is not part of it, so it is asked for after a Take.
func (r *Replica) AppendState(b []byte) []byte {
	b = appendNumbers(r.core.AppendState(b), r.table.Hash())
	return r.AppendService(b)
}

// AppendService appends the part of it that is not Raft's, and in such a form that two servers are
// alike if they will act alike on the same log from here on, however long their pasts are. Indices
// are distances from the last applied entry, and turns are ranks. Of the entry that last set a
// lease only whether the countdown is of it, since nothing else is asked of it; and nothing of how
// long a session has been silent, which counts when there are 4096 of them and one more is opened:
// a search that goes so far needs AppendState.
func (r *Replica) AppendService(b []byte) []byte {
	b = r.table.appendState(b, &r.leases)
	b = r.leases.appendState(b)
	b = r.reads.appendState(b, r.core.Status().LastApplied)
	b = appendNumbers(b, uint64(len(r.changes)))
	for _, c := range r.changes {
		b = appendNumbers(b, c.call, ahead(c.index, r.core.Status().LastApplied), uint64(c.term))
	}
	b = r.snapshots.appendState(b, r.reached, r.config.SnapshotEvery)
	if r.leader == nil {
		return append(b, 0)
	}
	return r.leader.appendState(append(b, 1), r.core.Status().LastApplied)
}

func (t *Table) appendState(b []byte, l *Leases) []byte {
	b = appendNumbers(b, uint64(t.tokens), uint64(t.Len()), uint64(len(t.sessions)))
	for key, tenure := range t.Tenures() {
		c, counted := l.running[key]
		b = appendText(appendText(b, key), tenure.Owner)
		b = appendNumbers(b, uint64(tenure.Token), uint64(tenure.LeaseMS),
			flag(counted && c.token == tenure.Token && c.since == tenure.Since), flag(counted && c.over))
	}
	for _, id := range slices.Sorted(maps.Keys(t.sessions)) {
		s := t.sessions[id]
		b = appendNumbers(b, uint64(id), s.lowest, uint64(len(s.done)))
		for _, o := range s.done {
			b = appendNumbers(b, o.seq, o.command, uint64(o.token), uint64(o.kind))
		}
	}
	return b
}

// appendState writes which leases are over, in that order. It leaves the alarms out: each belongs
// to a countdown that is running, and only its time is its own.
func (l *Leases) appendState(b []byte) []byte {
	b = appendNumbers(b, uint64(l.over))
	for _, o := range l.lapsed {
		if !l.outlived(o) {
			b = appendNumbers(appendText(b, o.key), uint64(o.token))
		}
	}
	b = appendNumbers(b, uint64(len(l.unsure)))
	for _, w := range l.unsure { // a walk is as far as what it has still to go to
		for _, branch := range w.to {
			b = appendText(b, branch.key)
		}
	}
	return b
}

func (l *leadership) appendState(b []byte, applied raft.Index) []byte {
	b = appendNumbers(b, uint64(l.term), ahead(l.start, applied), flag(l.ready),
		uint64(l.heir), flag(l.behind),
		uint64(len(l.early)), uint64(len(l.proposals)), uint64(len(l.ghosts)))
	for _, q := range l.early {
		b = q.appendState(b)
	}
	turns := l.turns()
	for _, p := range l.proposals {
		b = p.request.appendState(b)
		b = appendNumbers(b, ahead(p.index, applied), uint64(p.attempt), uint64(p.cause), uint64(p.meant))
		if p.request.Kind == Grant {
			b = appendNumbers(b, rank(turns, p.turn))
		}
	}
	for _, g := range l.ghosts {
		b = appendNumbers(g.request.appendState(b), uint64(g.token))
	}
	b = appendNumbers(b, uint64(len(l.ahead)), uint64(len(l.waiting)),
		uint64(len(l.retold)), uint64(len(l.expiring)), uint64(len(l.touched)))
	for _, key := range l.touched {
		b = appendText(b, key)
	}
	for _, key := range slices.Sorted(maps.Keys(l.ahead)) {
		f := l.ahead[key]
		b = appendNumbers(appendText(b, key), flag(f.held), uint64(f.token), ahead(f.granting, applied),
			uint64(f.entries), uint64(f.grants))
	}
	for _, key := range slices.Sorted(maps.Keys(l.waiting)) {
		b = appendNumbers(appendText(b, key), uint64(len(l.waiting[key])))
		for _, w := range l.waiting[key] {
			b = appendNumbers(w.Request.appendState(b), rank(turns, w.turn))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.retold)) {
		b = appendNumbers(appendText(b, key), uint64(l.retold[key]))
	}
	for _, token := range slices.Sorted(maps.Keys(l.expiring)) {
		b = appendNumbers(b, uint64(token))
	}
	return appendCounts(appendCounts(b, l.ending), l.extending)
}

// ahead is how far behind the last applied entry another one stands in the log, 0 for one that is
// applied.
func ahead(i, applied raft.Index) uint64 { return uint64(max(i, applied) - applied) }

// turns lists the turns of the Grants that wait or may have to wait again, in order.
func (l *leadership) turns() []uint64 {
	var turns []uint64
	for _, p := range l.proposals {
		if p.request.Kind == Grant {
			turns = append(turns, p.turn)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.waiting)) {
		for _, w := range l.waiting[key] {
			turns = append(turns, w.turn)
		}
	}
	slices.Sort(turns)
	return turns
}

func rank(turns []uint64, turn uint64) uint64 {
	i, _ := slices.BinarySearch(turns, turn)
	return uint64(i)
}

func (of tenureOf) compare(other tenureOf) int {
	return cmp.Or(cmp.Compare(of.key, other.key), cmp.Compare(of.token, other.token))
}

func appendCounts(b []byte, counts map[tenureOf]int) []byte {
	b = appendNumbers(b, uint64(len(counts)))
	for _, of := range slices.SortedFunc(maps.Keys(counts), tenureOf.compare) {
		b = appendNumbers(appendText(b, of.key), uint64(of.token), uint64(counts[of]))
	}
	return b
}

func (q Request) appendState(b []byte) []byte {
	b = appendNumbers(b, q.Call, uint64(q.Client), q.Seq, q.Lowest, uint64(q.Attempt), uint64(q.Kind),
		uint64(q.LeaseMS), uint64(q.Token), flag(q.Try))
	return appendText(appendText(appendText(b, q.Owner), q.Key), q.Text)
}

func appendText(b []byte, text string) []byte {
	b = append(b, text...)
	return append(b, 0xff) // no UTF-8 text has this byte
}

func appendNumbers(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = raft.AppendNumber(b, n)
	}
	return b
}

func flag(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}
