package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ticketing/rpc"
)

// lock runs a command while it holds a lock. A signal that comes before the lock is acquired means
// that the command never starts; later ones are passed on to it.
func (c *command) lock(ctx context.Context, k *rpc.Client) (int, error) {
	l, err := c.take(ctx, k)
	if err != nil {
		return 0, err
	}
	code, overrun, err := c.runHolding(ctx, l)
	lost, back := c.giveBack(ctx, l)
	if lost || overrun {
		err = &exitError{exitLost, cmdLost(c.key, code, lost, back)}
		code = exitLost
	} else if back != nil {
		// The command was in time, so its code counts.
		fmt.Fprintln(c.stderr, "lockctl:", back)
	}
	if c.json {
		// Standard output is the command's.
		return code, errors.Join(err, json.NewEncoder(c.stderr).Encode(struct {
			record
			Exit int  `json:"exit"`
			Lost bool `json:"lost"`
		}{c.record(l), code, lost || overrun}))
	}
	return code, err
}

func cmdLost(key string, code int, lost bool, back error) error {
	if lost {
		return fmt.Errorf("%w; the command has exited with %d", back, code)
	}
	return fmt.Errorf("the lease of %q ran out while the command ran; it was stopped in time, and "+
		"has exited with %d", key, code)
}

// runHolding runs the command until it ends or the lock does. Overrun says that it was told to end,
// as the lease was running out.
func (c *command) runHolding(ctx context.Context, l *rpc.Lock) (code int, overrun bool, err error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(heeded(), syscall.SIGTSTP)...)
	defer signal.Stop(signals)
	if ctx.Err() != nil {
		early := errors.New("a signal came before the command was started")
		return 0, false, &exitError{c.conflict, early}
	}
	p, err := start(c.argv, c.environment(l), []*os.File{c.stdin, c.stdout, c.stderr})
	if err != nil {
		return 0, false, err
	}
	defer p.close()
	code, overrun = c.attend(p, l, signals)
	return code, overrun, nil
}

// attend passes signals on to the command, and ends it by the deadline.
func (c *command) attend(p *child, l *rpc.Lock, signals <-chan os.Signal) (code int, overrun bool) {
	grace := min(c.lease/5, 10*time.Second)
	warn := time.NewTimer(time.Until(l.Deadline()) - grace)
	defer warn.Stop()
	over := l.Done()
	say := func(what string) { fmt.Fprintf(c.stderr, "lockctl: the lease of %q %s\n", c.key, what) }
	for {
		select {
		case state := <-p.states:
			if !state.Stopped() {
				return exitCode(state), overrun
			}
			p.stopped(state.StopSignal())
		case s := <-signals:
			if s != syscall.SIGTSTP { // whoever stands still cannot keep the deadline
				p.signal(s.(syscall.Signal))
			}
		case <-p.retry():
			p.resume()
		case <-warn.C:
			if left := time.Until(l.Deadline()) - grace; left > 0 { // it was extended
				warn.Reset(left)
				continue
			}
			overrun = true
			say("is running out; the command is told to end")
			p.signal(syscall.SIGTERM)
			p.signal(syscall.SIGCONT) // one that is stopped would not hear it
		case <-over:
			overrun, over = true, nil
			say("is over; the command is killed")
			p.signal(syscall.SIGKILL)
		}
	}
}

// environment is lockctl's own with what the command is to know about its lock. What an outer lock
// has set there is dropped: of two values for a name, some programs take the first.
func (c *command) environment(l *rpc.Lock) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "LOCK_KEY" || name == "LOCK_TOKEN" || name == "LOCK_LEASE_MS"
	})
	return append(env,
		"LOCK_KEY="+c.key,
		"LOCK_TOKEN="+strconv.FormatUint(uint64(l.Token()), 10),
		"LOCK_LEASE_MS="+strconv.FormatInt(c.leaseMS(), 10))
}

// exitCode passes on how the command has ended, as a shell would.
func exitCode(state syscall.WaitStatus) int {
	if state.Signaled() {
		return exitSignalled + int(state.Signal())
	}
	return state.ExitStatus()
}
