package fsm

import (
	"fmt"
	"testing"

	"ticketing/raft"
)

// A client may leave at any moment before its answer is handed to it. It gets none, and nothing
// stays behind: no place in a queue, and no lock. (Hazards 5, 32, etcd#18082.)
func TestAClientThatLeavesGetsNoAnswerAndLeavesNothingBehind(t *testing.T) {
	t.Run("before the leader has looked at its request", func(t *testing.T) {
		c := newCluster(t, 3, Rules{})
		c.campaign(1)
		a, b := c.ask(1, acquire(1, "door")), c.ask(1, acquire(2, "door"))
		c.disconnect(a)
		c.settle()
		same(t, "answers", ", Granted{1}", c.answers(a, b))
		same(t, "history", []string{"grant door -> Granted{1}"}, c.history(2))
	})
	t.Run("in the same moment", func(t *testing.T) {
		c := leading(t, Rules{})
		a, ask := c.input(1, acquire(1, "door"))
		c.do(1, ask, c.gone(a))
		c.settle()
		c.tables("")
		same(t, "proposed", 0, len(c.node(1).proposed))
	})
	t.Run("while it waits", func(t *testing.T) {
		c := held1(t, Rules{})
		b, d := c.ask(1, acquire(2, "door")), c.ask(1, acquire(3, "door"))
		e := c.ask(1, acquire(4, "door"))
		c.disconnect(d)
		c.disconnect(b)
		c.ask(1, release(1, "door", 1))
		c.settle()
		same(t, "answers", ", , Granted{2}", c.answers(b, d, e))
		same(t, "history", []string{"grant door -> Granted{1}", "release door 1 -> Released",
			"grant door -> Granted{2}"}, c.history(2))
	})
	t.Run("while it waits alone", func(t *testing.T) {
		c := held1(t, Rules{})
		c.disconnect(c.ask(1, acquire(2, "door")))
		c.ask(1, release(1, "door", 1))
		c.settle()
		c.tables("")
		b := c.ask(1, try(3, "door"))
		c.settle()
		same(t, "a try", "Granted{2}", c.answer(b))
	})
	t.Run("when its Grant is in the log", func(t *testing.T) {
		c := leading(t, Rules{})
		a, b := c.ask(1, acquire(1, "door")), c.ask(1, acquire(2, "door"))
		c.disconnect(a)
		c.settle()
		same(t, "answers", ", Granted{2}", c.answers(a, b))
		same(t, "proposed", []string{"grant door for client", "release door 1 for cleanup",
			"grant door for client"}, c.proposals(1, 0))
		same(t, "history", []string{"grant door -> Granted{1}", "release door 1 -> Released",
			"grant door -> Granted{2}"}, c.history(3))
		same(t, "meant", 1, c.node(1).proposed[1].Meant)
		same(t, "on behalf of", "- release 1 door", c.node(1).proposed[1].Envelope.String())
	})
	t.Run("when its Release is in the log", func(t *testing.T) {
		c := held1(t, Rules{})
		b := c.ask(1, acquire(2, "door"))
		c.disconnect(c.ask(1, release(1, "door", 1)))
		c.settle()
		same(t, "B", "Granted{2}", c.answer(b))
		c.tables("door=2")
	})
	t.Run("when its answer is not taken yet", func(t *testing.T) {
		c := held1(t, Rules{})
		a, askFollower := c.input(2, acquire(2, "door"))
		b, askToo := c.input(2, acquire(3, "door"))
		c.do(2, askFollower, askToo, c.gone(a))
		same(t, "at a follower", ", not leader, ask 1", c.answers(a, b))
		bad := acquire(2, "")
		d, askBadly := c.input(1, bad)
		c.do(1, askBadly, c.gone(d))
		same(t, "of a bad request", "", c.answer(d))
	})
	t.Run("when its answer is out", func(t *testing.T) {
		c := held1(t, Rules{})
		made := c.calls[0]
		c.do(1, func(r *Replica) { r.Disconnect(made.Request) })
		c.do(2, func(r *Replica) { r.Disconnect(made.Request) })
		c.settle()
		c.tables("door=1") // it had its answer
	})
	t.Run("when its leader was deposed", func(t *testing.T) {
		c := leading(t, Rules{})
		c.isolate(1)
		a := c.ask(1, acquire(1, "door"))
		c.disconnect(a)
		c.elect(2)
		c.heal()
		c.do(2, (*Replica).HeartbeatTimeout)
		c.settle()
		c.tables("")
	})
	t.Run("and another stays", func(t *testing.T) {
		c := leading(t, Rules{})
		a, b := c.ask(1, acquire(1, "door")), c.ask(1, acquire(1, "gate"))
		c.disconnect(b)
		c.settle()
		same(t, "answers", "Granted{1}, ", c.answers(a, b))
		c.tables("door=1")
	})
}

// Nothing is proposed for one that waits in the queue, and nobody knows what becomes of an entry.
func TestAReplicaThatRetiresAnswersAllWhoWait(t *testing.T) {
	c := newCluster(t, 3, Rules{})
	c.elect(1)
	held := c.ask(1, acquire(1, "door"))
	c.settle()
	waits := c.ask(1, acquire(2, "door"))
	logged := c.ask(1, acquire(3, "gate"))
	c.do(1, (*Replica).Retire)
	same(t, "the answers", []string{"Granted{1}", "not leader, ask 0", "unknown"},
		[]string{c.answer(held), c.answer(waits), c.answer(logged)})
	c.do(2, (*Replica).Retire) // does not lead: nobody waits there
	c.settle()
	n := len(c.node(1).proposed)
	c.tick(1, 10*second) // it still leads, and looks at no lease any more
	same(t, "role", raft.Leader, c.status(1).Role)
	same(t, "proposed afterwards", 0, len(c.proposals(1, n)))
}

// The clean-up waits for nobody who has come back: the lock would be withdrawn from under its
// holder.
//
//spec:test L4
func TestAClientThatComesBackKeepsItsGrant(t *testing.T) {
	c := leading(t, Rules{})
	a := c.ask(1, acquire(1, "door"))
	c.disconnect(a)
	b := c.ask(1, c.again(a))
	c.settle()
	same(t, "answers", ", Granted{1}", c.answers(a, b))
	same(t, "history", []string{"grant door -> Granted{1}"}, c.history(2))

	// And if it goes again, it is gone.
	d := c.ask(1, acquire(1, "gate"))
	c.disconnect(d)
	c.disconnect(c.ask(1, c.again(d)))
	c.settle()
	c.tables("door=1")
}

// A client that asks again, on another connection, takes the place of its first call, wherever that
// stands. The reply names the newest attempt that the leader had when it appended the Grant: the
// client counts its lease from before it sent that one.
func TestTheNewestCallOfARequestIsAnsweredAndTheOthersAreSuperseded(t *testing.T) {
	c := newCluster(t, 3, Rules{})
	c.campaign(1)
	a := c.ask(1, acquire(1, "door"))
	b := c.ask(1, c.again(a))
	same(t, "while the leader is not ready", ", ", c.answers(a, b))
	c.held = func(m raft.Message) bool { return carries(m, Grant) }
	c.settle()
	same(t, "then", "superseded, ", c.answers(a, b))
	d := c.ask(1, c.again(b))
	same(t, "when the Grant is in the log", "superseded, superseded, ", c.answers(a, b, d))
	c.held = nil
	c.settle()
	same(t, "granted", granted(d, 1, 1), c.replies(d))

	e := c.ask(1, acquire(2, "door"))
	f := c.ask(1, c.again(e))
	g := c.ask(1, c.again(f))
	same(t, "waiting", "superseded, superseded, ", c.answers(e, f, g))
	c.held = func(m raft.Message) bool { return carries(m, Grant) }
	h := c.ask(1, release(1, "door", 1))
	i := c.ask(1, c.again(g))
	j := c.ask(1, c.again(h))
	same(t, "in the log", "superseded, superseded", c.answers(g, h))
	c.held = nil
	c.settle()
	same(t, "granted", granted(i, 2, 2), c.replies(i))
	same(t, "released", []Reply{{Call: j, Result: Result{Kind: Released}}}, c.replies(j))
	same(t, "grants", 2, c.counts["Granted"])
}

// Rejected, it waits, and is granted later on the newest attempt of that moment.
func TestARejectedGrantThatWasSentAgainIsProposedOnTheNewestAttempt(t *testing.T) {
	c := held1(t, Rules{NoGate: true})
	a := c.ask(1, acquire(2, "door"))
	b := c.ask(1, c.again(a))
	c.settle()
	same(t, "answers", "superseded, ", c.answers(a, b))
	c.ask(1, release(1, "door", 1))
	c.settle()
	same(t, "granted", granted(b, 2, 1), c.replies(b))
}

// Two requests are the same if client and number are. A client 0 is nobody, twice.
func TestOnlyTheSameRequestIsTheSame(t *testing.T) {
	type pair struct{ client, seq [2]uint64 }
	for _, p := range []pair{
		{[2]uint64{1, 1}, [2]uint64{5, 6}},
		{[2]uint64{1, 2}, [2]uint64{5, 5}},
		{[2]uint64{0, 0}, [2]uint64{5, 5}},
	} {
		for _, wait := range []bool{true, false} {
			t.Run(fmt.Sprint(p, wait), func(t *testing.T) {
				c := leading(t, Rules{NoGate: !wait})
				if wait {
					c.ask(1, acquire(9, "door"))
					c.settle()
				}
				var calls []uint64
				for i := range 2 {
					q := acquire(ClientID(p.client[i]), "door")
					q.Seq = p.seq[i]
					calls = append(calls, c.ask(1, q))
				}
				c.settle()
				for range 3 {
					c.tick(1, 10*second)
					c.settle()
				}
				for _, call := range calls {
					same(t, "kind", Granted, c.replies(call)[0].Result.Kind)
				}
			})
		}
	}
}
