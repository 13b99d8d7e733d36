package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

var errWork = errors.New("the work has failed")

// free tells whether a key can be had at once.
func free(t *testing.T, k *Client, key string) bool {
	t.Helper()
	l, err := k.TryLock(within(t), key, time.Minute)
	if err != nil {
		return false
	}
	unlock(t, l)
	return true
}

func TestDoHoldsTheLockWhileItWorks(t *testing.T) {
	for name, want := range map[string]error{"it succeeds": nil, "it fails": errWork} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
				a, b := c.client(t, "A"), c.client(t, "B")
				ran, start := 0, time.Now()
				err := a.Do(within(t), "door", 20*time.Second, func(ctx context.Context, own fsm.Token) error {
					ran++
					d, ok := ctx.Deadline()
					if least := start.Add(20 * time.Second * 99 / 100); !ok || !d.Equal(least) {
						t.Errorf("the deadline is %v, want %v", d, least)
					}
					if info, _, err := b.Get(ctx, "door"); err != nil || info.Token != own || own == 0 {
						t.Errorf("it has token %d, the service says %+v, %v", own, info, err)
					}
					return want
				})
				if err != want || ran != 1 {
					t.Errorf("Do has run it %d times and returned %v, want %v", ran, err, want)
				}
				if !free(t, b, "door") {
					t.Error("the lock was not given back")
				}
			})
		})
	}
}

// The context ends at the deadline, and Do waits for the function all the same. (cilium#42920.)
func TestDoSaysThatTheLockWasLostMeanwhile(t *testing.T) {
	for name, own := range map[string]error{"it succeeds": nil, "it fails": errWork} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
				k := c.client(t, "A")
				start := time.Now()
				err := k.Do(within(t), "door", c.lease(), func(ctx context.Context, _ fsm.Token) error {
					<-ctx.Done()
					if took := time.Since(start); took != c.lease()*99/100 {
						t.Errorf("its context has ended after %v", took)
					}
					if cause := context.Cause(ctx); !errors.Is(cause, ErrLost) {
						t.Errorf("its context has ended because of %v", cause)
					}
					time.Sleep(time.Second)
					return own
				})
				if took := time.Since(start); took < c.lease()*99/100+time.Second {
					t.Errorf("Do has not waited for it: %v", took)
				}
				if !errors.Is(err, ErrLost) || own != nil && !errors.Is(err, own) {
					t.Errorf("Do has returned %v", err)
				}
			})
		})
	}
}

func TestDoSaysThatTheLockWasTakenAway(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		err := a.Do(within(t), "door", time.Minute, func(ctx context.Context, _ fsm.Token) error {
			_, err := b.ForceRelease(ctx, "door")
			return err
		})
		if !errors.Is(err, ErrNotHeld) || errors.Is(err, ErrLost) {
			t.Errorf("Do has returned %v", err)
		}
	})
}

// The caller's context governs the waiting and the work. The giving back it does not.
func TestDoGivesBackAfterACancellationAndAPanic(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		ctx, cancel := context.WithCancel(within(t))
		err := a.Do(ctx, "door", time.Minute, func(ctx context.Context, _ fsm.Token) error {
			cancel()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if err != context.Canceled {
			t.Errorf("Do has returned %v", err)
		}
		if !free(t, b, "door") {
			t.Error("the lock was not given back after a cancellation")
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = a.Do(within(t), "door", time.Minute, func(context.Context, fsm.Token) error {
				panic("work")
			})
		}()
		if !free(t, b, "door") {
			t.Error("the lock was not given back after a panic")
		}
	})
}

func TestDoRunsNothingWithoutTheLock(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		lock(t, a, "door", time.Minute)
		ctx, cancel := context.WithTimeout(within(t), time.Second)
		defer cancel()
		ran := false
		err := b.Do(ctx, "door", time.Minute, func(context.Context, fsm.Token) error {
			ran = true
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) || ran {
			t.Errorf("Do has returned %v; it has run the work: %v", err, ran)
		}
	})
}

func TestCloseEndsTheContextOfADo(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		k := c.client(t, "A")
		err := k.Do(within(t), "door", time.Minute, func(ctx context.Context, _ fsm.Token) error {
			k.Close()
			<-ctx.Done()
			if cause := context.Cause(ctx); cause != ErrClosed {
				t.Errorf("its context has ended because of %v", cause)
			}
			return nil
		})
		if !errors.Is(err, ErrClosed) {
			t.Errorf("Do has returned %v", err)
		}
	})
}

// kubernetes#44887.
func TestDoDoesNotWaitBeyondTheLeaseForAnAnswer(t *testing.T) {
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		k, start := c.client(t, "A"), time.Now()
		err := k.Do(context.Background(), "door", c.lease(), func(context.Context, fsm.Token) error {
			c.net.set(func(w *wire) { w.cut = true }, both("A", "n1", "n2", "n3")...)
			return nil
		})
		if !errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrNotHeld) {
			t.Errorf("Do has returned %v", err)
		}
		if took := time.Since(start); took != c.lease()*99/100 {
			t.Errorf("it has returned after %v", took)
		}
	})
}
