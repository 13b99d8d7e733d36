package sim

import (
	"fmt"
	"slices"

	"ticketing/fsm"
	"ticketing/raft"
)

// This file says what a search must have seen before its verdict is worth something: the moments in
// which the mistakes that people make with Raft and with locks do their harm.

// Happening is such a moment.
type Happening struct {
	Counter  string // how often it happened; see CounterNames
	Sentence string // what it is, in plain words
}

// Happenings lists what a long search with harsh faults sees, the heart of the matter first.
func Happenings() []Happening {
	return slices.Concat(lockHappenings(), leaderHappenings(), logHappenings(), memberHappenings(),
		clockHappenings(), machineHappenings())
}

func lockHappenings() []Happening {
	return []Happening{
		{"expire.newer", "a late Expire met a newer token"},
		{"expire.free", "a late Expire met a key that was free already"},
		{"expire.existed", "an Expire ended a tenure"},
		{"expire.outlived", "an Expire was committed after the leader that proposed it was deposed"},
		{"grant.rejected", "a Grant met a key that was held"},
		{"grant.late", "a Grant reached its client when the lease was over, and was given back"},
		{"beliefs.overlap", "two clients believed to hold one lock at the same time"},
		{"cleanups", "a lock was released for a client that had gone away"},
		{"release.not-found", "a Release came after its tenure had ended"},
		{"extend.extended", "a lease was extended"},
		{"extend.refused", "an Extend was refused behind an Expire of its token"},
		{"extend.not-found", "an Extend came after its tenure had ended"},
		{"refused", "the resource refused a write with an old token"},
		{"repeated", "a request that was sent again was answered, and not carried out twice"},
		{"sessions.evicted", "a client was forgotten since there were too many"},
		{"sessions.unknown", "a client that was forgotten was told so"},
		{"answers.unknown", "a client was told that the outcome is not known"},
	}
}

func leaderHappenings() []Happening {
	return []Happening{
		{"leaders.two", "two leaders were alive, in different terms"},
		{"leaders.inherit", "a leader began with entries that nobody knew to be committed"},
		{"elections.again", "a candidate was not elected, and tried again"},
		{"deposed.uncommitted", "a leader was deposed with uncommitted entries"},
		{"deposed.alone", "a leader stepped down since it no longer heard a majority"},
		{"reads.deposed", "a read was refused by a leader that was deposed before it could answer"},
		{"transfers.done", "leadership was handed over"},
		{"transfers.given-up", "a leader gave up to hand over"},
	}
}

func logHappenings() []Happening {
	return []Happening{
		{"truncations", "a follower dropped entries that conflicted with its leader's"},
		{"commits.earlier-term", "an entry was committed by a leader of a later term"},
		{"commits.ahead-of-disk", "a leader applied an entry that its own disk did not have yet"},
		{"torn", "a crash tore the record that was being written, and it was dropped"},
		{"snapshots.installed", "a follower installed its leader's snapshot"},
		{"snapshots.suffix", "a snapshot was installed and the entries behind it were kept"},
		{"snapshots.conflict", "a snapshot was installed in place of entries that conflicted with it"},
		{"snapshots.resent", "a part of a snapshot was sent again"},
		{"snapshots.lost", "a crash lost a snapshot that was being written"},
		{"snapshots.unnamed", "a crash lost the name of a snapshot that was written"},
	}
}

func memberHappenings() []Happening {
	return []Happening{
		{"members.changed", "a change of the servers was committed"},
		{"members.added", "a server was added as a learner"},
		{"members.promoted", "a learner was promoted and voted from then on"},
		{"members.removed", "a server was removed"},
		{"members.refused", "a change of the servers was refused"},
		{"members.unknown", "who asked for a change of the servers was not told what became of it"},
		{"members.taken-back", "a change of the servers was taken back by another leader"},
		{"members.left", "a leader that was removed stepped down"},
		{"runs.both", "servers took snapshots by themselves while others came and went"},
	}
}

func clockHappenings() []Happening {
	return []Happening{
		{"clocks.drifting", "a clock ran fast or slow"},
		{"clocks.stopped", "a clock stood still"},
		{"clocks.wandering", "a clock's rate went up and down"},
		{"clocks.slewed", "a clock was made to run faster or slower, to correct it"},
		{"clocks.jumped", "a wall clock was set"},
		{"clocks.strobed", "a wall clock was set to and fro"},
		{"timers.late", "a server's timer fired late"},
		{"suspends", "a machine was suspended"},
	}
}

func machineHappenings() []Happening {
	return []Happening{
		{"crashes.kept-none", "a crash lost all of several writes, or the one, that were not synced"},
		{"crashes.kept-some", "a crash kept some of the writes that were not synced, and not the last"},
		{"crashes.kept-all", "a crash kept all writes that were not synced, though nobody was told"},
		{"crashes.writing", "the power failed in the middle of a step, before anything was sent"},
		{"writes.reordered", "a disk finished a write before an earlier one"},
		{"stopped", "a server stopped since its disk returned an error"},
		{"disks.lost", "a disk was lost, and its server did not come back"},
		{"disks.spared", "a disk was not lost, since a quorum needs what is on it"},
	}
}

// Unseen lists what has not happened.
func (f *Findings) Unseen() (list []Happening) {
	for _, h := range Happenings() {
		if f.Count(h.Counter) == 0 {
			list = append(list, h)
		}
	}
	return list
}

// Include adds what other seeds came to, by the names of Counters.
func (f *Findings) Include(other Findings, counts map[string]int64) error {
	for name, n := range counts {
		c, ok := counterNamed(name)
		if !ok {
			return fmt.Errorf("there is no counter %q; expected one of those that 'raftsim explore -json' prints", name)
		}
		f.counters[c] += n
	}
	f.Seeds += other.Seeds
	f.SimTime += other.SimTime
	f.Steps += other.Steps
	f.Last = max(f.Last, other.Last)
	return nil
}

// countLead counts what happens to those who lead, or want to.
func (w *World) countLead(n *node, before, after *raft.Status, left bool) {
	newTerm := after.Term > before.Term
	if before.Role == raft.Candidate && after.Role == raft.Candidate && newTerm {
		w.counters[countElectionsAgain]++
	}
	if before.Role == raft.Leader && after.Role == raft.Follower && !newTerm && !left {
		w.counters[countDeposedAlone]++
	}
	if !becameLeader(before, after) {
		return
	}
	if before.LastIndex > before.CommitIndex {
		w.counters[countLeadersInherit]++
	}
	for _, other := range w.nodes {
		if other != n && other.alive && other.status.Role == raft.Leader {
			w.counters[countLeadersTwo]++
			return
		}
	}
}

// countOutlived counts an entry that outlived the leader of its term, and an Expire among those.
func (w *World) countOutlived(a *fsm.Applied) {
	record, ok := w.ledger.committedAt(a.Index)
	if !ok || record.by <= a.Term {
		return
	}
	w.counters[countCommitsEarlier]++
	if a.Result.Kind == fsm.Expired && !a.Result.Again {
		w.counters[countExpireOutlived]++
	}
}
