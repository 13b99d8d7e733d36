package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ticketing/fsm"
)

// Lock is a lock that was taken. It is used once: after it has ended, it stays so, and whoever
// wants the key again asks the Client for another. All methods may be called at the same time.
type Lock struct {
	client *Client
	key    string
	token  fsm.Token
	timer  *time.Timer
	done   chan struct{}
	ctx    context.Context // ends when done is closed
	cancel context.CancelFunc

	extending chan struct{}  // whoever is in it extends the lease
	renewed   chan struct{}  // holds something after that
	keeper    sync.WaitGroup // see KeepAlive

	mu       sync.Mutex
	lease    time.Duration // as it was last granted or extended
	deadline time.Time
	err      error // why done is closed
}

// newLock returns the lock that was granted, or nil if its deadline has passed. Then it is given
// back.
func (c *Client) newLock(
	key string, y AcquireReply, lease time.Duration, deadline time.Time,
) *Lock {
	left := time.Until(deadline)
	if left <= 0 {
		ctx, cancel := context.WithTimeout(c.ctx, replyTimeout)
		defer cancel()
		c.decline(ctx, key, y.Token)
		return nil
	}
	l := &Lock{
		client: c, key: key, token: y.Token, lease: lease, deadline: deadline, done: make(chan struct{}),
		extending: make(chan struct{}, 1), renewed: make(chan struct{}, 1),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.locks[l] = true
		l.timer = time.AfterFunc(left, l.expire)
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
// lock protects should refuse a request with a smaller one than it has seen. Who knows it can
// release the lock; that is all that ownership is.
func (l *Lock) Token() fsm.Token { return l.token }

// Deadline returns when the lock is to be taken for lost, by this machine's clock. Counted from
// before the request was sent, it is the lease less a hundredth: that comes before the service's
// own count ends, as long as both clocks' rates are right to half of a hundredth.
func (l *Lock) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// Done is closed when the lock has ended: at its deadline, for which no network is needed, by
// Unlock, or by the client's Close. Should somebody else release it by its token or by force,
// nothing tells.
func (l *Lock) Done() <-chan struct{} { return l.done }

// Err says why Done is closed, and is nil before: ErrLost after the deadline, ErrClosed after the
// client's Close, ErrNotHeld after Unlock or when an Extend has found that it is over. It never
// changes once it is set.
func (l *Lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// expire is what the timer does, unless the lease was extended in this moment.
func (l *Lock) expire() {
	if left := time.Until(l.Deadline()); left > 0 {
		l.timer.Reset(left)
		return
	}
	l.end(ErrLost)
}

// end closes Done, unless it is closed already.
func (l *Lock) end(why error) bool {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = why
		l.cancel() // first, so that KeepAlive asks for nothing that whoever sees Done does not expect
		close(l.done)
	}
	l.mu.Unlock()
	if !first {
		return false // the key may be another Lock's by now
	}
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	delete(l.client.locks, l)
	delete(l.client.keys, l.key)
	if l.timer != nil {
		l.timer.Stop()
	}
	return true
}

var errLeaseOver = errors.New("its lease is over by now")

// Unlock gives the lock back. Done is closed first, whatever comes of it, so that nobody goes on
// believing. Then it asks until the service has answered, the context ends or the lease does.
//
// ErrNotHeld says that the lock was over before; if this client's clock says so, it is ErrLost, and
// nothing is sent. ErrUnknownOutcome says that the service did not confirm it in time, and
// ErrNoLeader that it could not even be asked; then the lease ends the lock. ErrClosed says that
// the client was closed before. Release may be called with the token again: a Release that names
// its token can do no harm to a later holder.
func (l *Lock) Unlock(ctx context.Context) error {
	why, deadline := ErrNotHeld, l.Deadline()
	if !time.Now().Before(deadline) {
		why = ErrLost // its timer is late
	}
	first := l.end(why)
	l.keeper.Wait() // an Extend that is under way does not overtake the Release
	if !first || errors.Is(why, ErrLost) {
		return l.Err()
	}
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, errLeaseOver)
	defer cancel()
	return l.client.Release(ctx, l.key, l.token)
}

// Release gives back the lock of a key with that token, for a program that took it in another
// process. It asks until the service has answered or the context ends. Its errors are Unlock's,
// ErrInvalid and ErrClosed.
func (c *Client) Release(ctx context.Context, key string, token fsm.Token) error {
	if token == 0 {
		return fmt.Errorf("%w: token 0 is no lock's", ErrNotHeld)
	}
	return c.giveBack(ctx, untilDone, key, token)
}

// ForceRelease removes whatever lock the key has, for a person who knows that its holder is gone.
// It returns the holder that was seen just before; it may have been another one that it met, and
// the zero Info stands for nobody. The request is sent once: a second one might remove the lock of
// whoever came next. Its errors are Release's.
func (c *Client) ForceRelease(ctx context.Context, key string) (Info, error) {
	seen, _, err := c.Get(ctx, key)
	if err != nil {
		return Info{}, err
	}
	return seen, c.giveBack(ctx, once, key, 0)
}

// giveBack releases the tenure of a key with a token, or any if that is 0. In a session a Release is
// carried out once, and the client hears what came of it, however often it asks.
func (c *Client) giveBack(ctx context.Context, again often, key string, token fsm.Token) error {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	n, err := c.number(ctx)
	if err != nil {
		return err
	}
	defer n.done()
	args := c.releaseArgs(key, token)
	args.Client, args.Seq, args.Lowest = n.pass.id, n.seq, n.lowest()
	y, repeated, err := seek[ReleaseReply](ctx, c, again, "Lock.Release", args)
	switch {
	case err != nil:
		return err
	case y.Status == OK:
		return nil
	case y.Status == Gone && repeated:
		n.gone()
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, ErrForgotten)
	case y.Status == Gone:
		n.gone()
		return c.giveBack(ctx, again, key, token)
	}
	return refusal(y.Status, y.Detail, 0)
}

// decline gives back a lock that nobody has used. If this fails, the lease ends it.
func (c *Client) decline(ctx context.Context, key string, token fsm.Token) {
	_, _, _ = seek[ReleaseReply](ctx, c, untilDone, "Lock.Release", c.releaseArgs(key, token))
}

func (c *Client) releaseArgs(key string, token fsm.Token) *ReleaseArgs {
	return &ReleaseArgs{Owner: c.options.Owner, Key: key, Token: token}
}
