package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"ticketing/fsm"
	"ticketing/rpc"
)

// take takes the lock. Without -try and -wait it waits for as long as it takes.
func (c *command) take(ctx context.Context, k *rpc.Client) (*rpc.Lock, error) {
	waiting, cancel := ctx, context.CancelFunc(func() {})
	take := k.Lock
	switch {
	case c.try:
		take = k.TryLock
		waiting, cancel = context.WithTimeout(ctx, c.timeout)
	case c.wait > 0:
		waiting, cancel = context.WithTimeout(ctx, c.wait)
	}
	defer cancel()
	l, err := take(waiting, c.key, c.lease)
	switch {
	case err == nil:
		if c.keep {
			rpc.KeepAlive(l)
		}
		return l, nil
	case errors.Is(err, rpc.ErrInvalid):
		return nil, err
	case ctx.Err() != nil:
		err = errors.New("a signal came before the lock was acquired")
	case waiting.Err() != nil && (errors.Is(err, rpc.ErrNoLeader) || errors.Is(err, rpc.ErrTooMany)):
		err = fmt.Errorf("%q was not acquired: %w", c.key, err)
	case waiting.Err() != nil && c.wait > 0:
		err = fmt.Errorf("%q was not acquired within %v", c.key, c.wait)
	}
	return nil, &exitError{c.conflict, err}
}

// acquire holds a lock until a signal comes or its lease is over.
func (c *command) acquire(ctx context.Context, k *rpc.Client) (int, error) {
	l, err := c.take(ctx, k)
	if err != nil {
		return 0, err
	}
	err = c.print(c.record(l), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, l.Token())
		return err
	})
	if err == nil { // otherwise nobody knows of the lock
		select {
		case <-ctx.Done():
		case <-l.Done():
			err := fmt.Errorf("the lease of %q is over: %w", c.key, l.Err())
			return 0, &exitError{exitLost, err}
		}
	}
	lost, back := c.giveBack(ctx, l)
	if lost {
		return 0, &exitError{exitLost, back}
	}
	return 0, errors.Join(err, back)
}

// giveBack ends a lock, even after a signal. Lost says that it was over before.
func (c *command) giveBack(ctx context.Context, l *rpc.Lock) (lost bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	err = l.Unlock(ctx)
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, rpc.ErrNotHeld):
		return true, fmt.Errorf("%q was lost before it was given back: %w", c.key, err)
	}
	return false, fmt.Errorf("%q may not be free before its lease of %v is over: %w",
		c.key, c.lease, err)
}

// release ends a lock that another process holds.
func (c *command) release(ctx context.Context, k *rpc.Client) (int, error) {
	removed, err := rpc.Info{Key: c.key, Token: fsm.Token(c.token)}, error(nil)
	text := "released token " + strconv.FormatUint(c.token, 10)
	if c.force {
		removed, err = k.ForceRelease(ctx, c.key)
		text = fmt.Sprintf("released token %d, owner %q, lease %v", removed.Token, removed.Owner,
			leaseOf(removed))
		if removed.Token == 0 {
			removed.Key, text = c.key, "released, from somebody who had it for a moment only"
		}
	} else {
		err = k.Release(ctx, c.key, fsm.Token(c.token))
	}
	switch {
	case errors.Is(err, rpc.ErrNotHeld) && c.force:
		return 0, fmt.Errorf("%q is not held", c.key)
	case err != nil:
		return 0, c.notHeld(err)
	}
	return 0, c.print(recordOf(removed), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, text)
		return err
	})
}

// notHeld says which lock it is that an error speaks of.
func (c *command) notHeld(err error) error {
	switch {
	case errors.Is(err, rpc.ErrTokenAhead), errors.Is(err, rpc.ErrExpiring):
		return fmt.Errorf("%q with token %d: %w", c.key, c.token, err)
	case errors.Is(err, rpc.ErrNotHeld):
		return fmt.Errorf("%q is not held with token %d", c.key, c.token)
	}
	return err
}

// extend gives a lock that another process holds a new lease. It tells that lease as the service
// has it: in milliseconds, rounded up.
func (c *command) extend(ctx context.Context, k *rpc.Client) (int, error) {
	if _, err := k.Extend(ctx, c.key, fsm.Token(c.token), c.lease); err != nil {
		return 0, c.notHeld(err)
	}
	r := record{Key: c.key, Token: fsm.Token(c.token), LeaseMS: c.leaseMS()}
	return 0, c.print(r, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, time.Duration(r.LeaseMS)*time.Millisecond)
		return err
	})
}
