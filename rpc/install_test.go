package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// applied is what a node's table has, and what hash that makes.
func applied(n *Node) (index raft.Index, hash uint64) {
	type both struct {
		index raft.Index
		hash  uint64
	}
	b, _ := look(n, func(r *fsm.Replica) both { return both{r.Core().Status().LastApplied, r.Table().Hash()} })
	return b.index, b.hash
}

// load lets clients take and give back locks until the function that it returns is called, which says
// how often they have.
func load(t testing.TB, c *cluster, clients int) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var mu sync.Mutex
	times := 0
	for i := range clients {
		k := c.client(t, fmt.Sprint("client", i))
		running.Go(func() {
			for ctx.Err() == nil {
				l, err := k.Lock(ctx, fmt.Sprint("key ", i), time.Minute)
				if err == nil {
					err = l.Unlock(ctx)
				}
				if err != nil && ctx.Err() == nil && !errors.Is(err, ErrUnknownOutcome) {
					t.Error(err)
					return
				}
				mu.Lock()
				times++
				mu.Unlock()
			}
		})
	}
	return func() int {
		cancel()
		running.Wait()
		return times
	}
}

// Over real connections and with real logs, a server comes back that was away for longer than the log
// keeps, while clients go on.
func TestAServerThatWasAwayCatchesUpUnderLoad(t *testing.T) {
	c := newCluster(t, t.TempDir())
	compacting(200, 2000)(&c.config)
	for id := range c.addrs {
		c.restart(id)
	}
	leader := c.leader()
	away := leader%3 + 1
	k := c.client(t, "A")
	held := lock(t, k, "held", time.Hour)
	c.stop(away)
	stop := load(t, c, 8)
	// What fills the leader's window waits for a connection, and gets there first: it will do as long as
	// the log goes on right behind it.
	var sent raft.Index
	eventually(t, "the leader's window is full", func() bool {
		full, _ := look(c.nodes[leader], func(r *fsm.Replica) bool {
			next, _ := r.Core().Progress(away)
			sent = next - 1
			return r.Core().Status().LastIndex > sent+maxBatch
		})
		return full
	})
	for id, n := range c.nodes { // whoever of them leads when it is back
		eventually(t, fmt.Sprintf("the log of server %d begins behind that", id), func() bool {
			first, _ := look(n, func(r *fsm.Replica) raft.Index { return r.Core().FirstIndex() })
			return first > sent+1
		})
	}
	c.restart(away)
	goal, _ := applied(c.nodes[leader])
	eventually(t, "it has caught up", func() bool {
		now, _ := applied(c.nodes[away])
		return now >= goal
	})
	behind, _ := applied(c.nodes[leader])
	now, _ := applied(c.nodes[away])
	got := scrape(t, c.nodes[away])[`lockd_snapshots_total{from="leader"}`]
	if times := stop(); times == 0 || got < 1 || got > 2 {
		t.Errorf("it got %v snapshots, while clients were served %d times", got, times)
	}
	for id, n := range c.nodes {
		if scrape(t, n)["lockd_snapshot_longest_step_seconds"] == 0 {
			t.Errorf("server %d has waited for no snapshot", id)
		}
	}
	t.Logf("it got %v snapshots, and is at entry %d of %d", got, now, behind)
	unlock(t, held)
	eventually(t, "all tables are the same", func() bool {
		seen := map[[2]uint64]bool{}
		for _, n := range c.nodes {
			index, hash := applied(n)
			seen[[2]uint64{uint64(index), hash}] = true
		}
		return len(seen) == 1
	})
}

// parts are those of a leader's snapshots that a node has got, by its trace.
type part struct {
	from, to string
	offset   uint64
	done     bool
}

func partsOf(t *testing.T, f *file) (parts []part) {
	t.Helper()
	if f.empty() {
		return nil
	}
	for _, e := range f.read(t).Events {
		if m := e.Message; e.Kind == trace.KindReceive && m != nil && m.Kind == trace.Snapshot {
			parts = append(parts, part{m.From, m.To, m.Offset, m.Done})
		}
	}
	return parts
}

// inTheMiddle makes a table of several chunks, of which a server that comes back has got some but not
// all when the test begins. What it gets stands in the file.
func inTheMiddle(
	t *testing.T, test func(t *testing.T, c *cluster, leader, away raft.ServerID, got *file),
) {
	inBubbleWith(t, 0, compacting(0, 1), func(t *testing.T, c *cluster, leader raft.ServerID) {
		away, k := leader%3+1, c.client(t, strings.Repeat("A", 60))
		c.stop(away)
		for i := range 4 * chunkSize / 300 {
			lock(t, k, fmt.Sprintf("%0240d", i), time.Hour)
		}
		for id := range c.nodes {
			if s, err := k.Snapshot(within(t), c.addrs[id]); err != nil || s.Bytes < 3*chunkSize {
				t.Fatalf("server %d has a snapshot %+v, %v", id, s, err)
			}
		}
		got := &file{}
		r := trace.NewRecorder(got, func(err error) { t.Error(err) })
		defer r.Close()
		c.net.set(func(w *wire) { w.delay = heartbeat }, both(name(away), others(away)...)...)
		c.config.Trace = r
		c.restart(away)
		eventually(t, "it has got a part", func() bool { return len(partsOf(t, got)) > 1 })
		test(t, c, leader, away, got)
		c.leader()
		time.Sleep(4 * longest)
		c.sameTables(t)
		if n := scrape(t, c.nodes[away])[`lockd_snapshots_total{from="leader"}`]; n != 1 {
			t.Errorf("it has got %v snapshots since its start", n)
		}
	})
}

// A server that crashes has lost what it had got of a snapshot, and says so.
func TestAServerThatCrashesWhileItGetsASnapshotGetsItFromTheBeginning(t *testing.T) {
	inTheMiddle(t, func(t *testing.T, c *cluster, _, away raft.ServerID, got *file) {
		before := partsOf(t, got)
		if last := before[len(before)-1]; last.done || last.offset == 0 {
			t.Fatalf("it is not in the middle: %+v", before)
		}
		c.crash(away)
		if d := c.disks[away].durable; d.Snapshot != nil {
			t.Errorf("half a snapshot is on the disk: up to %d", d.Snapshot.LastIncludedIndex)
		}
		c.restart(away)
		eventually(t, "it has the last part", func() bool {
			parts := partsOf(t, got)
			return parts[len(parts)-1].done
		})
		again := 0
		for _, p := range partsOf(t, got)[len(before):] {
			if p.offset == 0 {
				again++
			}
		}
		if again == 0 {
			t.Errorf("it has not begun anew: %+v", partsOf(t, got))
		}
	})
}

// S09: the receiver fails in the middle of a snapshot. Its leader keeps the connection, as nothing is wrong
// with that, sends the part once more when nobody has answered it for an election timeout, and goes on
// from there.
func TestAPartOfASnapshotThatIsRefusedIsSentAgainOverTheSameConnection(t *testing.T) {
	inTheMiddle(t, func(t *testing.T, c *cluster, leader, away raft.ServerID, got *file) {
		refuses := func(cluster uint64) {
			n := c.nodes[away]
			look(n, func(*fsm.Replica) bool { n.config.Cluster = cluster; return true })
		}
		before, dials := partsOf(t, got), len(c.net.tried(name(leader), name(away)))
		if last := before[len(before)-1]; last.done || last.offset == 0 {
			t.Fatalf("it is not in the middle: %+v", before)
		}
		refuses(2)                    // whatever comes is of another cluster
		time.Sleep(7 * heartbeat / 2) // a part takes three from one to the next
		refuses(1)
		time.Sleep(7 * heartbeat / 2)
		if now := partsOf(t, got); len(now) != len(before) {
			t.Fatalf("no part was refused: before %+v, then %+v", before, now)
		}
		eventually(t, "it has the last part", func() bool {
			parts := partsOf(t, got)
			return parts[len(parts)-1].done
		})
		after := partsOf(t, got)
		if next := after[len(before)]; next.offset != before[len(before)-1].offset+chunkSize {
			t.Errorf("behind %+v came %+v", before, after)
		}
		if again := len(c.net.tried(name(leader), name(away))); again != dials || dials == 0 {
			t.Errorf("the leader has dialed %d times, and then %d", dials, again)
		}
	})
}

// What one leader has begun to send, the next one begins anew.
func TestALeaderThatCrashesWhileItSendsASnapshotIsReplaced(t *testing.T) {
	inTheMiddle(t, func(t *testing.T, c *cluster, leader, away raft.ServerID, got *file) {
		before := partsOf(t, got)
		if last := before[len(before)-1]; last.done {
			t.Fatalf("it is not in the middle: %+v", before)
		}
		c.crash(leader)
		eventually(t, "it has the last part", func() bool {
			parts := partsOf(t, got)
			return parts[len(parts)-1].done
		})
		after := partsOf(t, got)[len(before):]
		if after[0].from == before[0].from || after[0].offset != 0 {
			t.Errorf("from the first leader it got %+v, and then %+v", before, after)
		}
		c.restart(leader)
	})
}

// The last part of a snapshot is answered when all of it is on the disk. Until then the connection stays,
// its heartbeats are answered, and nobody is elected.
func TestASnapshotThatIsLongOnItsWayToTheDiskDisturbsNobody(t *testing.T) {
	inBubbleWith(t, 0, compacting(20, 1), func(t *testing.T, c *cluster, leader raft.ServerID) {
		away, k := leader%3+1, c.client(t, "A")
		c.stop(away)
		cycles(t, k, 40)
		resume := c.disks[away].hangKeep()
		c.restart(away)
		time.Sleep(longest)
		dials, term := len(c.net.tried(name(leader), name(away))), c.status(t, k, leader).Term
		time.Sleep(5 * longest)
		s := c.status(t, k, away)
		if got := len(c.net.tried(name(leader), name(away))); got != dials || s.Term != term || s.Snapshot.Index != 0 ||
			s.Leader != c.addrs[leader] {
			t.Errorf("the leader has dialed %d times and then %d; in term %d the server is %+v", dials, got, term, s)
		}
		if n := c.nodes[away].handlers(); n == 0 || n > 3 {
			t.Errorf("%d requests of its leader wait", n)
		}
		resume()
		time.Sleep(2 * heartbeat)
		c.sameTables(t)
		if n := scrape(t, c.nodes[away])[`lockd_snapshots_total{from="leader"}`]; n < 1 || n > 2 {
			t.Errorf("it has got %v snapshots", n) // the first that it was offered, and the last
		}
	})
}
