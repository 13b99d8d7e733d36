package fsm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ticketing/raft"
)

// uncounted says which countdown is not what the table says; "" if all are.
func uncounted(l *Leases, t *Table) string {
	for key, tenure := range t.Tenures() {
		if c := l.running[key]; c == nil || c.token != tenure.Token || c.since != tenure.Since {
			return fmt.Sprintf("%s is held by %+v, and counted is %+v", key, tenure, c)
		}
	}
	if len(l.running) != t.Len() {
		return fmt.Sprintf("%d are counted, %d are held", len(l.running), t.Len())
	}
	return misplaced(l)
}

// changeAtRandom applies an entry about one of so many keys, as a server does: to its table and, if it
// has any, its countdowns.
func changeAtRandom(random *rand.Rand, t *Table, l *Leases, index raft.Index, keys int, now raft.Time) {
	e := Envelope{Command: Command{Kind: Grant, Key: key(random.IntN(keys)), LeaseMS: 10_000}}
	tenure, held := t.Holder(e.Key)
	if held {
		e.Kind, e.Token = []Kind{Release, Expire, Extend}[random.IntN(3)], tenure.Token
	}
	t.Apply(index, e)
	if l == nil {
		return
	}
	if tenure, held = t.Holder(e.Key); held {
		l.Start(e.Key, tenure, now)
	} else {
		l.Stop(e.Key)
	}
}

// While a snapshot's leases come to be counted, entries are applied, and another snapshot may arrive.
// In the end all are counted that are held, from when the server had them.
//
//spec:test Snapshot.Lease
func TestLeasesAreCountedInPartsWhileTheTableChanges(t *testing.T) {
	t.Parallel()
	const keys = 3 * recountKeys
	wentOn, again, changed := 0, 0, 0
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		var l Leases
		var table Table
		index, now := raft.Index(0), raft.Time(0)
		step := func(t *Table, l *Leases) {
			index++
			changeAtRandom(random, t, l, index, keys, now)
		}
		restore := func() {
			next := table.Clone()
			for range keys / 4 { // which this server has not seen
				step(&next, nil)
			}
			l.Restore(&table, &next)
			table = next
		}
		for range keys {
			step(&table, &l)
		}
		now = second
		restore()
		for l.Recounting() {
			l.Recount(&table, now)
			for range 100 {
				step(&table, &l)
				changed++
			}
			if now++; random.IntN(20) == 0 {
				restore()
				again++
			}
		}
		same(t, fmt.Sprint("seed ", seed), "", uncounted(&l, &table))
		for key, tenure := range table.Tenures() {
			if c := l.running[key]; c.at == 10*second { // it was held before the snapshot, and is still
				wentOn++
			} else if c.at < 11*second || tenure.LeaseMS != 10_000 {
				t.Fatalf("seed %d: the lease of %s is over at %d", seed, key, c.at)
			}
		}
	}
	if wentOn == 0 || again == 0 || changed == 0 {
		t.Errorf("too tame: %d went on, %d snapshots came meanwhile, %d entries", wentOn, again, changed)
	}
}

// However many locks a snapshot has, no Take looks at all of them, so that a server goes on answering
// its leader; it does not rest before it has, and until then it expires nothing.
func TestNoMomentCountsAllLeasesOfASnapshot(t *testing.T) {
	const held = 5*recountKeys + 10
	c := newCrowd(t, testConfig(1, 1))
	c.hold(held, func(int) int64 { return 10_000 })
	r, err := New(testConfig(1, 1), c.compacted(), 0)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "counted as it starts", recountKeys, len(r.leases.running))
	r.ElectionTimeout()
	restarted := &crowd{Replica: r, t: t, clock: 20 * second} // the leases counted as yet are over
	for takes := 1; takes < 5; takes++ {
		same(t, "the time to go on", r.now, r.Deadline())
		restarted.round()
		same(t, "counted", (takes+1)*recountKeys, len(r.leases.running))
	}
	same(t, "leads", true, r.leader != nil && r.leader.ready)
	same(t, "over", 0, r.leases.over)
	for range 2 {
		restarted.settle()
	}
	same(t, "counted in the end, or expired", held, len(r.leases.running)+restarted.expired)
	same(t, "recounting", false, r.leases.Recounting())
	if restarted.expired == 0 {
		t.Error("too tame: it has expired none")
	}
	if r.Deadline() <= r.now && !r.leases.crowded() {
		t.Error("it does not rest")
	}
}

// A clone goes its own way, and what tells states apart tells how far each is.
func TestACloneCountsLeasesByItself(t *testing.T) {
	var before, table Table
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 4 * recountKeys {
		changeAtRandom(random, &table, nil, raft.Index(i), 4*recountKeys, 0)
	}
	var l Leases
	l.Restore(&before, &table)
	c := l.clone()
	alike := func() bool { return string(l.appendState(nil)) == string(c.appendState(nil)) }
	same(t, "alike at first", true, alike())
	for l.Recounting() {
		l.Recount(&table, 0)
		same(t, "alike when one has gone on", false, alike())
	}
	same(t, "counted by the clone", 0, len(c.running))
	for c.Recounting() {
		c.Recount(&table, 0)
	}
	same(t, "of the clone", "", uncounted(&c, &table))
	same(t, "of the original", "", uncounted(&l, &table))
	same(t, "alike in the end", true, alike())
}
