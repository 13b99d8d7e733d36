package rpc

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/raft"
)

// H29: a client is forgotten, as there are too many others. What it holds it can give back and
// extend, since that names the tenure; what it waits for it asks for in a new session; and what may
// have been carried out is not carried out again.
func TestAClientThatWasForgottenKeepsItsLock(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		one, two := lock(t, k, "one", time.Hour), lock(t, k, "two", time.Hour)
		before := k.pass.id
		c.sessions(t, leader, crowded)
		if err := one.Extend(within(t), 2*time.Hour); err != nil || one.Err() != nil {
			t.Errorf("extending: %v, %v", err, one.Err())
		}
		if k.pass.id == before {
			t.Error("it was not forgotten; then this shows nothing")
		}
		c.sessions(t, leader, crowded)
		unlock(t, two)
		unlock(t, one)
		if held(c.nodes[leader], "one") || held(c.nodes[leader], "two") {
			t.Error("one of them is still held")
		}
	})
}

func TestAWaiterThatWasForgottenIsGrantedOnce(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		b, k := c.client(t, "B"), c.client(t, "A")
		first, got := lock(t, b, "door", time.Hour), make(chan *Lock, 1)
		before := k.pass.id
		go func() { got <- lock(t, k, "door", time.Minute) }()
		synctest.Wait()
		c.sessions(t, leader, crowded)
		time.Sleep(longestSilence) // it asks again meanwhile
		unlock(t, first)
		l := <-got
		if k.pass.id == before {
			t.Error("it was not forgotten; then this shows nothing")
		}
		if n := c.grantsOf(leader, "door"); n != 2 || l.Err() != nil || l.Token() != first.Token()+1 {
			t.Errorf("the key was granted %d times, and it has token %d, %v", n, l.Token(), l.Err())
		}
		unlock(t, l)
	})
}

// The request is carried out, the answer is lost, and when the client asks again it is forgotten.
func TestWhatAForgottenClientMayHaveIsUnknown(t *testing.T) {
	for what, ask := range map[string]func(k *Client, held *Lock) error{
		"a Lock": func(k *Client, _ *Lock) error {
			_, err := k.Lock(context.Background(), "door", time.Hour)
			return err
		},
		"a TryLock": func(k *Client, _ *Lock) error {
			_, err := k.TryLock(context.Background(), "door", time.Hour)
			return err
		},
		"an Unlock": func(_ *Client, held *Lock) error { return held.Unlock(context.Background()) },
	} {
		inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
			k, said := c.client(t, "A"), make(chan error, 1)
			gate := lock(t, k, "gate", time.Hour)
			answers := [2]string{name(leader), "A"}
			c.net.set(func(w *wire) { w.cut = true }, answers)
			go func() { said <- ask(k, gate) }()
			time.Sleep(time.Millisecond)
			if done := !held(c.nodes[leader], "gate") || held(c.nodes[leader], "door"); !done {
				t.Fatalf("%s was not carried out", what)
			}
			c.sessions(t, leader, crowded)
			c.net.set(func(w *wire) { w.cut = false }, answers)
			if err := <-said; !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, ErrForgotten) {
				t.Errorf("%s is told %v", what, err)
			}
			if n := c.grantsOf(leader, "door"); n > 1 {
				t.Errorf("%s: it was granted %d times", what, n)
			}
		})
	}
}

// An Extend is asked for in the next session: it names its tenure, and a second one does no harm.
func TestAnExtendOfAForgottenClientIsAskedForAnew(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, said := c.client(t, "A"), make(chan error, 1)
		l := lock(t, k, "door", time.Hour)
		answers := [2]string{name(leader), "A"}
		c.net.set(func(w *wire) { w.cut = true }, answers)
		sent := time.Now()
		go func() { said <- l.Extend(context.Background(), 2*time.Hour) }()
		time.Sleep(time.Millisecond)
		c.sessions(t, leader, crowded)
		time.Sleep(replyTimeout) // so that it counts from which attempt
		c.net.set(func(w *wire) { w.cut = false }, answers)
		if err := <-said; err != nil {
			t.Fatal(err)
		}
		if want := leaseEnd(sent, 2*time.Hour); !l.Deadline().Equal(want) {
			t.Errorf("the deadline is %v, want %v", l.Deadline(), want)
		}
		unlock(t, l)
	})
}

// A client with more requests than a session has numbers takes another session, and each of them is
// carried out once, also those that wait in the first one.
func TestAClientMayHaveManyRequestsOpen(t *testing.T) {
	const many = 300
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		b, k := c.client(t, "B"), c.client(t, "A")
		first, got := lock(t, b, "door", time.Hour), make(chan *Lock, many+1)
		before := k.pass.id
		for i := range many {
			go func() { got <- lock(t, k, fmt.Sprint("key ", i), time.Hour) }()
		}
		go func() { got <- lock(t, k, "door", time.Hour) }()
		locks := map[string]bool{}
		for range many {
			locks[(<-got).Key()] = true
		}
		if k.pass.id == before || len(locks) != many || tokens(c.nodes[leader]) != many+1 {
			t.Errorf("it has %d locks, in the first session: %v; there were %d tokens", len(locks),
				k.pass.id == before, tokens(c.nodes[leader]))
		}
		// The one that waits is asked for in the first session to the end, while the other's
		// numbers run on. Its answer is lost once.
		for range maxNumbers {
			unlock(t, lock(t, k, "window", time.Minute))
		}
		answers := [2]string{name(leader), "A"}
		c.net.set(func(w *wire) { w.cut = true }, answers)
		unlock(t, first)
		time.Sleep(10 * slowSync)
		c.net.set(func(w *wire) { w.cut = false }, answers)
		l := <-got
		if n := c.grantsOf(leader, "door"); n != 2 || l.Key() != "door" || l.Err() != nil {
			t.Errorf("%q was granted %d times, and it has token %d, %v", l.Key(), n, l.Token(), l.Err())
		}
		unlock(t, l)
	})
}

// A client says which answers it has, so that the service can forget them, and one session does.
func TestRequestsThatAreAnsweredCloseTheirNumbers(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		session := k.pass.id
		for range maxNumbers {
			unlock(t, lock(t, k, "door", time.Minute))
		}
		if k.pass.id != session || lowestOf(k) != k.pass.last+1 {
			t.Errorf("it is in session %d, was in %d; open from %d, next %d", k.pass.id, session,
				lowestOf(k), k.pass.last+1)
		}
	})
}

// The lowest open number moves on while a request's second attempt is on its way, and the first one
// comes behind both.
func TestAnAttemptThatIsOvertakenIsCarriedOutOnce(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		early := lock(t, k, "early", time.Hour)
		raw := c.rawCaller(t, "late", leader)
		first := AcquireArgs{
			Client: k.pass.id, Seq: k.pass.last + 1, Lowest: lowestOf(k), Attempt: 1,
			Key: "door", LeaseMS: 3600_000,
		}
		l := lock(t, k, "door", time.Hour)
		if seq := k.pass.last; seq != first.Seq {
			t.Fatalf("the request has number %d, want %d", seq, first.Seq)
		}
		unlock(t, early) // that closes it
		unlock(t, l)
		var y AcquireReply
		if err := raw.Call("Lock.Acquire", &first, &y); err != nil || y.Status != Closed {
			t.Errorf("an attempt that comes late is answered %+v, %v", y, err)
		}
		if n := c.grantsOf(leader, "door"); n != 1 || held(c.nodes[leader], "door") {
			t.Errorf("it was granted %d times", n)
		}
	})
}

// lowestOf is the lowest number that a client has open, as it would say now.
func lowestOf(k *Client) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pass.lowest()
}

// Connect and the session come before the lock; a context that ends in between has asked for
// nothing.
func TestAClientThatGetsNoSessionHasAskedForNothing(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		k.pass = nil
		ctx, cancel := context.WithTimeout(t.Context(), slowSync/2)
		defer cancel()
		_, err := k.Lock(ctx, "door", time.Hour)
		if !errors.Is(err, ErrNoLeader) || errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("it is told %v", err)
		}
		time.Sleep(time.Second)
		if c.grantsOf(leader, "door") != 0 {
			t.Error("it was granted")
		}
	})
}
