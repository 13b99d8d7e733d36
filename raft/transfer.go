package raft

import (
	"errors"
	"fmt"
)

// This file is leadership transfer (thesis, section 3.10), which is not in Figure 2: a leader that is
// about to be stopped lets another server take its place, in one round trip instead of an election
// timeout. It takes no more proposals, lets that server catch up, and tells it to campaign at once.
// The others hear the old leader until then; so the candidate says that the leader has sent it.

var (
	// ErrTransferring is returned by Propose while leadership is on its way to another server.
	ErrTransferring = errors.New("leadership is being transferred")
	// ErrTransfer is wrapped by Transfer's errors about the server that it names.
	ErrTransfer = errors.New("cannot transfer leadership")
)

// TimeoutNow tells a follower to campaign as if its election timer had run out, and without asking
// whether it would win.
type TimeoutNow struct{}

// TimeoutNowReply answers TimeoutNow. Its term tells whether the follower campaigns.
type TimeoutNowReply struct{ RequestTerm Term }

func (TimeoutNow) receive(c *Core, m Message)   { c.receiveTimeoutNow(m) }
func (TimeoutNowReply) receive(*Core, Message)  {}
func (r TimeoutNowReply) answers() (Term, bool) { return r.RequestTerm, false }

// transfer is what a leader knows of a transfer that it has begun.
type transfer struct {
	to   ServerID // 0 if there is none
	due  Time     // when it is given up
	told bool     // TimeoutNow was sent
}

// Transfer begins to hand leadership to another server. Another call with another server begins anew;
// with the same one it changes nothing. It is over when this server does not lead any more, or after
// an election timeout, and then proposals are taken again. Errors are ErrNotLeader and, about the
// server, ErrTransfer.
func (c *Core) Transfer(to ServerID) error {
	switch {
	case c.role != Leader:
		return ErrNotLeader
	case to == c.config.ID:
		return fmt.Errorf("%w to server %d: it leads already", ErrTransfer, to)
	case c.peer(to) == nil || !c.peer(to).voter:
		return fmt.Errorf("%w to server %d: it is not a voter of the cluster", ErrTransfer, to)
	case to == c.Transferring():
		return nil
	}
	c.transfer = transfer{to: to, due: c.now + c.config.ElectionTimeout}
	return nil
}

// Transferring reports to whom leadership is on its way, 0 for nobody. A transfer is over as soon as
// the clock says so, and not with the next Take: what was put off meanwhile is proposed in that one.
func (c *Core) Transferring() ServerID {
	if c.role != Leader || c.now >= c.transfer.due {
		return 0
	}
	return c.transfer.to
}

// advanceTransfer is called by Take. The server is told once, when it has the whole log: with less it
// would lose the election, and this leader its place for nothing.
//
//spec:rule Transfer.Last
func (c *Core) advanceTransfer() {
	if c.Transferring() == 0 {
		c.transfer = transfer{}
		return
	}
	if p := c.peer(c.transfer.to); !c.transfer.told && p.matchIndex == c.log.lastIndex() {
		c.transfer.told = true
		c.send(p.id, TimeoutNow{})
	}
}

// receiveTimeoutNow campaigns, if it is the leader of this very term who says so: an old message may
// be about a transfer that was given up.
//
//spec:rule Transfer.Now
func (c *Core) receiveTimeoutNow(m Message) {
	if m.Term == c.currentTerm && m.From == c.leader && c.role == Follower && c.mayCampaign() {
		c.campaign(true)
	}
	c.hold(c.reply(m, TimeoutNowReply{RequestTerm: m.Term}))
}
