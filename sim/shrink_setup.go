package sim

import (
	"slices"
)

// This file makes the set-up simpler: no drift, no loss, no duplicates, no tails, the usual
// configuration, fewer servers.

// moreSeeds is how many others are tried where a change gives all draws another meaning anyway.
const moreSeeds = 10

// simplify takes set-up lines away, or what they and other lines say.
func (m *shrinker) simplify() {
	m.tryAnySeed(m.plain())
	for i := 0; i < len(m.lines); i++ {
		switch c := m.lines[i].(type) {
		case SetSeed, SetNodes, SetWithout:
			continue
		default:
			if !endsSetUp(c) && m.tryAnySeed(slices.Delete(slices.Clone(m.lines), i, i+1)) {
				i-- // another line stands there now
				continue
			}
		}
		for _, simpler := range simplerThan(m.lines[i]) {
			m.replace(i, simpler(m.lines[i]), m.tryAnySeed)
		}
	}
	m.fewerNodes()
	m.tryAnySeed(m.lines)
}

// replace tries another line in a line's place, unless it is the same.
func (m *shrinker) replace(i int, c Command, try func([]Command) bool) bool {
	if c.String() == m.lines[i].String() {
		return false
	}
	lines := slices.Clone(m.lines)
	lines[i] = c
	return try(lines)
}

// plain is the lines with nothing set up but servers, seed and rules.
func (m *shrinker) plain() []Command {
	return slices.DeleteFunc(slices.Clone(m.lines), func(c Command) bool {
		switch c.(type) {
		case SetConfig, SetNetwork, SetClock, SetDisk:
			return !endsSetUp(c)
		}
		return false
	})
}

// tryAnySeed tries lines under the seed that they have and under the small ones, of which one is the
// nicest.
func (m *shrinker) tryAnySeed(lines []Command) bool {
	at := slices.IndexFunc(lines, func(c Command) bool { _, ok := c.(SetSeed); return ok })
	if at < 0 {
		return m.try(lines)
	}
	now := lines[at].(SetSeed).Seed
	tried := m.try(lines)
	for seed := uint64(1); seed <= moreSeeds && (!tried || seed < now); seed++ {
		other := slices.Clone(lines)
		other[at] = SetSeed{Seed: seed}
		if seed != now && m.try(other) {
			return true
		}
	}
	return tried
}

// simplerThan is what may be left out of a line.
func simplerThan(c Command) []func(Command) Command {
	switch c := c.(type) {
	case SetNetwork:
		return simplerNetworks()
	case SetConfig:
		return simplerConfigs()
	case At:
		var inside []func(Command) Command
		for _, simpler := range simplerThan(c.Command) {
			inside = append(inside, func(c Command) Command {
				return At{Time: c.(At).Time, Command: simpler(c.(At).Command)}
			})
		}
		return inside
	case Crash:
		return changes(
			func(c *Crash) { c.How, c.Keep = "", 0 },
			func(c *Crash) { c.Writing = false },
			func(c *Crash) { c.Keep = min(c.Keep, 1) },
		)
	case Acquire:
		return changes(func(c *Acquire) { c.Try = false }, func(c *Acquire) { c.Via = 0 })
	case Change:
		return changes(func(c *Change) { c.Learner = false })
	}
	return nil
}

// changes makes functions that change a command of one type into ones that take any command and are
// given only that type.
func changes[C Command](do ...func(*C)) []func(Command) Command {
	var all []func(Command) Command
	for _, change := range do {
		all = append(all, func(c Command) Command { same := c.(C); change(&same); return same })
	}
	return all
}

func simplerNetworks() []func(Command) Command {
	return changes(
		func(n *SetNetwork) { n.TailSet, n.TailPPM, n.Tail = false, 0, 0 },
		func(n *SetNetwork) { n.LossPPM = nil },
		func(n *SetNetwork) { n.DuplicatePPM = nil },
		func(n *SetNetwork) { n.DelaySet, n.DelayMin, n.DelayMax = false, 0, 0 },
		func(n *SetNetwork) { n.DelayMin = n.DelayMax },
	)
}

func simplerConfigs() []func(Command) Command {
	return changes(
		func(n *SetConfig) { n.PreVote, n.CheckQuorum = nil, nil },
		func(n *SetConfig) { n.PreVote = nil },
		func(n *SetConfig) { n.CheckQuorum = nil },
		func(n *SetConfig) { n.Pipeline = nil },
		func(n *SetConfig) { n.SnapshotEvery, n.Keep, n.Chunk = nil, 0, 0 },
		func(n *SetConfig) { n.Keep = 0 },
		func(n *SetConfig) { n.Chunk = 0 },
		func(n *SetConfig) { n.Batch, n.Window = 0, 0 },
		func(n *SetConfig) { n.Batch = 0 },
		func(n *SetConfig) { n.Window = 0 },
		func(n *SetConfig) { n.Election, n.Heartbeat = 0, 0 },
		func(n *SetConfig) { n.Heartbeat = 0 },
		func(n *SetConfig) { n.Election = 0 },
	)
}
