package rpc

import (
	"context"
	"fmt"
	"net/rpc"
	"slices"
	"time"

	"ticketing/raft"
)

// rosterPause is how long a client goes on with the servers that it knows before it asks who the
// members are, though nothing tells it that there are others.
const rosterPause = 10 * time.Second

// Members tells who the servers are and how far each of them is, as who leads knows it.
func (c *Client) Members(ctx context.Context) (MembersReply, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return MembersReply{}, err
	}
	defer end()
	y, _, err := seek[MembersReply](ctx, c, untilDone, "Lock.Members", &MembersArgs{})
	if err != nil {
		return MembersReply{}, readError(err)
	}
	return *y, nil
}

// Add makes a new server a learner of the cluster: it is sent the log and counts for nothing. Its id
// must be one that no server has had. Promote lets a learner vote, and Remove ends a membership, the
// leader's too. Each changes one server, and returns when that is committed; what is too early is
// tried again until the context ends, which is an ErrChanging. What can never be done is an
// ErrMembers. Each may be called again when an answer was lost: ErrUnknownOutcome.
func (c *Client) Add(ctx context.Context, id raft.ServerID, address string) error {
	return c.change(ctx, &ChangeArgs{Change: AddMember, ID: id, Address: address})
}

// Promote lets a learner vote, see Add.
func (c *Client) Promote(ctx context.Context, id raft.ServerID) error {
	return c.change(ctx, &ChangeArgs{Change: PromoteMember, ID: id})
}

// Remove ends a server's membership, see Add.
func (c *Client) Remove(ctx context.Context, id raft.ServerID) error {
	return c.change(ctx, &ChangeArgs{Change: RemoveMember, ID: id})
}

func (c *Client) change(ctx context.Context, args *ChangeArgs) error {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	for again := false; ; {
		y, repeated, err := seek[ChangeReply](ctx, c, untilDone, "Lock.ChangeMembers", args)
		if err != nil {
			return err
		}
		// If an earlier call may have been carried out, then it was.
		again = again || repeated
		switch {
		case y.Status == OK, y.Status == Already && again:
			return nil
		case y.Status == Already, y.Status == Invalid:
			return fmt.Errorf("%w: %s", ErrMembers, y.Detail)
		case y.Status != Changing:
			return refusal(y.Status, y.Detail, 0)
		}
		if sleep(ctx, mostPause) != nil {
			return fmt.Errorf("%w: %s", ErrChanging, y.Detail)
		}
	}
}

// keep keeps a connection for the next call. If the answer to the last one tells of newer members than
// the client knows, it asks the server who they are. So a client that asks for something in each
// configuration is not lost when all servers that it was given are replaced one by one. It asks as
// well if it has not for long, since it may not have been given all. Nobody waits for it.
func (c *Client) keep(l *link, newest raft.Index) {
	c.mu.Lock()
	due := newest > c.sought || time.Since(c.asked) >= rosterPause
	due = due && !c.options.NoHints && !c.closed
	if due {
		c.sought, c.asked = max(c.sought, newest), time.Now()
	}
	c.mu.Unlock()
	c.release(l)
	if !due {
		return
	}
	// It asks over the same connection, beside whatever is asked next, since another one would stay.
	c.active.Go(func() { // the method that has made the call is active, too
		ctx, cancel := context.WithTimeout(c.ctx, replyTimeout)
		defer cancel()
		y := new(MembersReply)
		call := l.Go("Lock.Members", &MembersArgs{Local: true}, y, make(chan *rpc.Call, 1))
		select {
		case <-call.Done:
			if call.Error != nil { // an older server does not know the question, and tells of nothing
				y = new(MembersReply)
			}
		case <-ctx.Done():
			y = new(MembersReply) // the late answer is read by nobody
		}
		c.enroll(*y)
	})
}

// enroll takes in who the members are. Those that the client was given stay behind them. An answer that
// is none, is older or may be taken back is as good as nothing: the client asks again when it next
// hears of newer members.
func (c *Client) enroll(y MembersReply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var addrs []string
	for _, m := range y.Members {
		if m.Address != "" {
			addrs = append(addrs, m.Address)
		}
	}
	if y.Status != OK || y.Index < c.roster || y.Index > y.MembersAt || len(addrs) == 0 {
		c.sought = c.roster
		return
	}
	for _, a := range c.given {
		if !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	c.addrs, c.roster = addrs, y.Index
}
