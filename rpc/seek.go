package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"time"
)

// answer is what all replies to a client have in common. Leader is an address, if known.
type answer interface {
	outcome() (status Status, leader string)
}

func (y *ReleaseReply) outcome() (Status, string) { return y.Status, y.Leader }
func (y *GetReply) outcome() (Status, string)     { return y.Status, y.Leader }
func (y *ListReply) outcome() (Status, string)    { return y.Status, y.Leader }

var errDeposed = errors.New("the server was deposed, or ended, before it knew")

// course is a request's way from server to server.
type course struct {
	client *Client
	pause  time.Duration
	hinted bool // the last answer named a leader, and it was followed at once
}

// refused takes in that a server did nothing, as it does not lead or is busy. The first hint is
// followed at once. After that it pauses: two servers may each take the other for the leader.
func (w *course) refused(ctx context.Context, l *link, leader string) error {
	w.client.learn(l.addr, leader)
	if leader != "" && !w.hinted {
		w.hinted = true
		return nil
	}
	w.hinted = false
	w.pause = min(max(2*w.pause, leastPause), mostPause)
	return sleep(ctx, w.pause)
}

// seek calls a method until a leader has answered. It repeats the call even when it is not known
// whether it was carried out, and then says so: the method must be one that may be repeated. Every
// call gets a reply of its own, as gob leaves alone what it does not receive.
func seek[T any, R interface {
	*T
	answer
}](ctx context.Context, c *Client, method string, args any) (reply R, repeated bool, err error) {
	w := course{client: c}
	fail := func(err error) (R, bool, error) {
		if repeated {
			err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
		return nil, repeated, err
	}
	for {
		l, err := c.connect(ctx)
		if err != nil {
			return fail(err)
		}
		reply, leader, status := R(new(T)), "", Unknown
		sent, err := c.call(ctx, l, method, args, reply)
		if err == nil {
			status, leader = reply.outcome()
		}
		switch status {
		case NotLeader, Busy:
		case Unknown, Refused:
			repeated = repeated || sent
		default:
			c.learn("", l.addr)
			return reply, repeated, nil
		}
		if err := w.refused(ctx, l, leader); err != nil {
			return fail(err)
		}
	}
}

// call makes one call, for which a server needs no longer than replyTimeout. Afterwards the
// connection is kept for another, or closed if the call has failed. Sent says whether the server
// may have got it.
func (c *Client) call(
	ctx context.Context, l *link, method string, args, reply any,
) (sent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	call := l.Go(method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		err = call.Error
	case <-ctx.Done():
		l.Close()
		<-call.Done // nothing writes into the reply from here on
		return true, context.Cause(ctx)
	}
	if err != nil {
		l.Close()
		return !errors.Is(err, rpc.ErrShutdown), err
	}
	c.release(l)
	return true, nil
}

// Get tells who holds a key. held is false if nobody does. The answer may be as old as the time
// that it takes a deposed leader to notice.
func (c *Client) Get(ctx context.Context, key string) (info Info, held bool, err error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return Info{}, false, err
	}
	defer end()
	y, _, err := seek[GetReply](ctx, c, "Lock.Get", &GetArgs{Key: key})
	if err != nil {
		return Info{}, false, readError(err)
	}
	return y.Info, y.Status == OK, nil
}

// List returns all locks that are held, by key. They are read in pages, so that locks that come and
// go meanwhile may be in it or not; see Get.
func (c *Client) List(ctx context.Context) ([]Info, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var all []Info
	for after := ""; ; after = all[len(all)-1].Key {
		y, _, err := seek[ListReply](ctx, c, "Lock.List", &ListArgs{After: after})
		if err != nil {
			return nil, readError(err)
		}
		all = append(all, y.Locks...)
		if !y.More || len(y.Locks) == 0 {
			return all, nil
		}
	}
}

// readError is for requests that change nothing, so that there is no outcome to be unsure of.
func readError(err error) error {
	if errors.Is(err, ErrUnknownOutcome) {
		return fmt.Errorf("%w: a server was found, but it did not answer in time", ErrNoLeader)
	}
	return err
}

// Status asks one server how it is.
func (c *Client) Status(ctx context.Context, addr string) (StatusReply, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return StatusReply{}, err
	}
	defer end()
	l, err := c.dial(ctx, addr)
	if err != nil {
		return StatusReply{}, err
	}
	var y StatusReply
	if _, err := c.call(ctx, l, "Lock.Status", &StatusArgs{}, &y); err != nil {
		return StatusReply{}, fmt.Errorf("asking %s: %w", addr, err)
	}
	if y.Status != OK {
		return StatusReply{}, fmt.Errorf("asking %s: %w", addr, errDeposed)
	}
	return y, nil
}

// String says how a server is, in a line.
func (y StatusReply) String() string {
	return fmt.Sprintf("server %d: %s of term %d, leader %s, commit %d, applied %d, last %d, "+
		"%d locks, last token %d, table %016x", y.ID, y.Role, y.Term, orNone(y.Leader),
		y.Commit, y.Applied, y.Last, y.Held, y.Tokens, y.Hash)
}

func orNone(addr string) string {
	if addr == "" {
		return "unknown"
	}
	return addr
}
