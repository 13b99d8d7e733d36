package rpc

import (
	"fmt"
	"net/rpc"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// raw returns a connection of net/rpc to one server, as any program may open one.
func (c *cluster) raw(from string, to raft.ServerID) *rpc.Client {
	c.t.Helper()
	conn, err := c.net.dialer(from)(within(c.t), c.addrs[to])
	if err != nil {
		c.t.Fatal(err)
	}
	client := rpc.NewClient(conn)
	c.t.Cleanup(func() { client.Close() })
	return client
}

// The measured trouble with TCP: a connection comes back some time after the heal, and then
// delivers what is seconds old. Here the leader is cut off for 10 s. In one form all that was sent
// is lost, in the other all of it arrives at the heal.
func TestAfterALongCutAllAgreeSoon(t *testing.T) {
	for kind, cut := range map[string]func(*wire){
		"lost": func(w *wire) { w.cut = true },
		"held": func(w *wire) { w.held = true },
	} {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
				stale := cutOff(t, c, leader, cut)
				if held := kind == "held"; held != (stale > 0) {
					t.Errorf("%d calls were on their way at the heal", stale)
				}
			})
		})
	}
}

// cutOff cuts the leader off for 10 s, during which it has clients and the others elect another
// one, and heals it. It returns how many of its calls were still on their way.
func cutOff(t *testing.T, c *cluster, old raft.ServerID, cut func(*wire)) (stale int) {
	a := c.client(t, "A")
	kept := lock(t, a, "kept", time.Minute)
	start := time.Now()
	c.net.set(cut, both(name(old), others(old)...)...)
	for i := range 12 { // each is an AppendEntries of its own
		args := &AcquireArgs{Key: fmt.Sprint(i), LeaseMS: 60_000}
		c.raw("B", old).Go("Lock.Acquire", args, new(AcquireReply), nil)
		time.Sleep(2 * slowSync)
	}
	c.watchCalls(t, old, start.Add(10*time.Second))
	next := c.leads(old)
	for _, other := range others(old) {
		all, _ := c.net.waiting(name(old), other)
		stale += all
	}
	term, end := termOf(c.nodes[next]), slowSync*3/2
	c.net.set(func(w *wire) { w.cut, w.held = false, false }, both(name(old), others(old)...)...)
	took := eventually(t, "all agree", c.agree)
	if took > 2*longest {
		t.Errorf("all agree %v after the heal", took)
	}
	time.Sleep(longest) // whatever comes late has come
	if now := c.leader(); now != next || termOf(c.nodes[now]) != term {
		t.Errorf("server %d leads in term %d; at the heal it was %d in term %d",
			now, termOf(c.nodes[now]), next, term)
	}
	c.sameTables(t)
	unlock(t, kept)
	if took := timed(func() { lock(t, a, "after", time.Minute) }); took > end {
		t.Errorf("an acquire takes %v now", took)
	}
	return stale
}

// watchCalls checks until some time that a server has no more calls on one connection than it may.
func (c *cluster) watchCalls(t *testing.T, from raft.ServerID, until time.Time) {
	most := 0
	for time.Now().Before(until) {
		for _, other := range others(from) {
			_, one := c.net.waiting(name(from), other)
			most = max(most, one)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if most > maxCalls {
		t.Errorf("%d calls were unanswered on one connection, the most is %d", most, maxCalls)
	}
}

// leads returns who leads in the latest term, other than one who may not know better.
func (c *cluster) leads(but raft.ServerID) (leader raft.ServerID) {
	c.t.Helper()
	for id, n := range c.nodes {
		role, _ := look(n, func(r *fsm.Replica) raft.Role { return r.Core().Status().Role })
		if id != but && role == raft.Leader {
			leader = id
		}
	}
	if leader == 0 {
		c.t.Fatal("nobody else leads")
	}
	return leader
}

// sameTables checks that all servers have applied the same.
func (c *cluster) sameTables(t *testing.T) {
	t.Helper()
	type seen struct {
		applied raft.Index
		hash    uint64
	}
	tables := map[seen]int{}
	for _, n := range c.nodes {
		s, _ := look(n, func(r *fsm.Replica) seen {
			return seen{r.Core().Status().LastApplied, r.Table().Hash()}
		})
		tables[s]++
	}
	if len(tables) != 1 {
		t.Errorf("the tables differ: %v", tables)
	}
}

// A connection that was cut is closed by its first call that is not answered in time, and the
// pauses before it is opened again stay short. They differ, or all servers would come back at once.
func TestReconnectsComeWithinAnElectionTimeout(t *testing.T) {
	for kind, silence := range map[string]func(c *cluster){
		"refused": func(c *cluster) { c.stop(3) },
		"lost": func(c *cluster) {
			c.net.set(func(w *wire) { w.cut = true }, both("n3", "n1", "n2")...)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, 0, func(t *testing.T, c *cluster, _ raft.ServerID) {
				silence(c)
				time.Sleep(time.Minute)
				checkPauses(t, c.net.tried(name(c.leads(3)), "n3"))
			})
		})
	}
}

func checkPauses(t *testing.T, dials []time.Time) {
	dials = dials[1:]
	pauses := map[time.Duration]bool{}
	for i := range dials[1:] {
		pause := dials[i+1].Sub(dials[i])
		pauses[pause] = true
		if i > 5 && (pause > election || pause < election/8) {
			t.Errorf("a pause of %v between two dials", pause)
		}
	}
	if len(dials) < 50 || len(pauses) < len(dials)/2 {
		t.Errorf("%d dials with %d different pauses in a minute", len(dials), len(pauses))
	}
}

// A leader that is cut off tells those who wait when it steps down, and does not know yet who will
// lead. What it has proposed may yet be committed or not: it does not guess.
func TestAStepDownAnswersThoseWhoWait(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, old raft.ServerID) {
		lock(t, c.client(t, "A"), "door", time.Minute)
		waits := make(chan *rpc.Call, 10)
		for range 5 {
			args := &AcquireArgs{Key: "door", LeaseMS: 60_000}
			c.raw("W", old).Go("Lock.Acquire", args, new(AcquireReply), waits)
		}
		synctest.Wait()
		c.net.set(func(w *wire) { w.cut = true }, both(name(old), others(old)...)...)
		args := &AcquireArgs{Key: "other", LeaseMS: 60_000}
		proposed := c.raw("W", old).Go("Lock.Acquire", args, new(AcquireReply), nil)
		time.Sleep(election / 2)
		if len(waits) > 0 {
			t.Errorf("%d were answered before", len(waits))
		}
		for range 5 {
			took := timed(func() {
				if y := (<-waits).Reply.(*AcquireReply); y.Status != NotLeader || y.Leader != "" {
					t.Errorf("one who waits is told %+v", y)
				}
			})
			if took > election {
				t.Errorf("after %v more", took)
			}
		}
		if y := (<-proposed.Done).Reply.(*AcquireReply); y.Status != Unknown {
			t.Errorf("one whose Grant was proposed is told %+v", y)
		}
	})
}

// H04, B78: two servers campaign in the same moments, and the handler of each waits for its disk
// while the other's call waits for the handler. A server that held a lock over its call would now
// wait for the other for ever.
func TestTwoWhoCampaignAtOnceDoNotBlockEachOther(t *testing.T) {
	const sync = 50 * time.Millisecond
	figure2 := func(c *Config) { c.NoPreVote, c.NoCheckQuorum = true, true } // or nobody would campaign
	inBubbleWith(t, sync, figure2, func(t *testing.T, c *cluster, leader raft.ServerID) {
		collided := 0
		for range 20 {
			before := termOf(c.nodes[leader])
			one, two := c.nodes[leader%3+1], c.nodes[(leader+1)%3+1]
			// The second time their disks are busy when the requests of the first time arrive.
			for range 2 {
				one.campaign()
				two.campaign()
				time.Sleep(sync * 3 / 4)
			}
			if one.handlers() > 0 && two.handlers() > 0 {
				collided++
			}
			// Most often the third server decides, and otherwise the next timeouts.
			took := eventually(t, "one leads", c.agree)
			if leader = c.leader(); termOf(c.nodes[leader]) <= before || took > 3*longest {
				t.Errorf("after %v server %d leads", took, leader)
			}
			time.Sleep(5 * heartbeat)
		}
		if collided == 0 {
			t.Error("two handlers have never waited at the same time")
		}
	})
}

// campaign makes a node's election timer run out.
func (n *Node) campaign() {
	n.enter(n.ctx, n.fromPeers, func() { n.replica.ElectionTimeout() })
}

// handlers counts the calls of peers that wait for a reply.
func (n *Node) handlers() int {
	k, _ := look(n, func(*fsm.Replica) int { return len(n.requesters) })
	return k
}

// A disk that does not come back from a write keeps its server from promising anything. A leader
// with such a disk must not go on saying that it lives, or nobody else could lead: it steps down.
// When the disk is back, so is the server, and what the others have decided holds. (vault#5045.)
func TestALeaderWhoseDiskHangsIsReplaced(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, old raft.ServerID) {
		k := c.client(t, "A")
		kept := lock(t, k, "kept", time.Minute)
		c.disks[old].hang()
		start, last := time.Now(), kept.Token()
		for i := range 20 {
			l := lock(t, k, fmt.Sprint("key ", i), c.lease())
			if l.Token() <= last {
				t.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
		}
		if took := time.Since(start); took > 3*longest {
			t.Errorf("20 locks took %v", took)
		}
		next := c.leads(old)
		c.disks[old].resume()
		took := eventually(t, "all agree", c.agree)
		if took > 2*longest || c.leader() != next {
			t.Errorf("%v after the disk is back server %d leads; it was %d", took, c.leader(), next)
		}
		time.Sleep(longest)
		c.sameTables(t)
		unlock(t, kept)
	})
}

// A follower's disk may hang as it likes.
func TestAFollowerWhoseDiskHangsDelaysNobody(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, term := c.client(t, "A"), termOf(c.nodes[leader])
		slow := leader%3 + 1
		c.disks[slow].hang()
		for i := range 300 {
			took := timed(func() { unlock(t, lock(t, k, "door", time.Minute)) })
			if took > 3*slowSync {
				t.Errorf("cycle %d took %v", i, took)
			}
			time.Sleep(17 * time.Millisecond)
		}
		if now := termOf(c.nodes[leader]); now != term {
			t.Errorf("the leader of term %d is in term %d", term, now)
		}
		c.disks[slow].resume()
		time.Sleep(longest)
		c.sameTables(t)
	})
}
