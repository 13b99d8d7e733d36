package fsm

import (
	"fmt"
	"testing"

	"ticketing/raft"
)

// Hazard 25, etcd#14758: an Extend is refused while the tenure's Expire is in the leader's log,
// and at once. What is in that log may have been put there by an earlier leader, which a new one can
// only meet if it does not wait for its own first entry.
//
//spec:test L6
func TestAnExtendIsRefusedWhileAnExpireOfTheTenureIsInTheLog(t *testing.T) {
	t.Run("its own", func(t *testing.T) {
		c := held1(t, Rules{})
		c.held = appends(1)
		c.tick(1, 10*second)
		n := len(c.node(1).proposed)
		a := c.ask(1, extend(1, "door", 1))
		same(t, "at once", "expiring", c.answer(a))
		same(t, "proposed", 0, len(c.proposals(1, n)))
		b := c.ask(1, extend(1, "gate", 1)) // another key's is none of it
		c.held = nil
		c.settle()
		d := c.ask(1, extend(1, "door", 1))
		c.settle()
		same(t, "of the wrong key, and afterwards", "NotFound, NotFound", c.answers(b, d))
		c.tables("")
	})
	t.Run("its own, by another name", func(t *testing.T) {
		c := held1(t, Rules{NoExpireToken: true})
		c.held = appends(1)
		c.tick(1, 10*second)
		same(t, "at once", "expiring", c.answer(c.ask(1, extend(1, "door", 1))))
		c.held = nil
		c.settle()
		same(t, "counted", 0, len(c.node(1).leader.ending))
	})
	t.Run("in the same moment", func(t *testing.T) {
		c := held1(t, Rules{})
		a, ask := c.input(1, extend(1, "door", 1))
		n := c.node(1)
		n.clock += 10 * second
		c.do(1, func(r *Replica) { r.Tick(n.clock) }, ask)
		same(t, "the Expire came first", "expiring", c.answer(a))
	})
	for _, noWait := range []bool{false, true} {
		t.Run(fmt.Sprintf("an earlier leader's, wait %t", !noWait), func(t *testing.T) {
			c := held1(t, Rules{NoNoopWait: noWait})
			c.held = func(m raft.Message) bool { return m.To == 1 }
			c.tick(1, 10*second)
			c.settle()
			c.held = nil
			c.campaign(2)
			same(t, "its table", "door=1", holders(c.node(2).Table()))
			a := c.ask(2, extend(1, "door", 1))
			same(t, "at once", map[bool]string{false: "", true: "expiring"}[noWait], c.answer(a))
			c.settle()
			same(t, "then", map[bool]string{false: "NotFound", true: "expiring"}[noWait], c.answer(a))
			c.tables("")
		})
	}
}

// The other direction: while an Extend is on its way, no Expire is proposed, whoever appended it.
// When it has come, the lease runs anew; when it came to nothing, the Expire follows.
//
//spec:test L6
func TestNoExpireIsProposedWhileAnExtendOfTheTenureIsInTheLog(t *testing.T) {
	t.Run("its own", func(t *testing.T) {
		c := held1(t, Rules{})
		c.tick(1, 9*second)
		c.held = appends(1)
		a := c.ask(1, extend(1, "door", 1))
		n := len(c.node(1).proposed)
		c.tick(1, 2*second)
		same(t, "proposed", 0, len(c.proposals(1, n)))
		c.held = nil
		c.settle()
		same(t, "A", "Extended", c.answer(a))
		c.tick(1, 10*second-1)
		c.settle()
		c.tables("door=1")
		c.tick(1, 1)
		c.settle()
		c.tables("")
		same(t, "results", map[string]int{"Noop": 1, "Granted": 1, "Extended": 1, "Expired{true}": 1}, c.counts)
	})
	t.Run("one that comes to nothing", func(t *testing.T) {
		c := held1(t, Rules{})
		c.held = appends(1)
		a := c.ask(1, extend(777, "door", 1)) // there is no such session
		n := len(c.node(1).proposed)
		c.tick(1, 11*second)
		same(t, "proposed", 0, len(c.proposals(1, n)))
		c.held = nil
		c.settle()
		same(t, "A", "SessionUnknown", c.answer(a))
		same(t, "proposed then", []string{"expire door 1 for lease"}, c.proposals(1, n))
		c.tables("")
	})
	t.Run("one that was carried out before", func(t *testing.T) {
		c := held1(t, Rules{})
		a := c.ask(1, extend(1, "door", 1))
		c.settle()
		c.tick(1, 9*second)
		c.held = appends(1)
		again := c.ask(1, c.again(a))
		c.tick(1, second)
		c.held = nil
		c.settle() // told again, it sets no lease
		same(t, "answers", "Extended, Extended again", c.answers(a, again))
		same(t, "attempt", 0, c.replies(again)[0].Attempt)
		c.tables("")
	})
	t.Run("of another key", func(t *testing.T) {
		c := held1(t, Rules{})
		c.held = appends(1)
		c.ask(1, extend(2, "gate", 1)) // so nobody can keep another's lock alive by mistake
		n := len(c.node(1).proposed)
		c.tick(1, 10*second)
		same(t, "proposed", []string{"expire door 1 for lease"}, c.proposals(1, n))
		c.held = nil
		c.settle()
		c.tables("")
	})
	for _, noWait := range []bool{false, true} {
		t.Run(fmt.Sprintf("an earlier leader's, wait %t", !noWait), func(t *testing.T) {
			c := held1(t, Rules{NoNoopWait: noWait})
			c.held = func(m raft.Message) bool { return m.To == 1 }
			c.ask(1, extend(1, "door", 1))
			c.settle()
			c.held = nil
			c.campaign(2)
			n := len(c.node(2).proposed)
			c.lapse(2, "door", 1)
			same(t, "proposed", 0, len(c.proposals(2, n)))
			c.settle()
			same(t, "extended", 1, c.counts["Extended"])
			c.tables("door=1")
			c.tick(2, 10*second)
			c.settle()
			c.tables("")
		})
	}
}

// Hazard 23, etcd#15247: both orders in one log, since two leaders wrote it. Behind the Expire the
// Extend finds nothing; before it, it does not help: the token guards the next tenure from an Expire,
// not the same one that has been extended. That is what L6 is for, and where it ends.
func TestExtendAndExpireInBothOrders(t *testing.T) {
	for _, row := range []struct {
		first, second Kind
		want          []string
	}{
		{Extend, Expire, []string{"extend door 1 -> Extended", "expire door 1 -> Expired{true}"}},
		{Expire, Extend, []string{"expire door 1 -> Expired{true}", "extend door 1 -> NotFound"}},
	} {
		var table Table
		table.Apply(1, Envelope{Command: grantDoor})
		var got []string
		for i, kind := range []Kind{row.first, row.second} {
			e := Envelope{Command: Command{Kind: kind, Key: "door", Token: 1}}
			got = append(got, brief(e)+" -> "+table.Apply(raft.Index(i)+2, e).String())
		}
		same(t, "history", row.want, got)
		same(t, "held", 0, table.Len())
	}
}

// An entry that a deposed leader alone has is lost with it, and with it what it would have done. Both
// ways the next leader counts what it has applied. (Hazards 22, 23; etcd#10686.)
//
//spec:test L6
func TestWhatIsLostWithItsLeaderNeitherLengthensALeaseNorEndsIt(t *testing.T) {
	t.Run("an Extend", func(t *testing.T) {
		c := held1(t, Rules{})
		c.isolate(1)
		a := c.ask(1, extend(1, "door", 1))
		c.elect(2)
		n := len(c.node(2).proposed)
		c.tick(2, 10*second-1)
		same(t, "proposed a moment before", 0, len(c.proposals(2, n)))
		c.tick(2, 1)
		same(t, "proposed", []string{"expire door 1 for lease"}, c.proposals(2, n))
		c.settle()
		c.heal()
		c.do(2, (*Replica).HeartbeatTimeout)
		c.settle()
		same(t, "A does not know, and is not told that it was extended", "unknown", c.answer(a))
		same(t, "extended", 0, c.counts["Extended"])
		c.tables("")
	})
	t.Run("an Expire", func(t *testing.T) {
		c := held1(t, Rules{})
		c.isolate(1)
		c.tick(1, 10*second)
		same(t, "appended", 2, len(c.node(1).proposed))
		c.elect(2)
		c.tick(2, 9*second)
		a := c.ask(2, extend(1, "door", 1))
		c.settle()
		same(t, "A, at a leader that knows of no Expire", "Extended", c.answer(a))
		c.heal()
		c.do(2, (*Replica).HeartbeatTimeout)
		c.settle()
		c.tick(2, 10*second-1)
		c.settle()
		c.tables("door=1")
		c.elect(1) // whose clock had ended the first lease, and began to count anew with the Extend
		c.tick(1, 10*second-1)
		c.settle()
		c.tables("door=1")
		c.tick(1, 1)
		c.settle()
		c.tables("")
		same(t, "expired", 1, c.counts["Expired{true}"])
	})
}

// One that the new leader's log holds is carried out before it looks at any lease, in either order.
func TestWhatSurvivesItsLeaderIsCarriedOutInTheOrderOfTheLog(t *testing.T) {
	c := held1(t, Rules{})
	c.held = func(m raft.Message) bool { return m.To == 1 }
	c.tick(1, 9*second)
	a := c.ask(1, extend(1, "door", 1))
	c.settle()
	c.held = nil
	c.drop(func(m raft.Message) bool { return m.To == 1 })
	c.tick(2, 10*second) // by its clock the first lease is over
	c.elect(2)
	c.tick(2, 10*second-1)
	c.settle()
	same(t, "extended, and not expired", map[string]int{"Noop": 2, "Granted": 1, "Extended": 1}, c.counts)
	same(t, "A", "unknown", c.answer(a))
	again := c.ask(2, c.again(a))
	c.settle()
	same(t, "A, when it asks again", "Extended again", c.answer(again))
	c.tick(2, 1)
	c.settle()
	c.tables("")
}

// Hazard 19, etcd#9888: as many elections as you like inside one lease do not lengthen it, since
// each server counts from its own apply; nor does a follower's countdown miss an Extend
// (etcd#17132, hazelcast#5853).
func TestFiftyElectionsInsideOneLeaseDoNotLengthenIt(t *testing.T) {
	c := held1(t, Rules{})
	a := c.ask(1, extend(1, "door", 1))
	c.settle()
	same(t, "A", "Extended", c.answer(a))
	for i := range 50 {
		for id := range raft.ServerID(3) {
			c.tick(id+1, 10*second/50)
		}
		c.settle()
		if i < 48 {
			c.tables("door=1")
			c.elect(raft.ServerID(i%3 + 1))
		}
	}
	c.tables("")
	same(t, "expired", 1, c.counts["Expired{true}"])
}

// redisson#3636: an Extend creates nothing, whatever has become of the lock.
func TestAnExtendAfterTheEndOfItsTenureFindsNothing(t *testing.T) {
	c := held1(t, Rules{})
	c.ask(1, release(1, "door", 1))
	a := c.ask(1, extend(1, "door", 1))
	b := c.ask(1, acquire(2, "door"))
	c.settle()
	d := c.ask(1, extend(1, "door", 1))
	c.settle()
	same(t, "answers", "NotFound, Granted{2}, NotFound", c.answers(a, b, d))
	c.tick(1, 10*second)
	c.settle()
	c.tables("")
}
