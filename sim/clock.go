package sim

import (
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// clock is one actor's own monotonic clock: a straight line from the last change on. Rates are
// integers, in parts per million of true time, so that every machine computes the same. Its wall
// clock goes with it and is set besides; only a mistake that somebody planted reads that one.
type clock struct {
	fromTrue  trace.Time
	fromLocal raft.Time
	rate      int64 // 1,000,000 is true, 0 has stopped: what the faults below come to

	own      int64      // the rate of the oscillator that drives it
	slew     int64      // by so much more or less it runs while it is being corrected
	sleeping bool       // its machine is suspended, and it stands
	slept    trace.Time // since when
	slewed   uint32     // which slew this is; the end of an earlier one does not end it
	wander   wander
	timers   lateTimers
	wall     trace.Time // by how much the wall clock was set, and went on while this one slept
	strobe   strobe
}

const trueRate = 1_000_000

func newClock() clock { return clock{rate: trueRate, own: trueRate} }

// at is what the clock reads at true time t, not before the last change.
func (c *clock) at(t trace.Time) raft.Time {
	d := int64(t - c.fromTrue)
	if c.rate == trueRate {
		return c.fromLocal + raft.Time(d)
	}
	// d × rate ÷ 1,000,000, in two parts that do not overflow in a thousand years.
	return c.fromLocal + raft.Time(d/trueRate*c.rate+d%trueRate*c.rate/trueRate)
}

// when is the first true time at which the clock reads at least local; false if it never will.
func (c *clock) when(local raft.Time) (trace.Time, bool) {
	d := int64(local - c.fromLocal)
	if d <= 0 {
		return c.fromTrue, true
	}
	if c.rate <= 0 {
		return 0, false
	}
	if c.rate == trueRate {
		return c.fromTrue + trace.Time(d), true
	}
	whole, rest := d/c.rate, d%c.rate
	return c.fromTrue + trace.Time(whole*trueRate+(rest*trueRate+c.rate-1)/c.rate), true
}

// setRate bends the line at true time t. What the clock reads does not jump.
func (c *clock) setRate(t trace.Time, rate int64) {
	c.fromLocal, c.fromTrue = c.at(t), t
	c.rate = rate
}

// bend is setRate to what the oscillator, a slew and a suspended machine come to.
func (c *clock) bend(t trace.Time) {
	rate := int64(0)
	if c.own > 0 && !c.sleeping {
		rate = max(c.own+c.slew, 1) // both may be extreme, and it does not go back
	}
	c.setRate(t, rate)
}

// sleep and wake are a suspended machine's clocks: this one stands still, and the wall clock, which a
// battery drives, goes on.
func (c *clock) sleep(t trace.Time) {
	c.sleeping, c.slept = true, t
	c.bend(t)
}

func (c *clock) wake(t trace.Time) {
	if !c.sleeping {
		return
	}
	c.wall += t - c.slept
	c.sleeping = false
	c.bend(t)
}

// wallAt is what the wall clock reads at true time t. Until somebody sets it, that is what the other
// one reads.
func (c *clock) wallAt(t trace.Time) trace.Time {
	reads := trace.Time(c.at(t)) + c.wall + c.strobe.at(t)
	if c.sleeping {
		reads += t - c.slept
	}
	return reads
}
