package fsm

import (
	"fmt"
	"strings"
	"testing"

	"ticketing/raft"
)

// What docs/locks.md lists and no other test is about.

// Hazard 7. Who asks is a label for people. What entitles to a Release is the token, whoever has it.
func TestAnOwnerIsALabelAndNoRight(t *testing.T) {
	c := leading(t, Rules{})
	q := acquire(1, "door")
	q.Owner = "A"
	c.ask(1, q)
	c.settle()
	tenure, _ := c.node(3).Table().Holder("door")
	same(t, "owner", "A", tenure.Owner)
	for _, row := range []struct {
		token Token
		want  string
	}{{2, "NotFound"}, {1, "Released"}} {
		q := release(2, "door", row.token)
		q.Owner = "A" // it may say so
		if row.token == 1 {
			q.Owner = "B"
		}
		a := c.ask(1, q)
		c.settle()
		same(t, fmt.Sprint("a Release by ", q.Owner, " with token ", row.token), row.want, c.answer(a))
	}
}

// Hazard 13. A Granted need not tell its lease: the table has the one that was asked for, or the
// request was refused. None is shortened on the way.
func TestALeaseIsTheOneThatWasAskedForOrNone(t *testing.T) {
	for _, ms := range []int64{1, 1234, MaxLeaseMS} {
		c := leading(t, Rules{})
		q := acquire(1, "door")
		q.LeaseMS = ms
		c.ask(1, q)
		c.settle()
		tenure, _ := c.node(2).Table().Holder("door")
		same(t, "lease", uint32(ms), tenure.LeaseMS)
	}
	// Hazard 24, etcd#9374: nor does a mistaken unit, or too large a number, come out as another one.
	for _, ms := range []int64{0, -1, MaxLeaseMS + 1, 1 << 32, 1<<32 + 1000, 1<<63 - 1, -1 << 63} {
		for _, kind := range []Kind{Grant, Extend} {
			status, err := ask(t, Request{Client: 1, Seq: 1, Lowest: 1, Kind: kind, Key: "k", Token: 1, LeaseMS: ms})
			if status != Invalid || err == nil {
				t.Errorf("%s for %dms: %s, %v", kind, ms, status, err)
			}
		}
	}
}

// Hazard 33, etcd#6278. A key is its bytes and nothing else: none is the beginning of another, or the
// other's directory, or the same in another case.
func TestKeysThatLookAlikeAreDifferentLocks(t *testing.T) {
	c := leading(t, Rules{})
	keys := []string{"a", "a/", "a/b", "aa", "A", "a ", " a", "ä", "a\u0308", "a.b", "*", "a*",
		strings.Repeat("a", maxKey)}
	for i, key := range keys {
		a := c.ask(1, try(ClientID(i+1), key))
		c.settle()
		same(t, fmt.Sprintf("%q", key), fmt.Sprintf("Granted{%d}", i+1), c.answer(a))
	}
	c.ask(1, release(1, "a", 1))
	c.settle()
	same(t, "held when one of them is released", len(keys)-1, c.node(2).Table().Len())
}

// hold lets clients hold so many keys, whose leases end together.
func (c *cluster) hold(keys int) {
	var inputs []func(*Replica)
	for i := range keys {
		_, ask := c.input(1, acquire(0, fmt.Sprint("k", i)))
		inputs = append(inputs, ask)
	}
	c.do(1, inputs...)
	c.settle()
}

// Hazard 28. Many leases that end together do not stand before everything else: a leader has so many
// Expires in its log at once, and who asks in between is not behind all of them. None is forgotten
// (rustfs#5939), and none proposed twice.
func TestAStormOfExpiriesLetsOthersThrough(t *testing.T) {
	c := leading(t, Rules{})
	const held = 3*maxExpiring + 10
	c.hold(held)
	same(t, "held", held, c.node(1).Table().Len())

	n := len(c.node(1).proposed)
	c.held = appends(1)
	c.tick(1, 10*second)
	same(t, "Expires at once", maxExpiring, len(c.proposals(1, n)))
	c.tick(1, 10*second)
	same(t, "and not more while those are on their way", maxExpiring, len(c.proposals(1, n)))
	a := c.ask(1, acquire(0, "gate"))
	c.held = nil
	c.settle()
	same(t, "the one that asked", fmt.Sprintf("Granted{%d}", held+1), c.answer(a))
	ahead := 0
	for _, p := range c.node(1).proposed[n:] {
		if p.Envelope.Key == "gate" {
			break
		}
		ahead++
	}
	same(t, "Expires before it", maxExpiring, ahead)
	c.tables("gate=" + fmt.Sprint(held+1))
	same(t, "expired", map[string]int{"Noop": 1, "Granted": held + 1, "Expired{true}": held}, c.counts)
}

// Hazard 28. A leader that is new to it finds them all over, and does the same.
func TestANewLeaderMeetsAStormTheSameWay(t *testing.T) {
	c := leading(t, Rules{})
	const held = 2*maxExpiring + 10
	c.hold(held)
	c.tick(2, 10*second)
	c.campaign(2)
	last := c.status(2).LastIndex
	c.held = func(m raft.Message) bool { // what it appends from now on
		a, ok := m.Body.(raft.AppendEntries)
		return ok && a.PrevLogIndex+raft.Index(len(a.Entries)) > last
	}
	n := len(c.node(2).proposed)
	c.settle()
	same(t, "Expires at once", maxExpiring, len(c.proposals(2, n)))
	c.held = nil
	c.settle()
	c.tables("")
	same(t, "expired", held, c.counts["Expired{true}"])
}

// Hazard 28. Nor does it matter that they were declared over by hand.
func TestALeaderHasSoManyExpiresInItsLogAndNoMore(t *testing.T) {
	c := leading(t, Rules{})
	const held = maxExpiring + 10
	var inputs, lapses []func(*Replica)
	for i := range held {
		_, ask := c.input(1, acquire(0, fmt.Sprint("k", i)))
		inputs = append(inputs, ask)
		lapses = append(lapses, func(r *Replica) { r.LeaseTimeout(fmt.Sprint("k", i), Token(i+1)) })
	}
	c.do(1, inputs...)
	c.settle()
	for i := range held {
		c.byHand(c.node(1), Token(i+1))
	}
	c.held = appends(1)
	n := len(c.node(1).proposed)
	c.do(1, lapses...)
	same(t, "proposed", maxExpiring, len(c.proposals(1, n)))
	c.held = nil
	c.settle()
	c.tables("")
}
