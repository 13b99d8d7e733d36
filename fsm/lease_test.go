package fsm

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ticketing/raft"
)

const millisecond raft.Time = 1000

// start begins a countdown, its entry being as many as the token.
func start(l *Leases, key string, token Token, leaseMS uint32, now raft.Time) {
	l.Start(key, Tenure{Token: token, LeaseMS: leaseMS, Since: raft.Index(token)}, now)
}

// over writes down what has lapsed, in order.
func over(l *Leases) string {
	var words []string
	for _, o := range l.Over(1 << 30) {
		words = append(words, fmt.Sprintf("%s=%d", o.key, o.token))
	}
	return strings.Join(words, " ")
}

// next is Next, -1 for none.
func next(l *Leases) raft.Time {
	if at, ok := l.Next(); ok {
		return at
	}
	return -1
}

// Hazard 27.
func TestALeaseIsOverWhenItsTimeHasPassedAndNotBefore(t *testing.T) {
	var l Leases
	same(t, "Next of none", -1, next(&l))
	l.Advance(1 << 60)
	start(&l, "door", 1, 10, 7)
	same(t, "Next", 7+10*millisecond, next(&l))
	l.Advance(7 + 10*millisecond - 1)
	same(t, "a microsecond before", "", over(&l))
	l.Advance(7 + 10*millisecond)
	same(t, "at its time", "door=1", over(&l))
	same(t, "Next afterwards", -1, next(&l))
	l.Advance(1 << 60)
	same(t, "later: still, and once", "door=1", over(&l))
	l.Stop("door")
	same(t, "when its tenure has ended", "", over(&l))
}

func TestWhatIsLeftOfLeasesIsToldAndNothingChanges(t *testing.T) {
	var l Leases
	for _, c := range []struct {
		key     string
		token   Token
		leaseMS uint32
	}{{"door", 1, 30}, {"gate", 2, 20}, {"lift", 3, 10}, {"hall", 4, 40}, {"roof", 5, 5}} {
		start(&l, c.key, c.token, c.leaseMS, 0)
	}
	l.Stop("door")
	l.Lapse("hall", 4)
	now := 7 * millisecond
	all := []LeaseTime{
		{"hall", 4, 0}, {"roof", 5, -2 * millisecond}, {"lift", 3, 3 * millisecond},
		{"gate", 2, 13 * millisecond},
	}
	for most := range 6 {
		left, more := l.Left(now, most)
		want := all[:min(most, len(all))]
		same(t, fmt.Sprintf("the first %d", most), fmt.Sprint(want), fmt.Sprint(left))
		same(t, "that there are more", most < len(all), more)
	}
	l.Advance(20 * millisecond)
	same(t, "what is over afterwards", "hall=4 roof=5 lift=3 gate=2", over(&l))
}

func TestAStoppedCountdownIsNeverOver(t *testing.T) {
	var l Leases
	start(&l, "door", 1, 10, 0)
	start(&l, "gate", 2, 20, 0)
	l.Stop("door")
	l.Stop("lift") // was never there
	same(t, "Next", 20*millisecond, next(&l))
	l.Advance(20 * millisecond)
	same(t, "over", "gate=2", over(&l))
	l.Lapse("door", 1)
	same(t, "over", "gate=2", over(&l))
}

// The end of an earlier tenure of the key is not the end of this one. (ShedLock#231.)
func TestANewTenureIsCountedFromItsOwnGrant(t *testing.T) {
	var l Leases
	start(&l, "door", 1, 10, 0)
	l.Stop("door")
	start(&l, "door", 2, 10, 9*millisecond)
	same(t, "Next", 19*millisecond, next(&l))
	l.Advance(18 * millisecond)
	same(t, "when the first one would have been over", "", over(&l))
	l.Advance(19 * millisecond)
	same(t, "when the second one is", "door=2", over(&l))
}

// It belongs to (key, token, since): a later entry that sets the lease of the same tenure starts it
// anew, also if it was over.
func TestACountdownBelongsToTheEntryThatSetTheLease(t *testing.T) {
	var l Leases
	l.Start("door", Tenure{Token: 1, LeaseMS: 10, Since: 5}, 0)
	l.Start("door", Tenure{Token: 1, LeaseMS: 10, Since: 6}, 4*millisecond)
	l.Advance(13 * millisecond)
	same(t, "over", "", over(&l))
	l.Advance(14 * millisecond)
	same(t, "over", "door=1", over(&l))
	l.Start("door", Tenure{Token: 1, LeaseMS: 10, Since: 7}, 15*millisecond)
	same(t, "over, when it was set again", "", over(&l))
	same(t, "Next", 25*millisecond, next(&l))
	l.Stop("door")
	same(t, "over", "", over(&l))

	start(&l, "lift", 9, 0, 30*millisecond)
	l.Start("door", Tenure{Token: 1, LeaseMS: 1, Since: 8}, 30*millisecond)
	l.Advance(30 * millisecond)
	l.Advance(31 * millisecond)
	l.Start("lift", Tenure{Token: 9, LeaseMS: 1, Since: 10}, 31*millisecond) // it was over before
	l.Advance(32 * millisecond)
	same(t, "in the order in which they were over last", "door=1 lift=9", over(&l))
	l.Stop("door")
	l.Stop("lift")

	l.Start("gate", Tenure{Token: 2, LeaseMS: 10, Since: 8}, 20*millisecond)
	l.Start("gate", Tenure{Token: 3, LeaseMS: 10, Since: 8}, 24*millisecond)
	same(t, "Next, of another token", 34*millisecond, next(&l))
}

func TestLeasesAreOverInTheOrderOfTheirTimesThenOfTheirTokens(t *testing.T) {
	var l Leases
	start(&l, "d", 4, 20, 0)
	start(&l, "c", 3, 10, 0)
	start(&l, "b", 2, 10, 0)
	start(&l, "a", 5, 10, 0)
	start(&l, "e", 1, 15, 0)
	l.Advance(1 << 60)
	same(t, "over", "b=2 c=3 a=5 e=1 d=4", over(&l))
}

// Countdowns that are stopped leave from among the others, from any place, and each knows its own.
func TestTheOrderSurvivesThatOthersLeaveFromAmongThem(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var l Leases
		var want []Token
		for _, i := range random.Perm(60) {
			start(&l, fmt.Sprint("k", i+1), Token(i)+1, uint32(random.IntN(20)), 0)
		}
		for _, i := range random.Perm(60)[:random.IntN(60)] {
			l.Stop(fmt.Sprint("k", i+1))
			same(t, "problem", "", misplaced(&l))
		}
		for _, c := range l.running {
			want = append(want, c.token)
		}
		slices.SortFunc(want, func(a, b Token) int {
			x, y := l.running[fmt.Sprint("k", a)], l.running[fmt.Sprint("k", b)]
			return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(a, b))
		})
		left, more := l.Left(0, 60)
		var told []Token
		for _, x := range left {
			told = append(told, x.Token)
		}
		same(t, fmt.Sprint("seed ", seed, ": told"), want, told)
		same(t, "more", false, more)
		l.Advance(20 * millisecond)
		var got []Token
		for _, o := range l.Over(60) {
			got = append(got, o.token)
		}
		same(t, fmt.Sprint("seed ", seed, ": over"), want, got)
	}
}

// misplaced says what is wrong with the alarms; "" if nothing is.
func misplaced(l *Leases) string {
	for i, c := range l.alarms {
		switch {
		case int(c.place) != i || l.running[c.key] != c || c.over:
			return fmt.Sprintf("%+v at %d", *c, i)
		case i > 0 && c.before(l.alarms[(i-1)/2]):
			return fmt.Sprintf("%+v at %d, before the one above", *c, i)
		}
	}
	if over := len(l.running) - len(l.alarms); over != l.over {
		return fmt.Sprintf("%d are over, %d counted", over, l.over)
	}
	return ""
}

// However many leases end in one moment, no moment looks at all of them: the others are found when
// those have ended. (Hazard 28.)
func TestAMomentFindsSoManyLeasesOverAndTheNextOnesTheOthers(t *testing.T) {
	var l Leases
	const all = 2*maxExpiring + 7
	for i := range Token(all) {
		start(&l, fmt.Sprint("k", i), i+1, 10, 0)
	}
	var found []Token
	for _, want := range []int{maxExpiring, maxExpiring, 7, 0} {
		l.Advance(10 * millisecond)
		l.Advance(10 * millisecond)
		same(t, "over", want, l.over)
		for _, o := range slices.Clone(l.Over(all)) {
			found = append(found, o.token)
			l.Stop(o.key)
		}
	}
	if l.lapsed != nil {
		t.Errorf("room for %d is kept when none is over", cap(l.lapsed))
	}
	if len(found) != all || !slices.IsSorted(found) {
		t.Errorf("%d were found, in the order %v", len(found), found)
	}
}

// A server whose clock stands still, or goes back, keeps its locks a little longer. Its Expire is
// late.
func TestAClockThatStandsStillEndsNoLease(t *testing.T) {
	var l Leases
	start(&l, "door", 1, 10, 100)
	for range 1000 {
		l.Advance(100)
	}
	l.Advance(0)
	same(t, "over", "", over(&l))
	same(t, "Next", 100+10*millisecond, next(&l))
}

// A value that no request could have brought in is counted like any other. (Hazard 24, etcd#14239.)
func TestAnExtremeLeaseIsCountedToo(t *testing.T) {
	var l Leases
	start(&l, "none", 1, 0, 50)
	start(&l, "most", 2, 1<<32-1, 50)
	l.Advance(50)
	same(t, "over", "none=1", over(&l))
	same(t, "Next", 50+raft.Time(1<<32-1)*millisecond, next(&l))
}

func TestLapseByHandNamesATenureAndCountsOnce(t *testing.T) {
	var l Leases
	start(&l, "door", 2, 10, 0)
	l.Lapse("door", 1)
	l.Lapse("door", 3)
	l.Lapse("gate", 2)
	l.Lapse("gate", 0)
	same(t, "over", "", over(&l))
	l.Lapse("door", 2)
	l.Lapse("door", 2)
	same(t, "over", "door=2", over(&l))
	same(t, "Next: nothing is left to wait for", -1, next(&l))
	l.Advance(1 << 60)
	same(t, "over", "door=2", over(&l))
	l.Stop("door")
	start(&l, "door", 3, 10, 0)
	same(t, "Next of the next tenure", 10*millisecond, next(&l))
}

func TestOnlyTheTenureThatEndsLeavesTheLapsed(t *testing.T) {
	var l Leases
	for i, key := range []string{"a", "b", "c"} {
		start(&l, key, Token(i)+1, 10, 0)
	}
	l.Advance(10 * millisecond)
	l.Stop("b")
	same(t, "over", "a=1 c=3", over(&l))
}

// A lock that is given back early costs nothing from then on: 100,000 of a day each, while some
// others are held. Nor is there anything left to do for them when their time has come: it might be
// the time of all.
func TestGivenBackLocksLeaveNoAlarmsBehind(t *testing.T) {
	var l Leases
	const held = 20
	for i := range Token(held) {
		start(&l, fmt.Sprint("held", i), i+1, MaxLeaseMS, 0)
	}
	for i := range Token(100_000) {
		now := raft.Time(i) * millisecond
		start(&l, "door", held+i+1, MaxLeaseMS, now)
		l.Stop("door")
		if len(l.alarms) != held || len(l.running) != held {
			t.Fatalf("%d alarms of %d that are held", len(l.alarms), len(l.running))
		}
	}
	if cap(l.alarms) > 2*(held+1) || l.over != 0 || len(l.lapsed) > 0 {
		t.Errorf("room for %d alarms, %d over, %d lapsed", cap(l.alarms), l.over, len(l.lapsed))
	}
}

// naive counts leases the simple way: a list of what runs.
type naive struct {
	runs   []naiveLease
	lapsed []string
}

type naiveLease struct {
	at    raft.Time
	key   string
	token Token
}

func (n *naive) stop(key string) {
	n.runs = slices.DeleteFunc(n.runs, func(r naiveLease) bool { return r.key == key })
	its := func(s string) bool { return strings.HasPrefix(s, key+"=") }
	n.lapsed = slices.DeleteFunc(n.lapsed, its)
}

func (n *naive) lapse(due func(naiveLease) bool) {
	slices.SortFunc(n.runs, func(a, b naiveLease) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.token, b.token))
	})
	for _, r := range n.runs {
		if due(r) {
			n.lapsed = append(n.lapsed, fmt.Sprintf("%s=%d", r.key, r.token))
		}
	}
	n.runs = slices.DeleteFunc(n.runs, due)
}

func (n *naive) next() raft.Time {
	if len(n.runs) == 0 {
		return -1
	}
	return slices.MinFunc(n.runs, func(a, b naiveLease) int { return cmp.Compare(a.at, b.at) }).at
}

func TestLeasesDoWhatAListWouldDo(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var l Leases
		var n naive
		now, token, keys := raft.Time(0), Token(0), 1+random.IntN(60)
		longest, moves := 40, 2 // and with leases so long that ended ones pile up
		if seed%2 == 0 {
			longest, moves = 400, 1
		}
		for step := range 400 {
			key := fmt.Sprint("k", random.IntN(keys))
			switch random.IntN(8) {
			case 0, 1, 2: // a grant
				l.Stop(key)
				n.stop(key)
				token++
				lease := uint32(random.IntN(longest))
				start(&l, key, token, lease, now)
				n.runs = append(n.runs, naiveLease{now + raft.Time(lease)*millisecond, key, token})
			case 3, 4: // an end
				l.Stop(key)
				n.stop(key)
			case 5:
				if c, ok := l.running[key]; ok {
					l.Lapse(key, c.token)
				}
				n.lapse(func(r naiveLease) bool { return r.key == key })
			case 6, 7:
				now += raft.Time(random.IntN(5*moves)) * millisecond
				l.Advance(now)
				n.lapse(func(r naiveLease) bool { return r.at <= now })
			}
			same(t, "problem", "", misplaced(&l))
			got, want := over(&l), strings.Join(n.lapsed, " ")
			if got != want || next(&l) != n.next() {
				t.Fatalf("seed %d, step %d: over %s, want %s; next at %d, want %d",
					seed, step, got, want, next(&l), n.next())
			}
		}
	}
}

func TestACloneOfLeasesIsIndependent(t *testing.T) {
	var l Leases
	for i := range Token(20) {
		start(&l, fmt.Sprint("k", i), i+1, 10+uint32(i), 0)
	}
	l.Advance(12 * millisecond)
	a, b := l.clone(), l.clone()
	a.Advance(20 * millisecond)
	a.Stop("k0")
	a.Stop("k15")
	start(&a, "other", 21, 1, 20*millisecond)
	a.Advance(1 << 60)
	same(t, "over in the original", "k0=1 k1=2 k2=3", over(&l))
	same(t, "Next in the original", 13*millisecond, next(&l))
	l.Advance(1 << 60)
	b.Advance(1 << 60)
	same(t, "over in another clone", over(&l), over(&b))
	same(t, "how many", 20, b.over)
}
