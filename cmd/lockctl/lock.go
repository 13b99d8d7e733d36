package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"ticketing/rpc"
)

// lock runs a command while it holds a lock. A signal that comes before the lock is acquired means
// that the command never starts; later ones are passed on to it.
func (c *command) lock(ctx context.Context, k *rpc.Client) (int, error) {
	l, err := c.acquire(ctx, k)
	if err != nil {
		return exitNotAcquired, err
	}
	code, err := c.runHolding(ctx, l)
	if err != nil && code == 0 {
		code = exitFailed
	}
	unlock, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	if lost := l.Unlock(unlock); lost != nil && err == nil {
		// The command's code is passed on all the same; whether it was alone is another question.
		fmt.Fprintln(c.stderr, "lockctl: giving the lock back:", lost)
	}
	return code, err
}

// runHolding runs the command until it ends or the lock does.
func (c *command) runHolding(ctx context.Context, l *rpc.Lock) (int, error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if ctx.Err() != nil {
		return exitNotAcquired, errors.New("a signal came before the command was started")
	}
	child := exec.Command(c.argv[0], c.argv[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, c.stdout, c.stderr
	// They come last: of two values for a name the last counts, and this command may itself run
	// under another lock.
	child.Env = append(os.Environ(),
		"LOCK_KEY="+c.key,
		"LOCK_TOKEN="+strconv.FormatUint(uint64(l.Token()), 10),
		"LOCK_LEASE_MS="+strconv.FormatInt(c.lease.Milliseconds(), 10))
	if err := child.Start(); err != nil {
		return exitFailed, err
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	grace := min(c.lease/5, 10*time.Second)
	warn := time.NewTimer(time.Until(l.Deadline()) - grace)
	defer warn.Stop()
	for {
		select {
		case err := <-ended:
			return exitCode(err)
		case s := <-signals:
			c.signal(child, s)
		case <-warn.C:
			fmt.Fprintln(c.stderr, "lockctl: the lease is running out, stopping the command")
			c.signal(child, syscall.SIGTERM)
		case <-l.Done():
			c.signal(child, syscall.SIGKILL)
			return exitCode(<-ended)
		}
	}
}

// signal sends the command a signal, unless it has ended in this moment.
func (c *command) signal(child *exec.Cmd, s os.Signal) {
	if err := child.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		fmt.Fprintf(c.stderr, "lockctl: sending %v to the command: %v\n", s, err)
	}
}

// exitCode passes on how the command has ended. One that a signal has ended has the code that a
// shell would give it.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
