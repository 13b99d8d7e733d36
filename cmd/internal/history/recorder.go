package history

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ticketing/fsm"
	"ticketing/rpc"
)

// Recorder takes down the operations of many clients, by one clock. Its methods may be called at
// the same time.
type Recorder struct {
	start time.Time

	mu         sync.Mutex
	operations []Operation
}

// NewRecorder returns a Recorder whose clock begins now.
func NewRecorder() *Recorder { return &Recorder{start: time.Now()} }

// Operations returns what was taken down so far.
func (r *Recorder) Operations() []Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.operations)
}

func (r *Recorder) add(o Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, o)
}

// now is the reading of the clock, rounded down; one more than that is rounded up.
func (r *Recorder) now() int64 { return time.Since(r.start).Microseconds() }

// Lock is Client.Lock, taken down under the client's name.
func (r *Recorder) Lock(
	ctx context.Context, c *rpc.Client, name, key string, lease time.Duration,
) (*rpc.Lock, error) {
	return r.acquire(name, key, lease, func() (*rpc.Lock, error) { return c.Lock(ctx, key, lease) })
}

// TryLock is Client.TryLock, taken down under the client's name.
func (r *Recorder) TryLock(
	ctx context.Context, c *rpc.Client, name, key string, lease time.Duration,
) (*rpc.Lock, error) {
	return r.acquire(name, key, lease, func() (*rpc.Lock, error) {
		return c.TryLock(ctx, key, lease)
	})
}

func (r *Recorder) acquire(
	name, key string, lease time.Duration, ask func() (*rpc.Lock, error),
) (*rpc.Lock, error) {
	o := Operation{
		Client: name, Kind: Acquire, Key: key, Lease: lease.Microseconds(), Call: r.now(),
	}
	lock, err := ask()
	o.Return = r.now() + 1
	switch {
	case err == nil:
		o.Token, o.Outcome = lock.Token(), OK
	case errors.Is(err, rpc.ErrUnknownOutcome):
		o.Outcome = Unknown
	case errors.Is(err, rpc.ErrHeld):
		o.Outcome = Held
	default:
		return nil, err // nothing was done
	}
	r.add(o)
	return lock, err
}

// Unlock is Lock.Unlock, taken down under the client's name.
func (r *Recorder) Unlock(ctx context.Context, name string, lock *rpc.Lock) error {
	return r.giveBack(name, lock.Key(), lock.Token(), func() error { return lock.Unlock(ctx) })
}

// Release is Client.Release, taken down under the client's name.
func (r *Recorder) Release(
	ctx context.Context, c *rpc.Client, name, key string, token fsm.Token,
) error {
	return r.giveBack(name, key, token, func() error { return c.Release(ctx, key, token) })
}

func (r *Recorder) giveBack(name, key string, token fsm.Token, ask func() error) error {
	o := Operation{Client: name, Kind: Release, Key: key, Token: token, Call: r.now()}
	err := ask()
	o.Return = r.now() + 1
	switch {
	case err == nil:
		o.Outcome = OK
	case errors.Is(err, rpc.ErrUnknownOutcome):
		o.Outcome = Unknown
	case errors.Is(err, rpc.ErrNotHeld) && !errors.Is(err, rpc.ErrLost):
		o.Outcome = NotHeld
	default:
		return err // nothing was sent
	}
	r.add(o)
	return err
}
