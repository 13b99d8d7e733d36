package raft_test

import (
	"errors"
	"testing"

	"ticketing/raft"
)

// transfers begins a transfer, and fails the test if that cannot be.
func (c *cluster) transfers(from, to raft.ServerID) {
	c.t.Helper()
	c.note("%d transfers to %d", from, to)
	c.input(c.node(from), func(core *raft.Core) {
		if err := core.Transfer(to); err != nil {
			c.fatal("server %d: %v", from, err)
		}
	})
}

// told counts the TimeoutNow that a server has sent another since the last outbox.
func (c *cluster) told(from, to raft.ServerID) (n int) {
	for _, m := range c.outbox(from) {
		if _, ok := m.Body.(raft.TimeoutNow); ok && m.To == to {
			n++
		}
	}
	return n
}

// canPropose returns the error of a proposal to a clone.
func (c *cluster) canPropose(id raft.ServerID) error {
	_, _, err := c.core(id).Clone().Propose([]byte("?"))
	return err
}

// T01, T09: to a server that has the whole log, with nothing but what is on the way: no time passes,
// nobody is asked twice, and those who hear the old leader vote all the same.
//
//spec:test Transfer.Now
//spec:test Transfer.Last
func TestATransferNeedsNoTimeout(t *testing.T) {
	for _, careful := range []bool{true, false} {
		c := newCluster(t, setup{size: 5, careful: careful})
		c.elect(1)
		c.heartbeat(1)
		c.run()
		c.outbox(1)
		for _, n := range c.nodes {
			n.sent = nil
		}
		c.transfers(1, 4)
		c.run()
		same(t, "old leader", rank{raft.Follower, 2, 4}, c.rank(1))
		same(t, "new leader", rank{raft.Leader, 2, 4}, c.rank(4))
		same(t, "TimeoutNow", 1, c.told(1, 4))
		for _, m := range c.outbox(4) {
			if _, asked := m.Body.(raft.PreVote); asked {
				t.Error("it asked whether it would win")
			}
		}
		c.propose(4, "x")
	}
}

// T02, T04: a server that is behind gets what it lacks first, and nothing new is proposed meanwhile.
//
//spec:test Transfer.Last
func TestATransferWaitsUntilTheServerHasTheWholeLog(t *testing.T) {
	c := careful(t, 3, state(1, 0))
	c.elected()
	c.propose(1, "x")
	c.receive(success(2, 2, 0, 1))
	c.outbox(1)
	c.transfers(1, 2)
	same(t, "TimeoutNow", 0, c.told(1, 2))
	if err := c.canPropose(1); !errors.Is(err, raft.ErrTransferring) {
		t.Errorf("a proposal meanwhile: %v", err)
	}
	c.receive(success(2, 2, 1, 2))
	same(t, "TimeoutNow", 1, c.told(1, 2))
	c.receive(success(2, 2, 1, 2))
	c.heartbeat(1)
	same(t, "TimeoutNow again", 0, c.told(1, 2))
}

// B57: however it ends, proposals are taken again. T05: another server may be named instead.
//
//spec:test Transfer.Last
func TestATransferThatComesToNothingIsGivenUp(t *testing.T) {
	ends := map[string]func(*cluster){
		"nobody answers": func(c *cluster) {},
		"another is named, and then time is over": func(c *cluster) {
			c.passes(electionTimeout / 2)
			c.receive(success(2, 2, 1, 2)) // stays in touch
			c.receive(success(3, 2, 1, 2))
			c.outbox(1)
			c.transfers(1, 3)
			same(t, "TimeoutNow", 1, c.told(1, 3))
			c.passes(electionTimeout / 2)
			if err := c.canPropose(1); !errors.Is(err, raft.ErrTransferring) {
				t.Errorf("the second ends with the first: %v", err)
			}
		},
		"deposed, and elected again": func(c *cluster) {
			c.receive(appendEntries(3, 0, 0, 0))
			if err := c.canPropose(1); !errors.Is(err, raft.ErrNotLeader) {
				t.Errorf("a proposal to a follower: %v", err)
			}
			c.leads()
			same(t, "error", nil, c.canPropose(1))
		},
		"told, and not elected": func(c *cluster) {
			c.receive(success(2, 2, 1, 2))
			same(t, "TimeoutNow", 1, c.told(1, 2))
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			c := alone(t, 3, state(1, 0))
			c.leads()
			c.propose(1, "x")
			c.transfers(1, 2)
			end(c)
			c.transfersAgain()
			c.passes(electionTimeout)
			same(t, "error", nil, c.canPropose(1))
			same(t, "transferring", 0, c.core(1).Transferring())
		})
	}
}

// transfersAgain names the same server once more, which gives it no more time.
func (c *cluster) transfersAgain() {
	if to := c.core(1).Transferring(); to != 0 {
		c.transfers(1, to)
	}
}

// T06.
//
//spec:test Transfer.Last
func TestATransferToAServerThatCannotLeadIsRefused(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	if err := c.core(1).Transfer(2); !errors.Is(err, raft.ErrNotLeader) {
		t.Errorf("at a follower: %v", err)
	}
	c.leads()
	for _, to := range []raft.ServerID{0, 1, 4} {
		if err := c.core(1).Transfer(to); !errors.Is(err, raft.ErrTransfer) {
			t.Errorf("to %d: %v", to, err)
		}
	}
	same(t, "error", nil, c.canPropose(1))
}

// B59 (openraft#1805): only the leader of this very term may say so.
//
//spec:test Transfer.Now
func TestAStaleTimeoutNowIsIgnored(t *testing.T) {
	for name, m := range map[string]raft.Message{
		"an earlier term":  message(2, 1, 2, raft.TimeoutNow{}),
		"another follower": message(3, 1, 3, raft.TimeoutNow{}),
		"a later term":     message(3, 1, 4, raft.TimeoutNow{}),
	} {
		c := careful(t, 3, state(3, 0, 1))
		c.receive(appendEntries(3, 1, 1, 0))
		c.outbox(1)
		c.receive(m)
		if s := c.status(1); s.Role != raft.Follower {
			t.Errorf("%s: it is a %v", name, s.Role)
		}
		same(t, "answer", raft.Body(raft.TimeoutNowReply{RequestTerm: m.Term}), c.answer())
	}
	c := careful(t, 3, state(3, 0, 1))
	c.receive(appendEntries(3, 1, 1, 0))
	c.receive(message(2, 1, 3, raft.TimeoutNow{}))
	same(t, "rank", rank{raft.Candidate, 4, 0}, c.rank(1))
}
