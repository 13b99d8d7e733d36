package rpc

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// H02: a client leaves when its Grant is on the way to the disks. The leader hears of it in that
// moment, although its handler waits, and releases what is granted as soon as it is, by its token.
// One who waits behind has the lock when that is committed: one commit after the ghost got it.
func TestAGhostIsReleasedAfterOneCommit(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a, b, ghosts := c.client(t, "A"), c.client(t, "B"), 0
		for left := time.Duration(0); left < slowSync; left += time.Millisecond {
			key := fmt.Sprint("key ", left)
			first := lock(t, a, key, time.Minute)
			ghost := c.raw("ghost", leader)
			args := &AcquireArgs{Key: key, LeaseMS: 3600_000}
			ghost.Go("Lock.Acquire", args, new(AcquireReply), nil)
			synctest.Wait()
			start := time.Now()
			time.AfterFunc(time.Millisecond, func() { unlock(t, first) })
			time.AfterFunc(time.Millisecond+left, func() { // by then the Grant is in the log
				synctest.Wait()
				before := callers(c.nodes[leader])
				ghost.Close()
				synctest.Wait()
				if now := callers(c.nodes[leader]); now != before-1 {
					t.Errorf("%d waited at the leader, and with the ghost gone %d", before, now)
				}
			})
			next := lock(t, b, key, time.Minute)
			if took := time.Since(start); took != time.Millisecond+2*slowSync {
				t.Errorf("behind a ghost that left after %v B has the lock after %v", left, took)
			}
			if k := c.released(leader, key, next.Token()-1); k == 1 {
				ghosts++
			} else {
				t.Errorf("the log has %d Releases of the ghost's token %d", k, next.Token()-1)
			}
		}
		if ghosts == 0 {
			t.Error("no ghost was there")
		}
	})
}

// The same while the disk is busy: its request still stands at the door when it leaves, and its
// leaving comes in by another one.
func TestARequestWhoseClientHasLeftIsNotLetIn(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		n, busy := c.nodes[leader], make(chan *Lock)
		a := c.client(t, "A")
		go func() { busy <- lock(t, a, "other", time.Minute) }()
		time.Sleep(slowSync / 4)
		synctest.Wait()
		if writes, _ := look(n, func(*fsm.Replica) int { return len(n.unfinished) }); writes == 0 {
			t.Fatal("the disk is not busy")
		}
		ghost := c.raw("ghost", leader)
		args := &AcquireArgs{Key: "door", LeaseMS: 3600_000}
		ghost.Go("Lock.Acquire", args, new(AcquireReply), nil)
		synctest.Wait()
		if len(n.fromClients) == 0 {
			t.Fatal("the request does not stand at the door")
		}
		ghost.Close()
		<-busy
		time.Sleep(10 * slowSync)
		held, _ := look(n, func(r *fsm.Replica) bool { _, held := r.Table().Holder("door"); return held })
		if held {
			t.Error("a client that has left holds the lock")
		}
	})
}

// It leaves in the very moment in which it is granted the lock: the answer is there, and nobody has
// read it.
func TestALockWhoseAnswerNobodyReadsIsGivenBack(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		n := c.nodes[leader]
		first := lock(t, c.client(t, "A"), "door", time.Minute)
		answer := make(chan fsm.Reply, 1)
		since, _ := look(n, func(r *fsm.Replica) raft.Index {
			tenure, _ := r.Table().Holder("door")
			return tenure.Since
		})
		answer <- fsm.Reply{Result: fsm.Result{Kind: fsm.Granted, Token: first.Token()}, Index: since}
		n.enter(n.ctx, n.fromPeers, func() { n.abandon(fsm.Request{Call: 1 << 40, Key: "door"}, answer) })
		time.Sleep(10 * slowSync)
		held, _ := look(n, func(r *fsm.Replica) bool { _, held := r.Table().Holder("door"); return held })
		if held || c.released(leader, "door", first.Token()) != 1 {
			t.Error("the lock was not given back, with its token")
		}
	})
}

// The answer is written, so that for the server it is delivered, and the client gives up before it
// arrives. Nobody would give the lock back before its lease is over.
func TestALockThatArrivesAfterItsClientHasGivenUpIsGivenBack(t *testing.T) {
	for _, closes := range []bool{false, true} {
		inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
			a := c.client(t, "A")
			first, k := lock(t, c.client(t, "B"), "door", time.Minute), c.client(t, "K")
			ctx, giveUp := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				_, err := k.Lock(ctx, "door", time.Hour)
				ended <- err
			}()
			time.Sleep(10 * slowSync)
			answers := func() int { writes, _ := c.net.counts(name(leader), "K"); return writes }
			before := answers()
			c.net.set(func(w *wire) { w.delay = 100 * time.Millisecond }, [2]string{name(leader), "K"})
			unlock(t, first)
			time.Sleep(10 * slowSync)
			if now := answers(); now == before {
				t.Fatal("no answer is on its way")
			}
			giveUp()
			if err := <-ended; !errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("it ends with %v", err)
			}
			if closes {
				k.Close()
			}
			start := time.Now()
			unlock(t, lock(t, a, "door", time.Minute))
			if took := time.Since(start); took > time.Second {
				t.Errorf("the lock was free after %v", took)
			}
			if n := c.released(leader, "door", first.Token()+1); n != 1 {
				t.Errorf("%d Releases of the lock that nobody has", n)
			}
		})
	}
}

// What a peer has not been sent yet of heartbeats and requests for votes is worth nothing when there
// is a newer one.
func TestThePeerIsSentTheNewestHeartbeat(t *testing.T) {
	p := newPeer(2, "")
	for term := range raft.Term(5) {
		p.enqueue(raft.Message{Term: term, Body: raft.AppendEntries{}})
	}
	if m, ok := p.next(t.Context()); !ok || m.Term != 4 || len(p.latest) > 0 {
		t.Errorf("it is sent that of term %d, %v, and %d more", m.Term, ok, len(p.latest))
	}
}

// released counts the Releases of a tenure in a server's log, and any that names no token.
func (c *cluster) released(id raft.ServerID, key string, token fsm.Token) int {
	count, _ := look(c.nodes[id], func(r *fsm.Replica) (count int) {
		for _, e := range r.Core().Entries(1, r.Core().Status().LastIndex) {
			d, err := fsm.Decode(e.Command)
			if err != nil || d.Kind != fsm.Release || d.Key != key {
				continue
			}
			if d.Token == token || d.Token == 0 {
				count++
			}
		}
		return count
	})
	return count
}

// H06: a call is given up, and its answer comes when the next call is on its way. What is asked for
// changes between the two, so that an answer of the first, or a part of it, would show. The race
// detector sees what does not.
func TestAnAnswerThatComesLateIsNotTakenForAnother(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		var slow [][2]string // any server may answer
		for id := range c.addrs {
			slow = append(slow, [2]string{name(id), "A"})
		}
		for i := range 20 {
			key := fmt.Sprint("key ", i)
			held := lock(t, b, key, time.Hour)
			if _, is, err := a.Get(within(t), key); err != nil || !is {
				t.Errorf("at first: %v, %v", is, err)
			}
			c.net.set(func(w *wire) { w.delay = replyTimeout + time.Second }, slow...)
			time.AfterFunc(replyTimeout/2, func() { unlock(t, held) })
			time.AfterFunc(replyTimeout+time.Second/2, func() {
				c.net.set(func(w *wire) { w.delay = 0 }, slow...)
			})
			start := time.Now()
			info, is, err := a.Get(within(t), key)
			if err != nil || is || info != (Info{}) {
				t.Errorf("got %+v, %v, %v of a lock that was given back", info, is, err)
			}
			if took := time.Since(start); took < replyTimeout {
				t.Errorf("the answer came after %v, in time", took)
			}
		}
		sum := 0
		for id := range c.addrs {
			_, late := c.net.counts(name(id), "A")
			sum += late
		}
		if sum < 20 {
			t.Errorf("%d answers came late", sum)
		}
	})
}

// A client that was left without an answer does not ask the same server again for ever: it accepts
// connections, as the system does for a process that was stopped, and never answers.
func TestAClientTurnsAwayFromALeaderThatIsSilent(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, old raft.ServerID) {
		k := c.client(t, "A")
		unlock(t, lock(t, k, "door", c.lease()))
		for _, other := range others(old) { // it does not run, so it asks nobody
			c.net.set(func(w *wire) { w.refused = true }, [2]string{name(old), other})
		}
		defer c.net.stop(name(old), append(others(old), "A")...).Close()
		slow := 0
		for range 20 {
			if took := timed(func() { unlock(t, lock(t, k, "door", c.lease())) }); took > c.lease()/3 {
				slow++
			}
		}
		if slow == 0 || slow > 2 {
			t.Errorf("%d of 20 have asked the silent server", slow)
		}
	})
}

// A Lock whose connection breaks when the Grant may be on its way asks again, whoever leads then, and
// is granted once.
func TestAGrantWhoseAnswerIsLostIsAskedForAgain(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		unlock(t, lock(t, k, "door", time.Minute))
		time.AfterFunc(slowSync/2, func() { c.nodes[leader].cancel() })
		l, err := k.Lock(within(t), "door", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if l.Token() != 2 {
			t.Errorf("it was granted %d", l.Token())
		}
		unlock(t, l)
	})
}
