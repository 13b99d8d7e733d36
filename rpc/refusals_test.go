package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// sessions opens so many sessions, which nobody uses.
func (c *cluster) sessions(t *testing.T, leader raft.ServerID, count int) {
	t.Helper()
	k := c.raw("crowd", leader)
	for count > 0 {
		batch := min(count, maxRequests)
		done := make(chan *rpc.Call, batch)
		for range batch {
			k.Go("Lock.Open", &OpenArgs{Owner: "crowd"}, new(OpenReply), done)
		}
		for range batch {
			call := <-done
			if y := call.Reply.(*OpenReply); call.Error != nil || y.Status != OK {
				t.Fatalf("a session: %+v, %v", y, call.Error)
			}
		}
		count -= batch
	}
	k.Close()
}

// crowded is so many that all others are forgotten.
const crowded = 4096

// tokens is the last token that a server's table has given out.
func tokens(n *Node) fsm.Token {
	last, _ := look(n, func(r *fsm.Replica) fsm.Token { return r.Table().Tokens() })
	return last
}

// grantsOf counts the Grants of a key that have given it out, by a server's log.
func (c *cluster) grantsOf(id raft.ServerID, key string) (count int) {
	count, _ = look(c.nodes[id], func(r *fsm.Replica) (count int) {
		var table fsm.Table
		for _, e := range r.Core().Entries(1, r.Core().Status().LastApplied) {
			d, err := fsm.Decode(e.Command)
			if err != nil {
				continue
			}
			y := table.Apply(e.Index, d)
			if d.Kind == fsm.Grant && d.Key == key && y.Kind == fsm.Granted && !y.Again {
				count++
			}
		}
		return count
	})
	return count
}

// Each bad input has its own error. This client sends none of them, so its session is spoilt by
// hand.
func TestANumberThatTheSessionCannotUseIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		first uint64 // the request's number is the next
		spoil func(p *pass)
		want  error
	}{
		{"below the lowest", 0, func(p *pass) { clear(p.open) }, ErrNumberClosed},
		{"too far above it", 300, func(p *pass) { p.open[1] = true }, ErrNumberTooFar},
	} {
		inBubble(t, slowSync, func(t *testing.T, cl *cluster, leader raft.ServerID) {
			held, k := lock(t, cl.client(t, "B"), "door", time.Minute), cl.client(t, "A")
			k.pass.last = max(k.pass.last, c.first)
			said := make(chan error, 1)
			go func() {
				_, err := k.Lock(within(t), "door", time.Minute)
				said <- err
			}()
			synctest.Wait()
			k.mu.Lock()
			c.spoil(k.pass) // and the attempt that it sends next tells
			k.mu.Unlock()
			if err := <-said; !errors.Is(err, c.want) || errors.Is(err, ErrInvalid) {
				t.Errorf("a number %s: %v", c.name, err)
			}
			synctest.Wait() // the attempt before is given up
			unlock(t, held)
			time.Sleep(10 * slowSync)
			if holds := cl.grantsOf(leader, "door"); holds != 1 {
				t.Errorf("a number %s: the key was granted %d times", c.name, holds)
			}
		})
	}
}

// Two programs with one session: a virtual machine and its copy. Where they want different things,
// one of them is told, and neither has the other's lock.
func TestASessionThatAnotherUsesIsNoticed(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		copied := *a.pass
		copied.open = map[uint64]bool{}
		l := lock(t, a, "door", time.Minute)
		b.pass = &copied
		if _, err := b.Lock(within(t), "window", time.Minute); !errors.Is(err, ErrNumberReused) {
			t.Errorf("the number of a request that was carried out: %v", err)
		}
		go func() { _, _ = a.Lock(context.Background(), "gate", time.Minute) }()
		synctest.Wait() // it is on its way to the disks
		b.pass.last = a.pass.last - 1
		if err := b.Release(within(t), "door", l.Token()); !errors.Is(err, ErrNumberReused) {
			t.Errorf("the number of a request that is under way: %v", err)
		}
		if held(c.nodes[leader], "window") || !held(c.nodes[leader], "door") {
			t.Error("the other one's request was carried out")
		}
		unlock(t, l)
	})
}

// H15, from the client's side: a token that was not given out yet.
func TestATokenFromTheFutureIsToldApart(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		l := lock(t, k, "door", time.Minute)
		_, extended := k.Extend(within(t), "door", l.Token()+1, time.Minute)
		for what, err := range map[string]error{
			"a Release": k.Release(within(t), "door", l.Token()+1), "an Extend": extended,
		} {
			if !errors.Is(err, ErrTokenAhead) || !errors.Is(err, ErrNotHeld) {
				t.Errorf("%s: %v", what, err)
			}
		}
		unlock(t, l)
		_, extended = k.Extend(within(t), "door", l.Token(), time.Minute)
		for what, err := range map[string]error{
			"a Release": k.Release(within(t), "door", l.Token()), "an Extend": extended,
		} {
			if errors.Is(err, ErrTokenAhead) || !errors.Is(err, ErrNotHeld) {
				t.Errorf("%s of what is over: %v", what, err)
			}
		}
	})
}

// expiring makes the service end a lock's lease before its holder's count is over, as by a leader's
// clock that is much too fast: here by its token, behind its holder's back. It returns when the end
// is on its way to the disks.
func (c *cluster) expiring(t *testing.T, k *Client, leader raft.ServerID, l *Lock) {
	t.Helper()
	if _, err := k.Extend(within(t), l.Key(), l.Token(), c.lease()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(c.lease() - election/10)
	for id, d := range c.disks {
		if id != leader {
			d.set(func(d *disk) { d.sync = election / 2 })
		}
	}
	eventually(t, "an Expire is in the log", func() bool {
		found, _ := look(c.nodes[leader], func(r *fsm.Replica) bool {
			s := r.Core().Status()
			for _, e := range r.Core().Entries(s.LastApplied+1, s.LastIndex) {
				if d, err := fsm.Decode(e.Command); err == nil && d.Kind == fsm.Expire {
					return true
				}
			}
			return false
		})
		return found
	})
}

// The end is on its way, and nothing stops it any more. So it is no use to believe in the lock
// until the deadline.
func TestAnExtendThatComesTooLateIsToldApart(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		l := lock(t, a, "door", 100*c.lease())
		c.expiring(t, b, leader, l)
		if _, err := b.Extend(within(t), "door", l.Token(), time.Minute); !errors.Is(err, ErrExpiring) {
			t.Errorf("by its token: %v", err)
		}
		err := l.Extend(within(t), time.Minute)
		if !errors.Is(err, ErrExpiring) || !errors.Is(err, ErrNotHeld) {
			t.Errorf("by its holder: %v", err)
		}
		if !errors.Is(l.Err(), ErrExpiring) || !held(c.nodes[leader], "door") {
			t.Errorf("its holder believes that %v, and it is held: %v", l.Err(),
				held(c.nodes[leader], "door"))
		}
	})
}

// A server with as many waiters as it takes keeps a client asking, and in the end that knows why.
func TestAFullQueueIsToldApart(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		l := lock(t, k, "door", time.Hour)
		for i := range maxWaiting/maxRequests + 1 {
			crowd := c.rawCaller(t, fmt.Sprint("B", i), leader)
			for range min(maxRequests, maxWaiting-i*maxRequests) {
				crowd.Go("Lock.Acquire", &AcquireArgs{Attempt: 1, Key: "door", LeaseMS: 60_000},
					new(AcquireReply), make(chan *rpc.Call, 1))
			}
		}
		synctest.Wait()
		if n := callers(c.nodes[leader]); n != maxWaiting {
			t.Fatalf("%d wait", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := k.Lock(ctx, "window", time.Minute)
		if !errors.Is(err, ErrQueueFull) || !errors.Is(err, ErrTooMany) || errors.Is(err, ErrNoLeader) ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it is told %v", err)
		}
		unlock(t, l)
	})
}

// Whatever the service says has its own status, and each status that refuses its own error.
func TestEveryAnswerHasItsOwnError(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("%w: 7", err) }
	errs, seen := map[error]bool{}, map[Status]bool{}
	for _, c := range []struct {
		r    fsm.Reply
		want error
	}{
		{fsm.Reply{Result: fsm.Result{Kind: fsm.NotFound}}, ErrNotHeld},
		{fsm.Reply{Result: fsm.Result{Kind: fsm.NotFound}, Err: wrapped(fsm.ErrTokenAhead)}, ErrTokenAhead},
		{fsm.Reply{Result: fsm.Result{Kind: fsm.SessionUnknown}}, ErrForgotten},
		{fsm.Reply{Result: fsm.Result{Kind: fsm.TableFull}}, ErrTableFull},
		{fsm.Reply{Result: fsm.Result{Kind: fsm.NumberReused}}, ErrNumberReused},
		{fsm.Reply{Status: fsm.Expiring}, ErrExpiring},
		{fsm.Reply{Status: fsm.Full}, ErrQueueFull},
		{fsm.Reply{Status: fsm.Invalid, Err: wrapped(fsm.ErrClosed)}, ErrNumberClosed},
		{fsm.Reply{Status: fsm.Invalid, Err: wrapped(fsm.ErrTooMany)}, ErrNumberTooFar},
		{fsm.Reply{Status: fsm.Invalid, Err: wrapped(fsm.ErrKey)}, ErrInvalid},
	} {
		status := statusOf(c.r)
		err := refusal(status, "", 0)
		if !errors.Is(err, c.want) || seen[status] || errs[c.want] {
			t.Errorf("%+v is answered with status %d, which is the error %v, want %v",
				c.r, status, err, c.want)
		}
		seen[status], errs[c.want] = true, true
	}
	if s := statusOf(fsm.Reply{Status: fsm.Invalid, Err: wrapped(fsm.ErrReused)}); s != Reused {
		t.Errorf("a number that is under way is answered with %d", s)
	}
	if s := statusOf(fsm.Reply{Status: fsm.Busy}); s != Busy {
		t.Errorf("a log that is full is answered with %d", s)
	}
	if err := refusal(Invalid, "", 7); !errors.Is(err, ErrLeaseRange) {
		t.Errorf("a short lease is %v", err)
	}
}
