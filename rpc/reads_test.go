package rpc

import (
	"context"
	"errors"
	"net/rpc"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// askHolder asks one server who holds a key.
func askHolder(k *rpc.Client, key string, local bool) *rpc.Call {
	args := &GetArgs{Key: key, Local: local}
	return k.Go("Lock.Get", args, new(GetReply), make(chan *rpc.Call, 1))
}

// told waits for the answer to that.
func told(t *testing.T, call *rpc.Call) GetReply {
	t.Helper()
	select {
	case <-call.Done:
	case <-within(t).Done():
		t.Fatal("there is no answer")
	}
	if call.Error != nil {
		t.Fatal(call.Error)
	}
	return *call.Reply.(*GetReply)
}

// The read of consul#54: a leader that was cut off, and replaced, believes that it leads and that
// the lock is held, while its successor has told everybody that it is free. CheckQuorum is off, or
// it would not believe that for so long. It has nobody who vouches for it, so it does not say.
func TestADeposedLeaderDoesNotTellWhatWasTrueBefore(t *testing.T) {
	alone := func(c *Config) { c.NoCheckQuorum = true }
	inBubbleWith(t, slowSync, alone, func(t *testing.T, c *cluster, old raft.ServerID) {
		l := lock(t, c.client(t, "A"), "door", time.Minute)
		time.Sleep(2 * heartbeat)
		c.net.set(func(w *wire) { w.cut = true }, both(name(old), others(old)...)...)
		time.Sleep(2 * longest)
		next := c.leads(old)
		k := c.client(t, "B")
		if err := k.Release(within(t), "door", l.Token()); err != nil {
			t.Fatal(err)
		}
		if _, held, err := k.Get(within(t), "door"); held || err != nil {
			t.Fatalf("its successor says held = %v, %v", held, err)
		}
		direct := c.rawCaller(t, "C", old)
		if y := told(t, askHolder(direct, "door", true)); y.Status != OK || y.Info.Token != l.Token() {
			t.Fatalf("what it has itself is not old: %+v", y)
		}
		role, _ := look(c.nodes[old], func(r *fsm.Replica) raft.Role { return r.Core().Status().Role })
		if role != raft.Leader || termOf(c.nodes[next]) <= termOf(c.nodes[old]) {
			t.Fatalf("it does not believe any more that it leads: it is a %v", role)
		}
		var y GetReply
		took := timed(func() { y = told(t, askHolder(direct, "door", false)) })
		if y.Status != Unknown || y.Leader != "" || y.Info != (Info{}) {
			t.Errorf("it says %+v", y)
		}
		if took > election+heartbeat {
			t.Errorf("it says so after %v", took)
		}
		var page ListReply
		if err := direct.Call("Lock.List", &ListArgs{}, &page); err != nil || page.Status != Unknown ||
			len(page.Locks) > 0 {
			t.Errorf("it lists %+v, %v", page, err)
		}
		if k := readers(c.nodes[old]); k != 0 {
			t.Errorf("%d questions are not forgotten", k)
		}
	})
}

// With CheckQuorum it knows by itself that it may have been replaced, before it is.
func TestALeaderThatIsCutOffSaysThatItDoesNotKnow(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, old raft.ServerID) {
		lock(t, c.client(t, "A"), "door", time.Minute)
		time.Sleep(2 * heartbeat)
		direct := c.rawCaller(t, "C", old)
		c.net.set(func(w *wire) { w.cut = true }, both(name(old), others(old)...)...)
		y := told(t, askHolder(direct, "door", false))
		if y.Status != Unknown && y.Status != NotLeader || y.Leader != "" || y.Info != (Info{}) {
			t.Errorf("it says %+v", y)
		}
		for id := range c.nodes {
			if role, _ := look(c.nodes[id], func(r *fsm.Replica) raft.Role { return r.Core().Status().Role }); role == raft.Leader && id != old {
				t.Fatal("it was replaced meanwhile, which another test is about")
			}
		}
	})
}

// A follower's own table is behind. Asked properly, it waits until that is as new as the question.
func TestAFollowerAnswersWhenItHasCaughtUp(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a, follower := c.client(t, "A"), leader%3+1
		direct := c.rawCaller(t, "C", follower)
		link := [2]string{name(leader), name(follower)}
		c.net.set(func(w *wire) { w.held = true }, link)
		l := lock(t, a, "door", time.Minute)
		if y := told(t, askHolder(direct, "door", true)); y.Status != NotFound {
			t.Fatalf("it is not behind: %+v", y)
		}
		call := askHolder(direct, "door", false)
		time.Sleep(2 * slowSync)
		if len(call.Done) > 0 {
			t.Fatalf("it has not waited: %+v", told(t, call))
		}
		c.net.set(func(w *wire) { w.held = false }, link)
		y := told(t, call)
		if want := (Info{"door", l.Token(), "A", 60000}); y.Status != OK || y.Info != want {
			t.Errorf("it says %+v, want %+v", y, want)
		}
		if committed, _ := look(c.nodes[leader], func(r *fsm.Replica) raft.Index { return r.Core().Status().CommitIndex }); y.Applied < committed {
			t.Errorf("it has applied %d of %d", y.Applied, committed)
		}
		var page ListReply
		if err := direct.Call("Lock.List", &ListArgs{}, &page); err != nil || len(page.Locks) != 1 ||
			page.Locks[0] != y.Info {
			t.Errorf("it lists %+v, %v", page, err)
		}
	})
}

// Many questions at one server cost what one costs: those that come while one is under way share the
// next. None is lost because there are more than a queue to a peer holds.
func TestManyReadsShareARound(t *testing.T) {
	const many = 10 * maxCalls
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		lock(t, c.client(t, "A"), "door", time.Minute)
		time.Sleep(2 * heartbeat)
		for _, id := range []raft.ServerID{leader, leader%3 + 1} {
			direct, calls := c.rawCaller(t, "C", id), make(chan *rpc.Call, many)
			before := c.net.written(name(id))
			for range many {
				direct.Go("Lock.Get", &GetArgs{Key: "door"}, new(GetReply), calls)
			}
			took := timed(func() {
				for range many {
					if y := (<-calls).Reply.(*GetReply); y.Status != OK {
						t.Fatalf("server %d, leader is %d: %+v", id, leader, y)
					}
				}
			})
			sent := c.net.written(name(id)) - before - many // the answers are sent one by one
			if took > heartbeat/2 || sent > many/2 {
				t.Errorf("server %d, leader is %d: %d answers took %v and %d messages", id, leader,
					many, took, sent)
			}
			if k := readers(c.nodes[id]); k != 0 {
				t.Errorf("%d questions are not forgotten", k)
			}
		}
	})
}

// What comes while a round is under way is asked as soon as that is over, and not when something else
// happens.
func TestALaterReadIsAskedAtOnce(t *testing.T) {
	const way = 10 * time.Millisecond
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		time.Sleep(heartbeat - time.Duration(time.Now().UnixNano())%heartbeat + heartbeat/4)
		direct := c.rawCaller(t, "C", leader)
		c.net.set(func(w *wire) { w.delay = way }, both(name(leader), others(leader)...)...)
		silent := leader%3 + 1 // or its answer, which is not needed any more, would be what happens
		c.net.set(func(w *wire) { w.held = true }, [2]string{name(silent), name(leader)})
		var second *rpc.Call
		took := timed(func() {
			first := askHolder(direct, "door", false)
			time.Sleep(way / 2)
			second = askHolder(direct, "door", false)
			synctest.Wait()
			if k := readers(c.nodes[leader]); k != 2 || len(first.Done) > 0 {
				t.Fatalf("%d wait", k)
			}
			told(t, first)
			if len(second.Done) > 0 {
				t.Error("the answer to the first is taken for one to the second")
			}
			told(t, second)
		})
		if took != 4*way {
			t.Errorf("two rounds took %v", took)
		}
	})
}

// A client that was answered by a follower does not take it for the leader.
func TestAnAnswerOfAFollowerMisleadsNobody(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, follower := c.client(t, "A"), c.addrs[leader%3+1]
		k.learn("", follower)
		before, _ := c.net.counts("A", name(leader%3+1))
		if _, held, err := k.Get(within(t), "door"); held || err != nil {
			t.Fatal(held, err)
		}
		if after, _ := c.net.counts("A", name(leader%3+1)); after == before {
			t.Fatal("the follower was not asked")
		}
		if k.leader != c.addrs[leader] {
			t.Errorf("it takes %s for the leader, which is %s", k.leader, c.addrs[leader])
		}
	})
}

// A question is forgotten when its caller leaves, and answered when its server stops.
func TestAReaderThatLeavesIsForgotten(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		n := c.nodes[leader]
		c.net.set(func(w *wire) { w.held = true }, both(name(leader), others(leader)...)...)
		leaves, stays := c.rawCaller(t, "C", leader), c.rawCaller(t, "D", leader)
		askHolder(leaves, "door", false)
		call := askHolder(stays, "door", false)
		synctest.Wait()
		if k := readers(n); k != 2 {
			t.Fatalf("%d wait", k)
		}
		leaves.Close()
		synctest.Wait()
		if k := readers(n); k != 1 {
			t.Errorf("%d wait when one has left", k)
		}
		stopped := make(chan error, 1)
		go func() { stopped <- n.Stop() }()
		if y := told(t, call); y.Status != Unknown && y.Status != NotLeader {
			t.Errorf("the other is answered %+v", y)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// A Get that nobody can vouch for ends with its context, and says that nothing was done.
func TestAGetThatNobodyVouchesForEnds(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		for id := raft.ServerID(1); id <= 3; id++ {
			c.net.set(func(w *wire) { w.cut = true }, both(name(id), others(id)...)...)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*longest)
		defer cancel()
		took := timed(func() {
			if _, _, err := k.Get(ctx, "door"); !errors.Is(err, ErrNoLeader) || errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("it says %v", err)
			}
		})
		if took != 4*longest {
			t.Errorf("after %v", took)
		}
	})
}

// readers counts the questions for which a handler waits.
func readers(n *Node) int {
	count, _ := look(n, func(*fsm.Replica) int { return len(n.questions.asked) + len(n.questions.next) })
	return count
}
