package rpc

import (
	"testing"
	"testing/synctest"
	"time"

	"ticketing/raft"
)

// Whoever asks a server that was just started hears at once where the others listen as its log has it:
// the first message may come, and the first client be sent on, before its loop has had a turn.
func TestAServerGoesByItsLogFromTheFirstMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			c, book := bubbleCluster(t, 0), newLogbook(t)
			c.config.Log = book.logger()
			var members raft.Configuration
			for id := raft.ServerID(1); id <= 4; id++ {
				members = append(members, raft.Member{ID: id, Address: place(id), Voter: true})
			}
			c.disks[1].durable.Term = 1
			c.disks[1].durable.Entries = []raft.Entry{{Index: 1, Term: 1, Members: members}}
			c.start(1, c.net.listen(name(1)))
			addr, said := c.nodes[1].addrOf(4), book.count("INFO members", "index=1")
			if addr != place(4) || said != 1 {
				t.Fatalf("server 4 listens at %q; the members were logged %d times", addr, said)
			}
			c.stop(1)
		}
	})
}

// A server that was away may hear a leader before it knows that this one is a member. What its clients
// ask can be answered by that leader alone, to whom it has no connection yet.
func TestWhatIsForALeaderThatIsNoPeerYetIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleCluster(t, 0)
		c.start(1, c.net.listen(name(1)))
		stranger, client := c.rawCaller(t, "x", 1), c.rawCaller(t, "A", 1)
		var y AppendEntriesReply
		args := &AppendEntriesArgs{Header: header(1, 9, 1, 5)}
		if err := stranger.Call("Raft.AppendEntries", args, &y); err != nil || y.Status != OK {
			t.Fatalf("a leader that is a stranger is answered %+v, %v", y, err)
		}
		if s := coreStatus(c.nodes[1]); s.Leader != 9 || s.Term != 5 {
			t.Fatalf("the leader is not known: %+v", s)
		}
		call := askHolder(client, "door", false)
		time.Sleep(heartbeat)
		if s := coreStatus(c.nodes[1]); s.Leader != 9 {
			t.Fatalf("the server has not gone on hearing that leader, or has ended: %+v", s)
		}
		if got := told(t, call); got.Status != Unknown && got.Status != NotLeader {
			t.Errorf("the question is answered %+v", got)
		}
	})
}
