package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/raft"
)

// known is whom a client would ask, in order.
func known(k *Client) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.addrs)
}

// places are where servers listen.
func places(ids ...raft.ServerID) (all []string) {
	for _, id := range ids {
		all = append(all, place(id))
	}
	return all
}

// Another client replaces all servers, faster than anybody asks of his own accord who they are. This
// one takes a lock in each configuration. In the end none of those that it was given is there, and
// then the one goes that it took for the leader.
func TestAClientThatCallsInEachConfigurationIsNotLost(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, _ raft.ServerID) {
		k, other, locks, begin := c.client(t, "A"), c.client(t, "B"), 0, time.Now()
		calls := func(change error) {
			t.Helper()
			if change != nil {
				t.Fatal(change)
			}
			lock(t, k, fmt.Sprint("door ", locks), time.Minute)
			locks++
		}
		for old := raft.ServerID(1); old <= 3; old++ {
			c.join(old + 3)
			calls(other.Add(within(t), old+3, place(old+3)))
			calls(other.Promote(within(t), old+3))
			calls(other.Remove(within(t), old))
			c.stop(old)
		}
		leader := c.leader()
		calls(nil)
		synctest.Wait()
		if got, want := known(k), places(4, 5, 6, 1, 2, 3); !slices.Equal(got, want) {
			t.Errorf("it knows of %v, not of %v", got, want)
		}
		if took := time.Since(begin); took >= rosterPause {
			t.Errorf("all of that took %v, so that it may have asked of its own accord", took)
		}
		c.stop(leader)
		calls(nil)
	})
}

// Whoever asks each server how it is opens a connection to each, again and again. The one to the
// leader must stay for the next call, as what is asked beside a call goes over it.
func TestOfTooManyConnectionsTheNewestStays(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		follower := place(leader%3 + 1)
		k, err := Dial(within(t), []string{follower}, Options{Dial: c.net.dialer("A")})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		for range maxIdle {
			if _, err := k.Status(within(t), follower); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(rosterPause)
		for range 3 {
			unlock(t, lock(t, k, "door", time.Minute))
		}
		if dials := len(c.net.tried("A", name(leader))); dials != 1 {
			t.Errorf("it has connected to the leader %d times", dials)
		}
		synctest.Wait()
		if got := known(k); !slices.Contains(got, place(leader)) {
			t.Errorf("it has not asked there who the members are: it knows of %v", got)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.idle) != maxIdle {
			t.Errorf("it keeps %d connections", len(k.idle))
		}
	})
}

// spoiled is a connection that breaks when a client asks who the members are.
type spoiled struct {
	net.Conn
	armed *atomic.Bool
	count *atomic.Int64
}

func (s spoiled) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("Lock.Members")) && s.armed.Load() {
		s.count.Add(1)
		s.Close()
		return 0, errors.New("the connection breaks")
	}
	return s.Conn.Write(b)
}

func TestAQuestionAboutTheMembersThatIsLostIsAskedAgain(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, _ raft.ServerID) {
		var armed atomic.Bool
		var lost atomic.Int64
		dial := c.net.dialer("A")
		k, err := Dial(within(t), places(1, 2, 3), Options{
			Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				conn, err := dial(ctx, addr)
				return spoiled{conn, &armed, &lost}, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		armed.Store(true)
		admit(t, c, c.client(t, "B"), 4)
		for range 3 {
			unlock(t, lock(t, k, "door", time.Minute))
			synctest.Wait()
		}
		if got := known(k); lost.Load() < 3 || slices.Contains(got, place(4)) {
			t.Fatalf("%d questions were lost; it knows of %v", lost.Load(), got)
		}
		armed.Store(false)
		unlock(t, lock(t, k, "door", time.Minute))
		synctest.Wait()
		if got := known(k); !slices.Contains(got, place(4)) {
			t.Errorf("after the next call it knows of %v", got)
		}
	})
}

// A server that was cut off tells of members of long ago to whoever asks it.
func TestOlderMembersDoNotReplaceNewerOnes(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, behind := c.client(t, "A"), leader%3+1
		gone := 6 - leader - behind
		c.net.set(func(w *wire) { w.cut = true }, both(name(behind), name(leader), name(gone), "n4")...)
		admit(t, c, k, 4)
		if err := k.Remove(within(t), gone); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := known(k)
		if !slices.Contains(want, place(4)) {
			t.Fatalf("it knows of %v", want)
		}
		time.Sleep(rosterPause)
		asked := time.Now()
		if _, err := k.Status(within(t), place(behind)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		k.mu.Lock()
		if k.asked.Before(asked) {
			t.Error("it has not asked that server who the members are")
		}
		k.mu.Unlock()
		if got := known(k); !slices.Equal(got, want) {
			t.Errorf("it knows of %v, and then of %v", want, got)
		}
	})
}

// The leader has added a server, and nobody else knows of it: that may be taken back.
func TestMembersThatAreNotCommittedAreNotTakenIn(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		unlock(t, lock(t, k, "door", time.Minute))
		c.net.set(func(w *wire) { w.cut = true }, both(name(leader), others(leader)...)...)
		change := c.rawCaller(t, "B", leader).Go("Lock.ChangeMembers",
			&ChangeArgs{AddMember, 4, place(4)}, new(ChangeReply), nil)
		synctest.Wait()
		if got := membersOf(t, c.nodes[leader]); got != "1,2,3+4" {
			t.Fatalf("the leader goes by %s", got)
		}
		k.mu.Lock()
		k.asked = time.Time{} // it is time to ask
		k.mu.Unlock()
		s, err := k.Status(within(t), place(leader))
		if err != nil || s.MembersAt != 0 {
			t.Fatalf("its status is %+v, %v", s, err)
		}
		synctest.Wait()
		k.mu.Lock()
		asked := !k.asked.IsZero()
		k.mu.Unlock()
		if got := known(k); !asked || slices.Contains(got, place(4)) {
			t.Errorf("asked: %v; it knows of %v", asked, got)
		}
		c.net.set(func(w *wire) { w.cut = false }, both(name(leader), others(leader)...)...)
		<-change.Done
	})
}
