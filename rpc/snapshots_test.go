package rpc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ticketing/raft"
)

// compacting makes servers take a snapshot after so many entries, and keep so many before its end.
func compacting(every, keep raft.Index) func(*Config) {
	return func(c *Config) { c.SnapshotEvery, c.Keep = every, keep }
}

// cycles takes and gives back a lock, again and again: two entries each.
func cycles(t testing.TB, k *Client, times int) {
	t.Helper()
	for range times {
		unlock(t, lock(t, k, "door", time.Minute))
	}
}

func (c *cluster) status(t testing.TB, k *Client, id raft.ServerID) StatusReply {
	t.Helper()
	s, err := k.Status(within(t), c.addrs[id])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hangKeep makes every SaveSnapshot that begins from now on wait for the function that it returns.
func (d *disk) hangKeep() (resume func()) {
	hung := make(chan struct{})
	d.set(func(d *disk) { d.hungKeep = hung })
	return func() {
		d.set(func(d *disk) { d.hungKeep = nil })
		close(hung)
	}
}

// While a snapshot is on its way to the disk, clients go on, and the log is what it was.
func TestASnapshotGoesToTheDiskBesideTheWrites(t *testing.T) {
	const every, keeps = 20, 5
	inBubbleWith(t, 0, compacting(every, keeps), func(t *testing.T, c *cluster, leader raft.ServerID) {
		n, d, k := c.nodes[leader], c.disks[leader], c.client(t, "A")
		resume := d.hangKeep()
		cycles(t, k, 3*every)
		s := c.status(t, k, leader)
		if s.Snapshot.Index != 0 || s.First != 1 || s.Applied < 6*every || n.Healthy(within(t)) != nil {
			t.Errorf("with a snapshot under way it is %+v", s)
		}
		time.Sleep(time.Second)
		resume()
		time.Sleep(time.Second)
		s = c.status(t, k, leader)
		if s.Snapshot.Index == 0 || s.Snapshot.Bytes == 0 || s.First != s.Snapshot.Index-keeps+1 ||
			s.Snapshot.AgeMS != 1000 {
			t.Errorf("with the snapshot on the disk it is %+v", s)
		}
		if d.durable.Snapshot == nil {
			t.Fatal("its log does not begin behind it")
		}
		last := raft.Index(len(d.durable.Entries)) + d.durable.Snapshot.LastIncludedIndex
		if d.durable.Snapshot.LastIncludedIndex != s.Snapshot.Index || last != s.Last {
			t.Errorf("its disk has a snapshot up to %d and %d entries, it says %+v",
				d.durable.Snapshot.LastIncludedIndex, len(d.durable.Entries), s)
		}
		m := scrape(t, n)
		if m[`lockd_snapshots_total{from="self"}`] != m["lockd_snapshot_write_seconds_count"] ||
			m[`lockd_snapshots_total{from="leader"}`] != 0 || m["lockd_snapshot_bytes_total"] < float64(s.Snapshot.Bytes) ||
			m["lockd_snapshot_last_bytes"] != float64(s.Snapshot.Bytes) ||
			m["lockd_snapshot_index"] != float64(s.Snapshot.Index) || m["lockd_first_index"] != float64(s.First) {
			t.Errorf("its metrics are %v, and it is %+v", m, s)
		}
		c.sameTables(t)
	})
}

// Whoever asks for a snapshot is answered when it is on the disk. One that is under way will do, and
// one that has all.
func TestASnapshotThatIsAskedForIsWaitedFor(t *testing.T) {
	inBubbleWith(t, 0, compacting(0, 5), func(t *testing.T, c *cluster, leader raft.ServerID) {
		id, k := leader%3+1, c.client(t, "A")
		cycles(t, k, 10)
		time.Sleep(2 * heartbeat) // it has applied all
		resume := c.disks[id].hangKeep()
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := k.Snapshot(ctx, c.addrs[id])
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "is under way") {
				t.Errorf("while the disk hangs, it is %v", err)
			}
		}
		resume()
		goal := c.status(t, k, id).Applied
		for range 2 {
			if s, err := k.Snapshot(within(t), c.addrs[id]); err != nil || s.Index != goal || s.Bytes == 0 {
				t.Errorf("it is %+v, %v", s, err)
			}
		}
		if s := c.status(t, k, leader); s.Snapshot.Index != 0 {
			t.Errorf("nobody has asked the leader, and it is %+v", s)
		}
		m := scrape(t, c.nodes[id])
		if m[`lockd_snapshots_total{from="self"}`] != 1 || m[`lockd_snapshots_total{from="leader"}`] != 0 {
			t.Errorf("it has taken %v", m[`lockd_snapshots_total{from="self"}`])
		}
		if _, err := k.Snapshot(within(t), "nobody:1"); err == nil {
			t.Error("nobody has taken one")
		}
	})
}

func TestStopWaitsForASnapshot(t *testing.T) {
	inBubbleWith(t, 0, compacting(20, 5), func(t *testing.T, c *cluster, leader raft.ServerID) {
		d := c.disks[leader]
		resume := d.hangKeep()
		cycles(t, c.client(t, "A"), 15)
		stopped := make(chan error, 1)
		go func() { stopped <- c.nodes[leader].Stop() }()
		time.Sleep(3 * election)
		if len(stopped) > 0 {
			t.Error("it has not waited")
		}
		resume()
		if err := <-stopped; err != nil || len(d.kept) != 1 {
			t.Errorf("Stop returns %v, and %d snapshots are saved", err, len(d.kept))
		}
	})
}

// A disk that is full ends the server, and it has lost nothing.
func TestADiskWithNoRoomForASnapshotEndsTheNode(t *testing.T) {
	inBubbleWith(t, 0, compacting(20, 5), func(t *testing.T, c *cluster, leader raft.ServerID) {
		d, n, k, full := c.disks[leader], c.nodes[leader], c.client(t, "A"), errors.New("no space left")
		d.set(func(d *disk) { d.noRoom = full })
		c.expects[leader] = full
		held := lock(t, k, "held", time.Hour)
		cycles(t, k, 30)
		<-n.Done()
		if err := n.Err(); !errors.Is(err, full) {
			t.Errorf("it has ended because of %v", err)
		}
		if d.durable.Snapshot != nil || len(d.durable.Entries) < 20 || d.durable.Entries[0].Index != 1 {
			t.Errorf("its disk has %+v", d.durable)
		}
		delete(c.nodes, leader)
		d.set(func(d *disk) { d.noRoom = nil })
		c.restart(leader)
		c.leader()
		time.Sleep(2 * heartbeat)
		c.sameTables(t)
		unlock(t, held)
	})
}

// What a server restarts from is the snapshot and what follows: the table, the tokens, and what
// requests came to that are sent again.
func TestServersStartFromTheirSnapshots(t *testing.T) {
	inBubbleWith(t, 0, compacting(30, 5), func(t *testing.T, c *cluster, leader raft.ServerID) {
		raw := c.rawCaller(t, "R", leader)
		client := opened(t, raw)
		first := answered(t, acquire(raw, client, 1, "gate", time.Hour))
		k := c.client(t, "A")
		held := lock(t, k, "held", time.Hour)
		cycles(t, k, 40)
		last := lock(t, k, "last", time.Hour) // likely behind the snapshots
		time.Sleep(2 * heartbeat)
		for id := range c.addrs {
			c.stop(id)
			d := c.disks[id].durable
			if d.Snapshot == nil || len(d.Entries) > 0 && d.Entries[0].Index < 30 {
				t.Fatalf("server %d has no snapshot, or all entries", id)
			}
		}
		for id := range c.addrs {
			c.restart(id)
		}
		leader = c.leader()
		raw = c.rawCaller(t, "R", leader)
		if y := answered(t, acquire(raw, client, 1, "gate", time.Hour)); first.Token == 0 ||
			y.Status != OK || y.Token != first.Token {
			t.Errorf("a request of before is answered %+v, and was %+v", y, first)
		}
		b := c.client(t, "B")
		for _, key := range []string{"gate", "held", "last"} {
			if _, err := b.TryLock(within(t), key, time.Minute); !errors.Is(err, ErrHeld) {
				t.Errorf("%s is given out a second time: %v", key, err)
			}
		}
		if l := lock(t, b, "new", time.Minute); l.Token() <= last.Token() {
			t.Errorf("token %d after %d", l.Token(), last.Token())
		}
		unlock(t, held)
		unlock(t, last)
		time.Sleep(2 * heartbeat)
		c.sameTables(t)
	})
}
