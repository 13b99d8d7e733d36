package rpc

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
	"ticketing/raft/wal"
)

// Times for tests on real sockets: short, and long enough for a machine that does other things as
// well.
const (
	testElection  = 300 * time.Millisecond
	testHeartbeat = 50 * time.Millisecond
	patience      = 30 * time.Second // after which something hangs
)

// Times in a bubble. They are the ones that a node has by itself.
const (
	election  = time.Second
	longest   = 2 * election // an election timeout is shorter than this
	heartbeat = 100 * time.Millisecond
)

// cluster is three nodes, on loopback or in a bubble.
type cluster struct {
	rested  bool // there is a leader: a client gets its session at once
	t       testing.TB
	config  Config   // but for ID and Dial
	net     *network // nil on loopback
	dir     string   // of the write-ahead logs; "" for none
	addrs   map[raft.ServerID]string
	nodes   map[raft.ServerID]*Node // that run
	disks   map[raft.ServerID]*disk
	expects map[raft.ServerID]error // with what a node may end
}

// newCluster starts the servers with these ids of a cluster of three on loopback. When the test is
// over, no goroutine of theirs may be left.
func newCluster(t testing.TB, dir string, ids ...raft.ServerID) *cluster {
	t.Helper()
	noGoroutineStays(t)
	c := bareCluster(t)
	c.dir = dir
	c.config.ElectionTimeout, c.config.HeartbeatTimeout = testElection, testHeartbeat
	listeners := map[raft.ServerID]net.Listener{}
	for id := raft.ServerID(1); id <= 3; id++ {
		listeners[id] = listen(t, "127.0.0.1:0")
		c.addrs[id] = listeners[id].Addr().String()
	}
	for _, id := range ids {
		c.start(id, listeners[id])
		delete(listeners, id)
	}
	for _, l := range listeners {
		l.Close()
	}
	return c
}

func bareCluster(t testing.TB) *cluster {
	c := &cluster{
		t: t, addrs: map[raft.ServerID]string{}, nodes: map[raft.ServerID]*Node{},
		disks: map[raft.ServerID]*disk{}, expects: map[raft.ServerID]error{},
	}
	c.config = Config{Addrs: c.addrs, Cluster: 1, Log: slog.New(slog.DiscardHandler)}
	for id := raft.ServerID(1); id <= 3; id++ {
		c.disks[id] = &disk{}
	}
	t.Cleanup(func() {
		for id := range c.nodes {
			c.disks[id].resume()
			c.stop(id)
		}
	})
	return c
}

// inBubble runs a test in a bubble, on three servers whose disks need so long for a write, with one
// of them as the leader.
func inBubble(t *testing.T, sync time.Duration, test func(*testing.T, *cluster, raft.ServerID)) {
	t.Helper()
	inBubbleWith(t, sync, func(*Config) {}, test)
}

// inBubbleWith is inBubble with a configuration that is not the usual one.
func inBubbleWith(
	t *testing.T, sync time.Duration, change func(*Config), test func(*testing.T, *cluster, raft.ServerID),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := bubbleCluster(t, sync)
		change(&c.config)
		for id := range c.addrs {
			c.start(id, c.net.listen(name(id)))
		}
		leader := c.leader()
		// The leader's first entry is committed, and everyone has heard of that and rests.
		time.Sleep(2*heartbeat + 4*sync)
		c.rested = true
		test(t, c, leader)
	})
}

// bubbleCluster has none of its servers started.
func bubbleCluster(t testing.TB, sync time.Duration) *cluster {
	c := bareCluster(t)
	c.net = newNetwork()
	for id, d := range c.disks {
		d.sync = sync
		c.addrs[id] = host(name(id)).String()
	}
	return c
}

// loggedCluster is one in a bubble, whose servers run, and the book of what they log.
func loggedCluster(t *testing.T) (*cluster, *logbook) {
	c, book := bubbleCluster(t, 0), newLogbook(t)
	c.config.Log = book.logger()
	for id := range c.addrs {
		c.start(id, c.net.listen(name(id)))
	}
	return c, book
}

// name is a server's host.
func name(id raft.ServerID) string { return "n" + string(rune('0'+id)) }

// others are the hosts of all servers but one.
func others(id raft.ServerID) (names []string) {
	for o := raft.ServerID(1); o <= 3; o++ {
		if o != id {
			names = append(names, name(o))
		}
	}
	return names
}

func listen(t testing.TB, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (c *cluster) start(id raft.ServerID, l net.Listener) {
	c.t.Helper()
	config := c.config
	config.ID = id
	if c.net != nil {
		config.Dial = c.net.dialer(name(id))
	}
	var store Store = c.disks[id]
	durable := c.disks[id].durable
	durable.Entries = slices.Clone(durable.Entries)
	if c.dir != "" {
		own := filepath.Join(c.dir, string(rune('0'+id)))
		log, d, err := wal.Open(own, wal.Options{Cluster: 1, Server: id})
		if err != nil {
			c.t.Fatal(err)
		}
		store, durable = log, d
	}
	n, err := Start(config, store, durable, l)
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[id] = n
}

// restart starts a server again with what is on its disk.
func (c *cluster) restart(id raft.ServerID) {
	c.t.Helper()
	c.disks[id].set(func(d *disk) { d.fail = nil })
	if c.net != nil {
		c.start(id, c.net.listen(name(id)))
		return
	}
	c.start(id, listen(c.t, c.addrs[id]))
}

var errCrash = errors.New("the machine has crashed")

// crash ends a server at once. What its disk has not finished is lost.
func (c *cluster) crash(id raft.ServerID) {
	c.disks[id].set(func(d *disk) { d.fail = errCrash })
	c.expects[id] = errCrash
	c.nodes[id].cancel()
	c.stop(id)
}

func (c *cluster) stop(id raft.ServerID) {
	c.t.Helper()
	if err := c.nodes[id].Stop(); err != nil && !errors.Is(err, c.expects[id]) {
		c.t.Errorf("server %d: %v", id, err)
	}
	delete(c.nodes, id)
}

// client returns a client of all servers. In a bubble its owner is its host.
func (c *cluster) client(t testing.TB, owner string) *Client {
	t.Helper()
	options := Options{Owner: owner}
	if c.net != nil {
		options.Dial = c.net.dialer(owner)
	}
	k, err := Dial(within(t), []string{c.addrs[1], c.addrs[2], c.addrs[3]}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	if c.rested {
		if err := k.Connect(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// lease is the least that the servers take.
func (c *cluster) lease() time.Duration { return c.config.withDefaults().LeastLease }

// within returns a context that ends when the test may be taken to hang.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// look lets a node's loop look at its replica. It returns false if the node has ended.
func look[T any](n *Node, f func(*fsm.Replica) T) (found T, ok bool) {
	c := make(chan T, 1)
	n.enter(n.ctx, n.fromPeers, func() { c <- f(n.replica) })
	select {
	case found = <-c:
		return found, true
	case <-n.ctx.Done():
		return found, false
	}
}

// agreed returns the leader if all servers that run agree on one. It leads once its own first entry
// is applied.
func (c *cluster) agreed() (leader raft.ServerID, ok bool) {
	said, leads := map[raft.ServerID]bool{}, raft.ServerID(0)
	for id, n := range c.nodes {
		s, runs := look(n, func(r *fsm.Replica) raft.Status {
			s := r.Core().Status()
			if term, _ := r.Core().Term(s.LastApplied); s.Role == raft.Leader && term == s.Term {
				leads = id
			}
			return s
		})
		if !runs {
			return 0, false
		}
		said[s.Leader] = true
	}
	return leads, leads != 0 && len(said) == 1 && said[leads]
}

func (c *cluster) agree() bool {
	_, ok := c.agreed()
	return ok
}

// leader waits until all servers that run agree on a leader.
func (c *cluster) leader() (leader raft.ServerID) {
	c.t.Helper()
	eventually(c.t, "all agree on a leader", func() bool {
		id, ok := c.agreed()
		leader = id
		return ok
	})
	return leader
}

// lock takes a lock, again if a change of leaders has left the first attempt's outcome unknown.
func lock(t testing.TB, k *Client, key string, lease time.Duration) *Lock {
	t.Helper()
	for ctx := within(t); ; {
		l, err := k.Lock(ctx, key, lease)
		if err == nil {
			return l
		}
		if !errors.Is(err, ErrUnknownOutcome) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// eventually looks again and again: every millisecond, so that in a bubble it tells when something
// came about to the millisecond.
func eventually(t testing.TB, what string, holds func() bool) (took time.Duration) {
	t.Helper()
	start := time.Now()
	for !holds() {
		if time.Since(start) > patience {
			t.Fatalf("it does not come about that %s", what)
		}
		<-time.After(time.Millisecond)
	}
	return time.Since(start)
}

// noGoroutineStays checks, when the test and its clean-ups are over, that as many goroutines run as
// before. Those that are ending get the time for it.
func noGoroutineStays(t testing.TB) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; {
			if time.Now().After(end) {
				all := make([]byte, 1<<16)
				t.Fatalf("%d goroutines, before the test it was %d\n%s",
					runtime.NumGoroutine(), before, all[:runtime.Stack(all, true)])
			}
			<-time.After(time.Millisecond)
		}
	})
}

// callers counts the requests for which a handler waits.
func callers(n *Node) int {
	count, ok := look(n, func(*fsm.Replica) int { return len(n.callers) })
	if !ok {
		return -1
	}
	return count
}

// grants counts those of them that want a lock, and not a session to want one in.
func grants(n *Node) int {
	count, ok := look(n, func(*fsm.Replica) (count int) {
		for _, c := range n.callers {
			if c.kind == fsm.Grant {
				count++
			}
		}
		return count
	})
	if !ok {
		return -1
	}
	return count
}
