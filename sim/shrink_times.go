package sim

import (
	"cmp"
	"slices"
	"time"
)

// This file makes times short and round.

// trim ends a scenario when it breaks: what comes later does not matter.
func (m *shrinker) trim() {
	end := duration(m.at)
	var lines []Command
	scheduled := false
	for _, c := range m.lines {
		at, isAt := c.(At)
		scheduled = scheduled || isAt
		switch {
		case isAt && at.Time > end:
		case !isAt && scheduled: // the search's runs end so: all is scheduled, and then they wait
		default:
			lines = append(lines, c)
		}
	}
	if !scheduled || len(lines) == len(m.lines) {
		m.trimRuns()
		return
	}
	if !m.try(lines) && !m.try(append(lines, RunFor{For: roundUp(end, 100*time.Millisecond)})) {
		m.try(append(lines, RunFor{For: end}))
	}
	m.trimRuns()
}

// trimRuns makes each run as short as it can be, in round numbers.
func (m *shrinker) trimRuns() {
	for i := range m.lines {
		for _, unit := range units {
			c, ok := m.lines[i].(RunFor)
			for ok && c.For > unit {
				shorter := max(roundUp(c.For/2, unit), unit)
				if shorter >= c.For || !m.replace(i, RunFor{For: shorter}, m.try) {
					break
				}
				c.For = shorter
			}
		}
	}
}

// units are what times are rounded to, the roundest first.
var units = []time.Duration{time.Second, 100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond}

func roundUp(d, unit time.Duration) time.Duration { return (d + unit - 1) / unit * unit }

// roundTimes rounds the times of lines and the lengths of leases, all together if that goes, and else
// one by one.
func (m *shrinker) roundTimes() {
	m.inOrder()
	for _, unit := range units {
		lines := slices.Clone(m.lines)
		for i := range lines {
			lines[i] = rounded(lines[i], unit)
		}
		if m.try(lines) {
			return
		}
		for i := range m.lines {
			m.replace(i, rounded(m.lines[i], unit), m.try)
		}
	}
}

// rounded is a line whose times are multiples of unit, and not 0 where 0 is no time.
func rounded(c Command, unit time.Duration) Command {
	switch c := c.(type) {
	case At:
		return At{Time: c.Time.Round(unit), Command: rounded(c.Command, unit)}
	case Acquire:
		c.Lease = max(c.Lease.Round(unit), unit)
		return c
	case Extend:
		c.Lease = max(c.Lease.Round(unit), unit)
		return c
	case RunFor:
		return RunFor{For: roundUp(c.For, unit)}
	case SetNetwork:
		return c.rounded(unit)
	case SetClock:
		if share := int64(unit/time.Millisecond) * 1000; c.RatePPM > 0 { // 1, 0.1, 0.01 or 0.001 of true time
			c.RatePPM = max((c.RatePPM+share/2)/share*share, share)
		}
		return c
	}
	return c
}

// rounded rounds shares to as many percent as the unit is milliseconds, or less.
func (c SetNetwork) rounded(unit time.Duration) SetNetwork {
	most := int(min(unit, 10*time.Millisecond)/time.Millisecond) * 10_000
	round := func(ppm int) int { return max((ppm+most/2)/most*most, most) }
	for _, share := range []**int{&c.LossPPM, &c.DuplicatePPM} {
		if *share != nil {
			ppm := round(**share)
			*share = &ppm
		}
	}
	if c.TailSet {
		c.TailPPM, c.Tail = round(c.TailPPM), max(c.Tail.Round(unit), c.DelayMax)
	}
	return c
}

// inOrder lets lines stand in the order of their times, if it all is scheduled.
func (m *shrinker) inOrder() {
	early := func(a, b Command) int { return cmp.Compare(timeOf(a), timeOf(b)) }
	first := slices.IndexFunc(m.lines, isAt)
	if first < 0 {
		return
	}
	last := first
	for last < len(m.lines) && isAt(m.lines[last]) {
		last++
	}
	if lines := slices.Clone(m.lines); !slices.IsSortedFunc(lines[first:last], early) {
		slices.SortStableFunc(lines[first:last], early)
		m.try(lines)
	}
}

func isAt(c Command) bool { _, ok := c.(At); return ok }

// closeGaps lets what follows a wait follow at once, or sooner.
func (m *shrinker) closeGaps() {
	m.inOrder()
	before := time.Duration(0)
	for i := range m.lines {
		at, ok := m.lines[i].(At)
		if !ok {
			continue
		}
		for _, left := range []time.Duration{0, 10, 20, 50, 100, 200, 500, 1000, 2000} {
			sooner := at.Time - before - left*time.Millisecond
			if sooner <= 0 || m.try(hurried(m.lines, at.Time, sooner)) {
				break
			}
		}
		before = timeOf(m.lines[i])
	}
}

// hurried is lines with what happens from a time on so much sooner.
func hurried(lines []Command, from, by time.Duration) []Command {
	lines = slices.Clone(lines)
	for i, c := range lines {
		switch c := c.(type) {
		case At:
			if c.Time >= from {
				lines[i] = At{Time: c.Time - by, Command: c.Command}
			}
		case RunFor:
			if c.For > by && isAt(lines[max(i-1, 0)]) { // it goes on behind all that
				lines[i] = RunFor{For: c.For - by}
			}
		}
	}
	return lines
}
