package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ticketing/fsm"
)

// Extend asks for a new lease of the lock, from now on. It never takes the lock again: ErrNotHeld
// says that the lock was over, or that its end was on its way (ErrExpiring), and then Done is
// closed. It asks until the service has answered, the context ends or the lock does. Other errors
// are ErrLeaseRange, ErrNoLeader, ErrClosed and the context's, which leave the lock with the lease
// that it had, and ErrUnknownOutcome.
//
// The new deadline is counted from before the request was first sent. It may be earlier than the
// old one: then it holds from that moment on, also if the outcome is unknown. Extends of one lock
// go one by one, or the service might count the lease of one and the holder that of another.
func (l *Lock) Extend(ctx context.Context, lease time.Duration) error {
	if err := checkLease(lease); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.ctx, func() { cancel(l.Err()) })
	defer stop()
	ctx, end, err := l.client.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	select {
	case l.extending <- struct{}{}:
		defer func() { <-l.extending }()
	case <-ctx.Done():
		return fmt.Errorf("another Extend of the lock goes on: %w", context.Cause(ctx))
	case <-l.done:
	}
	if err := l.Err(); err != nil {
		return err
	}
	return l.extend(ctx, lease)
}

func (l *Lock) extend(ctx context.Context, lease time.Duration) error {
	sent, before := time.Now(), l.Deadline()
	until := leaseEnd(sent, lease)
	if until.Before(before) {
		l.due(until)
	}
	y, err := l.askFor(ctx, lease)
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		return err
	case err != nil: // nothing was done
		l.due(before)
		return err
	case y.Status == OK:
		return l.extended(lease, until)
	}
	err = refusal(y.Status, y.Detail, y.LeastMS)
	if errors.Is(err, ErrNotHeld) {
		l.end(err)
	} else {
		l.due(before)
	}
	return err
}

// askFor asks for a lease, again in a new session if the service has forgotten the old one: an
// Extend names its tenure, so that a second one does no harm.
func (l *Lock) askFor(ctx context.Context, lease time.Duration) (y *ExtendReply, err error) {
	for doubt := false; ; {
		n, err := l.client.number(ctx)
		repeated := false
		if err == nil {
			y, repeated, err = seek[ExtendReply](ctx, l.client, untilDone, "Lock.Extend", &ExtendArgs{
				Client: n.pass.id, Seq: n.seq, Lowest: n.lowest(), Owner: l.client.options.Owner,
				Key: l.key, Token: l.token, LeaseMS: leaseMS(lease),
			})
			n.done()
		}
		if err != nil && doubt { // of an earlier one; this one may not even have been sent
			err = fmt.Errorf("%w: %w", ErrUnknownOutcome, cmp.Or(context.Cause(ctx), err))
		}
		if err != nil || y.Status != Gone {
			return y, err
		}
		n.gone()
		doubt = doubt || repeated
	}
}

// extended takes in that the lock has a new lease.
func (l *Lock) extended(lease time.Duration, until time.Time) error {
	l.due(until)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease = lease
	select {
	case l.renewed <- struct{}{}:
	default: // nobody has looked at the last one yet
	}
	return l.err
}

// due sets the deadline, unless the lock has ended.
func (l *Lock) due(deadline time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.deadline = deadline
		l.timer.Reset(time.Until(deadline))
	}
}

// KeepAlive extends a lock's lease again and again, each time to as much as it was taken for or
// last extended to, from when a third of that has passed, until the lock ends. Unlock waits for it.
// It does not make the lock safer: a program that stands still is extended by nobody, and what the
// lock protects still has to look at the token.
//
// An error is no loss: it goes on asking until the deadline, which is when Done is closed. A lock
// is given to KeepAlive once.
func KeepAlive(l *Lock) {
	ctx, end, err := l.client.begin(l.ctx)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil { // Unlock may be waiting already, for those that were there before
		end()
		return
	}
	l.keeper.Go(func() {
		defer end()
		l.keep(ctx)
	})
}

// keep extends the lock until the context ends.
func (l *Lock) keep(ctx context.Context) {
	for failed := false; ; {
		l.mu.Lock()
		lease := l.lease
		l.mu.Unlock()
		pause := lease / 3
		if failed {
			pause = min(pause, mostPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.renewed: // by somebody else, perhaps: it is to be counted anew
			failed = false
		case <-time.After(pause):
			failed = l.Extend(ctx, lease) != nil
		}
	}
}

// Extend asks for a new lease of the lock of a key with that token, for a program that took it in
// another process: from now on, rounded up to whole milliseconds, which may be less than it had. It
// returns until when that program may count on it, by this machine's clock. It asks until the
// service has answered or the context ends, and needs no session: what is done twice here does no
// harm.
//
// ErrNotHeld says that the lock is over, or about to be (ErrExpiring), or never was
// (ErrTokenAhead). After an ErrUnknownOutcome the lease is the old one or the new, whichever is
// shorter. Other errors are ErrLeaseRange, ErrInvalid, ErrNoLeader and ErrClosed.
func (c *Client) Extend(
	ctx context.Context, key string, token fsm.Token, lease time.Duration,
) (until time.Time, err error) {
	if token == 0 {
		return time.Time{}, fmt.Errorf("%w: token 0 is no lock's", ErrNotHeld)
	}
	if err := checkLease(lease); err != nil {
		return time.Time{}, err
	}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer end()
	sent := time.Now()
	y, _, err := seek[ExtendReply](ctx, c, untilDone, "Lock.Extend", &ExtendArgs{
		Owner: c.options.Owner, Key: key, Token: token, LeaseMS: leaseMS(lease),
	})
	switch {
	case err != nil:
		return time.Time{}, err
	case y.Status != OK:
		return time.Time{}, refusal(y.Status, y.Detail, y.LeastMS)
	}
	return leaseEnd(sent, lease), nil
}
