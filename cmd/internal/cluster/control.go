package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"ticketing/raft"
)

// Kill ends a server with SIGKILL and waits for its end.
func (c *Cluster) Kill(id raft.ServerID) error {
	p := c.process(id)
	if err := p.kill(); err != nil {
		return fmt.Errorf("killing server %d: %w", id, err)
	}
	<-p.done
	return nil
}

// Restart starts a server that has ended, and waits until it listens.
func (c *Cluster) Restart(ctx context.Context, id raft.ServerID) error {
	select {
	case <-c.process(id).done:
	default:
		return fmt.Errorf("restarting server %d: it still runs", id)
	}
	return c.begin(ctx, id)
}

// begin starts a server at the address that it has, and waits until it listens.
func (c *Cluster) begin(ctx context.Context, id raft.ServerID) error {
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		err := c.launch(id)
		if err == nil {
			err = c.ready(ctx, id)
		}
		if !errors.Is(err, errPortTaken) || pause > 2*time.Second {
			return err
		}
		select { // whoever has the port may give it back
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// Signal sends a signal to a server's process group.
func (c *Cluster) Signal(id raft.ServerID, signal syscall.Signal) error {
	p := c.process(id)
	if signal == syscall.SIGKILL || signal == syscall.SIGTERM || signal == syscall.SIGINT {
		p.expect(signal == syscall.SIGKILL)
	}
	return p.signal(signal)
}

// Pause stops a server where it is, until Resume: its clock goes on, and it does not. On Linux it
// stands still when Pause returns.
func (c *Cluster) Pause(id raft.ServerID) error {
	if err := c.Signal(id, syscall.SIGSTOP); err != nil {
		return err
	}
	standsStill(c.process(id).group)
	return nil
}

// Resume lets a paused server go on.
func (c *Cluster) Resume(id raft.ServerID) error { return c.Signal(id, syscall.SIGCONT) }

// Say writes a line to a server's standard input. lockd reads none.
func (c *Cluster) Say(id raft.ServerID, line string) error {
	if _, err := io.WriteString(c.process(id).stdin, line+"\n"); err != nil {
		return fmt.Errorf("telling server %d %q: %w", id, line, err)
	}
	return nil
}

// Exited is closed when the server, as it was last started, has ended.
func (c *Cluster) Exited(id raft.ServerID) <-chan struct{} { return c.process(id).done }

// ExitError waits for a server's end and says how it ended: nil is exit code 0. As the caller knows
// it then, Stop says nothing about it.
func (c *Cluster) ExitError(id raft.ServerID) error {
	p := c.process(id)
	<-p.done
	p.expect(true)
	return p.err
}

// Stop ends all servers with SIGTERM. It returns an error if one that was not killed does not end
// with exit code 0, or had ended by itself before.
func (c *Cluster) Stop() error {
	var errs []error
	for _, id := range c.IDs() {
		p := c.process(id)
		select {
		case <-p.done:
			if !p.isExpected() {
				errs = append(errs, c.failure(id, ErrUnexpectedEnd))
			}
		default:
			errs = append(errs, c.Signal(id, syscall.SIGTERM), c.Resume(id))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, id := range c.IDs() {
		p := c.process(id)
		select {
		case <-p.done:
			if p.err != nil && !p.isKnown() {
				errs = append(errs, c.failure(id, p.err))
			}
		case <-ctx.Done():
			errs = append(errs, c.failure(id, errors.New("it does not stop on SIGTERM")))
		}
	}
	return errors.Join(append(errs, c.abandon())...)
}

// abandon kills what still runs and closes the proxies.
func (c *Cluster) abandon() error {
	var errs []error
	for _, id := range c.IDs() {
		if p := c.process(id); p != nil {
			errs = append(errs, p.kill())
			<-p.done
		}
	}
	if c.links != nil {
		c.links.close()
	}
	return errors.Join(errs...)
}
