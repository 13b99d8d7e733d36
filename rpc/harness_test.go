package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"ticketing/raft"
	"ticketing/raft/wal"
)

// Times for tests: short, and long enough for a machine that does other things as well.
const (
	testElection  = 300 * time.Millisecond
	testHeartbeat = 50 * time.Millisecond
	testLease     = 4 * testElection // the least
	patience      = 30 * time.Second // after which something hangs
)

// memory is a disk that lasts as long as the test.
type memory struct {
	mu   sync.Mutex
	fail error
}

func (m *memory) Save(raft.Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fail
}

func (m *memory) Close() error { return nil }

func (m *memory) break_(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

// cluster is three nodes on loopback.
type cluster struct {
	t      *testing.T
	dir    string // of the write-ahead logs; "" for none
	addrs  map[raft.ServerID]string
	nodes  map[raft.ServerID]*Node
	stores map[raft.ServerID]*memory
}

// newCluster starts the servers with these ids of a cluster of three. When the test is over, no
// goroutine of theirs may be left.
func newCluster(t *testing.T, dir string, ids ...raft.ServerID) *cluster {
	t.Helper()
	noGoroutineStays(t)
	c := &cluster{
		t, dir, map[raft.ServerID]string{}, map[raft.ServerID]*Node{}, map[raft.ServerID]*memory{},
	}
	listeners := map[raft.ServerID]net.Listener{}
	for id := raft.ServerID(1); id <= 3; id++ {
		listeners[id] = listen(t, "127.0.0.1:0")
		c.addrs[id] = listeners[id].Addr().String()
	}
	t.Cleanup(func() {
		for id := range c.nodes {
			c.stop(id)
		}
	})
	for _, id := range ids {
		c.start(id, listeners[id])
		delete(listeners, id)
	}
	for _, l := range listeners {
		l.Close()
	}
	return c
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (c *cluster) start(id raft.ServerID, l net.Listener) {
	c.t.Helper()
	c.stores[id] = &memory{}
	var store Store = c.stores[id]
	var durable raft.Durable
	if c.dir != "" {
		own := filepath.Join(c.dir, string(rune('0'+id)))
		log, d, err := wal.Open(own, wal.Options{Cluster: 1, Server: id})
		if err != nil {
			c.t.Fatal(err)
		}
		store, durable = log, d
	}
	n, err := Start(Config{
		ID: id, Addrs: c.addrs, Cluster: 1,
		ElectionTimeout: testElection, HeartbeatTimeout: testHeartbeat,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, store, durable, l)
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[id] = n
}

func (c *cluster) stop(id raft.ServerID) {
	c.t.Helper()
	if err := c.nodes[id].Stop(); err != nil && c.stores[id].fail == nil {
		c.t.Errorf("server %d: %v", id, err)
	}
	delete(c.nodes, id)
}

// client returns a client of all servers.
func (c *cluster) client(t *testing.T, owner string) *Client {
	t.Helper()
	addrs := []string{c.addrs[1], c.addrs[2], c.addrs[3]}
	k, err := Dial(within(t), addrs, Options{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// within returns a context that ends when the test may be taken to hang.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// leader waits until one server says that it leads and the others that run agree.
func (c *cluster) leader() raft.ServerID {
	c.t.Helper()
	k := c.client(c.t, "")
	var leader raft.ServerID
	eventually(c.t, "all agree on a leader", func() bool {
		said, leaders := map[string]bool{}, 0
		for id := range c.nodes {
			s, err := k.Status(within(c.t), c.addrs[id])
			if err != nil {
				return false
			}
			said[s.Leader] = true
			if s.Role == raft.Leader.String() {
				leader = id
				leaders++
			}
		}
		return leaders == 1 && len(said) == 1 && said[c.addrs[leader]]
	})
	return leader
}

// lock takes a lock, again if a change of leaders has left the first attempt's outcome unknown.
func lock(t *testing.T, k *Client, key string, lease time.Duration) *Lock {
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

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("it does not come about that %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// noGoroutineStays checks, when the test and its clean-ups are over, that as many goroutines run as
// before. Those that are ending get the time for it.
func noGoroutineStays(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; {
			if time.Now().After(end) {
				all := make([]byte, 1<<16)
				t.Fatalf("%d goroutines, before the test it was %d\n%s",
					runtime.NumGoroutine(), before, all[:runtime.Stack(all, true)])
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}
