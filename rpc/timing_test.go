package rpc

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// In a bubble nothing but a disk and a link takes time, so that these figures are exact.
const slowSync = 5 * time.Millisecond

// timed tells how long something takes.
func timed(what func()) time.Duration {
	start := time.Now()
	what()
	return time.Since(start)
}

// A leader's disk and its followers' work side by side, and nothing waits for company.
func TestALockCostsOneSync(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		k, most := c.client(t, "A"), time.Duration(0)
		for i := range 50 {
			var l *Lock
			took := timed(func() { l = lock(t, k, fmt.Sprint("key ", i), time.Minute) })
			most = max(most, took)
			if took < slowSync {
				t.Errorf("an acquire took %v, less than a majority's sync", took)
			}
			if took := timed(func() { unlock(t, l) }); took > slowSync*3/2 {
				t.Errorf("giving it back took %v", took)
			}
			time.Sleep(time.Duration(i) * time.Millisecond) // another distance to the heartbeat
		}
		if most > slowSync*3/2 {
			t.Errorf("an acquire took %v with syncs of %v", most, slowSync)
		}
	})
}

func unlock(t testing.TB, l *Lock) {
	t.Helper()
	if err := l.Unlock(within(t)); err != nil {
		t.Error(err)
	}
}

// The Release and the next Grant share one entry in the pipeline, so that the next holder has the
// lock when the one before knows that it has given it back.
func TestAHandOverCostsOneSync(t *testing.T) {
	const waiters = 20
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		var turns sync.WaitGroup
		asked := make(chan time.Time, waiters) // when the holder asked to give it back
		handed := 0
		turn := func(k *Client) {
			l := lock(t, k, "door", time.Minute)
			if took := time.Since(<-asked); took > slowSync {
				t.Errorf("a hand-over took %v with syncs of %v", took, slowSync)
			}
			handed++
			time.Sleep(7 * time.Millisecond)
			asked <- time.Now()
			unlock(t, l)
		}
		first := lock(t, c.client(t, "first"), "door", time.Minute)
		for i := range waiters {
			k := c.client(t, fmt.Sprint("waiter", i))
			turns.Go(func() { turn(k) })
		}
		synctest.Wait()
		if k := callers(c.nodes[leader]); k != waiters {
			t.Fatalf("%d wait", k)
		}
		asked <- time.Now()
		unlock(t, first)
		turns.Wait()
		if handed != waiters {
			t.Errorf("%d hand-overs", handed)
		}
	})
}

// Whatever has arrived while the disk was busy shares the next write: a request waits for the sync
// that is under way and for its own. No timer takes part: see TestALockCostsOneSync, in which
// nobody shares.
func TestManyClientsShareSyncs(t *testing.T) {
	const clients, cycles = 64, 10
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		var all sync.WaitGroup
		var mu sync.Mutex
		var ks []*Client
		for i := range clients {
			ks = append(ks, c.client(t, fmt.Sprint("client", i)))
		}
		acquired, waited, before := 0, 0, c.disks[leader].count()
		for i, k := range ks {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 137 * time.Microsecond) // out of step
				for range cycles {
					var l *Lock
					took := timed(func() { l = lock(t, k, k.options.Owner, time.Minute) })
					if took > 2*slowSync {
						t.Errorf("an acquire took %v with syncs of %v", took, slowSync)
					}
					unlock(t, l)
					mu.Lock()
					acquired++
					if took > slowSync {
						waited++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		saves := c.disks[leader].count() - before
		if acquired != clients*cycles || saves == 0 || waited == 0 {
			t.Fatalf("%d locks with %d saves, %d waited for another's", acquired, saves, waited)
		}
		if each := float64(saves) / float64(acquired); each >= 0.2 {
			t.Errorf("%d saves for %d locks are %.2f each", saves, acquired, each)
		}
	})
}

// With all servers gone and not a packet sent, the holder knows to the nanosecond.
func TestDoneIsClosedAtTheDeadlineWithoutAPacket(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		k := c.client(t, "A")
		asked := time.Now()
		l := lock(t, k, "door", 10*time.Second)
		c.net.set(func(w *wire) { w.cut = true }, both("A", others(0)...)...)
		sent := c.net.written("A")
		if want := asked.Add(10*time.Second - 100*time.Millisecond); !l.Deadline().Equal(want) {
			t.Errorf("asked at %v, the deadline is %v, want %v", asked, l.Deadline(), want)
		}
		time.Sleep(time.Until(l.Deadline()) - time.Nanosecond)
		synctest.Wait()
		select {
		case <-l.Done():
			t.Error("it is closed before the deadline")
		default:
		}
		<-l.Done()
		if now := time.Now(); !now.Equal(l.Deadline()) {
			t.Errorf("it is closed at %v, the deadline is %v", now, l.Deadline())
		}
		if now := c.net.written("A"); now != sent {
			t.Errorf("%d packets were sent for it", now-sent)
		}
	})
}

// One that waits longer than its own lease would, counted from its first attempt, get a lock that
// is over. It counts from the newest attempt that the leader had.
func TestADeadlineCountsFromTheNewestAttempt(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		const lease = 5 * time.Second
		a, b := c.client(t, "A"), c.client(t, "B")
		first := lock(t, a, "door", time.Minute)
		late, again := 0, lease/3 // when it asks again
		for wait := again / 2; wait < 2*lease; wait += 700 * time.Millisecond {
			time.AfterFunc(wait, func() { unlock(t, first) })
			asked := time.Now()
			second := lock(t, b, "door", lease)
			newest := asked.Add(wait / again * again)
			if want := newest.Add(lease - lease/100); !second.Deadline().Equal(want) {
				t.Errorf("after a wait of %v there are %v left, want %v", wait,
					time.Until(second.Deadline()), time.Until(want))
			}
			if wait > lease {
				late++
			}
			unlock(t, second)
			first = lock(t, a, "door", time.Minute)
		}
		if late == 0 {
			t.Error("nobody has waited longer than its lease")
		}
	})
}

// Server 3 is gone, or swallows what it is sent, or takes connections and says nothing. The other
// two are a majority and take no notice.
func TestAPeerThatIsSilentDelaysNobody(t *testing.T) {
	for name, silence := range map[string]func(c *cluster){
		"gone": func(c *cluster) {},
		"a black hole": func(c *cluster) {
			c.net.set(func(w *wire) { w.cut = true }, both("n3", "n1", "n2")...)
		},
		"accepts and never reads": func(c *cluster) {
			hole := c.net.listen("n3")
			c.t.Cleanup(func() { hole.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := bubbleCluster(t, slowSync)
				silence(c)
				c.start(1, c.net.listen("n1"))
				c.start(2, c.net.listen("n2"))
				withASilentPeer(t, c)
			})
		})
	}
}

func withASilentPeer(t *testing.T, c *cluster) {
	leader := c.leader()
	options := Options{Dial: c.net.dialer("A")}
	k, err := Dial(within(t), []string{c.addrs[1], c.addrs[2]}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	unlock(t, lock(t, k, "the first opens a session", time.Minute))
	term := termOf(c.nodes[leader])
	var most time.Duration
	tried := len(c.net.tried(name(leader), "n3"))
	for i := range 200 {
		var l *Lock
		most = max(most, timed(func() { l = lock(t, k, fmt.Sprint("key ", i), time.Minute) }))
		unlock(t, l)
		time.Sleep(37 * time.Millisecond)
	}
	if most > slowSync*3/2 {
		t.Errorf("an acquire took %v", most)
	}
	if after := termOf(c.nodes[leader]); after != term {
		t.Errorf("the leader of term %d is in term %d", term, after)
	}
	if len(c.net.tried(name(leader), "n3")) == tried {
		t.Error("the leader has not tried again to reach the silent one")
	}
}

func termOf(n *Node) raft.Term {
	term, _ := look(n, func(r *fsm.Replica) raft.Term { return r.Core().Status().Term })
	return term
}

// A Lock of which the answer is cut off returns when its context ends, not later.
func TestACancelledWaitEndsAtOnce(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		unlock(t, lock(t, k, "door", time.Minute)) // it knows the leader
		c.net.set(func(w *wire) { w.held = true }, [2]string{name(leader), "A"})
		ctx, cancel := context.WithTimeout(within(t), 1234*time.Millisecond)
		defer cancel()
		took := timed(func() {
			if _, err := k.Lock(ctx, "door", time.Minute); err == nil {
				t.Error("it has an answer that was held")
			}
		})
		if took != 1234*time.Millisecond {
			t.Errorf("it returned after %v", took)
		}
	})
}
