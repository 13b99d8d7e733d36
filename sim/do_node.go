package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file is what is done to servers and their disks.

// doNode is what is done to a server's process.
func (w *World) doNode(command Command) error {
	switch c := command.(type) {
	case Crash:
		return w.everyNode(c.Node, func(n *node) error { return w.doCrash(n, c) })
	case Restart:
		return w.everyNode(c.Node, func(n *node) error { return w.doRestart(n, c) })
	}
	n, command := w.runningNode(command)
	if n == nil {
		return fmt.Errorf("%s: that node is down, or paused", command)
	}
	switch c := command.(type) {
	case Timeout:
		w.fire(n, true)
	case Beat:
		w.fire(n, false)
	case Pause:
		w.counters[countPauses]++
		w.pause(n)
	case Suspend:
		w.suspend(n, c.ClockOn)
	case Resume:
		if n.paused {
			w.resume(n)
		}
	case Propose:
		if !w.lateTimer(n) {
			return nil
		}
		w.traceCommand(c)
		w.tick(n)
		n.replica.Request(fsm.Request{Kind: fsm.Noop, Text: c.Text})
		w.step(n, nil)
	}
	return nil
}

func (w *World) doRestart(n *node, c Restart) error {
	switch {
	case n.joins && n.boots == 0 && c.Node == Everyone:
		return nil
	case n.disk.lost && c.Node == Everyone:
		return nil
	case n.disk.lost:
		return fmt.Errorf("%s: its disk is lost, and with it what it has promised; add another server in its place", c)
	case n.joins && n.boots == 0:
		return fmt.Errorf("%s: it has not been added", c)
	case !n.alive:
		w.counters[countRestarts]++
		w.cause = 0
		return w.boot(n, trace.KindRestart)
	case c.Node == Everyone:
		return nil
	}
	return fmt.Errorf("%s: it is running", c)
}

// runningNode returns the node that a command is about if it can take it: a paused one only takes
// resume.
func (w *World) runningNode(command Command) (*node, Command) {
	var id raft.ServerID
	resume := false
	switch c := command.(type) {
	case Timeout:
		id = c.Node
	case Beat:
		id = c.Node
	case Pause:
		id = c.Node
	case Suspend:
		id = c.Node
	case Resume:
		id, resume = c.Node, true
	case Propose:
		id = c.Node
	}
	n := w.node(id)
	if n == nil || !n.alive || n.paused && !resume {
		return nil, command
	}
	return n, command
}

func (w *World) everyNode(name Actor, do func(*node) error) error {
	if name != Everyone {
		return do(w.node(name.Node()))
	}
	for _, n := range w.nodes {
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) setDisk(n *node, c SetDisk) error {
	d := &n.disk
	if c.SyncSet {
		d.syncMin, d.syncMax = micros(c.SyncMin), micros(c.SyncMax)
	}
	switch c.Do {
	case "stall":
		d.stalled = true
	case "reorder":
		d.reorder = true
	case "fail":
		d.failNext = true
	case "ok":
		d.stalled, d.failNext, d.reorder = false, false, false
		for n.alive && len(d.unsynced) > 0 && !w.halted {
			w.cause = 0
			w.complete(n, 0)
		}
		if n.alive && d.files.saving != nil && !w.halted {
			w.cause = 0
			w.completeFile(n)
		}
	case "finish":
		if c.File {
			return w.finishByHand(n, c)
		}
		nth := max(c.Nth, 1) - 1
		if !n.alive || nth >= len(d.unsynced) || d.unsynced[nth].done {
			return fmt.Errorf("%s: %d writes are unfinished", c, len(d.unsynced))
		}
		w.complete(n, nth)
	}
	return nil
}

// instruct gives a server an order that it may refuse, and says why it does, as one that does not run
// does.
func (w *World) instruct(
	c Command, id raft.ServerID, op string, refused counter, give func(*node) error,
) {
	w.steps++
	n := w.node(id)
	w.lateTimer(n)
	w.traceCommand(c)
	refuse := func(why string) {
		w.counters[refused]++
		if w.trace != nil {
			w.emitNode(n, trace.Event{Kind: trace.KindReply, Text: why, Client: &trace.ClientRecord{
				Op: op, Server: string(n.name), Status: stateRefused,
			}})
		}
	}
	if !n.alive || n.paused {
		refuse("it does not run")
		return
	}
	w.tick(n)
	if err := give(n); err != nil {
		refuse(err.Error())
	}
	w.step(n, nil)
}
