package sim

import (
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// clock is one actor's own monotonic clock: a straight line from the last change on. Rates are
// integers, in parts per million of true time, so that every machine computes the same.
type clock struct {
	fromTrue  trace.Time
	fromLocal raft.Time
	rate      int64      // 1,000,000 is true, 0 has stopped
	wall      trace.Time // how far its wall clock was moved; nothing in the product reads a wall clock
}

const trueRate = 1_000_000

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
