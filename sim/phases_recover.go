package sim

import (
	"cmp"
	"fmt"
	"slices"

	"ticketing/raft"
)

// This file chooses the majority that heals, and heals it.

// countRecovery counts what there is to recover from, and what stays broken.
func (w *World) countRecovery(core []*node) {
	w.counters[countRecoveries]++
	if w.followed() == nil {
		w.counters[countRecoveriesLeaderless]++
	}
	if slices.ContainsFunc(w.nodes, func(n *node) bool {
		return w.belongs(n) && !slices.Contains(core, n) && (!n.alive || n.paused || n.disk.stalled || !w.reaches(core[0], n))
	}) {
		w.counters[countRecoveriesBroken]++
	}
	if n := w.mostApplied(); n != nil {
		for _, t := range n.tenures {
			if n.clock.at(w.now) > t.local+t.lease {
				w.counters[countRecoveriesLapsed]++
			}
		}
	}
}

// drawCore chooses the majority. It is one of every set of servers that still counts for somebody:
// what is committed already, and what stands in some log behind that.
func (w *World) drawCore() (core []*node) {
	committed := w.ledger.sets[len(w.ledger.sets)-1]
	sets := []raft.Configuration{committed.members}
	for _, n := range w.nodes {
		for _, s := range n.sets {
			if s.index > committed.index {
				sets = append(sets, s.members)
			}
		}
	}
	enough := func() bool {
		return !slices.ContainsFunc(sets, func(set raft.Configuration) bool {
			in, of := w.quorumOf(set, func(n *node) bool { return slices.Contains(core, n) })
			return in < majority(of)
		})
	}
	for _, n := range w.shuffled("core") {
		if enough() {
			break
		}
		needed := slices.ContainsFunc(sets, func(set raft.Configuration) bool {
			return slices.ContainsFunc(set, func(m raft.Member) bool { return m.Voter && m.ID == n.id })
		})
		if needed {
			core = append(core, n)
		}
	}
	slices.SortFunc(core, func(a, b *node) int { return cmp.Compare(a.id, b.id) })
	return core
}

// heal ends the faults of the core, of its clocks, its disks and the links in it. Without PreVote and
// CheckQuorum nothing is promised as long as somebody else gets through to it, so nobody does.
func (w *World) heal(core []*node) error {
	w.recovering, w.waiting, w.joining = true, nil, nil
	none := 0
	right := LinkSpec{
		DelaySet: true, DelayMin: duration(defaultDelayMin), DelayMax: duration(defaultDelayMax),
		TailSet: true, LossPPM: &none, DuplicatePPM: &none,
	}
	var commands []Command
	for _, n := range core {
		commands = append(commands, SetDisk{Node: n.name, Do: "ok"}, SetClock{Actor: n.name, RatePPM: trueRate})
		n.disk.syncMin, n.disk.syncMax, n.disk.busy = defaultSyncMin, defaultSyncMax, 0
		switch {
		case !n.alive:
			commands = append(commands, Restart{Node: n.name})
		case n.paused:
			commands = append(commands, Resume{Node: n.id})
		}
		for _, other := range w.nodes {
			both := Messages{From: n.name, To: other.name}
			switch {
			case other == n:
			case slices.Contains(core, other):
				commands = append(commands, Heal{From: n.name, To: other.name}, Hold{Messages: both, Again: true},
					SetNetwork{From: n.name, To: other.name, LinkSpec: right})
			case !w.config.preVote || !w.config.checkQuorum:
				commands = append(commands, Cut{Groups: [][]Actor{{n.name}, {other.name}}})
			}
		}
	}
	for _, c := range commands {
		if err := w.do(c); err != nil {
			return fmt.Errorf("recover: %w", err)
		}
	}
	return nil
}
