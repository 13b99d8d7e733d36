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
	b = r.core.AppendState(b)
	b = appendNumbers(b, r.table.Hash(), uint64(r.table.tokens))
	b = r.leases.appendState(b)
	if r.leader == nil {
		return append(b, 0)
	}
	return r.leader.appendState(append(b, 1))
}

// appendState leaves the alarms out: each belongs to a countdown that is running, and only its time
// is its own.
func (l *Leases) appendState(b []byte) []byte {
	b = appendNumbers(b, uint64(len(l.running)))
	for _, key := range slices.Sorted(maps.Keys(l.running)) {
		c := l.running[key]
		b = appendText(b, key)
		b = appendNumbers(b, uint64(c.token), uint64(c.since), flag(c.over))
	}
	b = appendNumbers(b, uint64(l.over))
	for _, o := range l.lapsed {
		if !l.outlived(o) {
			b = appendNumbers(appendText(b, o.key), uint64(o.token))
		}
	}
	return b
}

// appendState writes turns as they are. Only their order matters, so two leaders that differ in
// nothing else count as two: a search takes a little longer and misses nothing.
func (l *leadership) appendState(b []byte) []byte {
	b = appendNumbers(b, uint64(l.term), uint64(l.start), flag(l.ready), l.arrivals,
		uint64(len(l.early)), uint64(len(l.proposals)), uint64(len(l.ghosts)))
	for _, q := range l.early {
		b = q.appendState(b)
	}
	for _, p := range l.proposals {
		b = p.request.appendState(b)
		b = appendNumbers(b, uint64(p.index), p.turn, uint64(p.attempt), uint64(p.cause), uint64(p.meant))
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
		b = appendNumbers(appendText(b, key), flag(f.held), uint64(f.token), uint64(f.granting),
			uint64(f.entries), uint64(f.grants))
	}
	for _, key := range slices.Sorted(maps.Keys(l.waiting)) {
		b = appendNumbers(appendText(b, key), uint64(len(l.waiting[key])))
		for _, w := range l.waiting[key] {
			b = appendNumbers(w.Request.appendState(b), w.turn)
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
