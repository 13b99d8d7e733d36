package rpc

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ticketing/fsm"
)

// Lock is a lock that was taken. It is used once: after it has ended, it stays so.
type Lock struct {
	client   *Client
	key      string
	token    fsm.Token
	deadline time.Time
	timer    *time.Timer
	done     chan struct{}

	mu  sync.Mutex
	err error // why done is closed
}

// newLock returns the lock that was granted, or nil if its deadline has passed. Then it is given
// back.
func (c *Client) newLock(key string, y AcquireReply, deadline time.Time) *Lock {
	left := time.Until(deadline)
	if left <= 0 {
		ctx, cancel := context.WithTimeout(c.ctx, replyTimeout)
		defer cancel()
		// If this fails, the lease ends it.
		_, _, _ = seek[ReleaseReply](ctx, c, "Lock.Release", c.releaseArgs(key, y.Token))
		return nil
	}
	l := &Lock{client: c, key: key, token: y.Token, deadline: deadline, done: make(chan struct{})}
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.locks[l] = true
		l.timer = time.AfterFunc(left, func() { l.end(ErrNotHeld) })
	}
	c.mu.Unlock()
	if closed {
		l.end(ErrClosed)
	}
	return l
}

// Key returns what is locked.
func (l *Lock) Key() string { return l.key }

// Token returns the fencing token: greater than that of every earlier lock, of any key. What the
// lock protects should refuse a request with a smaller one than it has seen.
func (l *Lock) Token() fsm.Token { return l.token }

// Deadline returns when the lock is to be taken for lost, by this machine's clock. It comes before
// the service's own count ends, if the clocks run alike to a hundredth.
func (l *Lock) Deadline() time.Time { return l.deadline }

// Done is closed when the lock has ended: at its deadline, by Unlock, or by the client's Close.
func (l *Lock) Done() <-chan struct{} { return l.done }

// Err says why Done is closed, and is nil before.
func (l *Lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// end closes Done, unless it is closed already.
func (l *Lock) end(why error) bool {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = why
		close(l.done)
	}
	l.mu.Unlock()
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	delete(l.client.locks, l)
	if l.timer != nil {
		l.timer.Stop()
	}
	return first
}

// Unlock gives the lock back. Done is closed first, whatever comes of it. ErrNotHeld says that the
// lock was over before, ErrUnknownOutcome that the service did not confirm it in time; the request
// names the token, so it can do no harm to a later holder.
func (l *Lock) Unlock(ctx context.Context) error {
	if !l.end(ErrNotHeld) {
		return l.Err()
	}
	return l.client.Release(ctx, l.key, l.token)
}

// Release gives back the lock of a key with that token, for a program that took it in another
// process. It reports as Unlock does.
func (c *Client) Release(ctx context.Context, key string, token fsm.Token) error {
	if token == 0 {
		return fmt.Errorf("%w: token 0 is no lock's", ErrNotHeld)
	}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	y, repeated, err := seek[ReleaseReply](ctx, c, "Lock.Release", c.releaseArgs(key, token))
	switch {
	case err != nil:
		return err
	case y.Status == OK:
		return nil
	case y.Status == NotFound && repeated:
		return fmt.Errorf("%w: the answer was lost; it is free now in any case", ErrUnknownOutcome)
	case y.Status == NotFound:
		return ErrNotHeld
	}
	return fmt.Errorf("%w: %s", ErrInvalid, y.Detail)
}

func (c *Client) releaseArgs(key string, token fsm.Token) *ReleaseArgs {
	return &ReleaseArgs{
		Client: c.id, Seq: c.nextSeq(), Owner: c.options.Owner, Key: key, Token: token,
	}
}
