package sim

import (
	"fmt"

	"ticketing/fsm/trace"
)

// This file is a power failure: what of the unsynced writes it leaves, and what becomes of the disk.

func (w *World) doCrash(n *node, c Crash) error {
	switch {
	case !n.alive:
		return nil
	case c.Writing:
		w.traceCommand(c)
		n.disk.cut = &c
		return nil
	}
	w.cause = 0
	w.powerFails(n, c)
	return nil
}

// powerFails ends a server's process. Of the writes that were not synced its disk keeps what the line
// says; what was synced it keeps in any case, unless the disk itself is lost.
func (w *World) powerFails(n *node, c Crash) {
	lost := c.How == "lost" && w.spares(n)
	if c.How == "lost" && !lost {
		w.counters[countDisksSpared]++
		c.How = ""
	}
	text := c.How
	if c.Keep > 0 {
		text = fmt.Sprintf("keeps %d", c.Keep)
	}
	w.traceInput(n, trace.KindCrash, text)
	had := len(n.disk.unsynced)
	torn := w.keepUnsynced(n, c)
	w.countKept(had, had-len(n.disk.unsynced))
	w.crash(n, torn)
	if lost {
		w.counters[countDisksLost]++
		n.disk.lose()
		w.checks.store(w, n)
	}
}

// keepUnsynced puts those writes onto the disk that survive, and reports whether a part of the next
// one does.
func (w *World) keepUnsynced(n *node, c Crash) (torn bool) {
	d := &n.disk
	kept := func(seq uint64) { w.traceDisk(n, trace.KindSynced, seq) }
	keep := 0
	switch {
	case c.How == "some":
		return d.keepSome(func(seq uint64, sector int) bool {
			bits := draw(w.seed, streamSector, uint64(n.id), uint64(n.boots), seq<<32|uint64(sector))
			return bits&1 == 1
		}, kept)
	case c.How == "torn":
		keep = len(d.unsynced) - 1
	case c.How == "all":
		keep = len(d.unsynced)
	default:
		keep = min(c.Keep, len(d.unsynced))
	}
	for left := len(d.unsynced) - keep; len(d.unsynced) > left; {
		kept(d.finish(0))
	}
	return c.How == "torn"
}

func (w *World) countKept(had, kept int) {
	switch {
	case had == 0: // there was nothing to lose
	case kept == 0:
		w.counters[countCrashesKeptNone]++
	case kept == had:
		w.counters[countCrashesKeptAll]++
	default:
		w.counters[countCrashesKeptSome]++
	}
}

// spares reports whether a quorum's data stays if a server's disk is lost: whatever may be the set of
// servers, a majority of its voters has, without this one, all that is on its disk. Only that can have
// been counted on. What is lost with it in any case are its votes, and so it must not come back.
func (w *World) spares(lost *node) bool {
	last := lost.disk.last()
	had, _ := chainAt(lost.disk.chains, last)
	for _, n := range w.nodes {
		if n.boots == 0 || n.disk.lost {
			continue
		}
		count, voters := w.quorumOf(n.members().members, func(o *node) bool {
			has, reaches := chainAt(o.disk.chains, last)
			return o != lost && !o.disk.lost && reaches && has == had
		})
		if count < majority(voters) {
			return false
		}
	}
	return true
}
