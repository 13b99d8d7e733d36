package sim

import (
	"fmt"

	"ticketing/fsm/trace"
)

// do carries out one command. The error says why it cannot be.
func (w *World) do(command Command) error {
	w.cause = 0
	switch c := command.(type) {
	case SetNodes, SetSeed, SetManual, SetConfig, SetWithout:
		return nil // known before the start
	case Question:
		w.emit(trace.Event{Kind: trace.KindProse, Text: "? " + c.Text})
		return nil
	case SetNode:
		w.node(c.Node).disk.startFrom(w.config.startState(c))
		w.firstTerm = max(w.firstTerm, c.Term)
		return nil
	case RunFor:
		w.advance(w.now + micros(c.For))
		return nil
	case Until:
		return w.until(c)
	case Connect:
		return w.doConnect(c)
	case Expect:
		return w.expect(c.Cond)
	case At:
		if micros(c.Time) < w.now {
			return fmt.Errorf("%s: that time is over, it is %s", c, w.now)
		}
		w.commands = append(w.commands, c.Command)
		w.pending++
		w.schedule(event{at: micros(c.Time), kind: eventCommand, slot: uint32(len(w.commands) - 1)})
		return nil
	case Acquire:
		return w.doAs(c.Client, command)
	case ReleaseLock:
		return w.doAs(c.Client, command)
	case Extend:
		return w.doAs(c.Client, command)
	case Write:
		return w.doAs(c.Client, command)
	case Read:
		return w.doAs(c.Client, command)
	case SetResource:
		w.setResource(c)
		return nil
	case ClientDo:
		return w.doAs(c.Client, command)
	case Deliver:
		return w.doDeliver(c)
	case SetDisk, SetClock, SetNetwork:
		return w.doSet(c)
	case ReadTable:
		w.doRead(c)
		return nil
	case Transfer:
		w.doTransfer(c)
		return nil
	case Compact:
		w.doSnapshot(c)
		return nil
	case Change:
		return w.doChange(c)
	case Timeout, Beat, Propose, Pause, Suspend, Resume, Crash, Restart:
		return w.doNode(c)
	case Strike, On, Recover, relief:
		return w.doStrike(c)
	}
	return w.doNetwork(command)
}

// doInTime carries out the nth scheduled command. One that is impossible ends the run.
func (w *World) doInTime(nth int) {
	err := w.doScheduled(w.commands[nth])
	switch {
	case err == nil || w.failure != nil:
	case w.lenient != nil:
		*w.lenient = append(*w.lenient, nth)
	default:
		w.failure = err
		w.halted = true
	}
}

// doScheduled carries out a command at its time. It cannot wait.
func (w *World) doScheduled(command Command) error {
	c, ok := command.(Connect)
	if !ok {
		return w.do(command)
	}
	w.cause = 0
	w.traceCommand(c)
	w.connect(c)
	return nil
}

func (w *World) doAs(name Actor, c Command) error {
	w.steps++
	w.doClient(w.client(name), c)
	return nil
}

// doNetwork cuts, heals, holds and releases links.
func (w *World) doNetwork(command Command) error {
	w.traceCommand(command)
	switch c := command.(type) {
	case Cut:
		w.counters[countCuts]++
		for i, group := range c.Groups {
			for j, other := range c.Groups {
				if i != j {
					w.setCut(group, other, true)
				}
			}
		}
	case CutOne:
		w.counters[countCuts]++
		w.setCut([]Actor{c.From}, []Actor{c.To}, true)
	case Isolate:
		w.counters[countCuts]++
		me := []Actor{NodeActor(c.Node)}
		for _, n := range w.nodes {
			if n.id != c.Node {
				w.setCut(me, []Actor{n.name}, true)
				w.setCut([]Actor{n.name}, me, true)
			}
		}
	case Heal:
		w.setCut([]Actor{c.From}, []Actor{c.To}, false)
	case Hold:
		w.setHold(c.Messages, !c.Again)
	default:
		return fmt.Errorf("not supported yet: %s", command)
	}
	return nil
}

// setCut cuts or heals all links between two groups, in one direction.
func (w *World) setCut(from, to []Actor, cut bool) {
	for _, a := range from {
		for _, b := range to {
			for i := range w.links {
				for j := range w.links[i] {
					if w.isActor(int32(i), a) && w.isActor(int32(j), b) {
						w.links[i][j].cut = cut
					}
				}
			}
		}
	}
}

// doDeliver delivers, loses or copies messages by hand.
func (w *World) doDeliver(c Deliver) error {
	for {
		slots := w.selected(c.Messages)
		nth := max(c.Nth, 1) - 1
		if nth >= len(slots) {
			if c.All {
				return nil
			}
			return fmt.Errorf("%s: %d such messages are in flight", c, len(slots))
		}
		w.cause = 0
		switch c.Verb {
		case "drop":
			w.discard(slots[nth], "dropped")
		case "duplicate":
			f := w.flights[slots[nth]]
			w.duplicate(&f)
		default:
			w.deliver(slots[nth])
		}
		if !c.All || w.halted {
			return nil
		}
	}
}

// doSet changes disks, clocks and links.
func (w *World) doSet(command Command) error {
	started := w.nodes[0].boots > 0
	switch c := command.(type) {
	case SetNetwork:
		for i := range w.links {
			for j := range w.links[i] {
				if w.isActor(int32(i), c.From) && w.isActor(int32(j), c.To) {
					w.links[i][j].set(c.LinkSpec)
				}
			}
		}
	case SetClock:
		w.setClock(c, started)
	case SetDisk:
		if c.Do != "" {
			w.traceCommand(c)
		}
		return w.everyNode(c.Node, func(n *node) error { return w.setDisk(n, c) })
	}
	return nil
}

func (l *link) set(s LinkSpec) {
	if s.DelaySet {
		l.delayMin, l.delayMax = micros(s.DelayMin), micros(s.DelayMax)
	}
	if s.TailSet {
		l.tailPPM, l.tail = s.TailPPM, micros(s.Tail)
	}
	if s.LossPPM != nil {
		l.lossPPM = *s.LossPPM
	}
	if s.DuplicatePPM != nil {
		l.duplicatePPM = *s.DuplicatePPM
	}
}
