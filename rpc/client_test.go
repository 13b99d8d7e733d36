package rpc

import (
	"context"
	"errors"
	"math"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// Consul's clients were seen to notice minutes late that they had lost a lock, as they waited for
// an answer. Here the client is cut off, and counts by itself. (consul#18271.)
func TestAHolderLearnsOfItsLossWithoutAPacket(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, lease := c.client(t, "A"), c.lease()
		asked := time.Now()
		l := lock(t, k, "door", lease)
		if took := time.Since(asked); took == 0 {
			t.Fatal("taking the lock has taken no time, so it does not matter from when to count")
		}
		c.net.set(func(w *wire) { w.cut = true }, both("A", "n1", "n2", "n3")...)
		sent := c.net.written("A")
		<-l.Done()
		took, deadline, want := time.Since(asked), l.Deadline().Sub(asked), lease*99/100
		if took != want || deadline != want {
			t.Errorf("Done was closed %v after the request, and the deadline was after %v, want %v",
				took, deadline, want)
		}
		if err := l.Err(); !errors.Is(err, ErrLost) || !errors.Is(err, ErrNotHeld) {
			t.Errorf("it has ended with %v", err)
		}
		if now := c.net.written("A"); now != sent {
			t.Errorf("%d packets were sent for it", now-sent)
		}
		if !held(c.nodes[leader], "door") {
			t.Error("the service's count was over first")
		}
	})
}

// held tells whether a server's table has a holder for a key.
func held(n *Node, key string) bool {
	h, ok := look(n, func(r *fsm.Replica) bool { _, held := r.Table().Holder(key); return held })
	return ok && h
}

// Hazard 18.
func TestTheMarginCoversClocksThatAreOffByHalfAHundredth(t *testing.T) {
	const rate = 0.005
	if eps := 1.0 / margin; eps < 2*rate/(1+rate) {
		t.Errorf("a margin of %v is less than %v", eps, 2*rate/(1+rate))
	}
	w := wish{lease: 10 * time.Second, sentAt: []time.Time{time.Now(), time.Now().Add(time.Second)}}
	for attempt, from := range map[uint32]int{0: 0, 1: 0, 2: 1, 3: 0} {
		if got, want := w.deadline(attempt), w.sentAt[from].Add(9900*time.Millisecond); got != want {
			t.Errorf("the deadline of attempt %d is %v, want %v", attempt, got, want)
		}
	}
}

// After a loss the value stays what it is, and the key can be had again with a new one.
// (consul#4935.)
func TestALockIsUsedOnce(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		k := c.client(t, "A")
		first := lock(t, k, "door", c.lease())
		<-first.Done()
		second := lock(t, k, "door", time.Minute) // it waits for the service's count
		if second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		if err := first.Unlock(within(t)); !errors.Is(err, ErrLost) {
			t.Errorf("giving back what was lost: %v", err)
		}
		if _, err := k.Lock(within(t), "door", time.Minute); !errors.Is(err, ErrAlreadyHeld) {
			t.Errorf("the old value has freed the key here: %v", err)
		}
		if err := second.Err(); err != nil {
			t.Errorf("the new one has ended: %v", err)
		}
		unlock(t, second)
	})
}

// Hazard 8.
func TestAClientIsOneHolder(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		refused := func(when string) {
			t.Helper()
			for try, take := range []func(context.Context, string, time.Duration) (*Lock, error){
				a.Lock, a.TryLock,
			} {
				var err error
				took := timed(func() { _, err = take(within(t), "door", time.Minute) })
				if !errors.Is(err, ErrAlreadyHeld) || took != 0 {
					t.Errorf("form %d, by a client that %s: %v, after %v", try, when, err, took)
				}
			}
		}
		first := lock(t, b, "door", time.Minute)
		ctx, leave := context.WithCancel(within(t))
		waits := make(chan error)
		go func() {
			_, err := a.Lock(ctx, "door", time.Minute)
			waits <- err
		}()
		synctest.Wait()
		refused("waits for it")
		leave()
		if err := <-waits; !errors.Is(err, context.Canceled) {
			t.Errorf("the Lock that waited: %v", err)
		}
		unlock(t, first)
		for range 2 { // a failure and an Unlock both free it
			l := lock(t, a, "door", time.Minute)
			refused("holds it")
			unlock(t, lock(t, a, "window", time.Minute))
			unlock(t, l)
		}
	})
}

func TestATryIsToldWhoHoldsTheKey(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		l := lock(t, a, "door", time.Minute)
		_, err := b.TryLock(within(t), "door", time.Minute)
		var held *HeldError
		if !errors.Is(err, ErrHeld) || !errors.As(err, &held) {
			t.Fatalf("it is told %v", err)
		}
		if want := (HeldError{"door", l.Token(), "A"}); *held != want {
			t.Errorf("it is told %+v, want %+v", *held, want)
		}
	})
}

func TestALeaseOutOfRangeIsRefused(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		k, most := c.client(t, "A"), 24*time.Hour
		sent := c.net.written("A")
		for _, lease := range []time.Duration{
			0, -1, -time.Hour, math.MinInt64, most + 1, math.MaxInt64,
		} {
			if _, err := k.Lock(within(t), "door", lease); !errors.Is(err, ErrLeaseRange) {
				t.Errorf("a lease of %v: %v", lease, err)
			}
		}
		if now := c.net.written("A"); now != sent {
			t.Errorf("%d packets were sent for leases that no service takes", now-sent)
		}
		short := c.lease() - time.Millisecond
		if _, err := k.Lock(within(t), "door", short); !errors.Is(err, ErrLeaseRange) {
			t.Errorf("a lease of %v: %v", short, err)
		}
		// A part of a millisecond is rounded up for the service, not for the client.
		start := time.Now()
		l := lock(t, k, "door", c.lease()-time.Nanosecond)
		if d := l.Deadline().Sub(start); d >= c.lease()*99/100+time.Nanosecond {
			t.Errorf("the deadline is %v away", d)
		}
		unlock(t, l)
		unlock(t, lock(t, k, "door", most))
		_, err := k.Lock(within(t), "", most)
		if !errors.Is(err, ErrInvalid) || errors.Is(err, ErrLeaseRange) {
			t.Errorf("no key: %v", err)
		}
	})
}

// A bug elsewhere: released there before it was known here to be over.
// (pinniped#800, client-go#762.)
func TestUnlockClosesDoneFirstAndAsksUntilTheLeaseIsOver(t *testing.T) {
	for name, heal := range map[string]bool{"the network comes back": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
				k, cut := c.client(t, "A"), both("A", "n1", "n2", "n3")
				l := lock(t, k, "door", 20*time.Second)
				c.net.set(func(w *wire) { w.cut = true }, cut...)
				said := make(chan error, 1)
				go func() { said <- l.Unlock(context.Background()) }()
				synctest.Wait()
				select {
				case <-l.Done():
				default:
					t.Error("it is being given back, and Done is still open")
				}
				if len(said) > 0 {
					t.Fatal("Unlock has not waited for an answer")
				}
				time.Sleep(15 * time.Second)
				if heal {
					c.net.set(func(w *wire) { w.cut = false }, cut...)
				}
				err := <-said
				switch {
				case heal && err != nil:
					t.Errorf("it could have been given back: %v", err)
				case heal && held(c.nodes[leader], "door"):
					t.Error("it is still held")
				case !heal && !errors.Is(err, ErrUnknownOutcome):
					t.Errorf("Unlock has returned %v", err)
				case !heal && !time.Now().Equal(l.Deadline()):
					t.Errorf("it has returned %v after the deadline", time.Since(l.Deadline()))
				case !heal && errors.Is(err, ErrNotHeld):
					t.Errorf("it claims to know that the lock was lost: %v", err)
				}
			})
		})
	}
}

// A Lock that was given up when it may have been on its way leaves an unknown outcome, and nothing is
// sent for it afterwards. (Hazard 30.)
func TestNothingIsSentAfterAnUnknownOutcome(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		l := lock(t, a, "door", 2*time.Minute)
		said := make(chan error, 1)
		go func() {
			_, err := b.Lock(within(t), "door", c.lease())
			said <- err
		}()
		synctest.Wait()
		c.net.set(func(w *wire) { w.cut = true }, both("B", name(leader))...)
		if err := <-said; !errors.Is(err, ErrUnknownOutcome) {
			t.Fatalf("Lock has returned %v", err)
		}
		sent := c.net.written("B")
		c.net.set(func(w *wire) { w.cut = false }, both("B", name(leader))...)
		unlock(t, l)
		time.Sleep(time.Minute)
		if now := c.net.written("B"); now != sent {
			t.Errorf("%d packets were sent afterwards", now-sent)
		}
		if held(c.nodes[leader], "door") {
			t.Error("the lease has not ended the lock that nobody knows of")
		}
	})
}

// A bare Release that is repeated may meet the next holder's lock. (Jepsen jetcd 0.8.2.)
func TestAForcedReleaseIsSentOnce(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a, b, f := c.client(t, "A"), c.client(t, "B"), c.client(t, "F")
		if _, err := f.ForceRelease(within(t), "door"); !errors.Is(err, ErrNotHeld) {
			t.Errorf("releasing what nobody holds: %v", err)
		}
		l := lock(t, a, "door", time.Minute)
		removed, err := f.ForceRelease(within(t), "door")
		if want := (Info{"door", l.Token(), "A", 60000}); err != nil || removed != want {
			t.Errorf("it has removed %+v, %v, want %+v", removed, err, want)
		}
		if err := l.Unlock(within(t)); !errors.Is(err, ErrNotHeld) || errors.Is(err, ErrLost) {
			t.Errorf("its holder is told %v", err)
		}
		lock(t, a, "door", time.Minute)
		said := make(chan error, 1)
		// F's first question is answered, and then the Release is on its way.
		answers := [2]string{name(leader), "F"}
		c.net.set(func(w *wire) { w.delay = 10 * time.Millisecond }, [2]string{"F", name(leader)})
		go func() {
			_, err := f.ForceRelease(context.Background(), "door")
			said <- err
		}()
		time.Sleep(15 * time.Millisecond)
		c.net.set(func(w *wire) { w.cut = true }, answers)
		next := lock(t, b, "door", time.Minute) // so the Release has arrived
		time.Sleep(10 * time.Second)
		c.net.set(func(w *wire) { w.cut = false }, answers)
		time.Sleep(10 * time.Second)
		if len(said) == 0 {
			t.Fatal("it is still being sent")
		}
		if err := <-said; !errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("it is told %v", err)
		}
		unlock(t, next)
	})
}

func TestAServerThatIsAskedAloneSaysWhoLeads(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		follower := leader%3 + 1
		one, err := Dial(within(t), []string{c.addrs[follower]},
			Options{NoHints: true, Dial: c.net.dialer("one")})
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		l := lock(t, c.client(t, "A"), "door", time.Minute)
		_, lockErr := one.Lock(within(t), "window", time.Minute)
		for what, err := range map[string]error{
			"a Lock": lockErr, "a Release": one.Release(within(t), "door", l.Token()),
		} {
			var not *NotLeaderError
			if !errors.As(err, &not) || !errors.Is(err, ErrNoLeader) {
				t.Fatalf("%s is answered with %v", what, err)
			}
			if want := (NotLeaderError{c.addrs[follower], c.addrs[leader]}); *not != want {
				t.Errorf("%s is answered with %+v, want %+v", what, *not, want)
			}
		}
	})
}

// A connection may have broken while nothing was on it. Then nothing was asked, and there is
// nothing to be unsure of; nor is it a server's refusal.
func TestABrokenConnectionIsReplaced(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		one, err := Dial(within(t), []string{c.addrs[leader]},
			Options{NoHints: true, Dial: c.net.dialer("one")})
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		for _, l := range one.idle {
			l.Close()
		}
		if len(one.idle) == 0 {
			t.Error("no connection is idle")
		}
		l, err := one.Lock(within(t), "door", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range one.idle {
			l.Close()
		}
		unlock(t, l)
	})
}

// A server that is cut off goes on telling what it had. (Hazard 36, consul#54.)
func TestWhatOneServerHasMayBeStale(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, follower := c.client(t, "A"), leader%3+1
		addr := c.addrs[follower]
		l := lock(t, k, "door", time.Minute)
		time.Sleep(2 * heartbeat)
		c.net.set(func(w *wire) { w.cut = true }, both(name(follower), others(follower)...)...)
		unlock(t, l)
		info, has, applied, err := k.GetLocal(within(t), addr, "door")
		if want := (Info{"door", l.Token(), "A", 60000}); err != nil || !has || info != want {
			t.Errorf("it has %+v, %v, %v, want %+v", info, has, err, want)
		}
		list, at, err := k.ListLocal(within(t), addr)
		if err != nil || len(list) != 1 || list[0] != info || at != applied || at == 0 {
			t.Errorf("it lists %+v at index %d, %v; Get's was %d", list, at, err, applied)
		}
		if _, has, err := k.Get(within(t), "door"); has || err != nil {
			t.Errorf("the leader has it still: %v, %v", has, err)
		}
		s, err := k.Status(within(t), c.addrs[leader])
		if err != nil || s.Applied <= applied {
			t.Errorf("the leader has applied %d, %v; the other %d", s.Applied, err, applied)
		}
	})
}

// A client that has given up for good is no use after a partition. (aphyr 326.)
func TestAClientComesBackAfterAPartition(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		k, cut := c.client(t, "A"), both("A", "n1", "n2", "n3")
		c.net.set(func(w *wire) { w.cut = true }, cut...)
		said := make(chan error, 1)
		go func() {
			_, _, err := k.Get(context.Background(), "door")
			said <- err
		}()
		time.Sleep(10 * time.Minute)
		if len(said) > 0 {
			t.Fatalf("it has given up: %v", <-said)
		}
		c.net.set(func(w *wire) { w.cut = false }, cut...)
		healed := time.Now()
		if err := <-said; err != nil {
			t.Error(err)
		}
		if took := time.Since(healed); took > time.Second {
			t.Errorf("it has come back %v after the heal", took)
		}
		unlock(t, lock(t, k, "door", time.Minute))
	})
}

// Unlock, the deadline and Close may all come at once. (kubernetes#23731.)
func TestDoneIsClosedOnce(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		for range 20 {
			k := c.client(t, "A")
			l := lock(t, k, "door", c.lease())
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					<-time.After(time.Until(l.Deadline()))
					err := l.Unlock(within(t))
					if !errors.Is(err, ErrLost) && !errors.Is(err, ErrClosed) {
						t.Errorf("at the deadline Unlock says %v", err)
					}
				})
			}
			all.Go(func() {
				<-time.After(time.Until(l.Deadline()))
				k.Close()
			})
			all.Wait()
			<-l.Done()
		}
	})
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	c := newCluster(t, "", 1, 2, 3)
	c.leader()
	other := c.client(t, "other")
	lock(t, other, "taken", time.Minute)
	eventually(t, "nothing else goes on", func() bool { return callers(c.nodes[c.leader()]) == 0 })
	before := runtime.NumGoroutine()
	k, err := Dial(within(t), []string{c.addrs[1], c.addrs[2], c.addrs[3]}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lock(t, k, "door", time.Minute)
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() { _, _ = k.Lock(context.Background(), "taken", time.Minute) })
	}
	eventually(t, "one of them waits", func() bool { return callers(c.nodes[c.leader()]) == 1 })
	if _, _, err := k.Get(within(t), "door"); err != nil { // that leaves an idle connection
		t.Error(err)
	}
	if n := runtime.NumGoroutine(); n <= before {
		t.Errorf("%d goroutines with a client, %d without", n, before)
	}
	k.Close()
	calls.Wait()
	k.Close() // again does no harm
	eventually(t, "as many goroutines run as before", func() bool {
		return runtime.NumGoroutine() <= before
	})
}

func TestCloseWaitsForCalls(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		dials := make(chan struct{}, 1)
		k, err := Dial(within(t), []string{c.addrs[1]}, Options{
			Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				select {
				case dials <- struct{}{}:
					return c.net.dialer("A")(ctx, addr)
				default:
				}
				<-ctx.Done()
				time.Sleep(time.Second) // it is slow to give up
				<-dials
				return nil, ctx.Err()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = k.Status(context.Background(), c.addrs[1]) }()
		synctest.Wait()
		if took := timed(k.Close); took != time.Second || len(dials) > 0 {
			t.Errorf("Close has taken %v, and a call goes on: %v", took, len(dials) > 0)
		}
	})
}
