package fsm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ticketing/raft"
)

// leading is a cluster of three that server 1 leads.
func leading(t testing.TB, rules Rules, change ...func(*Config)) *cluster {
	t.Helper()
	c := newCluster(t, 3, rules, change...)
	c.elect(1)
	return c
}

// held1 is a cluster in which client 1 holds the door with token 1, and all have applied that.
func held1(t testing.TB, rules Rules, change ...func(*Config)) *cluster {
	t.Helper()
	c := leading(t, rules, change...)
	a := c.ask(1, acquire(1, "door"))
	c.settle()
	same(t, "A", "Granted{1}", c.answer(a))
	c.tables("door=1")
	return c
}

// batches writes down the entries of each AppendEntries sent to a server, leaving heartbeats out.
func (c *cluster) batches(to raft.ServerID) []string {
	c.t.Helper()
	var lines []string
	for _, m := range c.sent {
		a, ok := m.Body.(raft.AppendEntries)
		if !ok || m.To != to || len(a.Entries) == 0 {
			continue
		}
		var words []string
		for _, entry := range a.Entries {
			e, err := Decode(entry.Command)
			if err != nil {
				c.fatal("%v", err)
			}
			words = append(words, brief(e))
		}
		lines = append(lines, strings.Join(words, ", "))
	}
	return lines
}

func TestALockIsGrantedReleasedAndGrantedAgain(t *testing.T) {
	c := leading(t, Rules{})
	q := acquire(1, "door")
	q.Owner, q.Attempt = "A", 4
	a := c.ask(1, q)
	same(t, "before it is committed", "", c.answer(a))
	c.settle()
	same(t, "reply", granted(a, 1, 4), c.replies(a))
	b := c.ask(1, release(1, "door", 1))
	c.settle()
	d := c.ask(1, acquire(2, "door"))
	c.settle()
	e := c.ask(1, release(1, "door", 1))
	c.settle()
	same(t, "answers", "Granted{1}, Released, Granted{2}, NotFound", c.answers(a, b, d, e))
	c.tables("door=2")
	same(t, "first proposal", Proposed{Index: 2, Term: 1, Cause: ForClient, Envelope: Envelope{
		Client: 1, Seq: 1, Lowest: 1, Owner: "A", Command: Command{Kind: Grant, Key: "door", LeaseMS: 10_000},
	}}, c.node(1).proposed[0])
	same(t, "second proposal", Proposed{Index: 3, Term: 1, Meant: 1, Envelope: Envelope{
		Client: 1, Seq: 2, Lowest: 1, Command: Command{Kind: Release, Key: "door", Token: 1},
	}}, c.node(1).proposed[1])
	applied := c.node(3).applied[1]
	same(t, "applied", Applied{Index: 2, Term: 1, Envelope: c.node(1).proposed[0].Envelope,
		Result: Result{Kind: Granted, Token: 1}, Hash: applied.Hash, Holder: 1}, applied)
}

func TestASingleNodeWorks(t *testing.T) {
	c := newCluster(t, 1, Rules{})
	c.elect(1)
	a := c.ask(1, acquire(1, "door"))
	b := c.ask(1, acquire(2, "door"))
	d := c.ask(1, Request{Client: 3, Text: "x = 1"})
	same(t, "answers", "Granted{1}, , Noop", c.answers(a, b, d))
	same(t, "what is in the log", "x = 1", c.node(1).proposed[1].Envelope.Text)
	c.tick(1, 10*second)
	same(t, "B, when A's lease is over", "Granted{2}", c.answer(b))
	c.node(1).slow = true
	e := c.ask(1, release(2, "door", 2))
	same(t, "before the disk has it", "", c.answer(e))
	c.save(1)
	same(t, "after", "Released", c.answer(e))
	c.crash(1)
	c.node(1).slow = false
	c.restart(1)
	c.elect(1)
	f := c.ask(1, acquire(1, "door"))
	same(t, "after a restart", "Granted{3}", c.answer(f))
	same(t, "history", []string{"grant door -> Granted{1}", "expire door 1 -> Expired{true}",
		"grant door -> Granted{2}", "release door 2 -> Released",
		"grant door -> Granted{3}"}, c.history(1))
}

// "Respond after entry applied to state machine": not when it is appended, saved or sent.
//
//spec:test Leaders.2a
func TestAClientIsAnsweredWhenItsCommandIsAppliedAndNotBefore(t *testing.T) {
	c := leading(t, Rules{})
	c.held = func(m raft.Message) bool { return m.To == 1 }
	for _, q := range []Request{acquire(1, "door"), release(1, "gate", 0), {Client: 1, Text: "x"}} {
		call := c.ask(1, q)
		c.settle()
		same(t, "in the log of all, but not known to be", "", c.answer(call))
	}
	c.held = nil
	c.settle()
	same(t, "committed", "Granted{1}, NotFound, Noop", c.answers(1, 2, 3))
}

// A Release and the Grant of the next in the queue leave in one message and are committed together.
func TestAHandOverCostsOneMessageAndOneCommit(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(*Config)
		batches []string
	}{
		"pipelined":            {func(*Config) {}, []string{"release door 1, grant door"}},
		"decided on the table": {grantOnApplied, []string{"release door 1", "grant door"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := held1(t, Rules{}, row.change)
			b := c.ask(1, acquire(2, "door"))
			c.settle()
			c.isolate(3) // so that each message has a purpose
			c.sent = nil
			before := c.status(1).CommitIndex
			a := c.ask(1, release(1, "door", 1))
			var commits []raft.Index
			for len(c.wire) > 0 {
				c.deliver(0)
				if s := c.status(1); s.CommitIndex > before {
					before = s.CommitIndex
					commits = append(commits, before)
				}
			}
			same(t, "answers", "Released, Granted{2}", c.answers(a, b))
			same(t, "messages", row.batches, c.batches(2))
			same(t, "commits", len(row.batches), len(commits))
		})
	}
}

// Every way in which a key becomes free in the log lets the next one in at once.
func TestWhateverFreesAKeyBringsTheNextGrantWithIt(t *testing.T) {
	ask := func(client ClientID, token Token) func(*cluster) {
		return func(c *cluster) { c.ask(1, release(client, "door", token)) }
	}
	lapse := func(c *cluster) { c.tick(1, 10*second) }
	for name, row := range map[string]struct {
		free  func(c *cluster)
		batch string
	}{
		"its holder":            {ask(1, 1), "release door 1, grant door"},
		"someone, bare":         {ask(9, 0), "release door 0, grant door"},
		"its lease":             {lapse, "expire door 1, grant door"},
		"not: the wrong tenure": {ask(1, 7), "release door 7"},
	} {
		t.Run(name, func(t *testing.T) {
			c := held1(t, Rules{})
			c.ask(1, acquire(2, "door"))
			c.settle()
			c.sent = nil
			row.free(c)
			c.settle()
			same(t, "messages", []string{row.batch}, c.batches(3))
		})
	}
}

func TestWaitersAreServedInTheOrderOfTheirArrival(t *testing.T) {
	for name, change := range ways {
		t.Run(name, func(t *testing.T) {
			c := held1(t, Rules{}, change)
			var calls []uint64
			for client := ClientID(2); client <= 6; client++ {
				calls = append(calls, c.ask(1, acquire(client, "door")))
			}
			other := c.ask(1, acquire(7, "gate"))
			c.settle()
			same(t, "another key", "Granted{2}", c.answer(other))
			again := c.ask(1, c.again(calls[1])) // keeps its place
			same(t, "waiting", ", superseded, , , ", c.answers(calls...))
			calls[1] = again
			for i, token := range []Token{1, 3, 4, 5, 6} {
				c.ask(1, release(9, "door", token))
				c.settle()
				same(t, "served", fmt.Sprintf("Granted{%d}", i+3), c.answer(calls[i]))
				for _, later := range calls[i+1:] {
					same(t, "a later one", "", c.answer(later))
				}
			}
		})
	}
}

// Several waiters, and several holders, in one log that is not committed: each waits for its own
// turn.
func TestAChainOfHandOversInOneLog(t *testing.T) {
	c := held1(t, Rules{})
	b, d := c.ask(1, acquire(2, "door")), c.ask(1, acquire(3, "door"))
	e := c.ask(1, acquire(4, "door"))
	c.settle()
	c.held = appends(1)
	c.ask(1, release(1, "door", 1)) // B's Grant follows
	c.ask(1, release(9, "door", 0)) // whoever holds it, which is B: C's Grant follows
	c.ask(1, release(1, "door", 1)) // late: frees nothing
	c.ask(1, release(1, "door", 3)) // a guess of what C will get: it is not counted on
	c.tick(1, 10*second)            // A's lease, late as well
	c.held = nil
	c.settle()
	same(t, "answers", "Granted{2}, Granted{3}, Granted{4}", c.answers(b, d, e))
	same(t, "history", []string{
		"grant door -> Granted{1}",
		"release door 1 -> Released",
		"grant door -> Granted{2}",
		"release door 0 -> Released",
		"grant door -> Granted{3}",
		"release door 1 -> NotFound",
		"release door 3 -> Released",
		"expire door 1 -> Expired{false}",
		"grant door -> Granted{4}",
	}, c.history(2))
}

// While entries about a key are on their way, those before them are applied: the leader then knows
// the token of the holder in its log, and counts on a Release that names it.
func TestALeaderLearnsTheTokensInItsLogAsTheyAreApplied(t *testing.T) {
	c := held1(t, Rules{})
	b, d := c.ask(1, acquire(2, "door")), c.ask(1, acquire(3, "door"))
	c.settle()
	c.ask(1, release(1, "door", 1)) // and B's Grant
	c.held = reaching(5)
	c.ask(1, release(1, "door", 1)) // stays on its way
	c.settle()
	same(t, "B", "Granted{2}", c.answer(b))
	n := len(c.node(1).proposed)
	c.ask(1, release(2, "door", 2))
	want := []string{"release door 2 for client", "grant door for client"}
	same(t, "proposed", want, c.proposals(1, n))
	c.held = nil
	c.settle()
	same(t, "C", "Granted{3}", c.answer(d))
	c.tables("door=3")
}

func TestATryIsAnsweredHeldAtOnceAndLeavesNoEntry(t *testing.T) {
	c := held1(t, Rules{})
	last := c.status(1).LastIndex
	b := c.ask(1, try(2, "door"))
	same(t, "the key is held", "held", c.answer(b))
	d := c.ask(1, acquire(3, "door"))
	e := c.ask(1, try(2, "door"))
	same(t, "the key is held and waited for", ", held", c.answers(d, e))
	same(t, "last entry", last, c.status(1).LastIndex)

	c.held = appends(1)
	f, in1 := c.input(1, release(1, "door", 1))
	g, in2 := c.input(1, try(2, "door"))
	c.do(1, in1, in2)
	same(t, "the key is free, and promised to the first in the queue", "held", c.answer(g))
	c.held = nil
	c.settle()
	same(t, "the others", "Released, Granted{2}", c.answers(f, d))

	c.ask(1, release(3, "door", 2))
	h := c.ask(1, try(2, "door"))
	c.settle()
	same(t, "the key is free once the log is applied", "Granted{3}", c.answer(h))
	i := c.ask(1, try(1, "gate"))
	j := c.ask(1, try(2, "gate"))
	same(t, "another's Grant is on its way", ", held", c.answers(i, j))
	c.settle()
	same(t, "the first", "Granted{4}", c.answer(i))
	var inputs []func(*Replica)
	k, in := c.input(1, try(1, "lift"))
	inputs = append(inputs, in)
	l, in := c.input(1, try(2, "lift"))
	c.do(1, append(inputs, in)...)
	c.settle()
	same(t, "two at once", "Granted{5}, held", c.answers(k, l))
}

// Ended leases come first, so that what they free is free for whoever asks in the same moment.
func TestAnEndedLeaseIsSeenBeforeARequestOfTheSameMoment(t *testing.T) {
	c := held1(t, Rules{})
	b, ask := c.input(1, try(2, "door"))
	c.node(1).clock += 10 * second
	c.do(1, ask, func(r *Replica) { r.Tick(c.node(1).clock) })
	c.settle()
	same(t, "answer", "Granted{2}", c.answer(b))
}

// reaching tells the messages of server 1 that go up to an index or beyond it, so that what it
// appends is committed up to there and no further.
func reaching(index raft.Index) func(raft.Message) bool {
	return func(m raft.Message) bool {
		a, ok := m.Body.(raft.AppendEntries)
		return ok && m.From == 1 && a.PrevLogIndex+raft.Index(len(a.Entries)) >= index
	}
}

// Decided on the table, a Grant is proposed as soon as the table says so, also while other entries
// about the key are still on their way.
func TestOnTheTableAWaiterIsServedAsSoonAsTheKeyIsFreeThere(t *testing.T) {
	for name, end := range map[string]func(*cluster){
		"release": func(c *cluster) { c.ask(1, release(1, "door", 1)) },
		"expire":  func(c *cluster) { c.lapse(1, "door", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			c := leading(t, Rules{}, grantOnApplied)
			c.held = reaching(3)
			c.ask(1, acquire(1, "door"))    // 2
			c.ask(1, release(9, "door", 9)) // 3: there is always one on its way
			c.settle()
			same(t, "table of the leader", "door=1", holders(c.node(1).Table()))
			b := c.ask(1, acquire(2, "door"))
			end(c)                          // 4
			c.ask(1, release(9, "door", 9)) // 5
			n := len(c.node(1).proposed)
			c.held = reaching(5)
			c.settle()
			same(t, "table of the leader", "", holders(c.node(1).Table()))
			same(t, "proposed at once", []string{"grant door for client"}, c.proposals(1, n))
			c.held = nil
			c.settle()
			same(t, "B", "Granted{2}", c.answer(b))
		})
	}
}

func TestATryIsDecidedOnTheTableIfSoConfigured(t *testing.T) {
	c := held1(t, Rules{}, grantOnApplied)
	c.held = appends(1)
	c.ask(1, release(1, "door", 1))
	a := c.ask(1, try(2, "door"))
	same(t, "the Release is not applied", "held", c.answer(a))
	b := c.ask(1, try(2, "gate"))
	d := c.ask(1, try(3, "gate"))
	same(t, "another's Grant is on its way", ", held", c.answers(b, d))
	c.held = nil
	c.settle()
	e := c.ask(1, try(2, "door"))
	c.settle()
	same(t, "it is", "Granted{3}", c.answer(e))
}

// Hazard 37.
func TestADifferentServerSaysWhoLeads(t *testing.T) {
	c := newCluster(t, 3, Rules{})
	a := c.ask(2, acquire(1, "door"))
	c.elect(1)
	b := c.ask(2, acquire(1, "door"))
	same(t, "answers", "not leader, ask 0, not leader, ask 1", c.answers(a, b))
}

// Without the gate two Grants of one key can be in the log. The second is rejected on all nodes
// alike, takes no token, and waits for its turn; a try is told. (L12)
func TestARejectedGrantWaitsAndARejectedTryIsTold(t *testing.T) {
	c := leading(t, Rules{NoGate: true})
	a, b, d := c.ask(1, acquire(1, "door")), c.ask(1, acquire(2, "door")), c.ask(1, try(3, "door"))
	c.settle()
	same(t, "answers", "Granted{1}, , GrantRejected", c.answers(a, b, d))
	c.ask(1, release(1, "door", 1))
	c.settle()
	same(t, "B", "Granted{2}", c.answer(b))
	same(t, "history", []string{
		"grant door -> Granted{1}", "grant door -> GrantRejected", "grant door -> GrantRejected",
		"release door 1 -> Released", "grant door -> Granted{2}",
	}, c.history(3))
	e := c.ask(1, acquire(4, "door"))
	f := c.ask(1, acquire(5, "door"))
	c.settle()
	same(t, "proposed on arrival, whoever holds it", 4, c.audit.counts["GrantRejected"])
	c.disconnect(e)
	c.ask(1, release(2, "door", 2))
	c.settle()
	same(t, "the next in the queue", "Granted{3}", c.answer(f))
	c.tables("door=3")
}

// A rejected Grant that is not applied yet hides the holder in the log from nobody.
func TestAGrantThatWillBeRejectedDoesNotDelayAHandOver(t *testing.T) {
	c := held1(t, Rules{NoGate: true})
	b := c.ask(1, acquire(2, "door"))
	c.settle() // rejected, it waits
	c.held = appends(1)
	n := len(c.node(1).proposed)
	c.ask(1, acquire(3, "door"))
	c.ask(1, release(1, "door", 1))
	want := []string{"grant door for client", "release door 1 for client", "grant door for client"}
	same(t, "proposed", want, c.proposals(1, n))
	c.held = nil
	c.settle()
	same(t, "B", "Granted{2}", c.answer(b))
}

// Rejected, while the key is free by the end of the log already: it need not wait for that to be
// applied.
func TestARejectedGrantIsProposedAgainAtOnceIfTheKeyIsFreeByTheEndOfTheLog(t *testing.T) {
	c := held1(t, Rules{NoGate: true})
	c.held = reaching(4)
	b := c.ask(1, acquire(2, "door")) // 3
	c.ask(1, release(1, "door", 1))   // 4
	n := len(c.node(1).proposed)
	c.settle()
	same(t, "rejected", 1, c.counts["GrantRejected"])
	same(t, "proposed", []string{"grant door for client"}, c.proposals(1, n))
	c.held = nil
	c.settle()
	same(t, "B", "Granted{2}", c.answer(b))
	same(t, "rejected", 1, c.counts["GrantRejected"])
}

func TestARejectedGrantOfAClientThatHasGoneIsForgotten(t *testing.T) {
	c := held1(t, Rules{NoGate: true})
	b := c.ask(1, acquire(2, "door"))
	c.disconnect(b)
	c.settle()
	c.tables("door=1")
	c.ask(1, release(1, "door", 1))
	c.settle()
	c.tables("")
	same(t, "grants", 1, c.audit.counts["Granted"])
}

// An Output may be used until the next Take, whatever arrives in between.
func TestAnOutputIsValidUntilTheNextTake(t *testing.T) {
	r, err := New(testConfig(1, 3), raft.Durable{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	bad := Request{Call: 1, Kind: Grant}
	r.Request(bad)
	out, err := r.Take()
	if err != nil {
		t.Fatal(err)
	}
	bad.Call = 2
	r.Request(bad)
	same(t, "calls answered", 1, out.Replies[0].Call)
	r.Disconnect(Request{Call: 1})
	same(t, "replies", 1, len(out.Replies))
	same(t, "calls answered", 1, out.Replies[0].Call)
}

// A replica that cannot read an entry would differ from one that can. It stops instead, and says
// where. (Hazard 12.)
func TestACorruptCommandStopsTheReplicaForGood(t *testing.T) {
	disk := raft.Durable{HardState: raft.HardState{Term: 3}, Entries: []raft.Entry{
		{Index: 1, Term: 1},
		{Index: 2, Term: 3, Command: []byte(`- grant 10000 door`)},
		{Index: 3, Term: 3, Command: []byte(`- grnat 10000 gate`)},
		{Index: 4, Term: 3, Command: []byte(`- release 0 door`)},
	}}
	r, err := New(testConfig(1, 1), disk, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.ElectionTimeout()
	for r.Failed() == nil {
		out, err := r.Take()
		if err != nil || out.Write.Seq == 0 {
			break
		}
		r.Saved(out.Write.Seq)
	}
	failed := r.Failed()
	if !errors.Is(failed, ErrCommand) {
		t.Fatal(failed)
	}
	same(t, "error", `entry 3 of term 3: not a command: "- grnat 10000 gate"`, failed.Error())
	r.HeartbeatTimeout()
	r.Request(Request{Call: 1, Client: 1, Kind: Release, Key: "door"})
	for range 3 {
		out, err := r.Take()
		if err != failed { //nolint:errorlint // the very same
			t.Fatal(err)
		}
		same(t, "output", &Output{}, out)
	}
	same(t, "what was applied before", "door=1", holders(r.Table()))
}

// What the leader's own log holds is not checked when it is appended to, only when it is applied.
// The leader must not stumble over it before.
func TestANewLeaderToleratesACorruptCommandUntilItIsCommitted(t *testing.T) {
	c := newCluster(t, 3, Rules{})
	for _, n := range c.nodes[:2] {
		n.disk = raft.Durable{HardState: raft.HardState{Term: 1}, Entries: []raft.Entry{
			{Index: 1, Term: 1, Command: []byte("garbage")},
		}}
		c.restart(n.id)
	}
	c.campaign(1)
	same(t, "role", raft.Leader, c.status(1).Role)
	same(t, "failed", nil, c.node(1).Failed())
}

func TestNewRefusesAConfigThatRaftRefuses(t *testing.T) {
	config := testConfig(1, 3)
	config.Raft.MaxBatch = 0
	if r, err := New(config, raft.Durable{}, 0); err == nil || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}

// Time moves raft's timers and the leases, and the earlier of the two is waited for.
func TestTickMovesTheTimersOfRaftToo(t *testing.T) {
	config := testConfig(1, 1)
	config.Raft.ElectionTimeout, config.Raft.HeartbeatTimeout = 150*millisecond, 50*millisecond
	r, err := New(config, raft.Durable{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	take := func() {
		out, err := r.Take()
		if err != nil {
			t.Fatal(err)
		}
		if out.Write.Seq > 0 {
			r.Saved(out.Write.Seq)
		}
	}
	same(t, "deadline of a follower", 150*millisecond, r.Deadline())
	r.Tick(150 * millisecond)
	for range 3 { // its vote, its first entry, and what follows
		take()
	}
	same(t, "role", raft.Leader, r.Core().Status().Role)
	for i, want := range []raft.Time{200 * millisecond, 160 * millisecond} {
		lease := []int64{60, 10}[i]
		r.Request(Request{Call: 1, Kind: Grant, Key: fmt.Sprint(lease), LeaseMS: lease})
		take()
		take()
		same(t, fmt.Sprint("deadline with a lease of ", lease), want, r.Deadline())
	}
}

// Nobody is woken for a lease but the one who acts on it.
func TestTheDeadlineOfALeaderIsTheEndOfTheNextLease(t *testing.T) {
	c := held1(t, Rules{})
	q := acquire(2, "gate")
	q.LeaseMS = 500
	c.ask(1, q)
	c.settle()
	start := c.node(1).clock
	same(t, "leader", start+500*millisecond, c.node(1).Deadline())
	same(t, "follower", c.node(2).Core().Deadline(), c.node(2).Deadline())
	c.campaign(2)
	same(t, "leader that is not ready", c.node(2).Core().Deadline(), c.node(2).Deadline())
	c.settle()
	same(t, "when it is", c.node(2).clock+500*millisecond, c.node(2).Deadline())
	same(t, "the old one", c.node(1).Core().Deadline(), c.node(1).Deadline())
	c.tick(2, 500*millisecond)
	same(t, "the next one", c.node(2).clock+9500*millisecond, c.node(2).Deadline())
	c.tick(2, 9500*millisecond)
	same(t, "with an Expire of each in the log", c.node(2).Core().Deadline(), c.node(2).Deadline())
	var none []Proposed
	c.do(3, func(r *Replica) { r.Tick(1 << 40) })
	same(t, "proposed by a follower", none, c.node(3).proposed)
}

// L13, etcd#11935: whatever it had, the next token is the same.
func TestARestartedServerAppliesTheSameAgain(t *testing.T) {
	c := held1(t, Rules{})
	c.ask(1, acquire(2, "gate"))
	c.ask(1, release(1, "door", 1))
	c.settle()
	before := slices.Clone(c.node(3).applied)
	c.crash(3)
	c.restart(3)
	same(t, "table before it knows what is committed", 0, c.node(3).Table().Len())
	c.do(1, (*Replica).HeartbeatTimeout)
	c.settle()
	same(t, "applied", before, c.node(3).applied)
	c.tables("gate=2")
	same(t, "tokens given out", 2, c.node(3).Table().Tokens())
	c.elect(3)
	a := c.ask(3, acquire(3, "door"))
	c.settle()
	same(t, "the next one", "Granted{3}", c.answer(a))
}
