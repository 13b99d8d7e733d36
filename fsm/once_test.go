package fsm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ticketing/raft"
)

// extend is a request for a new lease of ten seconds.
func extend(client ClientID, key string, token Token) Request {
	return Request{Client: client, Kind: Extend, Key: key, Token: token, LeaseMS: 10_000}
}

// Sessions come and go, requests are sent again at any server, numbers are closed and used twice,
// answers are lost. Nothing is carried out twice (I4), no lock that a client was told of is
// withdrawn, and what ends sessions ends no lock.
//
//spec:test Once
func TestInACrowdNothingIsCarriedOutTwiceAndNothingIsWithdrawn(t *testing.T) {
	for name, rules := range map[string]Rules{
		"all":     {},
		"no gate": {NoGate: true},
		"no wait": {NoNoopWait: true},
		"neither": {NoGate: true, NoNoopWait: true},
	} {
		for way, change := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				counts, stolen := runAll(t, rules, change, newCrowded)
				if len(stolen) > 0 {
					t.Error(strings.Join(stolen, "\n"))
				}
				atLeast(t, counts, "Opened", schedules)
				atLeast(t, counts, "SessionUnknown", schedules)
				atLeast(t, counts, "Granted again", 5)
				atLeast(t, counts, "NumberReused", 1)
				atLeast(t, counts, "Noop to a request", schedules/10)
				atLeast(t, counts, "Extended", schedules/10)
				atLeast(t, counts, "lost", schedules/10)
			})
		}
	}
}

// Hazard 29, Netflix/curator#3: a request that is taken for a new one when it comes again. All else
// holds, and nobody is told anything again.
func TestWithoutRequestIDsARequestThatIsSentAgainIsCarriedOutAgain(t *testing.T) {
	for _, row := range []struct {
		rules Rules
		again string
		held  string
	}{{Rules{}, "Granted{1} again", "door=1"}, {Rules{NoRequestIDs: true}, "Granted{2}", "door=2"}} {
		c := held1(t, row.rules)
		if row.rules.NoRequestIDs { // the first tenure, that nobody has heard of, is in the way
			c.tick(1, 10*second)
		}
		a := c.ask(1, c.again(1))
		c.settle()
		same(t, "again", row.again, c.answer(a))
		c.tables(row.held)
	}
	c := held1(t, Rules{NoRequestIDs: true})
	n := len(c.node(1).proposed)
	c.ask(1, acquire(777, "door")) // there is no such session, and nobody looks
	same(t, "proposed for one that has to wait", 0, len(c.proposals(1, n)))
	counts, stolen := runSchedules(t, Rules{NoRequestIDs: true}, func(*Config) {})
	same(t, "told again", 0, counts["Granted again"]+counts["Released again"]+counts["Noop to a request"])
	same(t, "stolen", 0, len(stolen))
	atLeast(t, counts, "Granted", 5*schedules)
}

// Hazards 6, 29: the answer to a Grant was lost, with its leader or without. The client asks again
// and hears of its lock at once, though the key is held: by itself. Its lease counts from its first
// attempt, since that is all that the leader can know.
//
//spec:test Once
func TestAClientWhoseAnswerWasLostIsToldOfItsLockAtOnce(t *testing.T) {
	for _, leader := range []raft.ServerID{1, 2} {
		for _, kind := range []string{"wait", "try"} {
			t.Run(fmt.Sprintf("%s at %d", kind, leader), func(t *testing.T) {
				c := held1(t, Rules{})
				waiter := c.ask(1, acquire(2, "door")) // and who waits has no part in it
				if leader != 1 {
					c.elect(leader)
				}
				n := len(c.node(leader).proposed)
				q := c.again(1)
				q.Try, q.Attempt = kind == "try", 7
				a := c.ask(leader, q)
				same(t, "proposed", []string{"grant door for client"}, c.proposals(leader, n))
				c.settle()
				want := []Reply{{Call: a, Result: Result{Kind: Granted, Token: 1, Again: true}}}
				same(t, "reply", want, c.replies(a))
				c.tables("door=1")
				c.tick(leader, 10*second) // no lease was set
				c.settle()
				same(t, "after the lease", leader == 1, c.answer(waiter) == "Granted{2}")
				same(t, "expired", 1, c.counts["Expired{true}"])
				b := c.ask(leader, c.again(a))
				c.settle()
				same(t, "when the tenure is over", "Noop", c.answer(b))
			})
		}
	}
}

// Hazards 3, 4, curator#1121. A Granted that a client was told is never withdrawn but by its lease,
// its own Release or a bare one. Here the first answer cannot be handed over, which the driver learns
// when the client has come back, in each of the places where it can be.
//
//spec:test L4
func TestAnAnswerThatCannotBeHandedOverEndsItsTenureUnlessTheClientIsBack(t *testing.T) {
	begin := func(t *testing.T) *cluster {
		c := leading(t, Rules{})
		c.ask(1, acquire(1, "door"))
		c.calls[0].deaf = true
		c.settle()
		same(t, "A", "Granted{1}", c.answer(1))
		return c
	}
	t.Run("gone", func(t *testing.T) {
		c := begin(t)
		b := c.ask(1, acquire(2, "door"))
		c.do(1, c.lost(1))
		c.settle()
		same(t, "cause", ForCleanup, c.node(1).proposed[1].Cause)
		same(t, "B", "Granted{2}", c.answer(b))
		again := c.ask(1, c.again(1)) // too late
		c.settle()
		same(t, "A again", "Noop", c.answer(again))
	})
	t.Run("gone, without a session", func(t *testing.T) {
		c := leading(t, Rules{})
		c.ask(1, acquire(0, "door"))
		c.calls[0].deaf = true
		c.settle()
		other := acquire(0, "gate")
		other.Seq = 1
		_, ask := c.input(1, other) // somebody else without one
		c.do(1, c.lost(1), ask)
		c.settle()
		c.tables("gate=2")
	})
	t.Run("back in the same moment", func(t *testing.T) {
		c := begin(t)
		again, ask := c.input(1, c.again(1))
		c.do(1, c.lost(1), ask)
		c.settle()
		same(t, "A", "Granted{1} again", c.answer(again))
		c.tables("door=1")
	})
	t.Run("back in the same moment, where it is taken for somebody new", func(t *testing.T) {
		c := leading(t, Rules{NoRequestIDs: true})
		c.ask(1, acquire(1, "door"))
		c.calls[0].deaf = true
		c.settle()
		again, ask := c.input(1, c.again(1))
		c.do(1, c.lost(1), ask)
		c.settle()
		same(t, "A", "Granted{2}", c.answer(again))
		c.tables("door=2")
	})
	t.Run("back in the log", func(t *testing.T) {
		c := begin(t)
		again := c.ask(1, c.again(1))
		c.do(1, c.lost(1))
		c.settle()
		same(t, "A", "Granted{1} again", c.answer(again))
		c.tables("door=1")
	})
	t.Run("back, and told", func(t *testing.T) {
		c := begin(t)
		again := c.ask(1, c.again(1))
		c.settle()
		same(t, "A", "Granted{1} again", c.answer(again))
		c.do(1, c.lost(1))
		c.do(1, c.lost(again)) // what was told again is not this leader's to withdraw either
		c.settle()
		c.tables("door=1")
		c.ask(1, release(1, "door", 1))
		c.settle()
		same(t, "kept", 0, len(c.node(1).leader.retold))
	})
	t.Run("told by the next leader, and the first leads again", func(t *testing.T) {
		c := begin(t)
		c.elect(2)
		again := c.ask(2, c.again(1))
		c.settle()
		same(t, "A", "Granted{1} again", c.answer(again))
		c.do(1, c.lost(1)) // does not lead
		c.elect(1)
		c.do(1, c.lost(1)) // leads, and cannot know
		c.settle()
		c.tables("door=1")
	})
	t.Run("something else than a Granted", func(t *testing.T) {
		c := begin(t)
		c.ask(1, try(2, "door"))
		b := c.ask(1, release(2, "door", 9))
		c.settle()
		c.do(1, c.lost(2), c.lost(b))
		c.settle()
		c.tables("door=1")
	})
}

// Hazard 4, curator#1121 (the other half): the client leaves while its second asking is in the log. The
// first answer may have reached it.
//
//spec:test L4
func TestALockThatIsToldAgainIsNotCleanedUp(t *testing.T) {
	c := held1(t, Rules{})
	c.elect(2)
	c.disconnect(c.ask(2, c.again(1)))
	c.settle()
	same(t, "told again", 1, c.counts["Granted again"])
	c.tables("door=1")
}

// Two programs with one session. What can be noticed is another wish under the same number, where
// the first one is known.
//
//spec:test Once
func TestANumberThatNamesAnotherRequestIsNoticed(t *testing.T) {
	c := leading(t, Rules{})
	c.held = appends(1)
	a := c.ask(1, acquire(1, "door"))
	waits := c.ask(1, acquire(1, "door"))
	other := func(of uint64, change func(*Request)) uint64 {
		q := c.again(of)
		change(&q)
		return c.ask(1, q)
	}
	inLog := []uint64{
		other(a, func(q *Request) { q.Key = "gate" }),
		other(a, func(q *Request) { q.LeaseMS++ }),
		other(a, func(q *Request) { q.Kind, q.Token = Release, 9 }),
		other(waits, func(q *Request) { q.LeaseMS++ }),
	}
	for _, call := range inLog {
		if y := c.replies(call)[0]; y.Status != Invalid || !errors.Is(y.Err, ErrReused) {
			t.Errorf("%+v", y)
		}
	}
	c.held = nil
	c.settle()
	same(t, "the first", "Granted{1}", c.answer(a))
	b := other(a, func(q *Request) { q.Key = "gate" })
	c.settle()
	same(t, "when it is done", "NumberReused", c.answer(b))
	c.ask(1, release(1, "door", 1))
	c.settle()
	same(t, "the one that waits", "Granted{2}", c.answer(waits))
	c.tables("door=2")
}

// Hazards 31, 32, etcd#9715: a queue is of bounded length, a Grant that need not wait is not
// concerned, and who goes makes room.
func TestTheQueuesAreBounded(t *testing.T) {
	c := held1(t, Rules{})
	var inputs []func(*Replica)
	for range maxWaiters {
		_, ask := c.input(1, acquire(0, "door"))
		inputs = append(inputs, ask)
	}
	c.do(1, inputs...)
	same(t, "waiting", maxWaiters, c.node(1).leader.waiters)
	numbered := func(q Request) Request {
		q.Client, q.Seq = ClientID(len(c.calls)%99+1), 200
		return q
	}
	full, free := c.ask(1, numbered(acquire(3, "door"))), c.ask(1, numbered(acquire(3, "gate")))
	tried := c.ask(1, numbered(try(3, "door")))
	behind := c.ask(1, numbered(acquire(4, "gate"))) // behind the one that goes through
	same(t, "answers", "full, , held, full", c.answers(full, free, tried, behind))
	c.settle()
	same(t, "the free key", "Granted{2}", c.answer(free))
	c.disconnect(100)
	last := c.ask(1, numbered(acquire(3, "door")))
	same(t, "in the place of one that left", "", c.answer(last))
	same(t, "full again", "full", c.answer(c.ask(1, numbered(acquire(3, "door")))))
}

// A Release that was predicted to free the key did not: its client's session was over. The Grant
// behind it is rejected, and is the first in the queue again. In a stable term nobody overtakes.
//
//spec:test L2
func TestARejectedGrantKeepsItsTurn(t *testing.T) {
	for name, rules := range map[string]Rules{"gate": {}, "no gate": {NoGate: true}} {
		t.Run(name, func(t *testing.T) {
			c := held1(t, rules)
			var calls []uint64
			c.held = appends(1)
			c.ask(1, release(777, "door", 1)) // there is no such session
			for client := range ClientID(4) {
				calls = append(calls, c.ask(1, acquire(client+2, "door")))
			}
			c.held = nil
			c.settle()
			if c.counts["SessionUnknown"] != 1 || c.counts["GrantRejected"] == 0 {
				t.Errorf("too tame: %v", c.counts)
			}
			c.tables("door=1")
			for i, call := range calls {
				c.ask(1, release(0, "door", 0))
				c.settle()
				same(t, fmt.Sprint("turn ", i), fmt.Sprintf("Granted{%d}", i+2), c.answer(call))
			}
		})
	}
}

// A number that its client has closed while it waited: a dead head. It takes nothing, and the next
// is granted in the same message. (Hazard 31, etcd#19597.)
func TestADeadHeadDoesNotDelayTheNext(t *testing.T) {
	c := held1(t, Rules{})
	dead := c.ask(1, acquire(2, "door"))
	alive := c.ask(1, acquire(3, "door"))
	c.lowest[2] = dead + 1
	c.ask(1, Request{Client: 2, Text: "closes"})
	c.settle()
	n := len(c.node(1).proposed)
	c.ask(1, release(1, "door", 1))
	want := []string{"release door 1 for client", "grant door for client", "grant door for client"}
	same(t, "proposed together", want, c.proposals(1, n))
	c.settle()
	same(t, "answers", "Noop, Granted{2}", c.answers(dead, alive))
}

// A Release that is told again ends nothing, so no Grant is proposed on the strength of it.
func TestALeaderDoesNotCountOnARequestThatIsSpent(t *testing.T) {
	c := held1(t, Rules{})
	bare := c.ask(1, release(1, "door", 0))
	b := c.ask(1, acquire(2, "door"))
	c.settle()
	same(t, "B", "Granted{2}", c.answer(b))
	waits := c.ask(1, acquire(3, "door"))
	n := len(c.node(1).proposed)
	c.ask(1, c.again(bare))
	same(t, "proposed", []string{"release door 0 for client"}, c.proposals(1, n))
	c.settle()
	same(t, "rejected", 0, c.counts["GrantRejected"])
	same(t, "C", "", c.answer(waits))
	c.tables("door=2")
}

// A token that nobody was given yet is a mistake of its sender's, or of the resource's keeper.
func TestATokenOfTheFutureIsToldApart(t *testing.T) {
	c := held1(t, Rules{})
	for _, row := range []struct {
		q    Request
		want error
	}{
		{release(1, "door", 2), ErrTokenAhead}, {extend(1, "door", 2), ErrTokenAhead},
		{release(1, "gate", 1), nil}, {extend(1, "gate", 1), nil}, {release(1, "gate", 0), nil},
	} {
		call := c.ask(1, row.q)
		c.settle()
		y := c.replies(call)[0]
		if y.Result.Kind != NotFound || !errors.Is(y.Err, row.want) || (y.Err == nil) != (row.want == nil) {
			t.Errorf("%+v: %+v", row.q, y)
		}
	}
}

// Each mistake in naming a request has an error of its own.
func TestABadRequestInASessionSaysWhatIsWrong(t *testing.T) {
	for _, row := range []struct {
		name string
		q    Request
		want error
	}{
		{"below the lowest open one", Request{Client: 1, Seq: 4, Lowest: 5}, ErrClosed},
		{"the lowest open one", Request{Client: 1, Seq: 5, Lowest: 5}, nil},
		{"the greatest", Request{Client: 1, Seq: 1<<64 - 1, Lowest: 1<<64 - 1}, nil},
		{"256 open", Request{Client: 1, Seq: 260, Lowest: 5}, nil},
		{"257 open", Request{Client: 1, Seq: 261, Lowest: 5}, ErrTooMany},
		{"all there are", Request{Client: 1, Seq: 1<<64 - 1}, ErrTooMany},
		{"no session, so no numbers", Request{Seq: 4, Lowest: 5}, nil},
		{"a session in a session", Request{Client: 1, Seq: 1, Lowest: 1, Kind: Open}, ErrCommand},
		{"an Expire in a session", Request{Client: 1, Seq: 1, Kind: Expire, Key: "k", Token: 1}, ErrCommand},
		{"a session", Request{Kind: Open}, nil},
		{"an extension of no token", extend(1, "k", 0), ErrToken},
		{"an extension", extend(1, "k", 1), nil},
		{"an extension of no key", extend(1, "", 1), ErrKey},
		{"an extension by nothing", Request{Kind: Extend, Key: "k", Token: 1}, ErrLeaseRange},
	} {
		status, err := ask(t, row.q)
		if !errors.Is(err, row.want) || (status == Invalid) != (row.want != nil) {
			t.Errorf("%s: %s, %v; want %v", row.name, status, err, row.want)
		}
	}
}
