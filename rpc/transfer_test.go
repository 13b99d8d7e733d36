package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/raft"
)

// Who asks is answered when the other server leads. What is held stays held, and who waits is served
// there.
func TestATransferTakesNoElectionTimeout(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, old raft.ServerID) {
		a, b, next := c.client(t, "A"), c.client(t, "B"), old%3+1
		held, term := lock(t, a, "door", time.Minute), termOf(c.nodes[old])
		waits := make(chan *Lock, 1)
		go func() { waits <- lock(t, b, "door", time.Minute) }()
		synctest.Wait()
		if k := grants(c.nodes[old]); k != 1 {
			t.Fatalf("%d wait", k)
		}
		took := timed(func() {
			if id, addr, err := c.client(t, "C").Transfer(within(t), next); err != nil || id != next ||
				addr != c.addrs[next] {
				t.Fatalf("%d leads at %s, %v; want %d", id, addr, err, next)
			}
		})
		if now := c.leader(); now != next || termOf(c.nodes[now]) != term+1 || took > heartbeat {
			t.Errorf("%d leads in term %d after %v; before it was %d in term %d", now,
				termOf(c.nodes[now]), took, old, term)
		}
		if len(waits) > 0 {
			t.Error("the lock was given to another")
		}
		unlock(t, held)
		if l := <-waits; l.Token() <= held.Token() {
			t.Errorf("token %d after %d", l.Token(), held.Token())
		}
	})
}

// Where nobody is named it is one that was heard lately, and of those the one with the most of the log.
func TestTheServerWithMostOfTheLogIsChosen(t *testing.T) {
	for kind, worse := range map[string]func(*wire){
		"the other is dead":   func(w *wire) { w.cut = true },
		"the other is behind": func(w *wire) { w.held = true },
	} {
		t.Run(kind, func(t *testing.T) {
			for turn := range raft.ServerID(2) { // whichever comes first
				inBubble(t, slowSync, func(t *testing.T, c *cluster, old raft.ServerID) {
					behind := (old+turn)%3 + 1
					k := c.client(t, "A")
					lock(t, k, "door", time.Minute)
					time.Sleep(2 * heartbeat)
					c.net.set(worse, [2]string{name(old), name(behind)})
					if kind == "the other is behind" {
						lock(t, k, "gate", time.Minute)
					} else {
						c.net.set(worse, [2]string{name(behind), name(old)})
						time.Sleep(election + 2*heartbeat)
					}
					id, _, err := k.Transfer(within(t), 0)
					if want := 6 - old - behind; err != nil || id != want {
						t.Errorf("%d leads, %v; want %d", id, err, want)
					}
				})
			}
		})
	}
}

func TestATransferToWhoCannotLeadIsRefused(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, term := c.client(t, "A"), termOf(c.nodes[leader])
		c.join(4)
		if err := k.Add(within(t), 4, place(4)); err != nil {
			t.Fatal(err)
		}
		for to, says := range map[raft.ServerID]string{
			leader: "it leads already", 9: "server 9: it is not a voter", 4: "server 4: it is not a voter",
		} {
			_, _, err := k.Transfer(within(t), to)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("to %d: %v", to, err)
			}
		}
		lock(t, k, "door", time.Minute)
		if now := c.leader(); now != leader || termOf(c.nodes[now]) != term {
			t.Errorf("%d leads in term %d", now, termOf(c.nodes[now]))
		}
	})
}

// A transfer to a server that does not answer is given up, and what was put off meanwhile is done.
func TestATransferToTheDeadIsGivenUp(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, dead, term := c.client(t, "A"), leader%3+1, termOf(c.nodes[leader])
		held := lock(t, k, "door", time.Minute)
		c.net.set(func(w *wire) { w.cut = true }, both(name(dead), others(dead)...)...)
		given := make(chan error, 1)
		go func() {
			_, _, err := k.Transfer(within(t), dead)
			given <- err
		}()
		synctest.Wait()
		got := make(chan *Lock, 1)
		go func() { got <- lock(t, c.client(t, "B"), "gate", time.Minute) }()
		time.Sleep(election - 1)
		synctest.Wait()
		if len(got) > 0 || len(given) > 0 {
			t.Errorf("proposals are taken before it is over: %d, %d", len(got), len(given))
		}
		if err := <-given; !errors.Is(err, ErrTransfer) {
			t.Errorf("it says %v", err)
		}
		if l := <-got; l.Token() <= held.Token() {
			t.Errorf("token %d after %d", l.Token(), held.Token())
		}
		unlock(t, held)
		if now, n := c.leads(0), c.nodes[leader]; now != leader || termOf(n) != term {
			t.Errorf("%d leads, in term %d", now, termOf(n))
		}
	})
}

func TestALeaderThatHearsNobodyHasNobodyToHandOverTo(t *testing.T) {
	alone := func(c *Config) { c.NoCheckQuorum = true } // or it would not lead for so long
	inBubbleWith(t, 0, alone, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		c.net.set(func(w *wire) { w.cut = true }, both(name(leader), others(leader)...)...)
		time.Sleep(2 * election)
		took := timed(func() {
			if next, err := c.nodes[leader].HandOver(within(t)); err == nil || next != 0 {
				t.Errorf("it has handed over to %d, %v", next, err)
			}
			k.learn("", c.addrs[leader])
			if _, _, err := k.Transfer(within(t), 0); !errors.Is(err, ErrTransfer) {
				t.Errorf("a client is told %v", err)
			}
		})
		if took > 0 {
			t.Errorf("it has taken %v", took)
		}
	})
}

// Nor does it wait for long for one who has just died, since it is about to be stopped.
func TestAHandoverTakesAnElectionTimeoutAtMost(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		c.net.set(func(w *wire) { w.cut = true }, both(name(leader), others(leader)...)...)
		took := timed(func() {
			if next, err := c.nodes[leader].HandOver(within(t)); err == nil || next != 0 {
				t.Errorf("it has handed over to %d, %v", next, err)
			}
		})
		if took == 0 || took > election {
			t.Errorf("it has taken %v", took)
		}
	})
}

// A server that does not lead has nothing to hand over.
func TestAFollowerStopsWithoutMuchAdo(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		follower, term := leader%3+1, termOf(c.nodes[leader])
		if next, err := c.nodes[follower].HandOver(within(t)); next != 0 || err != nil {
			t.Errorf("it hands over to %d, %v", next, err)
		}
		if now := c.leader(); now != leader || termOf(c.nodes[now]) != term {
			t.Errorf("%d leads in term %d", now, termOf(c.nodes[now]))
		}
	})
}

// How many servers there are says the log, and not what a server was started with.
func TestAClusterThatHasGrownOrShrunkHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleCluster(t, 0)
		c.config.Addrs = map[raft.ServerID]string{1: c.addrs[1]}
		c.start(1, c.net.listen(name(1)))
		k := c.client(t, "A")
		lock(t, k, "door", time.Minute)
		handsOver := func(from, to raft.ServerID) {
			t.Helper()
			if next, err := c.nodes[from].HandOver(within(t)); err != nil || next != to {
				t.Errorf("server %d hands over to %d, %v; not to %d", from, next, err, to)
			}
		}
		handsOver(1, 0)
		admit(t, c, k, 4)
		time.Sleep(2 * heartbeat)
		handsOver(1, 4)
		if err := k.Remove(within(t), 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * heartbeat)
		handsOver(4, 0)
	})
}

// All servers are stopped and started again, always the one that leads, while clients take locks and
// give them back. Each time there is one term more, and nobody waits for an election timeout; no
// request fails.
func TestLeadersAreStoppedUnderLoad(t *testing.T) {
	const rounds, clients = 9, 3
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		ctx, end := context.WithCancel(within(t))
		defer end()
		var load sync.WaitGroup
		var mu sync.Mutex
		granted, longest, last := 0, time.Duration(0), time.Now()
		for i := range clients {
			k := c.client(t, fmt.Sprint("C", i))
			load.Go(func() {
				for ctx.Err() == nil {
					l, err := k.Lock(within(t), fmt.Sprint("door ", i%2), time.Minute)
					if err != nil {
						t.Errorf("a lock fails: %v", err)
						return
					}
					mu.Lock()
					granted, longest, last = granted+1, max(longest, time.Since(last)), time.Now()
					mu.Unlock()
					unlock(t, l)
				}
			})
		}
		stopped := map[raft.ServerID]int{}
		for range rounds {
			mu.Lock()
			before := granted
			mu.Unlock()
			term := termOf(c.nodes[leader])
			next, err := c.nodes[leader].HandOver(within(t))
			if err != nil || next == 0 {
				t.Fatalf("%d does not hand over: %d, %v", leader, next, err)
			}
			c.stop(leader)
			stopped[leader]++
			time.Sleep(2 * heartbeat)
			c.restart(leader)
			time.Sleep(4 * heartbeat)
			if now := c.leader(); now != next || termOf(c.nodes[now]) != term+1 {
				t.Errorf("%d leads in term %d, after %d in term %d", now, termOf(c.nodes[now]), next, term+1)
			}
			leader = next
			mu.Lock()
			if granted == before {
				t.Error("no lock was granted")
			}
			mu.Unlock()
		}
		end()
		load.Wait()
		if longest > election/2 || len(stopped) < 2 {
			t.Errorf("for %v no lock was granted; stopped were %v", longest, stopped)
		}
		t.Logf("%d locks, at most %v apart; stopped were %v", granted, longest, stopped)
	})
}
