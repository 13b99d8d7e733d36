package sim

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"ticketing/fsm/trace"
)

// This file carries out a scenario line by line.

// play carries out the lines, in order.
func (w *World) play(s *Scenario, keepGoing bool) error {
	started := false
	var first error
	for i, line := range s.Lines {
		if line.Command == nil {
			if started {
				w.traceProse(line)
			}
			continue
		}
		if !started && endsSetUp(line.Command) {
			started = true
			if err := w.start(); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			w.prosePassed(s.Lines[:i])
		}
		err := w.carryOut(s, line)
		if err != nil && (!keepGoing || w.halted) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	if !started {
		if err := w.start(); err != nil {
			return err
		}
	}
	for w.pending > 0 && w.next(1<<62) {
	}
	if err := w.takeFailure(); err != nil && first == nil {
		first = fmt.Errorf("%s: %w", s.Name, err)
	}
	return first
}

// carryOut does one line, and says where it stands if it failed.
func (w *World) carryOut(s *Scenario, line Line) error {
	err := w.do(line.Command)
	if err == nil {
		err = w.takeFailure()
	}
	if err == nil {
		return nil
	}
	err = s.at(line, err)
	w.traceFailed(line, err)
	return err
}

// takeFailure returns why a run has halted, if it has.
func (w *World) takeFailure() error {
	switch {
	case w.failure != nil:
		return w.failure
	case w.halted:
		return errHalted
	}
	return nil
}

// at adds the file and the line to an error.
func (s *Scenario) at(line Line, err error) error {
	if errors.Is(err, errHalted) {
		return err
	}
	if line.No == 0 {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return fmt.Errorf("%s:%d: %w", cmp.Or(s.File, s.Name+".txt"), line.No, err)
}

// prosePassed repeats the prose that stood before the start, so that a transcript begins with it.
func (w *World) prosePassed(before []Line) {
	for _, line := range before {
		if line.Command == nil {
			w.traceProse(line)
		}
	}
}

func (w *World) traceProse(line Line) {
	if line.Prose != "" {
		w.cause = 0
		w.emit(trace.Event{Kind: trace.KindProse, Text: line.Prose})
	}
}

func (w *World) traceFailed(line Line, err error) {
	if !errors.Is(err, errHalted) {
		w.emit(trace.Event{Kind: trace.KindFailed, Text: err.Error()})
	}
}

// traceCommand is a line that takes effect; what follows from it has it as its cause.
func (w *World) traceCommand(c Command) {
	if w.trace != nil {
		w.cause = w.emit(trace.Event{Kind: trace.KindCommand, Text: c.String()})
	}
}

// defaultWithin is how long until waits when no line says so.
const defaultWithin = 30 * time.Second

// until runs until a condition holds, looking after every event.
func (w *World) until(u Until) error {
	if err := w.await(u); err != nil {
		return err
	}
	w.emit(trace.Event{Kind: trace.KindExpect, Text: u.Cond.String()})
	return nil
}

// await lets the run go on until a condition holds.
func (w *World) await(u Until) error {
	within := u.Within
	if within == 0 {
		within = defaultWithin
	}
	limit := w.now + micros(within)
	for {
		ok, is := w.holds(u.Cond)
		if ok {
			return nil
		}
		if w.next(limit) {
			continue
		}
		if err := w.takeFailure(); err != nil {
			return err
		}
		w.pass(limit)
		return fmt.Errorf("waited %s for %s; %s", within, u.Cond, is)
	}
}

func (w *World) expect(c Cond) error {
	if converged, ok := c.(CondConverged); ok && converged.Within > 0 {
		return w.until(Until{Cond: CondConverged{}, Within: converged.Within})
	}
	ok, is := w.holds(c)
	if !ok {
		return fmt.Errorf("expected %s; %s", c, is)
	}
	w.emit(trace.Event{Kind: trace.KindExpect, Text: c.String()})
	return nil
}
