//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package fenced_test

import (
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"ticketing/docs/fenced"
	"ticketing/raft"
	"ticketing/rpc"
)

// forgetful is a disk for a cluster that nobody restarts.
type forgetful struct{}

func (forgetful) Save(raft.Write) error             { return nil }
func (forgetful) SaveSnapshot(*raft.Snapshot) error { return nil }
func (forgetful) Close() error                      { return nil }

// cluster starts a lock service of one server and returns where it is.
func cluster(t *testing.T) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = listener.Addr().String()
	node, err := rpc.Start(rpc.Config{
		ID: 1, Addrs: map[raft.ServerID]string{1: addr}, Cluster: 1,
		ElectionTimeout: 100 * time.Millisecond, HeartbeatTimeout: 20 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
	}, forgetful{}, raft.Durable{}, listener)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	return addr
}

// program is a client of the lock service with the store open, as each would have it in a process
// of its own.
func program(t *testing.T, addr, owner, path string) (*rpc.Client, *fenced.Store) {
	t.Helper()
	c, err := rpc.Dial(t.Context(), []string{addr}, rpc.Options{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s, err := fenced.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func take(t *testing.T, c *rpc.Client, lease time.Duration) *rpc.Lock {
	t.Helper()
	lock, err := c.Lock(t.Context(), "report", lease)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// A program stands still with the lock in its hand, so it does not look at Done, and writes when
// its lease is over and another has the lock.
//
//spec:test Fence
func TestAPausedHoldersLateWriteIsRefused(t *testing.T) {
	addr, path := cluster(t), filepath.Join(t.TempDir(), "store")
	slow, itsStore := program(t, addr, "slow", path)
	quick, store := program(t, addr, "quick", path)

	first := take(t, slow, 400*time.Millisecond)
	if err := itsStore.Put(uint64(first.Token()), "report", "begun"); err != nil {
		t.Fatal(err)
	}
	second := take(t, quick, time.Minute) // it waits for the lease to end
	if first.Token() >= second.Token() {
		t.Fatalf("token %d comes after token %d", second.Token(), first.Token())
	}
	text, err := store.Get(uint64(second.Token()), "report")
	if err != nil {
		t.Fatal(err)
	}
	late := itsStore.Put(uint64(first.Token()), "report", "nearly done")
	if !errors.Is(late, fenced.ErrStale) {
		t.Errorf("the late write says: %v", late)
	}
	if err := store.Put(uint64(second.Token()), "report", text+", and done"); err != nil {
		t.Error(err)
	}
	text, err = store.Get(uint64(second.Token()), "report")
	if err != nil || text != "begun, and done" {
		t.Errorf("the store has %q, %v", text, err)
	}
}
