package sim

import (
	"fmt"
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file is the second phase of a random run. Until then anything may be broken. Then a majority
// heals, and nothing else, and that has to be enough.

// Recover is "recover": a majority of the servers, chosen at random, heals, while all others stay as
// they are. The cluster then has to elect a leader, commit, answer a read, end every lease that is over
// and agree, each in its time: docs/liveness.md says in which.
type Recover struct{}

func (Recover) String() string { return "recover" }

// The bounds, in election timeouts, each from when the one before was kept. A commit and agreement take
// besides what the entries take that somebody lacks.
const (
	leaderWithin   = 25
	commitWithin   = 15
	readWithin     = 5
	expireWithin   = 10 // after it is over, each lease
	convergeWithin = 10
)

// Names of what must follow.
const (
	progressLeader   = "progress-leader"
	progressCommit   = "progress-commit"
	progressRead     = "progress-read"
	progressExpire   = "progress-expire"
	progressConverge = "progress-converge"
)

func progressInvariants() []invariant {
	within := func(what string, timeouts int) string {
		return fmt.Sprintf("when a majority has healed, %s within %d election timeouts", what, timeouts)
	}
	return []invariant{
		{name: progressLeader, sentence: within("it follows a leader", leaderWithin)},
		{name: progressCommit, sentence: within("that leader commits what it is given", commitWithin)},
		{name: progressRead, sentence: within("a read is answered", readWithin)},
		{name: progressExpire, sentence: within("a lease that is over has ended for all", expireWithin)},
		{name: progressConverge, sentence: within("all of it that the leader reaches agree", convergeWithin)},
	}
}

// recover carries out a Recover.
func (w *World) recover() error {
	core := w.drawCore()
	w.traceCommand(Recover{})
	w.countRecovery(core)
	if err := w.heal(core); err != nil {
		return err
	}
	for _, stage := range []func([]*node) bool{w.leads, w.commits, w.reads, w.expires, w.converges} {
		if !stage(core) && w.halted {
			return w.takeFailure()
		}
	}
	return w.takeFailure()
}

// awaits lets the run go on until something holds. If it does not in so many election timeouts, that is
// a violation.
func (w *World) awaits(core []*node, invariant string, timeouts int, more trace.Time, holds func() bool) bool {
	begin, limit := w.now, w.now+trace.Time(timeouts)*w.config.election+more
	for !holds() {
		if w.next(limit) {
			continue
		}
		if !w.halted {
			w.now = limit
			w.violate(invariant, core[0].name, w.standing(core, limit-begin))
		}
		return false
	}
	w.slowest[invariant] = max(w.slowest[invariant], w.now-begin-more)
	return !w.halted
}

// slowestStages is how long each stage took at most, in tenths of an election timeout.
func (w *World) slowestStages() map[string]int64 {
	tenths := map[string]int64{}
	for name, took := range w.slowest {
		tenths[name] = int64(10*took) / int64(w.config.election)
	}
	return tenths
}

// standing is how things stand, for people.
func (w *World) standing(core []*node, waited trace.Time) string {
	var names []Actor
	for _, n := range core {
		names = append(names, n.name)
	}
	leader := "nobody leads"
	if l := w.leader(); l != nil {
		leader = fmt.Sprintf("%s leads term %d and has committed %d of %d",
			l.name, l.status.Term, l.status.CommitIndex, l.status.LastIndex)
	}
	return fmt.Sprintf("%v have healed, and it has not come true for %s; %s", names, waited, leader)
}

// followed is the leader whom a majority of its voters follows; nil if there is none.
func (w *World) followed() *node {
	for _, l := range w.nodes {
		if !l.alive || l.paused || l.status.Role != raft.Leader {
			continue
		}
		following, of := w.quorumOf(l.members().members, func(n *node) bool {
			return n.alive && n.status.Leader == l.id && n.status.Term == l.status.Term
		})
		if following >= majority(of) {
			return l
		}
	}
	return nil
}

func (w *World) leads(core []*node) bool {
	return w.awaits(core, progressLeader, leaderWithin, 0, func() bool { return w.followed() != nil })
}

// commits gives whoever leads something to propose, until one has committed what it did not have before.
// A leader that hands over takes nothing, so it is asked again.
func (w *World) commits(core []*node) bool {
	var term raft.Term
	var had raft.Index
	var again trace.Time
	return w.awaits(core, progressCommit, commitWithin, w.backlog(core), func() bool {
		l := w.followed()
		switch {
		case l == nil:
			return false
		case l.status.Term == term && l.status.CommitIndex > had:
			return true
		case l.status.Term != term:
			term, had = l.status.Term, l.status.LastIndex
		case w.now < again:
			return false
		}
		again = w.now + w.config.election
		w.tells(Propose{Node: l.id, Text: "probe"})
		return false
	})
}

// reads asks whoever leads for a read, until one is answered.
func (w *World) reads(core []*node) bool {
	answered := w.counters[countReads]
	var asked raft.Term
	return w.awaits(core, progressRead, readWithin, 0, func() bool {
		l := w.followed()
		if l != nil && (l.status.Term != asked || len(l.reading.open) == 0) && w.counters[countReads] == answered {
			asked = l.status.Term
			w.tells(ReadTable{Node: l.id})
		}
		return w.counters[countReads] > answered
	})
}

// quiet is for how long leases may follow one another, as those who wait get the lock.
const quiet = 20 * time.Second

// expires waits until all locks are free, and watches that none stays when its lease is over.
func (w *World) expires(core []*node) bool {
	limit := w.now + micros(quiet)
	for !w.halted {
		key, late, free := w.overdue()
		if free {
			return true
		}
		if late > expireWithin*w.config.election {
			w.violate(progressExpire, core[0].name, fmt.Sprintf("the lease of %s has been over for %s; %s",
				key, late, w.standing(core, late)))
			return false
		}
		w.slowest[progressExpire] = max(w.slowest[progressExpire], late)
		if !w.next(limit) && !w.halted {
			w.now = limit
			w.violate(progressExpire, core[0].name, "locks are still held; "+w.standing(core, micros(quiet)))
		}
	}
	return false
}
