package main

import (
	"errors"
	"fmt"

	"ticketing/rpc"
)

// advised says what to do about an error, where the service's words do not.
func (c *command) advised(err error) error {
	var not *rpc.NotLeaderError // it says enough
	if errors.As(err, &not) {
		return err
	}
	for _, a := range []struct {
		is  error
		say string
	}{
		{rpc.ErrTokenAhead, "lockctl get " + c.key + " tells the token; if this one was given out " +
			"here, the service has lost what it knew"},
		{rpc.ErrExpiring, "stop what it protects, and acquire it anew"},
		{rpc.ErrForgotten, "lockctl get tells who holds the key now; to ask again does no harm"},
		{rpc.ErrQueueFull, "try again later"},
		{rpc.ErrTableFull, "release locks that nobody needs, lockctl list shows all"},
		{rpc.ErrNumberReused, "another program uses this one's session: run lockctl again"},
		{rpc.ErrNumberClosed, "another program uses this one's session: run lockctl again"},
		{rpc.ErrNumberTooFar, "another program uses this one's session: run lockctl again"},
		{rpc.ErrChanging, "try again later, lockctl member list shows how far each server is"},
		{rpc.ErrTransfer, "lockctl status tells how the servers are"},
		{rpc.ErrNoLeader, "lockctl status tells which servers answer"},
	} {
		if errors.Is(err, a.is) {
			return fmt.Errorf("%w; %s", err, a.say)
		}
	}
	return err
}
