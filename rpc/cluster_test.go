package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"net/rpc"
	"testing"
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
	c := newCluster(t, "", 1, 2, 3)
	k := c.client(t, "A")
	first := lock(t, k, "one", time.Minute)
	c.stop(c.leader())
	if second := lock(t, k, "two", time.Minute); second.Token() <= first.Token() {
		t.Errorf("token %d after %d", second.Token(), first.Token())
	}
	if err := first.Unlock(within(t)); err != nil {
		t.Errorf("the lock has not outlived its leader: %v", err)
	}
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
	for id, addr := range c.addrs {
		c.start(id, listen(t, addr))
	}
	if l := lock(t, k, "door", time.Minute); l.Token() <= last.Token() {
		t.Errorf("token %d after %d", l.Token(), last.Token())
	}
	if _, err := k.TryLock(within(t), "kept", time.Minute); !errors.Is(err, ErrHeld) {
		t.Errorf("the lock of before: %v", err)
	}
	if err := kept.Unlock(within(t)); err != nil {
		t.Error(err)
	}
}

func TestANodeWhoseDiskFailsStopsAndTheOthersGoOn(t *testing.T) {
	c := newCluster(t, "", 1, 2, 3)
	k := c.client(t, "A")
	first := lock(t, k, "one", time.Minute)
	leader := c.leader()
	broken := errors.New("no space left")
	c.stores[leader].break_(broken)
	// The first attempt may have been committed by the others, unbeknown to the client. Then the
	// next one waits for its lease.
	if second := lock(t, k, "two", testLease); second.Token() <= first.Token() {
		t.Errorf("token %d after %d", second.Token(), first.Token())
	}
	<-c.nodes[leader].Done()
	if err := c.nodes[leader].Err(); !errors.Is(err, broken) {
		t.Errorf("the node has stopped because of %v", err)
	}
	if conn, err := net.Dial("tcp", c.addrs[leader]); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
}

// Server 3 accepts connections and never answers. The other two are a majority.
func TestAPeerThatNeverAnswersDelaysNobody(t *testing.T) {
	c := newCluster(t, "", 1, 2)
	hole := listen(t, c.addrs[3])
	go func() {
		for {
			conn, err := hole.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, conn) // until the other side gives up
			t.Cleanup(func() { conn.Close() })
		}
	}()
	t.Cleanup(func() { hole.Close() })
	k, err := Dial(within(t), []string{c.addrs[1], c.addrs[2]}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	leader := c.leader()
	s, err := k.Status(within(t), c.addrs[leader])
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := lock(t, k, "door", time.Minute).Unlock(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	after, err := k.Status(within(t), c.addrs[leader])
	if err != nil || after.Term != s.Term || after.Role != s.Role {
		t.Errorf("the leader of term %d is now %+v, %v", s.Term, after, err)
	}
}

func TestAWaiterThatLeavesFreesItsPlace(t *testing.T) {
	c := newCluster(t, "", 1, 2, 3)
	a, b := c.client(t, "A"), c.client(t, "B")
	first := lock(t, a, "door", time.Minute)
	ctx, leave := context.WithCancel(within(t))
	left := make(chan error)
	go func() {
		_, err := b.Lock(ctx, "door", time.Minute)
		left <- err
	}()
	leader := c.nodes[c.leader()]
	eventually(t, "the waiter is at the leader", func() bool { return callers(leader) == 1 })
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("it returned %v", err)
	}
	eventually(t, "the leader forgets the waiter", func() bool { return callers(leader) == 0 })
	if err := first.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.TryLock(within(t), "door", time.Minute); err != nil {
		t.Errorf("the key is not free: %v", err)
	}
}

// A client whose Grant is in the log leaves before it can be committed: the leader gives the lock
// back as soon as it is. Only that leader knows of the client; should a busy machine have made
// another one, the lease is left to end the lock, and the test is done again.
func TestALockThatIsGrantedToNobodyIsGivenBack(t *testing.T) {
	c := newCluster(t, "", 1, 2, 3)
	k := c.client(t, "A")
	for _, key := range []string{"ghost", "spectre", "spirit", "phantom", "shade"} {
		leader := c.leader()
		before, err := k.Status(within(t), c.addrs[leader])
		if err != nil {
			t.Fatal(err)
		}
		c.haunt(leader, key)
		free := false
		eventually(t, "the key is free, or there is another leader", func() bool {
			_, err := k.TryLock(within(t), key, time.Minute)
			free = err == nil
			s, err := k.Status(within(t), c.addrs[leader])
			return free || err != nil || s.Term != before.Term
		})
		if free {
			return
		}
	}
	t.Error("no leader has stayed for long enough")
}

// haunt makes the leader append a Grant for an hour, whose client leaves before it is committed.
func (c *cluster) haunt(leader raft.ServerID, key string) {
	for id, store := range c.stores {
		if id != leader {
			store.mu.Lock() // it saves nothing until then
			defer store.mu.Unlock()
		}
	}
	client, err := rpc.Dial("tcp", c.addrs[leader])
	if err != nil {
		c.t.Fatal(err)
	}
	args := &AcquireArgs{Client: 7, Seq: 1, Attempt: 1, Key: key, LeaseMS: 3600_000}
	client.Go("Lock.Acquire", args, new(AcquireReply), nil)
	n := c.nodes[leader]
	eventually(c.t, "the Grant is asked for", func() bool { return callers(n) == 1 })
	client.Close()
	eventually(c.t, "its client has left", func() bool { return callers(n) == 0 })
}

// callers counts the requests for which a handler waits.
func callers(n *Node) int {
	count := make(chan int, 1)
	n.enter(n.ctx, n.fromPeers, func() { count <- len(n.callers) })
	select {
	case k := <-count:
		return k
	case <-n.ctx.Done():
		return -1
	}
}

func TestDoneIsClosedAtTheDeadlineWithoutANetwork(t *testing.T) {
	c := newCluster(t, "", 1, 2, 3)
	k := c.client(t, "A")
	before := time.Now()
	l := lock(t, k, "door", testLease)
	for id := range c.addrs {
		c.stop(id)
	}
	<-l.Done()
	if now := time.Now(); now.Before(l.Deadline()) || l.Deadline().Before(before) {
		t.Errorf("taken at %v, deadline %v, done at %v", before, l.Deadline(), now)
	}
	if err := l.Unlock(within(t)); !errors.Is(err, ErrNotHeld) || !errors.Is(l.Err(), ErrNotHeld) {
		t.Errorf("unlocking it then: %v", err)
	}
}

func TestALeaseThatIsOverFreesTheKey(t *testing.T) {
	c := newCluster(t, "", 1, 2, 3)
	a, b := c.client(t, "A"), c.client(t, "B")
	first := lock(t, a, "door", testLease)
	second := lock(t, b, "door", time.Minute)
	select {
	case <-first.Done():
	default:
		t.Error("the first holder does not know that it has lost the lock")
	}
	if second.Token() <= first.Token() {
		t.Errorf("token %d after %d", second.Token(), first.Token())
	}
}

// One that waits longer than its lease gets a whole lease all the same.
func TestADeadlineCountsFromALateAttempt(t *testing.T) {
	c := newCluster(t, "", 1, 2, 3)
	a, b := c.client(t, "A"), c.client(t, "B")
	lock(t, a, "door", 2*testLease)
	asked := time.Now()
	second := lock(t, b, "door", testLease)
	if !second.Deadline().After(asked.Add(testLease)) {
		t.Errorf("asked at %v, deadline %v", asked, second.Deadline())
	}
}
