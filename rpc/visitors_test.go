package rpc

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

func TestTheLeastUsefulConnectionGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &visitors{all: map[*session]bool{}}
		open := func() *session {
			s := &session{}
			s.ctx, s.cancel = context.WithCancel(t.Context())
			if !v.admit(s) {
				return nil
			}
			return s
		}
		gone := func(s *session) bool { return s.ctx.Err() != nil }
		peer, busy, idle := open(), open(), open()
		v.begin(peer, false)
		v.recognise(peer)
		v.end(peer, false)
		v.begin(busy, true)
		v.begin(idle, false)
		v.end(idle, false)
		time.Sleep(time.Second)
		silent := open()
		time.Sleep(time.Second)
		later := open()
		v.begin(later, false)
		v.end(later, false)
		for len(v.all) < maxConns-1 {
			v.begin(open(), true) // all others wait for a lock
			v.waiting = 0         // as if there were no limit
		}
		time.Sleep(time.Millisecond)
		fresh := open()
		if s := open(); s == nil || !gone(idle) {
			t.Error("the one that was idle for longest does not make room")
		} else {
			v.begin(s, false)
		}
		time.Sleep(firstPatience - time.Second) // for silent, not for fresh
		if s := open(); s == nil || !gone(silent) || gone(later) {
			t.Error("one that has said nothing for too long does not go first")
		} else {
			v.begin(s, false)
		}
		if s := open(); s == nil || !gone(later) || gone(fresh) {
			t.Error("one that is new is not given its time")
		} else {
			v.begin(s, false)
		}
		if s := open(); s == nil || !gone(fresh) {
			t.Error("the last idle one does not make room")
		} else {
			v.begin(s, false)
		}
		if s := open(); s != nil || gone(peer) || gone(busy) {
			t.Error("a peer, or one that waits, has made room")
		}
		if c := v.census(); c.closed != 4 || c.refused != 1 || c.connections != maxConns {
			t.Errorf("the counts are %+v", c)
		}
		v.leave(peer)
		if open() == nil {
			t.Error("the place of one that has left is not free")
		}
	})
}

func TestRequestsAreLimitedPerConnectionAndInAll(t *testing.T) {
	v := &visitors{all: map[*session]bool{}}
	s := &session{}
	for i := range maxRequests {
		if !v.begin(s, true) {
			t.Fatalf("request %d is refused", i+1)
		}
	}
	if v.begin(s, false) {
		t.Error("a connection has one request too many")
	}
	v.end(s, true)
	if !v.begin(s, false) {
		t.Error("the place of one that was answered is not free")
	}
	for v.waiting < maxWaiting {
		if !v.begin(&session{}, true) {
			t.Fatalf("request %d of all is refused", v.waiting+1)
		}
	}
	last := &session{}
	if v.begin(last, true) {
		t.Error("the server has one waiting request too many")
	}
	if !v.begin(last, false) {
		t.Error("who waits keeps others from giving back what they hold")
	}
	v.end(last, false)
	v.end(s, true)
	if !v.begin(last, true) {
		t.Error("the place of one that has ceased to wait is not free")
	}
}

// rawCaller calls methods by one connection of its own to a server.
func (c *cluster) rawCaller(t *testing.T, host string, id raft.ServerID) *rpc.Client {
	t.Helper()
	raw, err := c.net.dialer(host)(within(t), c.addrs[id])
	if err != nil {
		t.Fatal(err)
	}
	client := rpc.NewClient(raw)
	t.Cleanup(func() { client.Close() })
	return client
}

// opened opens a session.
func opened(t testing.TB, k *rpc.Client) fsm.ClientID {
	t.Helper()
	var y OpenReply
	if err := k.Call("Lock.Open", &OpenArgs{}, &y); err != nil || y.Status != OK || y.Client == 0 {
		t.Fatalf("%+v, %v", y, err)
	}
	return y.Client
}

// acquire asks for a lock without waiting for the answer.
func acquire(
	k *rpc.Client, client fsm.ClientID, seq uint64, key string, lease time.Duration,
) *rpc.Call {
	args := &AcquireArgs{
		Client: client, Seq: seq, Attempt: 1, Key: key, LeaseMS: lease.Milliseconds(),
	}
	return k.Go("Lock.Acquire", args, new(AcquireReply), make(chan *rpc.Call, 1))
}

// answered waits for the answer to an acquire.
func answered(t *testing.T, call *rpc.Call) AcquireReply {
	t.Helper()
	return reply(t, call.Done)
}

// reply is the next answer to one of several acquires.
func reply(t *testing.T, done <-chan *rpc.Call) AcquireReply {
	t.Helper()
	select {
	case call := <-done:
		if call.Error != nil {
			t.Fatal(call.Error)
		}
		return *call.Reply.(*AcquireReply)
	case <-within(t).Done():
		t.Fatal("there is no answer")
	}
	panic("not reached")
}

// With as many waiters as a server takes, the next is told that it is busy, the server can be asked
// how it is, and the holder can give its lock back.
func TestAServerFullOfWaitersStillTakesReleases(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		holder := c.rawCaller(t, "A", leader)
		held := answered(t, acquire(holder, 0, 1, "door", time.Minute))
		calls := make(chan *rpc.Call, maxWaiting+1)
		for i := range maxWaiting/maxRequests + 1 {
			k := c.rawCaller(t, fmt.Sprint("B", i), leader)
			for j := range maxRequests {
				args := &AcquireArgs{Attempt: 1, Key: "door",
					LeaseMS: 60_000}
				k.Go("Lock.Acquire", args, new(AcquireReply), calls)
				if i*maxRequests+j == maxWaiting {
					break
				}
			}
		}
		if y := reply(t, calls); y.Status != Busy {
			t.Errorf("the first answer is %+v", y)
		}
		synctest.Wait()
		if len(calls) > 0 || callers(c.nodes[leader]) != maxWaiting {
			t.Errorf("%d more answers; %d wait", len(calls), callers(c.nodes[leader]))
		}
		var s StatusReply
		if err := holder.Call("Lock.Status", &StatusArgs{}, &s); err != nil || s.Status != OK {
			t.Errorf("its status is %+v, %v", s, err)
		}
		var y ReleaseReply
		args := &ReleaseArgs{Key: "door", Token: held.Token}
		if err := holder.Call("Lock.Release", args, &y); err != nil || y.Status != OK {
			t.Errorf("the release: %+v, %v", y, err)
		}
		if y := reply(t, calls); y.Status != OK {
			t.Errorf("the next holder's answer: %+v", y)
		}
	})
}

// Connections that are idle, or hold garbage, shut nobody out, and leave nothing behind. This takes
// some thousand file descriptors: the other ends are in this process as well.
func TestTenThousandConnectionsShutNobodyOut(t *testing.T) {
	many := 10_000
	if testing.Short() {
		many = 2 * maxConns
	}
	many = min(many, openFiles(t)-2*maxConns)
	c := newCluster(t, "", 1, 2, 3)
	leader := c.leader()
	k := c.client(t, "A")
	unlock(t, lock(t, k, "door", time.Minute))
	goroutines, heap := runtime.NumGoroutine(), heapInUse()

	conns := make([]net.Conn, 0, many)
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	sends := []string{
		"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\xf8\x10\x00\x00\x00\x00\x00\x00\x00", // 2^60
		"", strings.Repeat("\x9c\xff nonsense", 50), "\x7fnot yet all of it",
	}
	locks, most := 0, 0
	for i := range many {
		conn, err := net.Dial("tcp", c.addrs[leader])
		if err != nil {
			t.Fatalf("connection %d: %v", i+1, err)
		}
		conns = append(conns, conn)
		_, _ = io.WriteString(conn, sends[i%len(sends)]) // it may be closed already
		if i%(many/10) == 0 {
			unlock(t, lock(t, k, "door", time.Minute))
			locks++
		}
		most = max(most, c.nodes[leader].visitors.census().connections)
	}
	// Whoever comes now is let in: a client, and a peer that has to connect again.
	other := c.client(t, "B")
	unlock(t, lock(t, other, "door", time.Minute))
	follower := leader%3 + 1
	c.stop(follower)
	c.restart(follower)
	c.leader() // all three agree; on a busy machine it may be another one by now
	if locks < 10 || most != maxConns {
		t.Errorf("%d locks were taken beside at most %d connections", locks, most)
	}
	census := c.nodes[leader].visitors.census()
	if census.closed == 0 || census.refused > 0 {
		t.Errorf("of %d connections %d were closed to make room, %d refused",
			many, census.closed, census.refused)
	}
	t.Logf("of %d connections %d were closed to make room", many, census.closed)

	full := heapInUse()
	for _, conn := range conns {
		conn.Close()
	}
	conns = nil // this end of them takes memory, too
	eventually(t, "goroutines and memory go back", func() bool {
		return runtime.NumGoroutine() <= goroutines+20 && heapInUse() <= heap+4<<20
	})
	t.Logf("heap %d KiB before, %d KiB with the connections, %d KiB after",
		heap>>10, full>>10, heapInUse()>>10)
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Whoever sends requests and reads no answers makes the server wait, not work, and is given up.
func TestOneThatReadsNoAnswersCostsLittle(t *testing.T) {
	c := newCluster(t, "", 1, 2, 3)
	raw, err := net.Dial("tcp", c.addrs[c.leader()])
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	k := c.client(t, "A")
	unlock(t, lock(t, k, "door", time.Minute))
	before, most, sent := runtime.NumGoroutine(), 0, make(chan int, 1)
	go func() {
		enc, k := gob.NewEncoder(raw), 0
		for ; k < 2_000_000; k++ {
			header := &rpc.Request{ServiceMethod: "Lock.Status", Seq: uint64(k)}
			if enc.Encode(header) != nil || enc.Encode(&StatusArgs{}) != nil {
				break
			}
		}
		sent <- k
	}()
	eventually(t, "it is given up", func() bool {
		most = max(most, runtime.NumGoroutine()-before)
		return len(sent) > 0
	})
	if n := <-sent; n < maxUnwritten || n == 2_000_000 || most > 3*maxUnwritten { // some are ending
		t.Errorf("after %d requests there were %d more goroutines", n, most)
	}
	unlock(t, lock(t, k, "door", time.Minute))
}

// exhausted is a listener that has no file descriptors left.
type exhausted struct{ *listener }

func (exhausted) Accept() (net.Conn, error) { return nil, errors.New("too many open files") }

func TestALackOfFilesClosesAnIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := bubbleCluster(t, 0), newLogbook(t)
		c.config.Log = book.logger()
		c.start(1, c.net.listen(name(1)))
		n := c.nodes[1]
		c.rawCaller(t, "x", 1)
		synctest.Wait()
		ctx, stop := context.WithTimeout(n.open, 350*time.Millisecond) // some errors long
		defer stop()
		gone := &Node{open: ctx, log: n.log, visitors: n.visitors}
		if err := gone.accept(exhausted{}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if k := n.visitors.census().connections; k != 0 || book.count("too many open files") != 1 {
			t.Errorf("%d connections are left:\n%s", k, book)
		}
	})
}
