package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// place is where a server of a bubble listens.
func place(id raft.ServerID) string { return host(name(id)).String() }

// join starts a server that knows nobody, as one does that was added, or is about to be.
func (c *cluster) join(id raft.ServerID) {
	c.t.Helper()
	if c.disks[id] == nil {
		c.disks[id] = &disk{}
	}
	config := c.config
	config.Addrs = nil
	was := c.config
	c.config = config
	c.start(id, c.net.listen(name(id)))
	c.config = was
}

// admit adds a server, waits until it has caught up, and lets it vote.
func admit(t *testing.T, c *cluster, k *Client, id raft.ServerID) {
	t.Helper()
	c.join(id)
	if err := k.Add(within(t), id, place(id)); err != nil {
		t.Fatalf("adding server %d: %v", id, err)
	}
	if err := k.Promote(within(t), id); err != nil {
		t.Fatalf("promoting server %d: %v", id, err)
	}
}

// membersOf is what a server goes by, the voters first.
func membersOf(t *testing.T, n *Node) string {
	t.Helper()
	found, ok := look(n, func(r *fsm.Replica) string {
		members, _ := r.Core().Members()
		voters, learners := namesOf(members)
		return voters + "+" + learners
	})
	if !ok {
		t.Fatal("the server has ended")
	}
	return found
}

// All servers are replaced, one by one, under one client that was given the first three alone.
func TestAllServersAreReplacedUnderOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := loggedCluster(t)
		c.leader()
		k := c.client(t, "A")
		last, leadersRemoved := lock(t, k, "first", time.Minute).Token(), 0
		for old := raft.ServerID(1); old <= 3; old++ {
			admit(t, c, k, old+3)
			if s := coreStatus(c.nodes[old]); s.Role == raft.Leader {
				leadersRemoved++
			}
			if err := k.Remove(within(t), old); err != nil {
				t.Fatalf("removing server %d: %v", old, err)
			}
			line := []string{"WARN this server was removed", fmt.Sprint("node=", old), "index="}
			eventually(t, "the removed server says so", func() bool { return book.count(line...) == 1 })
			err := c.nodes[old].Healthy(within(t))
			if err == nil || !strings.Contains(err.Error(), "was removed from the cluster at index") {
				t.Errorf("a removed server's health: %v", err)
			}
			c.stop(old)
			token := lock(t, k, fmt.Sprint("after ", old), time.Minute).Token()
			if token <= last {
				t.Errorf("token %d comes after %d", token, last)
			}
			last = token
		}
		if leadersRemoved == 0 {
			t.Error("no leader was removed")
		}
		for id, n := range c.nodes {
			if got := membersOf(t, n); got != "4,5,6+" {
				t.Errorf("server %d goes by %s", id, got)
			}
		}
		if book.count("was removed") != 3 {
			t.Errorf("it was said of others, too:\n%s", book)
		}
	})
}

func coreStatus(n *Node) raft.Status {
	s, _ := look(n, func(r *fsm.Replica) raft.Status { return r.Core().Status() })
	return s
}

// Of four that vote three must agree. So the new one is heard, and counts.
func TestANewVoterCounts(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		admit(t, c, k, 4)
		c.stop(leader%3 + 1)
		lock(t, k, "door", time.Minute)
		c.crash(4)
		ctx, cancel := context.WithTimeout(t.Context(), 3*longest)
		defer cancel()
		if _, err := k.Lock(ctx, "gate", time.Minute); err == nil {
			t.Error("two of four grant a lock")
		}
	})
}

func TestImpossibleChangesSayWhatToDo(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		follower := leader%3 + 1
		for _, try := range []struct {
			change ChangeArgs
			says   string
		}{
			{ChangeArgs{AddMember, follower, "n9:1"}, "is a member already, at " + place(follower)},
			{ChangeArgs{AddMember, follower, place(follower)}, "is a member"},
			{ChangeArgs{AddMember, 9, place(follower)}, "remove it first"},
			{ChangeArgs{AddMember, 0, "n9:1"}, "ids begin at 1"},
			{ChangeArgs{AddMember, 9, ""}, "missing port"},
			{ChangeArgs{AddMember, 9, ":1"}, "no host that others can connect to"},
			{ChangeArgs{AddMember, 9, strings.Repeat("x", 300) + ":1"}, "not the name of a host"},
			{ChangeArgs{PromoteMember, 9, ""}, "server 9 is not a member; lockctl member list"},
			{ChangeArgs{PromoteMember, follower, ""}, "votes"},
			{ChangeArgs{RemoveMember, 9, ""}, "server 9 is not a member; lockctl member list"},
			{ChangeArgs{99, 9, "n9:1"}, "there is no change with the number 99"},
		} {
			err := k.change(within(t), &try.change)
			if !errors.Is(err, ErrMembers) || !strings.Contains(err.Error(), try.says) {
				t.Errorf("%+v: %v", try.change, err)
			}
		}
		if got := membersOf(t, c.nodes[leader]); got != "1,2,3+" {
			t.Errorf("the members are %s", got)
		}
	})
}

func TestTheLastVoterStays(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		for id := range c.addrs {
			if id == leader {
				continue
			}
			if err := k.Remove(within(t), id); err != nil {
				t.Fatal(err)
			}
		}
		err := k.Remove(within(t), leader)
		if !errors.Is(err, ErrMembers) || !strings.Contains(err.Error(), "only one that votes") {
			t.Errorf("the last one's removal: %v", err)
		}
	})
}

func TestALearnerThatIsNotThereIsNotPromoted(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		if err := k.Add(within(t), 4, place(4)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), longest)
		defer cancel()
		if err := k.Promote(ctx, 4); !errors.Is(err, ErrChanging) ||
			!strings.Contains(err.Error(), "has not caught up") {
			t.Errorf("promoting one that is not there: %v", err)
		}
		y, err := k.Members(within(t))
		if err != nil || len(y.Members) != 4 || y.Members[3].Behind == 0 || y.Members[3].Voter {
			t.Errorf("the members are %+v, %v", y, err)
		}
		c.join(4)
		if err := k.Promote(within(t), 4); err != nil {
			t.Error(err)
		}
	})
}

// The answer does not arrive, and the change is asked for again: it is done, and done once.
func TestAChangeWhoseAnswerIsLostIsAskedForAgain(t *testing.T) {
	for _, change := range []Change{AddMember, PromoteMember, RemoveMember} {
		inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
			k := c.client(t, "A")
			admit(t, c, k, 4)
			args := ChangeArgs{Change: change, ID: 4, Address: place(4)}
			switch change {
			case AddMember:
				args.ID, args.Address = 5, place(5)
			case PromoteMember:
				c.join(5)
				if err := k.Add(within(t), 5, place(5)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(longest)
				args.ID = 5
			}
			_, before := memberIndex(t, c.nodes[leader])
			lost := [2]string{name(leader), "A"}
			c.net.set(func(w *wire) { w.cut = true }, lost)
			done, start := make(chan error, 1), time.Now()
			go func() { done <- k.change(within(t), &args) }()
			eventually(t, "the change is made", func() bool {
				_, after := memberIndex(t, c.nodes[leader])
				return after > before
			})
			_, made := memberIndex(t, c.nodes[leader])
			time.Sleep(replyTimeout / 2)
			if len(done) > 0 {
				t.Fatal("the answer has arrived")
			}
			c.net.set(func(w *wire) { w.cut = false }, lost)
			if err := <-done; err != nil || time.Since(start) < replyTimeout {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
			if _, after := memberIndex(t, c.nodes[leader]); after != made {
				t.Errorf("it was made at %d and once more at %d", made, after)
			}
		})
	}
}

func memberIndex(t *testing.T, n *Node) (raft.Configuration, raft.Index) {
	t.Helper()
	type found struct {
		members raft.Configuration
		index   raft.Index
	}
	f, _ := look(n, func(r *fsm.Replica) found {
		members, index := r.Core().Members()
		return found{members, index}
	})
	return f.members, f.index
}

// What a server was started with counts until its log knows better.
func TestARestartedServerGoesByItsLog(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		admit(t, c, k, 4)
		k.Close()
		for id := range c.nodes {
			c.stop(id)
		}
		c.join(4)
		for id := range c.addrs { // they were told of each other, and of no fourth
			if id != leader {
				c.restart(id)
			}
		}
		next := c.leader() // of four, so the fourth has voted or leads
		if got := membersOf(t, c.nodes[next]); got != "1,2,3,4+" {
			t.Errorf("the leader goes by %s", got)
		}
		for id, n := range c.nodes {
			if got := n.addrOf(4); got != place(4) {
				t.Errorf("server %d has %q for server 4's address", id, got)
			}
		}
	})
}

// withOneRemoved removes a server that does not lead, and gives all the time to hear of it.
func (c *cluster) withOneRemoved(t *testing.T, leader raft.ServerID) (k *Client, gone raft.ServerID) {
	t.Helper()
	k, gone = c.client(t, "A"), leader%3+1
	if err := k.Remove(within(t), gone); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * longest)
	return k, gone
}

// A leader tells one that it has removed, and then speaks to it no more.
func TestAServerThatWasRemovedIsToldAndThenLeftAlone(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, gone := c.withOneRemoved(t, leader)
		term := coreStatus(c.nodes[leader]).Term
		if got := membersOf(t, c.nodes[gone]); strings.Contains(got, fmt.Sprint(gone)) {
			t.Errorf("it goes by %s", got)
		}
		s, err := k.Status(within(t), place(gone))
		if err != nil || s.Removed == 0 || s.Learner {
			t.Errorf("its status is %+v, %v", s, err)
		}
		ids, _ := look(c.nodes[leader], func(*fsm.Replica) []raft.ServerID {
			var ids []raft.ServerID
			for id := range c.nodes[leader].peers {
				ids = append(ids, id)
			}
			return ids
		})
		if slices.Contains(ids, gone) || len(ids) != 1 {
			t.Errorf("the leader still speaks to %v", ids)
		}
		// Whoever asks it is sent on, and it disturbs nobody.
		one, err := Dial(within(t), []string{place(gone)},
			Options{NoHints: true, Dial: c.net.dialer("one")})
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		if _, err := one.TryLock(within(t), "door", time.Minute); !errors.Is(err, ErrNoLeader) {
			t.Errorf("a lock of a removed server: %v", err)
		}
		time.Sleep(10 * longest)
		if after := coreStatus(c.nodes[leader]); after.Term != term || after.Role != raft.Leader {
			t.Errorf("the leader of term %d is now %+v", term, after)
		}
	})
}

// It still knows that when its log, with the entry that has removed it, has become a snapshot.
func TestARemovedServerThatStartsFromASnapshotSaysSo(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, gone := c.withOneRemoved(t, leader)
		snapshot, err := k.Snapshot(within(t), place(gone))
		if _, index := memberIndex(t, c.nodes[gone]); err != nil || snapshot.Index < index {
			t.Fatalf("the snapshot goes up to entry %d, %v; the removal is %d", snapshot.Index, err, index)
		}
		c.stop(gone)
		c.restart(gone)
		time.Sleep(2 * heartbeat)
		if s, err := k.Status(within(t), place(gone)); err != nil || s.Removed == 0 {
			t.Errorf("its status is %+v, %v", s, err)
		}
	})
}

// Two lists of servers that contradict each other must not elect two leaders.
func TestANewServerVotesForNobodyItWasNotStartedWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleCluster(t, 0)
		c.start(1, c.net.listen(name(1)))
		k := c.rawCaller(t, "x", 1)
		if status := vote(t, k, header(1, 9, 1, 5)); status != Refused {
			t.Errorf("a stranger's request for a vote is answered %d", status)
		}
		if s := coreStatus(c.nodes[1]); s.VotedFor != 0 || s.Term >= 5 {
			t.Errorf("it is %+v", s)
		}
		if status := vote(t, k, header(1, 2, 1, 5)); status != OK {
			t.Errorf("a peer's is answered %d", status)
		}
	})
}

// A server that was away does not know whom the others have added and elected.
func TestAServerThatWasAwayHearsALeaderThatItDoesNotKnow(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		lock(t, k, "door", time.Minute)
		away := leader%3 + 1
		c.stop(away)
		for id := raft.ServerID(4); id <= 6; id++ {
			admit(t, c, k, id)
		}
		for id := raft.ServerID(1); id <= 3; id++ {
			if id == away {
				continue
			}
			if err := k.Remove(within(t), id); err != nil {
				t.Fatal(err)
			}
			c.stop(id)
		}
		c.restart(away)
		if got := membersOf(t, c.nodes[away]); got != "1,2,3+" {
			t.Fatalf("it knows already: %s", got)
		}
		eventually(t, "it goes by what the others do", func() bool {
			return membersOf(t, c.nodes[away]) == fmt.Sprintf("%d,4,5,6+", away)
		})
		k.Close()
	})
}

// TimeoutNow makes a server campaign whatever it hears. So it counts from its leader alone.
func TestATimeoutNowFromAStrangerIsRefused(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		follower := leader%3 + 1
		before := coreStatus(c.nodes[follower])
		k := c.rawCaller(t, "x", follower)
		for _, from := range []raft.ServerID{9, 6 - leader - follower} {
			var y TimeoutNowReply
			args := &TimeoutNowArgs{header(1, from, follower, before.Term)}
			err := k.Call("Raft.TimeoutNow", args, &y)
			if refused := y.Status == Refused; err != nil || from == 9 && !refused {
				t.Errorf("server %d is answered %+v, %v", from, y, err)
			}
		}
		time.Sleep(longest)
		if after := coreStatus(c.nodes[follower]); after.Term != before.Term || after.Leader != leader {
			t.Errorf("from %+v to %+v", before, after)
		}
	})
}

// A change that is not committed may be taken back. So nobody is told of it as if it were done.
func TestAChangeThatIsNotCommittedIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := loggedCluster(t)
		leader := c.leader()
		time.Sleep(2 * heartbeat)
		k, follower := c.rawCaller(t, "A", leader), c.rawCaller(t, "A", leader%3+1)
		var y ChangeReply
		err := follower.Call("Lock.ChangeMembers", &ChangeArgs{Change: PromoteMember, ID: 1}, &y)
		if err != nil || y.Status != NotLeader {
			t.Errorf("a follower has a word on who votes: %+v, %v", y, err)
		}
		c.net.set(func(w *wire) { w.cut = true }, both(name(leader), others(leader)...)...)
		args := &ChangeArgs{Change: RemoveMember, ID: leader}
		first := k.Go("Lock.ChangeMembers", args, new(ChangeReply), nil)
		synctest.Wait()
		if got := membersOf(t, c.nodes[leader]); strings.Contains(got, fmt.Sprint(leader)) {
			t.Fatalf("the change is not in effect: %s", got)
		}
		y = ChangeReply{}
		if err := k.Call("Lock.ChangeMembers", args, &y); err != nil || y.Status != Changing {
			t.Errorf("asked for again, it is %+v, %v", y, err)
		}
		if book.count("was removed") > 0 {
			t.Errorf("a server takes itself for removed:\n%s", book)
		}
		time.Sleep(4 * longest)
		c.net.set(func(w *wire) { w.cut = false }, both(name(leader), others(leader)...)...)
		eventually(t, "the change is taken back", func() bool {
			return membersOf(t, c.nodes[leader]) == "1,2,3+"
		})
		<-first.Done
		if y := first.Reply.(*ChangeReply); y.Status != Unknown {
			t.Errorf("the first is answered %+v", y)
		}
	})
}

// The log of a new server has configurations from before it was added.
func TestANewServerDoesNotTakeItselfForRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := loggedCluster(t)
		leader := c.leader()
		k := c.client(t, "A")
		if err := k.Remove(within(t), leader%3+1); err != nil {
			t.Fatal(err)
		}
		for i := range maxBatch { // two entries each: more than one message can bring
			if err := lock(t, k, fmt.Sprint(i), time.Minute).Unlock(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		admit(t, c, k, 4)
		if book.count("INFO members", "node=4") < 2 {
			t.Errorf("it went by one configuration alone:\n%s", book)
		}
		if book.count("was removed", "node=4") > 0 {
			t.Error("it takes itself for removed")
		}
	})
}

// What strangers send is answered where no leader is heard, and takes nobody's place.
func TestAStrangerIsHeardAndNotTakenForAPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleCluster(t, 0)
		c.disks[1].durable.Term = 1
		c.disks[1].durable.Entries = []raft.Entry{{Index: 1, Term: 1}}
		c.start(1, c.net.listen(name(1)))
		k := c.rawCaller(t, "x", 1)
		if status := vote(t, k, header(1, 9, 1, 2)); status != OK {
			t.Fatalf("it is answered %d", status)
		}
		n, peers := c.nodes[1], 0
		n.visitors.mu.Lock()
		for s := range n.visitors.all {
			if s.peer {
				peers++
			}
		}
		n.visitors.mu.Unlock()
		voices, _ := look(n, func(*fsm.Replica) int { return len(n.voices) })
		if peers > 0 || voices > 0 {
			t.Errorf("%d connections are a peer's, %d servers are kept in mind", peers, voices)
		}
	})
}

// A learner does not campaign, and so it never says by itself that its leader is gone.
func TestALearnerHearsALeaderThatItDoesNotKnow(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k := c.client(t, "A")
		c.join(4)
		if err := k.Add(within(t), 4, place(4)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is a learner", func() bool { return membersOf(t, c.nodes[4]) == "1,2,3+4" })
		all := both(name(4), name(1), name(2), name(3), name(5), name(6), name(7))
		c.net.set(func(w *wire) { w.cut = true }, all...)
		for id := raft.ServerID(1); id <= 3; id++ {
			admit(t, c, k, id+4)
			if err := k.Remove(within(t), id); err != nil {
				t.Fatal(err)
			}
			c.stop(id)
		}
		if got := coreStatus(c.nodes[4]).Leader; got == 0 || got > 3 {
			t.Fatalf("it believes in leader %d", got)
		}
		c.net.set(func(w *wire) { w.cut = false }, all...)
		eventually(t, "it goes by what the others do", func() bool {
			return membersOf(t, c.nodes[4]) == "5,6,7+4"
		})
		k.Close()
	})
}
