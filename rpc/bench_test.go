package rpc

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// What a cluster of three on this machine's loopback does: with each server's log on this machine's
// disk, and with disks that need 5 ms for a sync whatever they are given. A cycle takes a lock and
// gives it back. With one key for all, each cycle is a hand-over.
func BenchmarkLockCycles(b *testing.B) {
	for _, disk := range []string{"wal", "5ms sync"} {
		for _, clients := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/%d clients", disk, clients), func(b *testing.B) {
				cycle(b, disk, clients, func(i int) string { return fmt.Sprint("key ", i) })
			})
		}
		b.Run(disk+"/16 clients on one key", func(b *testing.B) {
			cycle(b, disk, 16, func(int) string { return "key" })
		})
	}
}

func cycle(b *testing.B, disk string, clients int, key func(client int) string) {
	c := benchCluster(b, disk)
	leader := c.nodes[c.leader()]
	all := make([]*Client, clients)
	for i := range all {
		all[i] = c.client(b, fmt.Sprint("client", i))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	one := func(i int) {
		l, err := all[i].Lock(ctx, key(i), time.Minute)
		if err == nil {
			err = l.Unlock(ctx)
		}
		if err != nil {
			b.Error(err)
		}
	}
	for i := range all {
		one(i) // so that it is connected to the leader
	}
	before := leader.syncs()
	var running sync.WaitGroup
	b.ResetTimer()
	for i := range all {
		running.Go(func() {
			for range (b.N + i) / clients { // b.N in all
				one(i)
			}
		})
	}
	running.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	b.ReportMetric(float64(leader.syncs()-before)/float64(b.N), "syncs/lock")
}

func benchCluster(b *testing.B, disk string) *cluster {
	c := newCluster(b, "")
	c.config.ElectionTimeout = 2 * time.Second
	if disk == "wal" {
		c.dir = b.TempDir()
	}
	for id, d := range c.disks {
		d.forgets, d.sync = true, 5*time.Millisecond
		c.restart(id)
	}
	c.nodes[raft.ServerID(1)].campaign()
	return c
}

// syncs counts the writes that a node's disk has finished.
func (n *Node) syncs() uint64 {
	writes, _ := look(n, func(*fsm.Replica) uint64 { return n.metrics.writes })
	return writes
}
