package rpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/raft"
)

func TestALockIsTakenHandedOverAndGivenBack(t *testing.T) {
	c := newCluster(t, "", 1, 2, 3)
	a, b := c.client(t, "A"), c.client(t, "B")
	first := lock(t, a, "door", time.Minute)
	if _, err := b.TryLock(within(t), "door", time.Minute); !errors.Is(err, ErrHeld) {
		t.Fatalf("a try while the lock is held: %v", err)
	}
	second := make(chan *Lock)
	go func() {
		l, err := b.Lock(within(t), "door", time.Minute)
		if err != nil {
			t.Error(err)
		}
		second <- l
	}()
	info, held, err := a.Get(within(t), "door")
	if want := (Info{"door", first.Token(), "A", 60000}); err != nil || !held || info != want {
		t.Fatalf("got %+v, %v, %v, want %+v", info, held, err, want)
	}
	if err := first.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
	l := <-second
	if l == nil || l.Token() <= first.Token() {
		t.Fatalf("the next holder has %+v after token %d", l, first.Token())
	}
	if err := first.Unlock(within(t)); !errors.Is(err, ErrNotHeld) {
		t.Errorf("unlocking twice: %v", err)
	}
	if err := a.Release(within(t), "door", first.Token()); !errors.Is(err, ErrNotHeld) {
		t.Errorf("releasing with an old token: %v", err)
	}
	if list, err := a.List(within(t)); err != nil || len(list) != 1 || list[0].Token != l.Token() {
		t.Errorf("the list is %+v, %v", list, err)
	}
}

func TestAnotherLeaderGivesGreaterTokens(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		first := lock(t, k, "one", time.Minute)
		c.stop(leader)
		if second := lock(t, k, "two", time.Minute); second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		if err := first.Unlock(within(t)); err != nil {
			t.Errorf("the lock has not outlived its leader: %v", err)
		}
	})
}

func TestTokensGrowOverARestartOfAll(t *testing.T) {
	c := newCluster(t, t.TempDir(), 1, 2, 3)
	k := c.client(t, "A")
	kept := lock(t, k, "kept", time.Minute)
	last := lock(t, k, "door", time.Minute)
	if err := last.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
	for id := range c.addrs {
		c.stop(id)
	}
	for id := range c.addrs {
		c.restart(id)
	}
	if l := lock(t, k, "door", time.Minute); l.Token() <= last.Token() {
		t.Errorf("token %d after %d", l.Token(), last.Token())
	}
	_, err := c.client(t, "B").TryLock(within(t), "kept", time.Minute)
	if !errors.Is(err, ErrHeld) {
		t.Errorf("the lock of before: %v", err)
	}
	if err := kept.Unlock(within(t)); err != nil {
		t.Error(err)
	}
}

func TestANodeWhoseDiskFailsStopsAndTheOthersGoOn(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		first := lock(t, k, "one", time.Minute)
		broken := errors.New("no space left")
		c.expects[leader] = broken
		c.disks[leader].set(func(d *disk) { d.fail = broken })
		// The first attempt may have been committed by the others, unbeknown to the client. Then
		// the next one waits for its lease.
		if second := lock(t, k, "two", c.lease()); second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		<-c.nodes[leader].Done()
		if err := c.nodes[leader].Err(); !errors.Is(err, broken) {
			t.Errorf("the node has stopped because of %v", err)
		}
		if _, err := c.net.dialer("A")(within(t), c.addrs[leader]); !errors.Is(err, errRefused) {
			t.Errorf("dialing it gives %v: it still listens", err)
		}
	})
}

func TestAWaiterThatLeavesFreesItsPlace(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		first := lock(t, a, "door", time.Minute)
		ctx, leave := context.WithCancel(within(t))
		left := make(chan error)
		go func() {
			_, err := b.Lock(ctx, "door", time.Minute)
			left <- err
		}()
		synctest.Wait()
		if k := callers(c.nodes[leader]); k != 1 {
			t.Fatalf("%d wait at the leader", k)
		}
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("it returned %v", err)
		}
		synctest.Wait()
		if k := callers(c.nodes[leader]); k != 0 {
			t.Errorf("the leader still counts %d who wait", k)
		}
		if err := first.Unlock(within(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := a.TryLock(within(t), "door", time.Minute); err != nil {
			t.Errorf("the key is not free: %v", err)
		}
	})
}

func TestALeaseThatIsOverFreesTheKey(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, _ raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		first := lock(t, a, "door", c.lease())
		second := lock(t, b, "door", time.Minute)
		select {
		case <-first.Done():
		default:
			t.Error("the first holder does not know that it has lost the lock")
		}
		if second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
	})
}
