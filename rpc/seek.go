package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"time"
)

// answer is what all replies to a client have in common. Leader is an address, if known.
type answer interface {
	outcome() (status Status, leader string)
	roster() *Roster
}

func (y *OpenReply) outcome() (Status, string)    { return y.Status, y.Leader }
func (y *ExtendReply) outcome() (Status, string)  { return y.Status, y.Leader }
func (y *ReleaseReply) outcome() (Status, string) { return y.Status, y.Leader }
func (y *GetReply) outcome() (Status, string)     { return y.Status, y.Leader }
func (y *ListReply) outcome() (Status, string)    { return y.Status, y.Leader }
func (y *StatusReply) outcome() (Status, string)  { return y.Status, y.Leader }
func (y *MembersReply) outcome() (Status, string) { return y.Status, y.Leader }
func (y *ChangeReply) outcome() (Status, string)  { return y.Status, y.Leader }

func (y *TransferReply) outcome() (Status, string) { return y.Status, y.Leader }

var errDeposed = errors.New("the server was deposed, or ended, before it knew")

// course is a request's way from server to server.
type course struct {
	client *Client
	pause  time.Duration
	hinted bool // the last answer named a leader, and it was followed at once
}

// refused takes in that a server did nothing, as it does not lead or is busy. The first hint is
// followed at once. After that it pauses: two servers may each take the other for the leader.
func (w *course) refused(ctx context.Context, l *link, status Status, leader string) error {
	if status == NotLeader && w.client.options.NoHints {
		return &NotLeaderError{l.addr, leader}
	}
	w.client.learn(l.addr, leader)
	if leader != "" && !w.hinted {
		w.hinted = true
		return nil
	}
	w.hinted = false
	w.pause = min(max(2*w.pause, leastPause), mostPause)
	err := sleep(ctx, w.pause)
	if err != nil && status == Busy {
		return fmt.Errorf("%w: %w", ErrQueueFull, context.Cause(ctx)) // there is a leader, after all
	}
	return err
}

// often says whether a request may be sent again when it is not known whether it was carried out.
type often bool

const (
	once      often = false
	untilDone often = true
)

// seek calls a method until a server that may has answered, or the context ends. Repeated says that
// the call was sent when one before it may have been carried out. Every call gets a reply of its
// own, as gob leaves alone what it does not receive.
func seek[T any, R interface {
	*T
	answer
}](ctx context.Context, c *Client, again often, method string, args any) (
	reply R, repeated bool, err error,
) {
	w := course{client: c}
	fail := func(err error) (R, bool, error) {
		if repeated {
			// That no leader was found in the end is not why it is unknown.
			err = fmt.Errorf("%w: %w", ErrUnknownOutcome, cmp.Or(context.Cause(ctx), err))
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
			if repeated && again == once {
				return fail(cmp.Or(err, errDeposed))
			}
		default:
			if leader == "" || c.options.NoHints { // the leader names nobody
				leader = l.addr
			}
			c.learn("", leader)
			return reply, repeated, nil
		}
		if err := w.refused(ctx, l, status, leader); err != nil {
			return fail(err)
		}
	}
}

// call makes one call, for which a server needs no longer than replyTimeout; but for a Transfer,
// which takes as long as the cluster's election timeout is. Afterwards the connection is kept for
// another, or closed if the call has failed. Sent says whether the server may have got it.
func (c *Client) call(
	ctx context.Context, l *link, method string, args any, reply answer,
) (sent bool, err error) {
	if _, long := args.(*TransferArgs); !long {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, replyTimeout)
		defer cancel()
	}
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
	c.keep(l, reply.roster().MembersAt)
	return true, nil
}
