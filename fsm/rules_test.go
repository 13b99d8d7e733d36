package fsm

import (
	"fmt"
	"testing"

	"ticketing/raft"
)

// lagging is a cluster whose new leader, server 2, has a log that ends A's tenure and begins B's,
// and a table that has applied neither (L17). It restarted, and all it has heard since is an old
// heartbeat, from before the end of A's tenure. Its own start-of-term entry and all that follows is
// still on its way.
func lagging(t *testing.T, rules Rules, change ...func(*Config)) *cluster {
	t.Helper()
	c := held1(t, rules, change...)
	b := c.ask(1, acquire(2, "door"))
	old := func(m raft.Message) bool {
		a, ok := m.Body.(raft.AppendEntries)
		return ok && m.From == 1 && m.To == 2 && a.LeaderCommit == 2 && len(a.Entries) == 0
	}
	c.held = old
	c.do(1, (*Replica).HeartbeatTimeout)
	c.tick(1, 10*second) // Expire, and B's Grant
	c.settle()
	same(t, "B", "Granted{2}", c.answer(b))
	c.crash(2)
	c.restart(2)
	c.held = func(m raft.Message) bool { return !old(m) }
	c.settle()
	c.held = nil
	c.drop(appends(1))
	c.campaign(2)
	same(t, "table of the new leader", "door=1", holders(c.node(2).Table()))
	last := c.node(2).Core().Entries(4, 4)[0]
	same(t, "last entry but its own", `2.1-2 "" grant 10000 door`, string(last.Command))
	return c
}

// L17. Its timer fires for a tenure that is over, and a client asks: neither is looked at before.
// (Hazard 21.)
//
//spec:test L1
func TestANewLeaderActsOnlyWhenItsOwnFirstEntryIsApplied(t *testing.T) {
	for _, rules := range []Rules{{}, {NoExpireToken: true}} {
		for name, change := range ways {
			t.Run(fmt.Sprintf("%+v %s", rules, name), func(t *testing.T) {
				c := lagging(t, rules, change)
				n := len(c.node(2).proposed)
				c.lapse(2, "door", 1)
				c.tick(2, 10*second)
				a, b := c.ask(2, try(3, "door")), c.ask(2, acquire(3, "gate"))
				var none []string
				same(t, "proposed before", none, c.proposals(2, n))
				c.settle()
				same(t, "answer about the free key", "Granted{3}", c.answer(b))
				same(t, "answer about the held key", "held", c.answer(a))
				same(t, "proposed after", []string{"grant gate for client"}, c.proposals(2, n))
				c.tables("door=2 gate=3")
				same(t, "stolen", none, c.stolen)
				c.tick(2, 10*second) // now B's lease is over here as well
				c.settle()
				c.tables("")
			})
		}
	}
}

// Without the wait it proposes what it should not. The token in the Expire makes that harmless.
// With the bare Release in its place B loses its lock, whether Grants are pipelined or not.
func TestWithoutTheWaitALaggingLeaderProposesALateExpire(t *testing.T) {
	for name, change := range ways {
		for _, row := range []struct {
			noToken bool
			late    string
			held    string
			stolen  []string
		}{
			{false, "expire door 1 -> Expired{false}", "door=2", nil},
			{true, "release door 0 -> Released", "",
				[]string{"release door 0 for lease, meant for 1, removed 2"}},
		} {
			t.Run(name, func(t *testing.T) {
				c := lagging(t, Rules{NoNoopWait: true, NoExpireToken: row.noToken}, change)
				c.lapse(2, "door", 1)
				c.settle()
				history := c.history(3)
				same(t, "last applied", row.late, history[len(history)-1])
				same(t, "stolen", row.stolen, c.stolen)
				c.tables(row.held)
			})
		}
	}
}

// What a new leader's log holds beyond its table is part of the state that it decides on. (With the
// wait, it has applied all that before it decides anything.)
func TestWithoutTheWaitANewLeaderStillDecidesOnItsWholeLog(t *testing.T) {
	for _, row := range []struct {
		end    func(c *cluster)
		answer string
	}{
		{func(c *cluster) { c.tick(1, 10*second) }, "Granted{2}"},
		{func(c *cluster) { c.ask(1, release(1, "door", 1)) }, "Granted{2}"},
		{func(c *cluster) { c.ask(1, release(1, "door", 9)) }, "held"},
	} {
		c := held1(t, Rules{NoNoopWait: true})
		c.held = func(m raft.Message) bool { return m.To == 1 }
		row.end(c)
		c.settle()
		c.held = nil
		c.campaign(2)
		same(t, "table of the new leader", "door=1", holders(c.node(2).Table()))
		b := c.ask(2, try(2, "door"))
		c.settle()
		same(t, "B", row.answer, c.answer(b))
	}
}

// received is a message as an input.
func received(t *testing.T, m raft.Message) func(*Replica) {
	return func(r *Replica) {
		if err := r.Receive(m); err != nil {
			t.Error(err)
		}
	}
}

// A leader is not ready because something is applied, it must be its own first entry. Here it
// learns that an earlier one is committed in the same moment in which it is elected.
//
//spec:test L1
func TestAnotherEntryDoesNotMakeALeaderReady(t *testing.T) {
	c := leading(t, Rules{})
	c.held = func(m raft.Message) bool {
		a, ok := m.Body.(raft.AppendEntries)
		return ok && m.To == 2 && len(a.Entries) == 0
	}
	c.ask(1, acquire(1, "door"))
	c.settle()
	c.tables3(t, map[raft.ServerID]string{1: "door=1", 2: "", 3: "door=1"})
	news := c.wire[0]
	c.isolate(2) // this test speaks for the others
	term := c.status(2).Term + 1
	vote := func(from raft.ServerID) func(*Replica) {
		return received(t, raft.Message{From: from, To: 2, Term: term,
			Body: raft.RequestVoteReply{RequestTerm: term, VoteGranted: true}})
	}
	c.do(2, received(t, news), (*Replica).ElectionTimeout, vote(1), vote(3))
	same(t, "role", raft.Leader, c.status(2).Role)
	c.tables("door=1")
	c.lapse(2, "door", 1)
	same(t, "proposed", 0, len(c.node(2).proposed))
	c.heal()
	c.do(2, (*Replica).HeartbeatTimeout)
	c.settle()
	c.tables("")
}

// L01, L02. All that it takes is a slow commit: A's Release and B's Grant are in the leader's log,
// A's lease runs out on its clock, and an Expire is appended behind them. (Hazard 11.)
//
//spec:test Expire.Token
func TestALateExpireDoesNotRemoveAFreshLock(t *testing.T) {
	for _, row := range []struct {
		rules  Rules
		late   string
		held   string
		stolen []string
	}{
		{Rules{}, "expire door 1 -> Expired{false}", "door=2", nil},
		{Rules{NoReleaseToken: true}, "expire door 1 -> Expired{false}", "door=2", nil},
		{Rules{NoExpireToken: true}, "release door 0 -> Released", "",
			[]string{"release door 0 for lease, meant for 1, removed 2"}},
	} {
		t.Run(fmt.Sprintf("%+v", row.rules), func(t *testing.T) {
			c := held1(t, row.rules)
			b := c.ask(1, acquire(2, "door"))
			c.settle()
			n := len(c.node(1).proposed)
			c.held = appends(1)
			a := c.ask(1, release(1, "door", 1))
			c.tick(1, 10*second)
			p := c.node(1).proposed[n:]
			same(t, "proposed", "client 1, client 0, lease 1", fmt.Sprintf("%s %d, %s %d, %s %d",
				p[0].Cause, p[0].Meant, p[1].Cause, p[1].Meant, p[2].Cause, p[2].Meant))
			c.held = nil
			c.settle()
			same(t, "answers", "Released, Granted{2}", c.answers(a, b))
			history := c.history(1)
			same(t, "last applied", row.late, history[len(history)-1])
			same(t, "stolen", row.stolen, c.stolen)
			c.tables(row.held)
		})
	}
}

// Neither a bare Release in an Expire's place nor one that has lost its token is counted on beyond
// the tenure that it was meant for: the next in the queue is not granted on the strength of a theft
// to come.
func TestALeaderCountsOnARemovalOnlyForTheTenureThatItIsMeantFor(t *testing.T) {
	for name, late := range map[string]func(c *cluster){
		"expire":  func(c *cluster) { c.tick(1, 10*second) },
		"release": func(c *cluster) { c.ask(1, release(1, "door", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := held1(t, Rules{NoExpireToken: true, NoReleaseToken: true})
			c.ask(1, acquire(2, "door"))
			d := c.ask(1, acquire(3, "door"))
			c.settle()
			c.held = appends(1)
			c.ask(1, release(1, "door", 1)) // and B's Grant
			n := len(c.node(1).proposed)
			late(c)
			same(t, "proposed", 1, len(c.proposals(1, n)))
			c.held = nil
			c.settle()
			same(t, "stolen", 1, len(c.stolen))
			same(t, "the next, when it has happened", "Granted{3}", c.answer(d))
		})
	}
}

// Another way to it, with Grants decided on the table but without the gate: B's Grant is proposed
// on arrival.
func TestWithoutTheGateALateExpireArisesOnTheTableToo(t *testing.T) {
	for _, row := range []struct {
		noToken bool
		held    string
		stolen  int
	}{{false, "door=2", 0}, {true, "", 1}} {
		c := held1(t, Rules{NoGate: true, NoExpireToken: row.noToken}, grantOnApplied)
		c.held = appends(1)
		c.ask(1, release(1, "door", 1))
		b := c.ask(1, acquire(2, "door"))
		c.tick(1, 10*second)
		c.held = nil
		c.settle()
		same(t, "B", "Granted{2}", c.answer(b))
		same(t, "stolen", row.stolen, len(c.stolen))
		c.tables(row.held)
	}
}

//spec:test L2
func TestTheGateLetsOneGrantOfAKeyIntoTheLog(t *testing.T) {
	for name, change := range ways {
		t.Run(name, func(t *testing.T) {
			c := leading(t, Rules{}, change)
			c.held = appends(1)
			n := len(c.node(1).proposed)
			for client := range ClientID(5) {
				c.ask(1, acquire(client+1, "door"))
				c.ask(1, acquire(client+1, "gate"))
			}
			want := []string{"grant door for client", "grant gate for client"}
			same(t, "proposed", want, c.proposals(1, n))
			c.held = nil
			c.settle()
			for i := range 100 { // until all have had it
				c.tick(1, 10*second)
				c.settle()
				if holders(c.node(1).Table()) == "" {
					same(t, "rounds", 4, i)
					break
				}
			}
			counts := map[string]int{"Noop": 1, "Granted": 10, "Expired{true}": 10}
			same(t, "results", counts, c.counts)
		})
	}
}

// Hazard 22, and the entry is remembered no longer than it is needed.
//
//spec:test L3
func TestALeaderHasOneExpireOfATenureInItsLog(t *testing.T) {
	c := held1(t, Rules{})
	c.held = appends(1)
	n := len(c.node(1).proposed)
	for range 10 {
		c.tick(1, 10*second)
		c.lapse(1, "door", 1)
	}
	same(t, "proposed", []string{"expire door 1 for lease"}, c.proposals(1, n))
	c.held = nil
	c.settle()
	c.tables("")
	var none []Token
	for token := range c.node(1).leader.expiring {
		none = append(none, token)
	}
	same(t, "remembered afterwards", 0, len(none))
}

// L05. The Expire of a deposed leader is replaced in the logs and never applied. The lock is
// expired by the next leader's own clock, and however often that happens, nobody gives up.
// (Hazard 22, etcd#10686.)
//
//spec:test L3
func TestATruncatedExpireIsProposedAgainByTheNextLeaderOnItsOwnClock(t *testing.T) {
	c := held1(t, Rules{})
	const rounds = 12
	c.held = func(m raft.Message) bool { return carries(m, Expire) }
	for round := range rounds {
		id := raft.ServerID(round%3 + 1)
		n := len(c.node(id).proposed)
		c.elect(id)
		if round < 3 { // its clock is at the time of the Grant
			c.tick(id, 10*second-1)
			same(t, "proposed too early", 0, len(c.proposals(id, n)))
			c.tick(id, 1)
		}
		same(t, "proposed", []string{"expire door 1 for lease"}, c.proposals(id, n))
		c.tables("door=1")
		c.drop(func(raft.Message) bool { return true })
	}
	c.held = nil
	c.do(3, (*Replica).HeartbeatTimeout)
	c.settle()
	c.tables("")
	same(t, "results", map[string]int{"Noop": rounds, "Granted": 1, "Expired{true}": 1}, c.counts)
}

// The same leader, again: what it proposed in an earlier term does not count.
// (consul session_ttl.go.)
func TestALeaderInANewTermProposesTheExpireAgain(t *testing.T) {
	c := held1(t, Rules{})
	c.isolate(1)
	c.tick(1, 10*second)
	c.elect(2)
	c.heal()
	c.do(2, (*Replica).HeartbeatTimeout)
	c.settle()
	n := len(c.node(1).proposed)
	c.elect(1)
	same(t, "proposed", []string{"expire door 1 for lease"}, c.proposals(1, n))
	c.tables("")
}

// L04. Two leaders' Expires of one tenure in one log: here the second does not wait for its
// start-of-term entry. The second removes nothing, neither from a free key nor from a fresh lock.
func TestADuplicateExpireIsAppliedAndRemovesNothing(t *testing.T) {
	for _, row := range []struct {
		waiter bool
		want   []string
		held   string
	}{
		{false, []string{"expire door 1 -> Expired{true}", "expire door 1 -> Expired{false}"}, ""},
		{true, []string{"expire door 1 -> Expired{true}", "grant door -> Granted{2}",
			"expire door 1 -> Expired{false}"}, "door=2"},
	} {
		c := held1(t, Rules{NoNoopWait: true})
		if row.waiter {
			c.ask(1, acquire(2, "door"))
		}
		c.held = func(m raft.Message) bool { return m.To == 1 }
		c.tick(1, 10*second)
		c.settle()
		c.lapse(2, "door", 1)
		c.held = nil
		c.elect(2)
		same(t, "history", row.want, c.history(3)[1:])
		c.tables(row.held)
	}
}

// L11. A's Grant is in the log, an operator's bare Release behind it, B's Grant behind that, and A
// has gone. The clean-up comes last. It names the token that A was granted; without a token it
// would remove B's lock. (Hazard 3.)
//
//spec:test L4
func TestACleanUpRemovesTheTenureOfTheClientThatHasGoneAndNoOther(t *testing.T) {
	for _, row := range []struct {
		rules  Rules
		late   string
		held   string
		stolen []string
	}{
		{Rules{}, "release door 1 -> NotFound", "door=2", nil},
		{Rules{NoReleaseToken: true}, "release door 0 -> Released", "",
			[]string{"release door 0 for cleanup, meant for 1, removed 2"}},
	} {
		c := leading(t, row.rules)
		c.held = appends(1)
		a := c.ask(1, acquire(1, "door"))
		c.ask(1, release(9, "door", 0))
		b := c.ask(1, acquire(2, "door"))
		c.disconnect(a)
		c.held = nil
		c.settle()
		same(t, "B", "Granted{2}", c.answer(b))
		history := c.history(2)
		same(t, "last applied", row.late, history[len(history)-1])
		same(t, "stolen", row.stolen, c.stolen)
		c.tables(row.held)
	}
}

// L16. No failure at all: A holds its lock longer than its lease and then gives it back, from a
// deferred call. (Hazard 10, etcd#22082.)
//
//spec:test Release.Token
func TestALateReleaseDoesNotRemoveAFreshLock(t *testing.T) {
	for _, row := range []struct {
		rules  Rules
		answer string
		held   string
		stolen int
	}{
		{Rules{}, "NotFound", "door=2", 0},
		{Rules{NoReleaseToken: true}, "Released", "", 1},
	} {
		c := held1(t, row.rules)
		b := c.ask(1, acquire(2, "door"))
		c.tick(1, 10*second)
		c.settle()
		same(t, "B", "Granted{2}", c.answer(b))
		a := c.ask(1, release(1, "door", 1))
		c.settle()
		same(t, "A", row.answer, c.answer(a))
		same(t, "stolen", row.stolen, len(c.stolen))
		c.tables(row.held)
	}
}

// A leader that steps down answers everyone, stops its timers and keeps nothing; if it leads again,
// it starts from what is in its table and its log.
//
//spec:test L5
func TestALeaderThatStepsDownAnswersAllAndKeepsNothing(t *testing.T) {
	c := held1(t, Rules{})
	waiting := c.ask(1, acquire(2, "door"))
	also := c.ask(1, acquire(3, "apple"))
	c.settle()
	third := c.ask(1, acquire(4, "apple"))
	c.isolate(1)
	granting := c.ask(1, acquire(2, "gate"))
	releasing := c.ask(1, release(1, "door", 9))
	noop := c.ask(1, Request{Client: 1, Text: "x"})
	left := c.ask(1, acquire(5, "lift"))
	c.disconnect(left)
	c.elect(2)
	same(t, "while it does not know", "", c.answer(waiting))
	c.heal()
	c.do(2, (*Replica).HeartbeatTimeout)
	c.settle()
	same(t, "granted before", "Granted{2}", c.answer(also))
	same(t, "those in a queue", "not leader, ask 2, not leader, ask 2", c.answers(waiting, third))
	same(t, "those in the log", "unknown, unknown, unknown", c.answers(granting, releasing, noop))
	same(t, "deadline", c.node(1).Core().Deadline(), c.node(1).Deadline())

	n := len(c.node(1).proposed)
	c.tick(1, 10*second)
	c.campaign(1)
	early := c.ask(1, acquire(6, "door"))
	c.settle()
	same(t, "proposed when it leads again", []string{
		"expire door 1 for lease", "expire apple 2 for lease", "grant door for client",
	}, c.proposals(1, n))
	same(t, "a new request", "Granted{3}", c.answer(early))
	c.tables("door=3")
}

// In the same order on each run: those of the log, those not looked at yet, then the queues by
// their keys.
func TestALeaderThatStepsDownAnswersInAFixedOrder(t *testing.T) {
	c := held1(t, Rules{})
	c.cut[1] = true
	var want []uint64
	for i := range 26 {
		key := string(rune('z' - i))
		first := c.ask(1, acquire(2, key)) // in the log
		waiting := c.ask(1, acquire(3, key))
		want = append(want[:i:i], append([]uint64{first}, want[i:]...)...)
		want = append(want[:i+1:i+1], append([]uint64{waiting}, want[i+1:]...)...)
	}
	c.elect(2)
	c.heal()
	c.replied = nil
	c.do(2, (*Replica).HeartbeatTimeout)
	c.settle()
	same(t, "order of the replies", want, c.replied)
}

// The requests that came before a leader was ready are queued, not proposed.
func TestALeaderThatIsDeposedBeforeItIsReadyHasProposedNothing(t *testing.T) {
	c := newCluster(t, 3, Rules{})
	c.campaign(1)
	a, b := c.ask(1, acquire(1, "door")), c.ask(1, release(2, "gate", 0))
	same(t, "answers", ", ", c.answers(a, b))
	c.drop(appends(1))
	c.elect(2)
	same(t, "answers", "not leader, ask 0, not leader, ask 0", c.answers(a, b))
}

// Deposed and elected again between two looks: it is another leadership, of which it is itself the
// leader. Peers that answer before they are asked would do it; the Replica does not rely on there
// being none.
func TestALeaderOfALaterTermIsAnotherLeadership(t *testing.T) {
	c := newCluster(t, 3, Rules{})
	c.campaign(1)
	a := c.ask(1, acquire(1, "door"))
	c.isolate(1) // this test speaks for the others
	b, request := c.input(1, acquire(2, "gate"))
	receive := func(from raft.ServerID, term raft.Term, body raft.Body) func(*Replica) {
		return received(t, raft.Message{From: from, To: 1, Term: term, Body: body})
	}
	term := c.status(1).Term
	vote := raft.RequestVoteReply{RequestTerm: term + 2, VoteGranted: true}
	c.do(1, receive(3, term+1, raft.RequestVote{LastLogIndex: 1, LastLogTerm: 1}),
		(*Replica).ElectionTimeout, receive(2, term+2, vote), receive(3, term+2, vote), request)
	same(t, "role", raft.Leader, c.status(1).Role)
	same(t, "A", "not leader, ask 1", c.answer(a))
	c.heal()
	c.do(1, (*Replica).HeartbeatTimeout)
	c.settle()
	same(t, "B", "Granted{1}", c.answer(b))
}

// L03, L07. A timer's proposal is never passed on. A server that does not lead proposes and sends
// nothing, whatever its clock says; one that was deposed without knowing appends to its own log,
// and that is replaced. (Hazard 23, etcd#12528.)
//
//spec:test L7
func TestATimerOfAServerThatDoesNotLeadReachesNobody(t *testing.T) {
	c := held1(t, Rules{})
	var none []Proposed
	c.sent = nil
	c.tick(2, 3600*second) // follower, an hour ahead
	c.lapse(3, "door", 1)
	q := c.ask(2, release(1, "door", 1))
	same(t, "answer", "not leader, ask 1", c.answer(q))
	same(t, "proposed", none, append(c.node(2).proposed, c.node(3).proposed...))
	same(t, "sent", 0, len(c.sent))

	c.isolate(1) // it sleeps for a minute, and wakes up as a leader
	c.elect(3)   // on its clock the lease is over too, by hand
	c.tables3(t, map[raft.ServerID]string{1: "door=1", 2: "", 3: ""})
	b := c.ask(3, acquire(2, "door"))
	c.settle()
	same(t, "B", "Granted{2}", c.answer(b))
	n := len(c.node(1).proposed)
	c.tick(1, 60*second)
	late := []string{"expire door 1 for lease"}
	same(t, "proposed by the one that slept", late, c.proposals(1, n))
	c.heal()
	c.do(3, (*Replica).HeartbeatTimeout)
	c.settle()
	c.tick(1, 60*second)
	same(t, "proposed when it knows", 1, len(c.proposals(1, n)))
	c.tables("door=2")
	same(t, "results", map[string]int{"Noop": 2, "Granted": 2, "Expired{true}": 1}, c.counts)
}

func (c *cluster) tables3(t *testing.T, want map[raft.ServerID]string) {
	t.Helper()
	got := map[raft.ServerID]string{}
	for _, n := range c.nodes {
		got[n.id] = holders(n.Table())
	}
	same(t, "tables", want, got)
}

// Each server counts from its own apply, on its own clock. That another applied earlier, or has a
// clock that reads anything else, does not matter. (Hazard 17, kubernetes#47671.)
//
//spec:test Clock.OwnApply
func TestALeaderCountsALeaseFromItsOwnApply(t *testing.T) {
	c := leading(t, Rules{})
	c.node(2).clock = 77 * second // nobody knows what it reads
	c.held = func(m raft.Message) bool { return m.To == 2 }
	c.ask(1, acquire(1, "door"))
	c.settle()
	c.tick(1, 9*second)
	c.tick(2, 3*second) // 80
	c.held = nil
	c.do(1, (*Replica).HeartbeatTimeout)
	c.settle() // server 2 applies it
	c.tables("door=1")
	c.elect(2)
	c.tick(2, 10*second-1)
	c.settle()
	c.tables("door=1")
	c.tick(2, 1)
	c.settle()
	c.tables("")
}

// A clock that goes back is taken to stand still: what it read once has passed.
// (Hazard 26, etcd#12291.)
func TestALeaseIsCountedOnTheGreatestReading(t *testing.T) {
	c := leading(t, Rules{})
	c.tick(1, 5*second)
	c.tick(1, -4*second)
	c.ask(1, acquire(1, "door"))
	c.settle()
	c.tick(1, 10*second) // 6 s after
	c.settle()
	c.tables("door=1")
	c.tick(1, 4*second)
	c.settle()
	c.tables("")
}

// A server that restarts applies the log again and counts in full again, however little was left.
// (Hazard 20.)
//
//spec:test Clock.OwnApply
func TestAfterARestartALeaseIsCountedInFull(t *testing.T) {
	c := held1(t, Rules{})
	c.tick(2, 9*second)
	c.crash(2)
	c.restart(2)
	c.elect(2)
	c.tick(2, 10*second-1)
	c.settle()
	c.tables("door=1")
	c.tick(2, 1)
	c.settle()
	c.tables("")
}
