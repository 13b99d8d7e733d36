package rpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// entriesOf returns a tenure's Extends and Releases in a server's log, in order.
func (c *cluster) entriesOf(id raft.ServerID, token fsm.Token) (kinds []fsm.Kind) {
	kinds, _ = look(c.nodes[id], func(r *fsm.Replica) (kinds []fsm.Kind) {
		for _, e := range r.Core().Entries(1, r.Core().Status().LastIndex) {
			d, err := fsm.Decode(e.Command)
			if err == nil && d.Token == token && (d.Kind == fsm.Extend || d.Kind == fsm.Release) {
				kinds = append(kinds, d.Kind)
			}
		}
		return kinds
	})
	return kinds
}

// An Unlock comes in every moment of an extension, and beside it come others, the deadline, or
// Close. Whatever comes of it, Done is closed with one reason that stays, no Extend stands behind
// the Release in the log, and a lock that Unlock has given back is free.
func TestKeepAliveEndsBeforeTheRelease(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		random, met, lease := rand.New(rand.NewPCG(1, 2)), 0, c.lease()
		for round := range 60 {
			k := c.client(t, "A")
			l := lock(t, k, fmt.Sprint("key ", round), lease)
			KeepAlive(l)
			time.Sleep(lease/3 + time.Duration(random.Int64N(int64(3*slowSync))))
			if len(l.extending) > 0 {
				met++
			}
			var all sync.WaitGroup
			results := make(chan error, 4)
			for range 1 + round%3 {
				all.Go(func() { results <- l.Unlock(within(t)) })
			}
			if round%4 == 1 {
				all.Go(k.Close)
			}
			if round%5 == 2 {
				all.Go(func() { KeepAlive(l) })
			}
			all.Wait()
			close(results)
			first := l.Err()
			if first == nil {
				t.Fatal("it has not ended")
			}
			back := 0
			for err := range results {
				switch {
				case err == nil:
					back++
				case errors.Is(err, ErrNotHeld), errors.Is(err, ErrClosed):
				case !errors.Is(err, ErrUnknownOutcome):
					t.Errorf("Unlock says %v", err)
				}
			}
			if back > 1 || back == 1 && held(c.nodes[leader], l.Key()) {
				t.Errorf("%d Unlocks have given it back; it is held: %v", back,
					held(c.nodes[leader], l.Key()))
			}
			time.Sleep(10 * slowSync)
			kinds := c.entriesOf(leader, l.Token())
			if i := slices.Index(kinds, fsm.Release); i >= 0 && i < len(kinds)-1 {
				t.Errorf("the log has %v", kinds)
			}
			if l.Err() != first {
				t.Errorf("it has ended with %v, and now it says %v", first, l.Err())
			}
			k.Close()
		}
		if met < 10 {
			t.Errorf("an Extend was under way %d times", met)
		}
	})
}

// KeepAlive is about to ask, and slow to hear that it need not any more. The Release leaves after
// it.
func TestUnlockWaitsForKeepAlive(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		slow := make(chan struct{}, 1)
		k, err := Dial(t.Context(), []string{c.addrs[leader]}, Options{
			Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				select {
				case <-slow:
					<-ctx.Done()
					time.Sleep(time.Second)
					return nil, ctx.Err()
				default:
					return c.net.dialer("A")(ctx, addr)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		l := lock(t, k, "door", c.lease())
		for _, l := range k.idle {
			l.Close()
		}
		k.idle = nil
		slow <- struct{}{}
		KeepAlive(l)
		time.Sleep(c.lease()/3 + dialTimeout/5)
		if len(slow) > 0 {
			t.Fatal("KeepAlive has not asked yet")
		}
		if took := timed(func() { unlock(t, l) }); took < time.Second {
			t.Errorf("Unlock has waited for %v", took)
		}
	})
}

// The network comes back in the moment in which the lock ends. An Extend that leaves now would be
// carried out, as the service's count ends a little later, and keep the key from everybody for a
// lease in which nobody believes to have it.
func TestKeepAliveSendsNothingOnceDoneIsClosed(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, cut := c.client(t, "A"), both("A", "n1", "n2", "n3")
		for round := range 60 {
			l := lock(t, k, fmt.Sprint("key ", round), c.lease())
			KeepAlive(l)
			c.net.set(func(w *wire) { w.cut = true }, cut...)
			<-l.Done()
			c.net.set(func(w *wire) { w.cut = false }, cut...)
			time.Sleep(10 * slowSync)
			if kinds := c.entriesOf(leader, l.Token()); len(kinds) > 0 {
				t.Fatalf("round %d: the log has %v", round, kinds)
			}
			time.Sleep(c.lease())
		}
	})
}

// What KeepAlive sends after the lock was taken away does not take it again, and the loss is known
// as soon as it has asked.
func TestKeepAliveDoesNotTakeALockAgain(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, b, lease := c.client(t, "A"), c.client(t, "B"), c.lease()
		l := lock(t, k, "door", lease)
		KeepAlive(l)
		time.Sleep(lease)
		next := make(chan *Lock)
		go func() { next <- lock(t, b, "door", time.Hour) }()
		synctest.Wait()
		if _, err := b.ForceRelease(within(t), "door"); err != nil {
			t.Fatal(err)
		}
		second := <-next
		<-l.Done()
		if err := l.Err(); !errors.Is(err, ErrNotHeld) || errors.Is(err, ErrLost) {
			t.Errorf("it has ended with %v", err)
		}
		time.Sleep(2 * lease)
		if n := c.grantsOf(leader, "door"); n != 2 || second.Err() != nil {
			t.Errorf("the key was granted %d times, and the second holder has %v", n, second.Err())
		}
		unlock(t, second)
	})
}

// The first attempt of an Extend was carried out, and its answer lost. The lease has been counted
// since then, whatever the second one is told.
func TestAnExtendWhoseAnswerIsLateCountsFromItsFirstSending(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, lease := c.client(t, "A"), 10*c.lease()
		l := lock(t, k, "door", 2*c.lease())
		answers := [2]string{name(leader), "A"}
		c.net.set(func(w *wire) { w.cut = true }, answers)
		time.AfterFunc(replyTimeout+replyTimeout/2, func() {
			c.net.set(func(w *wire) { w.cut = false }, answers)
		})
		sent := time.Now()
		if err := l.Extend(within(t), lease); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(sent); took < replyTimeout {
			t.Errorf("the answer came after %v, in time", took)
		}
		if want := leaseEnd(sent, lease); !l.Deadline().Equal(want) {
			t.Errorf("the deadline is %v from its sending, want %v", l.Deadline().Sub(sent), want.Sub(sent))
		}
		holdsWhile(t, c.nodes[leader], l)
	})
}

// One that has waited for many leases counts from an attempt that it has sent a short time ago, and
// never from one that the leader did not have.
func TestAWaitersDeadlineCountsFromItsNewestAttempt(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a, b, lease, random := c.client(t, "A"), c.client(t, "B"), c.lease(), rand.New(rand.NewPCG(3, 4))
		for range 20 {
			first := lock(t, a, "door", time.Hour)
			got := make(chan *Lock)
			go func() { got <- lock(t, b, "door", lease) }()
			time.Sleep(2*lease + time.Duration(random.Int64N(int64(lease))))
			unlock(t, first)
			l := <-got
			if left, least := time.Until(l.Deadline()), lease*99/100-lease/3-10*slowSync; left < least {
				t.Errorf("it has %v left of %v, want %v", left, lease, least)
			}
			if l.Token() != first.Token()+1 {
				t.Errorf("token %d comes after %d: it was granted more than once", l.Token(), first.Token())
			}
			holdsWhile(t, c.nodes[leader], l)
			time.Sleep(lease / 10)
		}
	})
}

// The Grant needs longer than its lease to be committed. It was proposed on the first attempt, so
// the lock is over when it comes: it is given back with its token, and asked for anew.
func TestALockThatComesPastItsDeadlineIsGivenBack(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, lease := c.client(t, "A"), c.lease()
		slow := func(sync time.Duration) {
			for id, d := range c.disks {
				if id != leader {
					d.set(func(d *disk) { d.sync = sync })
				}
			}
		}
		slow(lease)
		time.AfterFunc(lease/2, func() { slow(slowSync) })
		l := lock(t, k, "door", lease)
		if l.Token() != 2 || l.Err() != nil {
			t.Errorf("it has token %d, %v", l.Token(), l.Err())
		}
		if n := c.released(leader, "door", 1); n != 1 {
			t.Errorf("the log has %d Releases of the one that came late", n)
		}
		holdsWhile(t, c.nodes[leader], l)
	})
}

// Close comes in every moment of every call. The call returns, and nothing of the client is left:
// no goroutine in the bubble, neither its own nor a server's for it.
func TestCloseInAnyMomentLeavesNothingBehind(t *testing.T) {
	calls := map[string]func(k *Client, l *Lock) error{
		"Lock": func(k *Client, _ *Lock) error {
			return second(k.Lock(context.Background(), "free", time.Minute))
		},
		"a Lock that waits": func(k *Client, _ *Lock) error {
			return second(k.Lock(context.Background(), "taken", time.Minute))
		},
		"TryLock": func(k *Client, _ *Lock) error {
			return second(k.TryLock(context.Background(), "free", time.Minute))
		},
		"Extend": func(_ *Client, l *Lock) error { return l.Extend(context.Background(), time.Minute) },
		"Extend by token": func(k *Client, l *Lock) error {
			return second(k.Extend(context.Background(), l.Key(), l.Token(), time.Minute))
		},
		"Unlock": func(_ *Client, l *Lock) error { return l.Unlock(context.Background()) },
		"Release": func(k *Client, l *Lock) error {
			return k.Release(context.Background(), l.Key(), l.Token())
		},
		"KeepAlive": func(_ *Client, l *Lock) error {
			KeepAlive(l)
			<-l.Done()
			return l.Err()
		},
		"Do": func(k *Client, _ *Lock) error {
			work := func(ctx context.Context, _ fsm.Token) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return k.Do(context.Background(), "free", time.Minute, work)
		},
	}
	for what, call := range calls {
		inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
			lock(t, c.client(t, "other"), "taken", 24*time.Hour)
			synctest.Wait()
			closed, before := 0, runtime.NumGoroutine()
			for _, wait := range []time.Duration{
				0, 1, slowSync / 2, slowSync - 1, slowSync, slowSync + 1, 2 * slowSync, 2*slowSync + 1,
				time.Second,
			} {
				k, err := Dial(t.Context(), []string{c.addrs[leader]}, Options{Dial: c.net.dialer("A")})
				if err != nil {
					t.Fatal(err)
				}
				l, said := lock(t, k, fmt.Sprint("own ", wait), time.Minute), make(chan error, 1)
				go func() { said <- call(k, l) }()
				if wait > 0 {
					time.Sleep(wait)
				}
				k.Close()
				if err := <-said; errors.Is(err, ErrClosed) {
					closed++
				}
				<-l.Done()
				time.Sleep(farewell + 10*slowSync) // for a lock that comes all the same
				eventually(t, "as many goroutines run as before "+what, func() bool {
					synctest.Wait()
					return runtime.NumGoroutine() <= before
				})
				if err := k.Release(t.Context(), l.Key(), l.Token()); !errors.Is(err, ErrClosed) {
					t.Errorf("a call after Close: %v", err)
				}
			}
			if closed == 0 {
				t.Errorf("no %s was under way when Close came", what)
			}
		})
	}
}

// A server that was asked and is silent keeps Close for a moment, for an answer that may be on its
// way.
func TestCloseDoesNotWaitForASilentServer(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		lock(t, c.client(t, "B"), "door", time.Hour)
		k := c.client(t, "A")
		go func() { _, _ = k.Lock(context.Background(), "door", time.Hour) }()
		synctest.Wait()
		c.net.set(func(w *wire) { w.cut = true }, both("A", "n1", "n2", "n3")...)
		if took := timed(k.Close); took != farewell {
			t.Errorf("Close has taken %v", took)
		}
	})
}

func second[T any](_ T, err error) error { return err }
