package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// queue makes three requests of a leader: one holds "door", one waits for it, and the Grant of a
// third is in the log, but nobody else hears of it.
func (c *cluster) queue(t *testing.T, leader raft.ServerID) (waits, logged *rpc.Call) {
	t.Helper()
	k := c.rawCaller(t, "A", leader)
	if y := answered(t, acquire(k, 0, 1, "door", time.Minute)); y.Status != OK {
		t.Fatalf("the holder's answer: %+v", y)
	}
	c.net.set(func(w *wire) { w.cut = true }, both(name(leader), others(leader)...)...)
	waits = acquire(k, 0, 1, "door", time.Minute)
	synctest.Wait() // or it might wait for the other one's write, outside
	logged = acquire(k, 0, 1, "gate", time.Minute)
	synctest.Wait()
	if k := callers(c.nodes[leader]); k != 2 {
		t.Fatalf("%d requests wait", k)
	}
	return waits, logged
}

func TestStopAnswersAllWhoWaitAndSavesWhatItWasGiven(t *testing.T) {
	const sync = 200 * time.Millisecond
	inBubble(t, sync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		waits, logged := c.queue(t, leader)
		last, _ := look(c.nodes[leader], func(n *fsm.Replica) raft.Index { return n.Core().Status().LastIndex })
		n := c.nodes[leader]
		stopped := make(chan error, 1)
		took := timed(func() {
			go func() { stopped <- n.Stop() }()
			if y := answered(t, waits); y.Status != NotLeader || y.Leader != "" {
				t.Errorf("one for whom nothing was done is answered %+v", y)
			}
			if y := answered(t, logged); y.Status != Unknown {
				t.Errorf("one whose Grant is in the log is answered %+v", y)
			}
		})
		if took > 0 {
			t.Errorf("the answers took %v", took)
		}
		if conn, err := c.net.dialer("B")(within(t), c.addrs[leader]); err == nil {
			conn.Close()
			t.Error("it still lets others in")
		}
		if k := len(stopped); k != 0 {
			t.Error("it has not waited for its disk")
		}
		if err := <-stopped; err != nil {
			t.Errorf("Stop returned %v", err)
		}
		if saved := len(c.disks[leader].durable.Entries); raft.Index(saved) != last {
			t.Errorf("%d entries of %d are saved", saved, last)
		}
		if err := n.Stop(); err != nil {
			t.Errorf("Stop once more: %v", err)
		}
		if err := n.Healthy(within(t)); err == nil {
			t.Error("a server that has stopped is healthy")
		}
	})
}

// Requests that are kept outside while the disk is busy are answered before the disk is done.
func TestStopAnswersThoseWhoWaitForTheDisk(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		n, k := c.nodes[leader], c.rawCaller(t, "A", leader)
		c.disks[leader].hang()
		for i := range maxWrites {
			acquire(k, 1, uint64(i), fmt.Sprint("key ", i), time.Minute)
			synctest.Wait()
		}
		outside := acquire(k, 0, 9, "door", time.Minute)
		synctest.Wait()
		if len(n.fromClients) != 1 {
			t.Fatalf("%d requests wait outside", len(n.fromClients))
		}
		status := k.Go("Lock.Status", &StatusArgs{}, new(StatusReply), make(chan *rpc.Call, 1))
		synctest.Wait()
		if len(status.Done) != 1 || status.Reply.(*StatusReply).Status != OK {
			t.Error("a server that waits for its disk cannot be asked how it is")
		}
		stopped := make(chan error, 1)
		go func() { stopped <- n.Stop() }()
		if y := answered(t, outside); y.Status != NotLeader {
			t.Errorf("one that waits outside is answered %+v", y)
		}
		time.Sleep(longest)
		if len(stopped) > 0 {
			t.Error("it has not waited for its disk")
		}
		c.disks[leader].resume()
		if err := <-stopped; err != nil {
			t.Errorf("Stop returned %v", err)
		}
	})
}

// What a follower has accepted it still answers when its disk has it, in time.
func TestAFollowerThatStopsAnswersItsLeader(t *testing.T) {
	const sync = 100 * time.Millisecond
	inBubble(t, sync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		gone := leader%3 + 1
		stays := 6 - leader - gone
		c.stop(stays)
		k := c.rawCaller(t, "A", leader)
		call := acquire(k, 0, 1, "door", time.Minute)
		synctest.Wait() // the follower has the Grant, and its disk is at work
		before := len(c.disks[gone].durable.Entries)
		c.stop(gone)
		if len(c.disks[gone].durable.Entries) != before+1 {
			t.Errorf("the follower's disk had %d entries, has %d", before,
				len(c.disks[gone].durable.Entries))
		}
		if y := answered(t, call); y.Status != OK {
			t.Errorf("the Grant that it had is answered %+v", y)
		}
	})
}

// B31: heartbeats must not hide that a leader's disk hangs, since it takes no requests. It says so,
// the others elect another leader in time, and what waits at the old one is sent away.
func TestADiskThatHangsIsNotHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := loggedCluster(t)
		old := c.leader()
		time.Sleep(2 * heartbeat)
		k := c.rawCaller(t, "A", old)
		answered(t, acquire(k, 0, 1, "door", time.Minute))
		waits := acquire(k, 0, 1, "door", time.Minute)
		c.disks[old].hang()
		// The followers have saved it, so it is committed without the leader's disk.
		if y := answered(t, acquire(k, 0, 1, "gate", time.Minute)); y.Status != OK {
			t.Errorf("a Grant that a majority has saved is answered %+v", y)
		}
		var y AcquireReply
		took := timed(func() { y = answered(t, waits) })
		next := c.leader()
		if next == old || y.Status != NotLeader {
			t.Errorf("server %d leads after %d; who waits is answered %+v", next, old, y)
		}
		const silent = election // then it steps down
		if most := silent + longest + 2*heartbeat; took > most || took < silent {
			t.Errorf("it has taken %v, at most %v", took, most)
		}
		lock(t, c.client(t, "B"), "hall", time.Minute)
		if err := c.nodes[old].Healthy(within(t)); err == nil {
			t.Error("a server whose disk hangs is healthy")
		}
		if scrape(t, c.nodes[old])["lockd_disk_hangs"] != 1 || scrape(t, c.nodes[next])["lockd_disk_hangs"] != 0 {
			t.Error("the metrics do not tell whose disk hangs")
		}
		var s StatusReply
		if err := k.Call("Lock.Status", &StatusArgs{}, &s); err != nil || s.Status != OK {
			t.Errorf("it cannot be asked how it is: %+v, %v", s, err)
		}
		if book.count("the disk hangs", "node=") != 1 {
			t.Errorf("no line says that the disk hangs:\n%s", book)
		}
		c.disks[old].resume()
		eventually(t, "it is healthy again and has caught up", func() bool {
			a, _ := look(c.nodes[old], func(r *fsm.Replica) raft.Index { return r.Core().Status().Durable })
			b, _ := look(c.nodes[next], func(r *fsm.Replica) raft.Index { return r.Core().Status().LastIndex })
			return a == b && c.nodes[old].Healthy(within(t)) == nil
		})
		if book.count("the disk works again", "node=") != 1 {
			t.Errorf("no line says that the disk works again:\n%s", book)
		}
	})
}

// H06: a reply to a call that was given up comes late. It belongs to nothing any more: neither the
// next call nor the table takes notice.
func TestAReplyThatComesLateIsNoReply(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		late := others(leader)[0]
		k, last, most := c.client(t, "A"), fsm.Token(0), 0
		cycle := func() {
			l := lock(t, k, "door", time.Minute)
			if l.Token() <= last {
				t.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			unlock(t, l)
		}
		c.net.set(func(w *wire) { w.held = true }, [2]string{late, name(leader)})
		for range 20 {
			cycle()
			all, _ := c.net.waiting(late, name(leader))
			most = max(most, all)
			time.Sleep(longest / 20)
		}
		if most == 0 {
			t.Fatal("no reply is late")
		}
		c.net.set(func(w *wire) { w.held = false }, [2]string{late, name(leader)})
		for range 20 {
			cycle()
		}
		c.leader()
		time.Sleep(longest)
		c.sameTables(t)
	})
}

// A peer that stops answers and closes the connection in the same moment.
func TestAnAnswerBeforeTheEndCounts(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		n, other := c.nodes[leader], leader%3+1
		ended, end := context.WithCancel(t.Context())
		end()
		for range 100 { // a select has no favourites
			call := &rpc.Call{Args: &AppendEntriesArgs{}, Done: make(chan *rpc.Call, 1)}
			call.Reply = &AppendEntriesReply{Status: OK, Header: header(1, other, leader, 1),
				AppendEntriesReply: raft.AppendEntriesReply{RequestTerm: 1}}
			call.Done <- call
			if err := n.await(ended, n.peers[other], call); err != nil {
				t.Fatalf("it is dropped: %v", err)
			}
		}
	})
}

// Writes that wait behind another one are saved as well.
func TestStopSavesAllThatTheDiskWasGiven(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		follower := leader%3 + 1
		n, d, k := c.nodes[follower], c.disks[follower], c.client(t, "A")
		unlock(t, lock(t, k, "door", time.Minute)) // from now on its leader does not wait for answers
		time.Sleep(2 * heartbeat)
		d.hang()
		for i := range 3 {
			lock(t, k, fmt.Sprint("key ", i), time.Minute)
			time.Sleep(time.Millisecond) // a write of its own
		}
		eventually(t, "several writes wait for the disk", func() bool {
			writes, _ := look(n, func(*fsm.Replica) int { return len(n.unfinished) })
			return writes > 1
		})
		last, _ := look(n, func(r *fsm.Replica) raft.Index { return r.Core().Status().LastIndex })
		time.AfterFunc(3*election, d.resume) // long after the node has given up its connections
		c.stop(follower)
		if saved := raft.Index(len(d.durable.Entries)); saved != last {
			t.Errorf("of %d entries %d are saved", last, saved)
		}
	})
}

func TestADiskThatFailsWhileANodeStopsIsTold(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		broken := errors.New("no space left")
		c.expects[leader] = broken
		c.disks[leader].hang()
		k := c.rawCaller(t, "A", leader)
		acquire(k, 0, 1, "door", time.Minute)
		synctest.Wait()
		c.disks[leader].set(func(d *disk) { d.fail = broken })
		time.AfterFunc(heartbeat, c.disks[leader].resume)
		c.stop(leader) // it compares
	})
}
