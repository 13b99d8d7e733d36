package rpc

import (
	"errors"
	"testing"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

func TestAnExtendedLockLastsLonger(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, lease := c.client(t, "A"), c.lease()
		l := lock(t, k, "door", lease)
		time.Sleep(lease / 2)
		sent := time.Now()
		if err := l.Extend(within(t), 2*lease); err != nil {
			t.Fatal(err)
		}
		if want := sent.Add(2 * lease * 99 / 100); !l.Deadline().Equal(want) {
			t.Errorf("the deadline is %v, want %v", l.Deadline(), want)
		}
		<-l.Done()
		if took := time.Since(sent); took != 2*lease*99/100 || !errors.Is(l.Err(), ErrLost) {
			t.Errorf("it has ended %v after it was extended, with %v", took, l.Err())
		}
		if !held(c.nodes[leader], "door") {
			t.Error("the service has ended it before its holder has")
		}
		time.Sleep(lease)
		if held(c.nodes[leader], "door") {
			t.Error("the service does not end it")
		}
		if err := l.Extend(within(t), lease); !errors.Is(err, ErrNotHeld) {
			t.Errorf("extending what is over: %v", err)
		}
	})
}

// What is over is not taken again, and a lock that somebody else has is left alone.
func TestExtendNeverTakesALock(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		l := lock(t, a, "door", time.Minute)
		if _, err := b.ForceRelease(within(t), "door"); err != nil {
			t.Fatal(err)
		}
		if err := l.Extend(within(t), time.Minute); !errors.Is(err, ErrNotHeld) {
			t.Errorf("extending it: %v", err)
		}
		if held(c.nodes[leader], "door") || l.Err() == nil {
			t.Errorf("it was taken again, or its holder goes on: %v", l.Err())
		}
	})
}

func TestALockThatIsKeptAliveLasts(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, lease := c.client(t, "A"), c.lease()
		l := lock(t, k, "door", lease)
		KeepAlive(l)
		time.Sleep(5 * lease)
		if l.Err() != nil || !held(c.nodes[leader], "door") {
			t.Fatalf("it has ended: %v", l.Err())
		}
		extended, _ := look(c.nodes[leader], func(r *fsm.Replica) bool {
			tenure, _ := r.Table().Holder("door")
			return tenure.Token == l.Token()
		})
		if !extended {
			t.Error("it is another's")
		}
		unlock(t, l)
		if held(c.nodes[leader], "door") {
			t.Error("it was not given back")
		}
		// Another leader in between, and a cut that is shorter than what is left of the lease.
		l = lock(t, k, "door", lease)
		KeepAlive(l)
		c.crash(leader)
		time.Sleep(3 * lease)
		if l.Err() != nil {
			t.Fatalf("it has ended with its leader: %v", l.Err())
		}
		unlock(t, l)
		// And nothing keeps it when nobody can be reached.
		l = lock(t, k, "door", lease)
		KeepAlive(l)
		c.net.set(func(w *wire) { w.cut = true }, both("A", "n1", "n2", "n3")...)
		<-l.Done()
		if !errors.Is(l.Err(), ErrLost) {
			t.Errorf("it has ended with %v", l.Err())
		}
	})
}
