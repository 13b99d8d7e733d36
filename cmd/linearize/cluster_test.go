package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ticketing/cmd/internal/history"
	"ticketing/raft"
	"ticketing/raft/wal"
	"ticketing/rpc"
)

// roads are the connections between servers, which can be cut.
type roads struct {
	mu    sync.Mutex
	cut   map[[2]raft.ServerID]bool
	open  map[[2]raft.ServerID][]net.Conn
	addrs map[string]raft.ServerID
}

func (r *roads) dial(from raft.ServerID) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		way := [2]raft.ServerID{from, r.addrs[addr]}
		if r.cut[way] {
			return nil, errors.Join(errors.New("the road is cut"), conn.Close())
		}
		r.open[way] = append(r.open[way], conn)
		return conn, nil
	}
}

// separate cuts a server off from the others, or lets it back.
func (r *roads) separate(id raft.ServerID, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other := raft.ServerID(1); other <= 3; other++ {
		for _, way := range [][2]raft.ServerID{{id, other}, {other, id}} {
			r.cut[way] = cut
			for _, conn := range r.open[way] {
				conn.Close()
			}
			r.open[way] = nil
		}
	}
}

// slowDisk takes its time now and then. So a Release and the next Grant are in the log for a while,
// and old leases run out meanwhile: only then is there an Expire that comes late.
type slowDisk struct{ *wal.Log }

func (d slowDisk) Save(w raft.Write) error {
	if rand.IntN(3) == 0 {
		<-time.After(rand.N(100 * time.Millisecond))
	}
	return d.Log.Save(w)
}

// cluster is three servers of this process, on loopback.
type cluster struct {
	t     *testing.T
	dir   string
	addrs map[raft.ServerID]string
	roads *roads
	nodes map[raft.ServerID]*rpc.Node
}

func startCluster(t *testing.T) *cluster {
	c := &cluster{
		t: t, dir: t.TempDir(),
		addrs: map[raft.ServerID]string{}, nodes: map[raft.ServerID]*rpc.Node{},
		roads: &roads{
			cut:   map[[2]raft.ServerID]bool{},
			open:  map[[2]raft.ServerID][]net.Conn{},
			addrs: map[string]raft.ServerID{},
		},
	}
	listeners := map[raft.ServerID]net.Listener{}
	for id := raft.ServerID(1); id <= 3; id++ {
		// Below the ports that systems give to outgoing connections: a server comes back to its own.
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 9000+rand.IntN(1000)))
		for err != nil {
			l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 9000+rand.IntN(1000)))
		}
		listeners[id], c.addrs[id] = l, l.Addr().String()
		c.roads.addrs[c.addrs[id]] = id
	}
	for id, l := range listeners {
		c.start(id, l)
	}
	t.Cleanup(func() {
		for id := range c.nodes {
			c.stop(id)
		}
	})
	return c
}

func (c *cluster) start(id raft.ServerID, l net.Listener) {
	c.t.Helper()
	dir := filepath.Join(c.dir, fmt.Sprint(id))
	store, durable, err := wal.Open(dir, wal.Options{Cluster: 1, Server: id})
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[id], err = rpc.Start(rpc.Config{
		ID: id, Addrs: c.addrs, Cluster: 1, Dial: c.roads.dial(id),
		Log:             slog.New(slog.DiscardHandler),
		ElectionTimeout: 200 * time.Millisecond, HeartbeatTimeout: 40 * time.Millisecond,
		LeastLease: 100 * time.Millisecond,
	}, slowDisk{store}, durable, l)
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) stop(id raft.ServerID) {
	c.t.Helper()
	if err := c.nodes[id].Stop(); err != nil {
		c.t.Error(err)
	}
	delete(c.nodes, id)
}

func (c *cluster) restart(id raft.ServerID) {
	c.t.Helper()
	l, err := net.Listen("tcp", c.addrs[id])
	if err != nil {
		c.t.Fatal(err)
	}
	c.start(id, l)
}

// trouble cuts servers off and restarts them until the context ends, and counts.
func (c *cluster) trouble(ctx context.Context, r *rand.Rand) (cuts, restarts int) {
	pause := func() {
		select {
		case <-time.After(time.Duration(200+r.IntN(500)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	for turn := 0; ctx.Err() == nil; turn++ {
		id := raft.ServerID(1 + r.IntN(3))
		if turn%2 == 0 {
			c.roads.separate(id, true)
			pause()
			c.roads.separate(id, false)
			cuts++
		} else {
			c.stop(id)
			pause()
			c.restart(id)
			restarts++
		}
		pause()
	}
	return cuts, restarts
}

// use is one client's life.
func use(ctx context.Context, h *history.Recorder, c *rpc.Client, name string, r *rand.Rand) {
	for ctx.Err() == nil {
		key := fmt.Sprint("key ", r.IntN(3))
		lease := time.Duration(200+r.IntN(200)) * time.Millisecond
		patience, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(2000))*time.Millisecond)
		ask := h.Lock
		if r.IntN(4) == 0 {
			ask = h.TryLock
		}
		lock, err := ask(patience, c, name, key, lease)
		cancel()
		if err != nil {
			<-time.After(time.Duration(r.IntN(20)) * time.Millisecond)
			continue
		}
		patience, cancel = context.WithTimeout(context.Background(), 2*time.Second)
		switch r.IntN(4) { // what comes of it is taken down
		case 0: // at the last moment
			<-time.After(time.Until(lock.Deadline()) - time.Duration(r.IntN(5))*time.Millisecond)
			_ = h.Unlock(patience, name, lock)
		case 1: // too late, when somebody else may have it
			<-lock.Done()
			<-time.After(time.Duration(r.IntN(100)) * time.Millisecond)
			_ = h.Release(patience, c, name, key, lock.Token())
		default:
			_ = h.Unlock(patience, name, lock)
		}
		cancel()
	}
}

// Twelve clients take three locks while servers are cut off and restarted. What they saw is judged
// from outside. (Jepsen Hazelcast 3.8.3.)
func TestWhatClientsOfARealClusterSeeIsLinearizable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	c, h := startCluster(t), history.NewRecorder()
	ctx, cancel := context.WithTimeout(t.Context(), length())
	defer cancel()
	var addrs []string
	for id := raft.ServerID(1); id <= 3; id++ {
		addrs = append(addrs, c.addrs[id])
	}
	var clients sync.WaitGroup
	for i := range uint64(12) {
		client, err := rpc.Dial(ctx, addrs, rpc.Options{Owner: fmt.Sprint("client ", i)})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		r := rand.New(rand.NewPCG(seed, i))
		clients.Go(func() { use(ctx, h, client, fmt.Sprint("client ", i), r) })
	}
	cuts, restarts := c.trouble(ctx, rand.New(rand.NewPCG(seed, 1000)))
	clients.Wait()
	picture := filepath.Join(os.TempDir(), "linearize.html") // it is to outlive a test that fails
	v, err := judge(h.Operations(), time.Minute, picture)
	t.Logf("seed %d: %d cuts, %d restarts; %v", seed, cuts, restarts, v)
	if err != nil {
		t.Errorf("%v; the history is in %s", err, keep(t, h.Operations()))
	}
	if cuts == 0 || restarts == 0 || v.granted < 25 || v.released < 10 || v.over == 0 ||
		v.unknown == 0 || v.held == 0 {
		t.Errorf("too little has happened: %d cuts, %d restarts, %+v", cuts, restarts, v)
	}
}

// length is how long the cluster is troubled.
func length() time.Duration {
	if os.Getenv("TICKETING_LONG") == "1" {
		return time.Minute
	}
	return 6 * time.Second
}

// keep writes a history where the command can read it.
func keep(t *testing.T, all []history.Operation) string {
	t.Helper()
	var lines bytes.Buffer
	if err := history.Write(&lines, all); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(os.TempDir(), "linearize.jsonl")
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
