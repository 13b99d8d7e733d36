package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"time"

	"ticketing/fsm"
)

// Lock waits for a lock and takes it for a lease, rounded up to whole milliseconds. The context
// governs the waiting alone. There is no other limit to it: a client that cannot reach a leader
// keeps trying.
//
// If the context ends, the request is cancelled by closing its connection, and a lock that comes all
// the same, within a second, is given back. The error is an ErrUnknownOutcome and the context's, or
// an ErrNoLeader if no server had the request in its hands. Other errors are ErrAlreadyHeld,
// ErrLeaseRange, ErrInvalid and ErrClosed, and ErrUnknownOutcome when a leader was deposed or has
// vanished while it worked on the request. What may have come of an unknown outcome is told at
// ErrUnknownOutcome.
func (c *Client) Lock(ctx context.Context, key string, lease time.Duration) (*Lock, error) {
	return c.acquire(ctx, key, lease, false)
}

// TryLock is Lock without waiting for a holder: if there is one, or somebody else waits, it returns
// a HeldError.
func (c *Client) TryLock(ctx context.Context, key string, lease time.Duration) (*Lock, error) {
	return c.acquire(ctx, key, lease, true)
}

func (c *Client) acquire(
	ctx context.Context, key string, lease time.Duration, try bool,
) (*Lock, error) {
	if err := checkLease(lease); err != nil {
		return nil, err
	}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if !c.reserve(key) {
		return nil, fmt.Errorf("%w: %q", ErrAlreadyHeld, key)
	}
	lock, err := c.pursue(ctx, key, lease, try)
	if err != nil {
		c.unreserve(key)
	}
	return lock, err
}

// checkLease finds what no service would take. How short a lease may be, the service knows.
func checkLease(lease time.Duration) error {
	if most := fsm.MaxLeaseMS * time.Millisecond; lease <= 0 || lease > most {
		return fmt.Errorf("%w: %v is not more than 0 and at most %v", ErrLeaseRange, lease, most)
	}
	return nil
}

// reserve notes that a key is asked for, and fails if this client has or wants it already.
func (c *Client) reserve(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return true // its context is about to end, and tells
	}
	if c.keys[key] {
		return false
	}
	c.keys[key] = true
	return true
}

func (c *Client) unreserve(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, key)
}

// pursue asks one server after the other until one has the answer. It sends the same request, which
// is carried out once, whatever became of it where it was sent before.
func (c *Client) pursue(
	ctx context.Context, key string, lease time.Duration, try bool,
) (*Lock, error) {
	w, err := c.wish(ctx, key, lease, try)
	if err != nil {
		return nil, err
	}
	defer func() { w.number.done() }()
	way := course{client: c}
	for {
		l, err := c.connect(ctx)
		if err != nil {
			return nil, w.failed(ctx, err)
		}
		y, sent, err := w.ask(ctx, c, l)
		if err != nil { // whatever it was, to ask again is right
			w.doubt = w.doubt || sent
			// The server may have been stopped, and silent ever since.
			c.learn(l.addr, "")
			y.Status = Superseded
		}
		lock, err := w.take(ctx, &way, l, y)
		if err != nil || lock != nil {
			return lock, err
		}
	}
}

// take takes in an answer. If it returns neither a lock nor an error, the wish is to be asked for
// again.
func (w *wish) take(ctx context.Context, way *course, l *link, y AcquireReply) (*Lock, error) {
	c, err := way.client, error(nil)
	switch y.Status {
	case OK:
		c.learn("", l.addr)
		if lock := c.newLock(w.Key, y, w.lease, w.deadline(y.Attempt)); lock != nil {
			return lock, nil
		}
		err = w.renew(ctx) // it came too late and was given back
	case Closed: // it was granted and is over
		err = w.renew(ctx)
	case Gone:
		w.number.gone()
		if w.doubt {
			return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, ErrForgotten)
		}
		err = w.renew(ctx)
	case Unknown, Refused:
		w.doubt = true
		err = way.refused(ctx, l, y.Status, y.Leader)
	case NotLeader, Busy, Superseded:
		err = way.refused(ctx, l, y.Status, y.Leader)
	default:
		return nil, acquireError(w.Key, y)
	}
	if err != nil {
		return nil, w.failed(ctx, err)
	}
	return nil, nil
}

// renew makes the wish a new request, under another number.
func (w *wish) renew(ctx context.Context) error {
	w.number.done()
	next, err := w.number.client.wish(ctx, w.Key, w.lease, w.Try)
	if err == nil {
		*w = *next
	}
	return err
}

// wish is a request for a lock.
type wish struct {
	AcquireArgs
	number number
	lease  time.Duration
	sentAt []time.Time // of each attempt
	doubt  bool        // a server may have it, or have had it, in its hands
}

func (c *Client) wish(ctx context.Context, key string, lease time.Duration, try bool) (*wish, error) {
	n, err := c.number(ctx)
	if err != nil {
		return nil, err
	}
	// A part of a millisecond is rounded up: the client's own deadline then comes first.
	return &wish{number: n, lease: lease, AcquireArgs: AcquireArgs{
		Client: n.pass.id, Seq: n.seq, Owner: c.options.Owner, Key: key, Try: try,
		LeaseMS: leaseMS(lease),
	}}, nil
}

func leaseMS(lease time.Duration) int64 {
	return int64((lease + time.Millisecond - 1) / time.Millisecond)
}

// failed says why a wish is given up.
func (w *wish) failed(ctx context.Context, err error) error {
	if w.doubt {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, cmp.Or(context.Cause(ctx), err))
	}
	return err
}

func acquireError(key string, y AcquireReply) error {
	if y.Status == Held {
		return &HeldError{key, y.Holder.Token, y.Holder.Owner}
	}
	return refusal(y.Status, y.Detail, y.LeastMS)
}

// margin is the part of a lease that its holder does without: eps = 1/margin of it. A client whose
// clock is slow by a rate r counts a time t as t·(1−r), a server whose clock is fast counts it as
// t·(1+r). The client is done before any server is if lease·(1−eps)/(1−r) <= lease/(1+r), that is,
// eps >= 2r/(1+r). A hundredth is enough for clocks that are right to half of a hundredth; those of
// computers are right to some 200 parts in a million. Nothing helps against a program that stands
// still between looking at its clock and acting: for that there are tokens.
const margin = 100

// deadline is when a lock is to be given up, by this client's monotonic clock: it counts from
// before the attempt was sent that the leader answers for. Sending comes before every server's
// applying, so no server can have begun to count earlier. A leader that names no attempt answers
// for the first.
func (w *wish) deadline(attempt uint32) time.Time {
	sent := w.sentAt[0]
	if attempt >= 1 && int(attempt) <= len(w.sentAt) {
		sent = w.sentAt[attempt-1]
	}
	return leaseEnd(sent, w.lease)
}

// leaseEnd is when a lease is to be given up that was asked for in a request that was sent then.
func leaseEnd(sent time.Time, lease time.Duration) time.Time { return sent.Add(lease - lease/margin) }

var errSilent = errors.New("the server does not answer any more")

// longestSilence is how long a waiter takes a server's word that it will be answered. Then it asks
// again, whatever the lease: a server that stands still must not keep it for as long as that.
const longestSilence = 3 * time.Second

// ask puts the wish to one server and waits. Every third of the lease, at least, it sends the wish
// again, so that the deadline of a lock that comes late does not count from when the waiting began.
// Each attempt makes the server answer the one before; when two are unanswered, it is gone.
func (w *wish) ask(ctx context.Context, c *Client, l *link) (y AcquireReply, sent bool, err error) {
	again := time.NewTicker(min(max(w.lease/3, time.Millisecond), longestSilence))
	defer again.Stop()
	before, done := len(w.sentAt), make(chan *rpc.Call, 2)
	w.send(l, done)
	flying, over := 1, false
	defer func() {
		switch {
		case over:
			c.abandon(l, w.Key, done, flying)
		case err != nil || flying > 0:
			// Closing the connection also cancels an attempt that was sent when the answer to the one
			// before was on its way.
			l.Close()
		default:
			c.keep(l, y.MembersAt)
		}
	}()
	for {
		select {
		case call := <-done:
			flying--
			if call.Error != nil {
				unsent := errors.Is(call.Error, rpc.ErrShutdown) && len(w.sentAt) == before+1
				return y, !unsent, call.Error
			}
			if reply := call.Reply.(*AcquireReply); reply.Status != Superseded {
				return *reply, true, nil
			}
		case <-again.C:
			if flying == cap(done) {
				return y, true, errSilent
			}
			w.send(l, done)
			flying++
		case <-ctx.Done():
			over = true
			return y, true, context.Cause(ctx)
		}
	}
}

// abandon gives up what is unanswered on a connection: nobody will ask for it again. The server
// hears that nothing more comes, and forgets the request or gives back its lock. But its answer may
// be on the way already, written and for the server delivered: so whatever still comes is read, and a
// lock that comes is given back. Only if nothing can be heard any more, its lease ends it.
func (c *Client) abandon(l *link, key string, done chan *rpc.Call, flying int) {
	if !l.finish() {
		l.Close()
		return
	}
	c.active.Go(func() {
		defer l.Close()
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		for ; flying > 0; flying-- {
			select {
			case call := <-done:
				y := call.Reply.(*AcquireReply)
				if call.Error == nil && y.Status == OK {
					c.decline(ctx, key, y.Token)
				}
			case <-ctx.Done():
				return
			}
		}
	})
}

func (w *wish) send(l *link, done chan *rpc.Call) {
	w.Attempt++
	w.Lowest = w.number.lowest()
	args := w.AcquireArgs
	w.sentAt = append(w.sentAt, time.Now())
	l.Go("Lock.Acquire", &args, new(AcquireReply), done)
}
