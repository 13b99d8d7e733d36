package sim

import (
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file is what goes wrong with a clock as time goes by: it wanders, it is slewed, its wall clock
// is set to and fro, its timers are late.

// wander is an oscillator whose rate goes up and down a little at a time, as with the temperature.
type wander struct {
	most  int64 // how far from the true rate it goes, in parts per million; 0 if it does not wander
	every trace.Time
	steps uint64 // since the run began: the draws' ordinal
	begun uint32 // which wandering this is; the steps of an earlier one are over
}

// strobe is a wall clock that is set forwards and back, again and again.
type strobe struct {
	by, every trace.Time
	from, to  trace.Time
}

// at is how far the wall clock is ahead at true time t.
func (s *strobe) at(t trace.Time) trace.Time {
	if t < s.from || t >= s.to || (t-s.from)/s.every%2 == 1 {
		return 0
	}
	return s.by
}

// lateTimers are an operating system's that fire only on the ticks of a coarse clock, or when the
// process has its turn. Readings are exact all the same.
type lateTimers struct {
	coarse raft.Time  // between two ticks; 0 for none
	late   trace.Time // most timers fire up to so much late, and some later; 0 for none
	set    uint64     // since the run began: the draws' ordinal
}

// slow reports whether timers may fire later than they should.
func (l *lateTimers) slow() bool { return l.coarse != 0 || l.late != 0 }

// tick is the first tick of the clock at or behind a reading.
func (l *lateTimers) tick(local raft.Time) raft.Time {
	if l.coarse == 0 || local%l.coarse == 0 {
		return local
	}
	return local + l.coarse - local%l.coarse
}

// longTail bounds how often a timer's lateness doubles.
const longTail = 4

// lateness draws how late the next timer is. Every second one is up to twice as late as late says,
// every fourth up to four times, and so on: lateness has a long tail.
func (l *lateTimers) lateness(seed, actor uint64) trace.Time {
	if l.late == 0 {
		return 0
	}
	l.set++
	bits := draw(seed, streamTimer, actor, 0, l.set)
	most := l.late
	for i := 0; i < longTail && bits>>i&1 == 1; i++ {
		most *= 2
	}
	return trace.Time(below(scramble(bits), int64(most)+1))
}

// clockEvent says which of a clock's own events this is.
const (
	clockSlewEnds uint32 = iota
	clockWanders
)

// clockOf returns an actor's clock.
func (a *actor) clockOf() *clock {
	if a.node != nil {
		return &a.node.clock
	}
	return &a.client.clock
}

// setClock carries out a line about a clock.
func (w *World) setClock(c SetClock, started bool) {
	if started {
		w.traceCommand(c)
	}
	index := int32(w.find(c.Actor))
	k := w.actors[index].clockOf()
	switch {
	case c.Stop:
		w.counters[countClockStops]++
		k.own, k.slew, k.wander.most = 0, 0, 0
	case c.RatePPM != 0:
		k.own, k.slew, k.wander.most = c.RatePPM, 0, 0
	}
	if c.RatePPM != 0 && c.RatePPM != trueRate {
		w.counters[countClockDrifts]++
	}
	k.fromLocal += raft.Time(micros(c.Offset))
	k.setTimers(c)
	if c.Jump != 0 {
		w.counters[countClockJumps]++
		k.wall += micros(c.Jump)
	}
	if c.Slew != 0 {
		w.slewClock(index, c)
	}
	if c.Wander != 0 {
		w.counters[countClockWanders]++
		k.wander = wander{int64(c.Wander), micros(c.Every), k.wander.steps, k.wander.begun + 1}
		w.schedule(event{at: w.now + k.wander.every, kind: eventClock, actor: index, slot: clockWanders, gen: k.wander.begun})
	}
	if c.Strobe != 0 {
		w.counters[countClockStrobes]++
		k.strobe = strobe{micros(c.Strobe), micros(c.Every), w.now, w.now + micros(c.For)}
	}
	k.bend(w.now)
	w.clockBent(index, started)
}

func (c *clock) setTimers(s SetClock) {
	if s.Coarse != 0 {
		c.timers.coarse = raft.Time(micros(s.Coarse))
	}
	if s.Late != 0 {
		c.timers.late = micros(s.Late)
	}
	if s.Timely {
		c.timers.coarse, c.timers.late = 0, 0
	}
}

// slewClock begins to correct a clock, as NTP does: it runs a little faster or slower until it has
// gained what it is to gain. It never jumps, and that is why it takes long.
func (w *World) slewClock(index int32, c SetClock) {
	w.counters[countClockSlews]++
	k := w.actors[index].clockOf()
	if k.own == 0 {
		return // what stands still is not corrected
	}
	size := raft.Time(micros(c.Slew))
	gains := clock{rate: max(k.own*int64(c.Pace)/trueRate, 1)}
	k.slew = gains.rate
	if size < 0 {
		size, k.slew = -size, -k.slew
	}
	k.slewed++
	takes, _ := gains.when(size)
	w.schedule(event{at: w.now + takes, kind: eventClock, actor: index, slot: clockSlewEnds, gen: k.slewed})
}

// clockEvent is the end of a slew, or the next step of a wandering.
func (w *World) clockEvent(e event) {
	k := w.actors[e.actor].clockOf()
	switch {
	case e.slot == clockSlewEnds && e.gen == k.slewed && k.slew != 0:
		k.slew = 0
	case e.slot == clockWanders && e.gen == k.wander.begun && k.wander.most != 0:
		w.wanderOn(e)
	default:
		return // something else has been said about it since
	}
	k.bend(w.now)
	if w.trace != nil && k.rate > 0 {
		w.traceCommand(SetClock{Actor: w.actors[e.actor].name, RatePPM: k.rate})
	}
	w.clockBent(e.actor, true)
}

// wanderOn moves an oscillator's rate by up to a quarter of how far it may go, up or down.
func (w *World) wanderOn(e event) {
	a := &w.actors[e.actor]
	k := a.clockOf()
	step := k.wander.most / 4
	k.wander.steps++
	bits := draw(w.seed, streamWander, a.key, 0, k.wander.steps)
	k.own += below(bits, 2*step+1) - step
	k.own = min(max(k.own, trueRate-k.wander.most), trueRate+k.wander.most)
	e.at = w.now + k.wander.every
	w.schedule(e)
}

// clockBent sets an actor's timers anew: what was set rests on the old rate.
func (w *World) clockBent(index int32, started bool) {
	w.paceHistory()
	a := &w.actors[index]
	if started && a.node != nil && a.node.alive {
		a.node.timerAt = 0
		a.node.timerGen++
		w.arm(a.node)
	}
	if started && a.client != nil && a.client.open {
		w.armClient(a.client)
	}
}
