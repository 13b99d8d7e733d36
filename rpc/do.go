package rpc

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"ticketing/fsm"
)

// Do takes a lock as Lock does, calls fn while it is held, and gives it back when fn has returned,
// or has panicked.
//
// The context that fn gets ends when the one given here does, and at the lock's deadline, with
// ErrLost as its cause: fn must stop then, and whatever it calls with that context asks nobody for
// longer than the lease lasts. Do waits for fn, however long that takes. The token is for what the
// lock protects, which should refuse smaller ones than it has seen.
//
// Do returns nil if fn has returned nil, the lease lasted until then and the service has confirmed
// that the lock was still held. Otherwise the error is fn's, and beside it, or alone if fn has
// none, what Unlock says: ErrLost if fn took longer than the lease, ErrNotHeld if the lock had been
// taken away before, in both of which cases another may have worked at the same time as fn; and
// ErrUnknownOutcome or ErrNoLeader if fn was in time and only the giving back may have failed,
// which the lease makes good. If the lock was not acquired, fn is not called, and the error is
// Lock's.
func (c *Client) Do(
	ctx context.Context, key string, lease time.Duration,
	fn func(ctx context.Context, token fsm.Token) error,
) (err error) {
	l, err := c.Lock(ctx, key, lease)
	if err != nil {
		return err
	}
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	held, stop := context.WithDeadlineCause(held, l.Deadline(), ErrLost)
	defer stop()
	var watch errgroup.Group
	watch.Go(func() error { // for a Close, of which the deadline knows nothing
		select {
		case <-l.Done():
			cancel(l.Err())
		case <-held.Done():
		}
		return nil
	})
	defer func() {
		stop()
		_ = watch.Wait() // it has no errors
		switch back := l.finish(ctx); {
		case err == nil:
			err = back
		case back != nil:
			err = fmt.Errorf("%w; and %w", err, back)
		}
	}()
	return fn(held, l.Token())
}

// finish is Unlock at the end of Do. The caller's context may have ended, which is no reason to
// leave the lock to its lease.
func (l *Lock) finish(ctx context.Context) error {
	if err := l.Unlock(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("giving back %q: %w", l.key, err)
	}
	return nil
}
