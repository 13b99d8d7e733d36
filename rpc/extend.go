package rpc

import (
	"context"
	"fmt"
	"time"
)

// Extend asks for a new lease of the lock, from now on. It never takes the lock again: ErrNotHeld
// says that the lock was over, or that its end was on its way, and then Done is closed. Any other
// error leaves the lock with the lease that it had: ErrLeaseRange, ErrUnknownOutcome and the
// context's, ErrNoLeader, ErrClosed. It asks until the service has answered, the context ends or the
// lease does.
//
// The new deadline is counted from before the request was first sent, and never before the old one.
func (l *Lock) Extend(ctx context.Context, lease time.Duration) error {
	if err := checkLease(lease); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadlineCause(ctx, l.Deadline(), ErrLost)
	defer cancel()
	ctx, end, err := l.client.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := l.Err(); err != nil {
		return err
	}
	n, err := l.client.number(ctx)
	if err != nil {
		return err
	}
	defer n.done()
	sent := time.Now()
	y, _, err := seek[ExtendReply](ctx, l.client, untilDone, "Lock.Extend", &ExtendArgs{
		Client: n.pass.id, Seq: n.seq, Lowest: n.lowest(), Owner: l.client.options.Owner,
		Key: l.key, Token: l.token, LeaseMS: leaseMS(lease),
	})
	if err != nil {
		return err
	}
	return l.extended(y, n, leaseEnd(sent, lease))
}

// extended takes in the answer.
func (l *Lock) extended(y *ExtendReply, n number, deadline time.Time) error {
	switch {
	case y.Status == NotFound:
		l.end(ErrNotHeld)
		return ErrNotHeld
	case y.Status == Gone:
		n.gone()
		return fmt.Errorf("%w: the service has forgotten this client", ErrUnknownOutcome)
	case y.LeastMS > 0:
		return fmt.Errorf("%w: %s", ErrLeaseRange, y.Detail)
	case y.Status != OK:
		return fmt.Errorf("%w: %s", ErrInvalid, y.Detail)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if deadline.After(l.deadline) {
		l.deadline = deadline
		l.timer.Reset(time.Until(deadline))
	}
	return nil
}

// KeepAlive extends a lock's lease again and again, each time to as much as it was taken for, from
// when a third of that has passed, until the lock ends. Unlock waits for it. It does not make the
// lock safer: a program that stands still is extended by nobody, and what the lock protects still
// has to look at the token.
//
// An error is no loss: it goes on asking until the deadline, which is when Done is closed. A lock is
// given to KeepAlive once.
func KeepAlive(l *Lock) {
	ctx, end, err := l.client.begin(l.ctx)
	if err != nil {
		return
	}
	l.keeper.Go(func() {
		defer end()
		for pause := l.lease / 3; ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			pause = l.lease / 3
			if err := l.Extend(ctx, l.lease); err != nil {
				pause = min(pause, mostPause)
			}
		}
	})
}
