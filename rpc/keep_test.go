package rpc

import (
	"testing"
	"time"

	"ticketing/raft"
)

// An error is no loss. A lock that is kept alive outlives a time in which nobody answers, if that is
// shorter than what is left of its lease: the renewals in it fail, and the next makes good for them.
// (consul#1162, patroni#837, pglock#175.)
func TestALockIsKeptThroughATimeWithoutALeader(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, lease := c.client(t, "A"), 10*c.lease() // elections take some of it
		l := lock(t, k, "door", lease)
		KeepAlive(l)
		everybody := append(both("A", "n1", "n2", "n3"), both("n1", "n2", "n3")...)
		everybody = append(everybody, both("n2", "n3")...)
		for range 3 {
			before := l.Deadline()
			c.net.set(func(w *wire) { w.cut = true }, everybody...)
			time.Sleep(lease / 2)
			if l.Err() != nil || l.Deadline().After(before.Add(lease/3)) {
				t.Fatalf("cut off, it has ended with %v, or was extended from %v to %v", l.Err(), before, l.Deadline())
			}
			c.net.set(func(w *wire) { w.cut = false }, everybody...)
			time.Sleep(2 * lease)
			if l.Err() != nil || !l.Deadline().After(before.Add(lease)) {
				t.Fatalf("it has ended with %v, at %v", l.Err(), l.Deadline())
			}
		}
		unlock(t, l)
	})
}
