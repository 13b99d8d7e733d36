package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"time"
)

// Lock waits for a lock and takes it for a lease. The context governs the waiting alone. If it
// ends, the request is cancelled by closing its connection; the Grant may have been on its way, and
// then the leader gives it back, or at worst the lease ends it.
func (c *Client) Lock(ctx context.Context, key string, lease time.Duration) (*Lock, error) {
	return c.acquire(ctx, key, lease, false)
}

// TryLock is Lock without waiting for a holder: it returns ErrHeld if there is one.
func (c *Client) TryLock(ctx context.Context, key string, lease time.Duration) (*Lock, error) {
	return c.acquire(ctx, key, lease, true)
}

// wish is a request for a lock.
type wish struct {
	AcquireArgs
	lease  time.Duration
	sentAt []time.Time // of each attempt
}

func (c *Client) acquire(
	ctx context.Context, key string, lease time.Duration, try bool,
) (*Lock, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	w := c.wish(key, lease, try)
	way := course{client: c}
	for {
		l, err := c.connect(ctx)
		if err != nil {
			return nil, err
		}
		y, sent, err := w.ask(ctx, c, l)
		switch {
		case err != nil && sent:
			// Asking again might take the lock twice, one tenure waiting behind the other.
			return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		case err != nil:
			y.Status = NotLeader
		case y.Status == OK:
			c.learn("", l.addr)
			if lock := c.newLock(key, y, w.deadline(y.Attempt)); lock != nil {
				return lock, nil
			}
			w = c.wish(key, lease, try) // it came too late and was given back
			continue
		}
		if y.Status != NotLeader && y.Status != Busy {
			return nil, acquireError(y)
		}
		if err := way.refused(ctx, l, y.Leader); err != nil {
			return nil, err
		}
	}
}

func (c *Client) wish(key string, lease time.Duration, try bool) *wish {
	// A part of a millisecond is rounded up: the client's own deadline then comes first.
	return &wish{lease: lease, AcquireArgs: AcquireArgs{
		Client: c.id, Seq: c.nextSeq(), Owner: c.options.Owner, Key: key, Try: try,
		LeaseMS: int64((lease + time.Millisecond - 1) / time.Millisecond),
	}}
}

func acquireError(y AcquireReply) error {
	switch y.Status {
	case Held:
		return ErrHeld
	case Invalid:
		return fmt.Errorf("%w: %s", ErrInvalid, y.Detail)
	}
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, errDeposed)
}

// deadline is when a lock is to be given up, by this client's clock: it counts from before the
// attempt was sent that the leader answers for, and a hundredth of the lease is for clocks that do
// not run alike. A leader that names no attempt answers for the first.
func (w *wish) deadline(attempt uint32) time.Time {
	sent := w.sentAt[0]
	if attempt >= 1 && int(attempt) <= len(w.sentAt) {
		sent = w.sentAt[attempt-1]
	}
	return sent.Add(w.lease - w.lease/100)
}

var errSilent = errors.New("the server does not answer any more")

// ask puts the wish to one server and waits. Every third of the lease it sends the wish again, so
// that the deadline of a lock that comes late does not count from when the waiting began. Each
// attempt makes the server answer the one before; when two are unanswered, it is gone.
func (w *wish) ask(ctx context.Context, c *Client, l *link) (y AcquireReply, sent bool, err error) {
	again := time.NewTicker(max(w.lease/3, time.Millisecond))
	defer again.Stop()
	before, done := len(w.sentAt), make(chan *rpc.Call, 2)
	w.send(l, done)
	flying := 1
	defer func() {
		// Closing the connection also cancels an attempt that was sent when the answer to the one
		// before was on its way.
		if err != nil || flying > 0 {
			l.Close()
			return
		}
		c.release(l)
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
			return y, true, context.Cause(ctx)
		}
	}
}

func (w *wish) send(l *link, done chan *rpc.Call) {
	w.Attempt++
	args := w.AcquireArgs
	w.sentAt = append(w.sentAt, time.Now())
	l.Go("Lock.Acquire", &args, new(AcquireReply), done)
}
