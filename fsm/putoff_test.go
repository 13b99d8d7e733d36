package fsm

import (
	"fmt"
	"strings"
	"testing"

	"ticketing/raft"
)

// slowly has timeouts that a test's ticks reach, but no lease's end does.
func slowly(c *Config) {
	c.Raft.ElectionTimeout, c.Raft.HeartbeatTimeout = 60*second, 20*second
}

// transfer lets a leader begin to hand over, to a server that does not hear of it.
func (c *cluster) transfer(from, to raft.ServerID) {
	c.t.Helper()
	c.held = func(m raft.Message) bool { return m.To == to }
	c.do(from, func(r *Replica) {
		if err := r.Transfer(to); err != nil {
			c.fatal("transfer: %v", err)
		}
	})
	same(c.t, "transferring", to, c.node(from).Transferring())
}

// T04. Whatever clients ask meanwhile is refused, and they hear who is to lead. Nothing is proposed.
func TestWhileLeadershipIsOnItsWayClientsAreSentAfterIt(t *testing.T) {
	c := held1(t, Rules{}, slowly)
	c.transfer(1, 2)
	asked := 0
	for _, q := range []Request{
		acquire(2, "gate"), acquire(2, "door"), try(2, "gate"), try(2, "door"),
		release(1, "door", 1), release(1, "door", 0), extend(1, "door", 1),
		{Kind: Open}, {Client: 2, Text: "x"},
	} {
		same(t, fmt.Sprintf("answer to %+v", q), "not leader, ask 2", c.answer(c.ask(1, q)))
		asked++
	}
	same(t, "asked", 9, asked)
	same(t, "proposed", 1, len(c.node(1).proposed))
	c.node(1).clock += 60 * second
	c.do(1, func(r *Replica) { r.Tick(c.node(1).clock) }, func(r *Replica) {
		if err := r.Transfer(2); err != nil {
			t.Fatal(err)
		}
	})
	same(t, "begun again in the moment in which it was over", 2, c.node(1).Transferring())
	c.tick(1, 60*second)
	same(t, "transferring", 0, c.node(1).Transferring())
	a := c.ask(1, acquire(2, "gate"))
	c.settle()
	same(t, "when it was given up", "Granted{2}", c.answer(a))
}

// waiting is a leader that has everything to do that it does by itself, but for the moment: a lease
// runs out and others wait for its lock, a client has gone before its Grant was applied, and another
// before it was handed over. It hands leadership over, and calls 1 to 6 are, in this order, the
// holder of the door, two who wait for it, the ghosts of gate and hall, and who waits for the gate.
func waiting(t *testing.T, rules Rules) *cluster {
	t.Helper()
	c := held1(t, rules, slowly)
	c.ask(1, acquire(2, "door"))
	c.ask(1, acquire(3, "door"))
	long := acquire(5, "hall")
	long.LeaseMS = MaxLeaseMS
	hall := c.ask(1, long)
	c.calls[hall-1].deaf = true
	c.settle()
	long.Client, long.Key = 4, "gate"
	gate := c.ask(1, long)
	c.disconnect(gate)
	c.ask(1, acquire(6, "gate"))
	c.transfer(1, 2)
	n := len(c.node(1).proposed)
	c.settle()
	c.do(1, c.lost(hall))
	c.tick(1, 10*second)
	c.settle()
	same(t, "proposed meanwhile", 0, len(c.proposals(1, n)))
	same(t, "table", "door=1 gate=3 hall=2", holders(c.node(1).Table()))
	return c
}

// Nobody asks again for an ended lease, a ghost, or those who wait. When the transfer is given up,
// which takes an election timeout and not more, all of it is done by that very Take, in the order in
// which it would have been.
//
//spec:test L8
func TestWhatIsDueDuringATransferIsDoneWhenItIsGivenUp(t *testing.T) {
	for _, rules := range []Rules{{}, {NoExpireToken: true}} {
		c := waiting(t, rules)
		n := len(c.node(1).proposed)
		newest := c.ask(1, c.again(2)) // keeps its place, and moves no client behind it up
		same(t, "its first call", "superseded", c.answer(2))
		wakes := 0
		for c.node(1).Transferring() != 0 {
			same(t, "proposed before", 0, len(c.proposals(1, n)))
			now := c.node(1).clock
			if wakes++; wakes > 10 || c.node(1).Deadline() <= now {
				t.Fatalf("it wakes for the %dth time at %d, and next at %d", wakes, now, c.node(1).Deadline())
			}
			c.tick(1, c.node(1).Deadline()-now)
		}
		same(t, "clock", 1000+60*second, c.node(1).clock)
		end := "expire door 1 for lease"
		if rules.NoExpireToken {
			end = "release door 0 for lease"
		}
		same(t, "proposed then", []string{end, "release gate 3 for cleanup", "release hall 2 for cleanup",
			"grant door for client", "grant gate for client"}, sorted(c.proposals(1, n), end))
		c.held = nil
		c.settle()
		same(t, "answers", []string{"Granted{4}", "", "Granted{5}"},
			[]string{c.answer(newest), c.answer(3), c.answer(6)})
		same(t, "attempt", 1, c.calls[newest-1].replies[0].Attempt)
		c.tables("door=4 gate=5")
		c.ask(1, release(2, "door", 4))
		c.settle()
		same(t, "who waited behind", "Granted{6}", c.answer(3))
		c.ledgers()
	}
}

// sorted checks that the end of the lease comes first, and puts the two clean-ups, whose order is
// that in which their clients left, as the test names them.
func sorted(lines []string, first string) []string {
	if len(lines) > 2 && lines[0] == first && strings.Contains(lines[1], "hall") {
		lines[1], lines[2] = lines[2], lines[1]
	}
	return lines
}

// ledgers looks for anything that a leader has put off for ever.
func (c *cluster) ledgers() {
	c.t.Helper()
	for _, n := range c.nodes {
		if l := n.leader; l != nil && (len(l.ghosts)+len(l.touched)+len(l.early)+len(l.expiring) > 0 || l.behind) {
			c.fatal("server %d keeps %+v", n.id, *l)
		}
	}
}

// A ghost's client may come back while its lock waits to be given back. Then it keeps it.
//
//spec:test L4
func TestAClientThatComesBackAfterATransferThatFailedKeepsItsGrant(t *testing.T) {
	c := leading(t, Rules{}, slowly)
	long := acquire(1, "door")
	long.LeaseMS = MaxLeaseMS
	a := c.ask(1, long)
	c.disconnect(a)
	c.transfer(1, 2)
	c.settle()
	same(t, "ghosts", 1, len(c.node(1).leader.ghosts))
	c.node(1).clock += 60 * second
	back, ask := c.input(1, c.again(a))
	c.do(1, func(r *Replica) { r.Tick(c.node(1).clock) }, ask)
	c.held = nil
	c.settle()
	same(t, "answer", "Granted{1} again", c.answer(back))
	c.tables("door=1")
}

// Leadership arrives. All who waited are sent there, none is told that anything happened, and each
// who asks there again with the same number gets its lock once.
//
//spec:test L5
func TestAfterATransferEachWaiterHasOneGrant(t *testing.T) {
	c := held1(t, Rules{}, slowly)
	var waiters []uint64
	for client := range ClientID(3) {
		waiters = append(waiters, c.ask(1, acquire(client+2, "door")))
	}
	c.held = func(m raft.Message) bool { return carries(m, Grant) && m.To == 3 }
	logged := c.ask(1, acquire(5, "gate")) // 2 has it, and 1 does not know before it is deposed
	c.do(1, func(r *Replica) {
		if err := r.Transfer(2); err != nil {
			c.fatal("%v", err)
		}
	})
	c.held = nil
	c.settle()
	same(t, "leaders", []raft.Role{raft.Follower, raft.Leader}, []raft.Role{c.status(1).Role, c.status(2).Role})
	same(t, "at the old leader", "not leader, ask 2, not leader, ask 2, not leader, ask 2", c.answers(waiters...))
	for i, call := range waiters {
		waiters[i] = c.ask(2, c.again(call))
	}
	logged = c.ask(2, c.again(logged))
	c.ask(2, release(1, "door", 1))
	c.settle()
	for i, call := range waiters {
		same(t, fmt.Sprint("waiter ", i), fmt.Sprintf("Granted{%d}", i+3), c.answer(call))
		c.ask(2, release(ClientID(i+2), "door", Token(i+3)))
		c.settle()
	}
	same(t, "who was in the log", "Granted{2} again", c.answer(logged))
	same(t, "granted", 5, c.counts["Granted"])
	c.tables("gate=2")
}

// A leader that hands over in the middle of everything, in any schedule: to any server, which may be
// down or never hear of it, and to another before that has ended.
//
//spec:test L8
func TestTransfersLoseNothingInAnySchedule(t *testing.T) {
	t.Parallel()
	counts, stolen := map[string]int{}, 0
	for seed := range uint64(schedules) {
		s := newSchedule(t, seed, Rules{}, timeouts)
		s.beside = func() {
			id := s.server()
			n := s.node(id)
			if l := n.leader; n.Transferring() != 0 {
				counts["put off"] += len(l.ghosts) + len(l.touched) + n.leases.over
				s.tick(id, second)
				return
			}
			led := s.status(id).Role == raft.Leader
			s.do(id, func(r *Replica) {
				if r.Transfer(raft.ServerID(1+s.random.IntN(3))) == nil {
					counts["begun"]++
				}
			})
			if led && s.status(id).Role == raft.Leader && n.Transferring() == 0 {
				counts["refused"]++
			}
		}
		s.run(steps)
		s.calm()
		stolen += len(s.stolen)
		for _, m := range s.sent {
			if _, told := m.Body.(raft.TimeoutNow); told {
				counts["told"]++
			}
		}
		for name, n := range s.counts {
			counts[name] += n
		}
	}
	t.Log(counts)
	same(t, "stolen", 0, stolen)
	same(t, "rejected", 0, counts["GrantRejected"])
	atLeast(t, counts, "begun", 5*schedules)
	atLeast(t, counts, "told", schedules)
	atLeast(t, counts, "put off", schedules)
	atLeast(t, counts, "Granted", 2*schedules)
}
