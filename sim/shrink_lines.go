package sim

import (
	"fmt"
	"slices"
	"time"
)

// This file takes lines away: what is left is what it takes to break the invariant.

// dropLines takes away lines until each that is left is needed: first all of a kind together, then
// what ends something together with what began it, then one by one, then two by two.
func (m *shrinker) dropLines() {
	m.reduce(m.unitsBy(subject), m.try)
	m.reduce(m.spans(), m.try)
	m.reduce(m.singles(), m.try)
	if len(m.singles()) > fewLines {
		return
	}
	m.dropPairs()
}

// dropUnderAnySeed takes away lines that cannot go under the seed that there is. It takes many runs and
// so comes last, when there are few lines; what goes then may let others go.
func (m *shrinker) dropUnderAnySeed() {
	if len(m.singles()) <= fewLines {
		m.reduce(m.spans(), m.tryAnySeed)
		m.reduce(m.singles(), m.tryAnySeed)
	}
}

// fewLines is up to how many lines more is tried with each: that two go together, whose number grows
// with the square, or that one goes under another seed.
const fewLines = 24

// singles makes a unit of each line behind the set-up.
func (m *shrinker) singles() [][]int {
	n := 0
	return m.unitsBy(func(Command) string { n++; return fmt.Sprint(n) })
}

// reduce takes away as many of the units, which are indices of lines, as it can: halves first, then
// quarters, and so on down to one, until none can go alone (Zeller's ddmin, without its tests of a
// part alone, which seldom gain anything here).
func (m *shrinker) reduce(units [][]int, try func([]Command) bool) {
	base, left := m.lines, units
	for size := (len(left) + 1) / 2; size >= 1; {
		before := len(left)
		for i := 0; i < len(left); {
			end := min(i+size, len(left))
			rest := slices.Concat(left[:i], left[end:])
			if try(without(base, units, rest)) {
				left = rest
			} else {
				i = end
			}
		}
		if size > 1 || len(left) == before {
			size /= 2
		}
	}
}

// without is the lines of base but for those of the units that are not left.
func without(base []Command, units, left [][]int) []Command {
	gone := make([]bool, len(base))
	for _, u := range units {
		for _, i := range u {
			gone[i] = true
		}
	}
	for _, u := range left {
		for _, i := range u {
			gone[i] = false
		}
	}
	var lines []Command
	for i, c := range base {
		if !gone[i] {
			lines = append(lines, c)
		}
	}
	return lines
}

// unitsBy makes a unit of all lines behind the set-up that have the same key, in the order of their
// first lines.
func (m *shrinker) unitsBy(key func(Command) string) [][]int {
	var units [][]int
	known := map[string]int{}
	for i, c := range m.lines {
		if !endsSetUp(c) {
			continue
		}
		k := key(c)
		u, ok := known[k]
		if !ok {
			u = len(units)
			known[k] = u
			units = append(units, nil)
		}
		units[u] = append(units[u], i)
	}
	return units
}

// spans makes a unit of each line, and of what begins and what ends it: a crash without the restart
// behind it goes well, but a restart of a server that runs is a mistake.
func (m *shrinker) spans() [][]int {
	order := slices.Collect(func(yield func(int) bool) {
		for i, c := range m.lines {
			if endsSetUp(c) && !yield(i) {
				return
			}
		}
	})
	slices.SortStableFunc(order, func(a, b int) int { return int(timeOf(m.lines[a]) - timeOf(m.lines[b])) })
	var units [][]int
	begun := map[string]int{}
	for _, i := range order {
		what, ends := spanOf(m.lines[i])
		if u, ok := begun[what]; ends && ok {
			units[u] = append(units[u], i)
			continue
		}
		if what != "" {
			begun[what] = len(units)
		}
		units = append(units, []int{i})
	}
	return units
}

// timeOf is when a line is carried out, if it says so.
func timeOf(c Command) time.Duration {
	if at, ok := c.(At); ok {
		return at.Time
	}
	return 0
}

// spanOf names what a line begins or ends, "" if neither.
func spanOf(c Command) (what string, ends bool) {
	if at, ok := c.(At); ok {
		c = at.Command
	}
	switch c := c.(type) {
	case Crash:
		return "down " + string(c.Node), false
	case Restart:
		return "down " + string(c.Node), true
	case Pause:
		return fmt.Sprint("pause ", c.Node), false
	case Suspend:
		return fmt.Sprint("pause ", c.Node), false
	case Resume:
		return fmt.Sprint("pause ", c.Node), true
	case SetDisk:
		return "disk " + string(c.Node), c.Do == "ok"
	case Isolate, Cut, CutOne:
		return "cut", false
	case Heal:
		return "cut", true
	case Hold:
		return fmt.Sprint("hold ", c.Messages), c.Again
	case ClientDo:
		if c.Do == "pause" || c.Do == "suspend" || c.Do == "resume" {
			return "client " + string(c.Client), c.Do == "resume"
		}
	}
	return "", false
}

// dropPairs takes away two lines neither of which can go alone.
func (m *shrinker) dropPairs() {
	for m.dropPair() {
	}
}

func (m *shrinker) dropPair() bool {
	units := m.singles()
	for i := range units {
		for j := range i {
			rest := slices.Concat(units[:j], units[j+1:i], units[i+1:])
			if m.try(without(m.lines, units, rest)) {
				return true
			}
		}
	}
	return false
}
