package rpc

import (
	"errors"
	"testing"
	"time"

	"ticketing/raft"
)

// holdsWhile looks every millisecond, until a lock's Done is closed, whether the service still has
// its holder. It says for how long.
func holdsWhile(t *testing.T, n *Node, l *Lock) (long time.Duration) {
	t.Helper()
	start := time.Now()
	for {
		select {
		case <-l.Done():
			return time.Since(start)
		case <-time.After(time.Millisecond):
		}
		if !held(n, l.Key()) {
			t.Fatalf("after %v the service has ended a lock that its holder believes in until %v",
				time.Since(start), l.Deadline().Sub(start))
		}
	}
}

// A new lease may be shorter than what is left of the old one. The service counts the new one from
// then on, and so must the holder: from before the request leaves, as nobody knows when it arrives.
func TestAShorterLeaseShortensTheLock(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, lease := c.client(t, "A"), c.lease()
		l := lock(t, k, "door", 10*lease)
		sent := time.Now()
		if err := l.Extend(within(t), lease); err != nil {
			t.Fatal(err)
		}
		if want := leaseEnd(sent, lease); !l.Deadline().Equal(want) {
			t.Errorf("the deadline is %v after the request, want %v",
				l.Deadline().Sub(sent), want.Sub(sent))
		}
		if long := holdsWhile(t, c.nodes[leader], l); long > lease {
			t.Errorf("it has lasted %v", long)
		}
	})
}

// The answer is lost, and the request was carried out.
func TestAShorterLeaseCountsWhoeverHearsOfIt(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, lease := c.client(t, "A"), c.lease()
		l := lock(t, k, "door", 10*lease)
		c.net.set(func(w *wire) { w.cut = true }, both("A", others(leader)...)...)
		c.net.set(func(w *wire) { w.cut = true }, [2]string{name(leader), "A"})
		sent, said := time.Now(), make(chan error, 1)
		go func() { said <- l.Extend(within(t), lease) }()
		holdsWhile(t, c.nodes[leader], l)
		if took := time.Since(sent); took != lease*99/100 {
			t.Errorf("it has ended after %v", took)
		}
		if err := <-said; !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, ErrLost) {
			t.Errorf("Extend says %v", err)
		}
		if took := time.Since(sent); took != lease*99/100 {
			t.Errorf("Extend has asked for %v", took)
		}
		time.Sleep(lease / 10)
		if held(c.nodes[leader], "door") {
			t.Error("the service has not heard of it; then this shows nothing")
		}
	})
}

// KeepAlive extends to what the lock was last extended to: with what it was taken for it would take
// away what Extend has won.
func TestALongerLeaseIsKeptByKeepAlive(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, lease := c.client(t, "A"), c.lease()
		l := lock(t, k, "door", lease)
		KeepAlive(l)
		if err := l.Extend(within(t), 10*lease); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * lease) // it would have been extended by now, to what it was taken for
		c.net.set(func(w *wire) { w.cut = true }, both("A", "n1", "n2", "n3")...)
		if long := holdsWhile(t, c.nodes[leader], l); long < 5*lease {
			t.Errorf("it has lasted %v more", long)
		}
		c.net.set(func(w *wire) { w.cut = false }, both("A", "n1", "n2", "n3")...)
		time.Sleep(lease)

		// And when the lease becomes shorter, it is extended in time.
		l = lock(t, k, "door", 10*lease)
		KeepAlive(l)
		if err := l.Extend(within(t), lease); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * lease)
		if l.Err() != nil {
			t.Fatalf("it has ended with %v", l.Err())
		}
		unlock(t, l)
	})
}

// Two at once reach the service in some order, and the holder must not believe in the other one.
func TestExtendsOfALockGoOneByOne(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, lease := c.client(t, "A"), c.lease()
		for range 20 {
			l := lock(t, k, "door", 2*lease)
			said := make(chan error)
			for _, long := range []time.Duration{5 * lease, lease, 3 * lease} {
				go func() { said <- l.Extend(within(t), long) }()
			}
			for range 3 {
				if err := <-said; err != nil {
					t.Error(err)
				}
			}
			holdsWhile(t, c.nodes[leader], l)
			time.Sleep(lease)
		}
	})
}
