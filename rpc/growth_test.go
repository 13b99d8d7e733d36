package rpc

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"ticketing/fsm"
	"ticketing/raft"
)

// long reports whether tests may take minutes.
func long() bool { return os.Getenv("TICKETING_LONG") != "" }

// What a server keeps for a lock that was given back is its part of the log, and nothing else.
func TestLocksThatAreGivenBackLeaveNothing(t *testing.T) {
	const clients = 16
	cycles := 5_000
	if long() {
		cycles = 100_000
	}
	c := newCluster(t, "")
	c.config.ElectionTimeout = 2 * time.Second // a leader that changes is another test's matter
	for id := range c.addrs {
		c.disks[id].forgets = true
		c.restart(id)
	}
	c.nodes[1].campaign() // instead of waiting
	c.leader()
	var all []*Client
	for i := range clients {
		all = append(all, c.client(t, fmt.Sprint("client", i)))
	}
	runCycles(t, all, cycles/10)
	before := c.usage(t)
	runCycles(t, all, cycles*9/10)
	after := c.usage(t)
	t.Logf("%+v, then %+v", before, after)
	if after.entries-before.entries < 3*2*cycles*8/10 {
		t.Errorf("the logs grew by %d entries in %d cycles", after.entries-before.entries, cycles)
	}
	if after.goroutines > before.goroutines+clients {
		t.Errorf("%d goroutines after a tenth, %d in the end", before.goroutines, after.goroutines)
	}
	each := (after.heap - before.heap - (after.logs - before.logs)) / (cycles * 9 / 10)
	if most := 100 + 500_000/cycles; each > most {
		t.Errorf("beside the logs a cycle costs %d bytes, more than %d", each, most)
	}
}

// runCycles makes clients take and give back locks, each its own, so many times in all.
func runCycles(t *testing.T, all []*Client, cycles int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var running sync.WaitGroup
	for i, k := range all {
		running.Go(func() {
			for range cycles / len(all) {
				l, err := k.Lock(ctx, fmt.Sprint("key ", i), time.Minute)
				if err == nil {
					err = l.Unlock(ctx)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
}

// usage is what the process uses, and how much of it is the servers' logs.
type usage struct{ goroutines, heap, entries, logs int }

func (c *cluster) usage(t *testing.T) (u usage) {
	t.Helper()
	<-time.After(3 * testHeartbeat) // what is on its way arrives
	for _, n := range c.nodes {
		log, _ := look(n, func(r *fsm.Replica) (u usage) {
			last := r.Core().Status().LastIndex
			for i := raft.Index(1); i <= last; i++ {
				u.logs += cap(r.Core().Entries(i, i)[0].Command)
			}
			u.entries = int(last)
			return u
		})
		u.entries += log.entries
		// A slice that grows has some room to spare.
		u.logs += log.logs + log.entries*int(unsafe.Sizeof(raft.Entry{}))*5/4
	}
	runtime.GC()
	runtime.GC() // what has a finalizer goes only now
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.goroutines, u.heap = runtime.NumGoroutine(), int(m.HeapAlloc)
	return u
}
