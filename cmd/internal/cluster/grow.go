package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"ticketing/raft"
)

// Upgrade makes servers run another program when they are started from now on.
func (c *Cluster) Upgrade(binary string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config.Binary = binary
}

// Join starts one more server, which asks the others to let it in, and waits until it listens. It
// returns its number. There can be no proxies: the log has one address of a server for all.
func (c *Cluster) Join(ctx context.Context) (raft.ServerID, error) {
	if c.links != nil {
		return 0, errors.New("cluster: a server cannot join one with proxies")
	}
	for range attempts {
		free, err := freeAddrs(1)
		if err != nil {
			return 0, err
		}
		id := c.enroll(free[1])
		if err = c.launch(id); err == nil {
			err = c.ready(ctx, id)
		}
		if err == nil {
			return id, nil
		}
		c.mu.Lock()
		c.ids = c.ids[:len(c.ids)-1]
		c.mu.Unlock()
		if !errors.Is(err, errPortTaken) {
			return 0, err
		}
	}
	return 0, fmt.Errorf("a server joins: %w", errPortTaken)
}

// Enter starts a server for which Config.Later has kept a place, with nothing on its disk, and
// waits until it listens. Whoever calls it has the others let it in.
func (c *Cluster) Enter(ctx context.Context, id raft.ServerID) error {
	if c.process(id) != nil || c.Addr(id) == "" {
		return fmt.Errorf("cluster: there is no place for a server %d that was not there yet", id)
	}
	c.mu.Lock()
	c.joined[id] = true
	c.mu.Unlock()
	if err := c.begin(ctx, id); err != nil {
		if p := c.process(id); p != nil {
			err = errors.Join(err, p.kill())
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, id)
	slices.Sort(c.ids)
	return nil
}

// enroll gives a new server its number: one that none has had.
func (c *Cluster) enroll(addr string) raft.ServerID {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := raft.ServerID(len(c.addrs) + 1)
	c.ids, c.addrs[id], c.joined[id] = append(c.ids, id), addr, true
	return id
}

// Leave stops a server with SIGTERM, for good. The cluster should have removed it before.
func (c *Cluster) Leave(id raft.ServerID) error {
	if err := c.Signal(id, syscall.SIGTERM); err != nil {
		return err
	}
	p := c.process(id)
	<-p.done
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = slices.DeleteFunc(c.ids, func(other raft.ServerID) bool { return other == id })
	return p.err
}
