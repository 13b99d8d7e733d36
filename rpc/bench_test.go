package rpc

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
	"ticketing/raft/wal"
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

// A snapshot of a million locks: how long it takes on its way to the disk of a leader that serves 8
// clients, and how long everything else in that server waits for it at most; then how long a server
// with nothing takes to have it and count its leases, and how long everything there waits: for a part of
// the work, and for whatever else, by the clock of one who asks again and again.
func BenchmarkSnapshotOfAMillionLocks(b *testing.B) {
	data := tableOf(1_000_000)
	for b.Loop() {
		b.StopTimer()
		c := newCluster(b, b.TempDir())
		c.config.ElectionTimeout, c.config.HeartbeatTimeout = election, heartbeat
		for id := raft.ServerID(1); id <= 2; id++ {
			c.plant(b, id, snapshotOf(data))
			c.restart(id)
		}
		leader := c.leader()
		for _, n := range c.nodes {
			eventually(b, "it counts all leases", func() bool {
				counts, _ := look(n, func(r *fsm.Replica) bool { n.metrics.longestStep = 0; return !r.Recounting() })
				return counts
			})
		}
		k := c.client(b, "A")
		stop := load(b, c, 8)
		b.StartTimer()
		begun := time.Now()
		if s, err := k.Snapshot(within(b), c.addrs[leader]); err != nil || s.Index <= 9 {
			b.Fatal(s, err)
		}
		b.ReportMetric(time.Since(begun).Seconds(), "s/taken")
		b.ReportMetric(float64(stop())/time.Since(begun).Seconds(), "cycles/s")
		b.ReportMetric(c.nodes[leader].away(), "ms/longest-taking")
		goal, _ := applied(c.nodes[leader])
		begun = time.Now()
		c.restart(3)
		silent := time.Duration(0)
		eventually(b, "it has the table", func() bool {
			asked := time.Now()
			has, _ := look(c.nodes[3], func(r *fsm.Replica) bool {
				return r.Core().Status().LastApplied >= goal && !r.Recounting()
			})
			silent = max(silent, time.Since(asked))
			return has
		})
		b.ReportMetric(time.Since(begun).Seconds(), "s/installed")
		b.ReportMetric(c.nodes[3].away(), "ms/longest-installing")
		b.ReportMetric(float64(silent.Microseconds())/1000, "ms/silent-installing")
		b.StopTimer()
		for id := range c.nodes {
			c.stop(id)
		}
		b.StartTimer()
	}
}

// plant gives a server that has not run a log which begins behind a snapshot.
func (c *cluster) plant(b testing.TB, id raft.ServerID, s *raft.Snapshot) {
	b.Helper()
	log, _, err := wal.Open(filepath.Join(c.dir, strconv.Itoa(int(id))), wal.Options{Cluster: 1, Server: id})
	if err == nil {
		err = log.SaveSnapshot(s)
	}
	if err == nil {
		err = log.Save(raft.Write{Seq: 1, HardState: raft.HardState{Term: s.LastIncludedTerm}, Snapshot: s})
	}
	if err == nil {
		err = log.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
}

// away is for how many milliseconds a node's loop was busy at most with a snapshot.
func (n *Node) away() float64 {
	d, _ := look(n, func(*fsm.Replica) time.Duration { return n.metrics.longestStep })
	return float64(d.Microseconds()) / 1000
}
