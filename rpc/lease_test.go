package rpc

import (
	"maps"
	"slices"
	"testing"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// appliedAt waits until all servers have a key in their tables, and returns when each first had, to
// the millisecond.
func (c *cluster) appliedAt(t *testing.T, key string) map[raft.ServerID]time.Time {
	t.Helper()
	at := map[raft.ServerID]time.Time{}
	eventually(t, "all have applied the Grant", func() bool {
		for id, n := range c.nodes {
			held, _ := look(n, func(r *fsm.Replica) bool {
				_, held := r.Table().Holder(key)
				return held
			})
			if _, had := at[id]; held && !had {
				at[id] = time.Now()
			}
		}
		return len(at) == len(c.nodes)
	})
	return at
}

// The messages take time, so that a follower applies the Grant after the leader. When that is gone,
// the new leader ends the lease when its own count is over: no earlier, as if it knew of the other
// one's, and no later, as if it had begun to count when it came to lead.
func TestALeaseIsCountedFromTheOwnApply(t *testing.T) {
	const delay, lease = 40 * time.Millisecond, 20 * time.Second
	inBubble(t, slowSync, func(t *testing.T, c *cluster, old raft.ServerID) {
		for _, id := range []raft.ServerID{1, 2, 3} {
			c.net.set(func(w *wire) { w.delay = delay }, both(name(id), others(id)...)...)
		}
		granted := make(chan struct{})
		a := c.client(t, "A")
		go func() {
			lock(t, a, "door", lease)
			close(granted)
		}()
		at := c.appliedAt(t, "door")
		<-granted
		time.Sleep(lease / 4)
		c.stop(old)
		next := c.leader()
		if later := at[next].Sub(at[old]); later < delay-2*time.Millisecond {
			t.Fatalf("the new leader applied the Grant %v after the old one", later)
		}
		lock(t, c.client(t, "B"), "door", lease)
		commit := 2*delay + slowSync
		over := time.Since(at[next]) - lease
		if over < commit-time.Millisecond || over > commit+2*time.Millisecond {
			t.Errorf("the next holder comes %v after the lease by the leader's count; "+
				"the commit takes %v", over, commit)
		}
	})
}

// A lease is neither longer nor shorter for the leaders that come and go while it runs. The one
// that leads in the end began to count when it applied the Grant, as they all did.
func TestFiftyLeadersDoNotChangeALease(t *testing.T) {
	const lease = 50 * time.Second
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a := c.client(t, "A")
		first := lock(t, a, "door", lease)
		at := slices.SortedFunc(maps.Values(c.appliedAt(t, "door")), time.Time.Compare)
		changes := 0
		for time.Until(first.Deadline()) > 5*time.Second {
			c.nodes[leader].handOver(leader%3 + 1)
			time.Sleep(8 * heartbeat)
			if now := c.leader(); now != leader {
				leader = now
				changes++
			}
			token, _ := look(c.nodes[leader], func(r *fsm.Replica) fsm.Token {
				tenure, _ := r.Table().Holder("door")
				return tenure.Token
			})
			if token != first.Token() {
				t.Fatalf("after %v and %d leaders the holder's token is %d, was %d",
					time.Since(at[0]), changes, token, first.Token())
			}
		}
		second := lock(t, c.client(t, "B"), "door", lease)
		got := time.Now()
		earliest, latest := at[0].Add(lease), at[2].Add(lease+slowSync+2*time.Millisecond)
		if got.Before(earliest) || got.After(latest) {
			t.Errorf("with %d leaders the next holder came at %v, want %v to %v", changes,
				got.Sub(at[0]), earliest.Sub(at[0]), latest.Sub(at[0]))
		}
		if !first.Deadline().Before(got) || second.Token() != first.Token()+1 {
			t.Errorf("the first deadline is %v after the second holder came, its token is %d",
				first.Deadline().Sub(got), second.Token())
		}
		if changes < 50 {
			t.Errorf("there were %d changes of leader", changes)
		}
	})
}

// handOver makes a leader let another server take its place.
func (n *Node) handOver(to raft.ServerID) {
	n.enter(n.ctx, n.fromPeers, func() { _ = n.replica.Transfer(to) }) // who does not lead need not
}

// The holder gives the lock back in its last moment, and the disks are slow: while the Release and
// the next Grant are on their way, the lease runs out by the leader's count, and an Expire is
// appended behind them. When it is applied the key is the next holder's, and stays it.
func TestALateExpireLeavesTheNextHolderAlone(t *testing.T) {
	const lease, slow = 10 * time.Second, 300 * time.Millisecond
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		first := lock(t, a, "door", lease)
		time.AfterFunc(time.Until(first.Deadline())-time.Millisecond, func() {
			for _, d := range c.disks {
				d.set(func(d *disk) { d.sync = slow })
			}
			// Unlock would give up at the deadline.
			if err := a.Release(within(t), "door", first.Token()); err != nil {
				t.Error(err)
			}
		})
		second := lock(t, b, "door", lease)
		time.Sleep(2 * slow) // the Expire is applied
		if _, late := replayed(t, committed(c.nodes[leader])); late != 1 {
			t.Errorf("%d Expires have come late", late)
		}
		info, held, err := a.Get(within(t), "door")
		if err != nil || !held || info.Token != second.Token() {
			t.Errorf("the holder of token %d has lost its lock: %+v, %v", second.Token(), info, err)
		}
		unlock(t, second)
	})
}
