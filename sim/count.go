package sim

import (
	"slices"

	"ticketing/fsm"
	"ticketing/raft"
)

// A simulation in which the interesting thing never happened proves nothing. Counters say what did.

type counter int

type counters [countEnd]int64

// The counters. Of messages there is one for each kind, behind that of all.
const (
	countElections counter = iota
	countLeaders
	countTerms
	countDeposed
	countDeposedUncommitted
	countTruncations
	countLost
	countDuplicated
	countCrashes
	countCrashesWriting
	countCrashesKeptNone
	countCrashesKeptSome
	countCrashesKeptAll
	countReordered
	countDisksLost
	countDisksSpared
	countRestarts
	countTorn
	countStopped
	countCuts
	countPauses
	countSuspends
	countClockDrifts
	countClockStops
	countClockJumps
	countClockSlews
	countClockWanders
	countClockStrobes
	countTimersLate
	countCommits
	countGranted
	countRejected
	countReleased
	countNotFound
	countExtended
	countNotExtended
	countExtendRefused
	countSessions
	countSessionUnknown
	countEvicted
	countRepeated
	countExpireProposed
	countExpireBare
	countExpireExisted
	countExpireNewer
	countExpireFree
	countCleanups
	countHeld
	countNotLeader
	countUnknown
	countLateGrants
	countWritten
	countRead
	countRefused
	countNoops
	countReads
	countReadsFailed
	countReadsLocal
	countReadsStale
	countTransfers
	countTransfersRefused
	countTransfersDone
	countTransfersGivenUp
	countSnapshots
	countSnapshotsRefused
	countSnapshotsInstalled
	countSnapshotsRestored
	countSnapshotsSuffix
	countSnapshotsConflict
	countSnapshotsLost
	countSnapshotsUnnamed
	countSnapshotsSent
	countSnapshotsResent
	countMembersChanged
	countMembersAdded
	countMembersPromoted
	countMembersRemoved
	countMembersRefused
	countMembersUnknown
	countMembersTakenBack
	countMembersLeft
	countRunsWithBoth
	countLeadersTwo
	countLeadersInherit
	countElectionsAgain
	countDeposedAlone
	countCommitsEarlier
	countCommitsAhead
	countExpireOutlived
	countReadsDeposed
	countHeartbeats
	countViolations
	countBeliefsOverlap
	countHistories
	countHistoriesOperations
	countHistoriesGaveUp
	countHistoriesCut
	countRecoveries
	countRecoveriesLeaderless
	countRecoveriesBroken
	countRecoveriesLapsed
	countMessages                                             // of all; behind it one for each messageKind
	countStrikes  = countMessages + counter(messageWrite) + 1 // one for each kind of strike
	countMoments  = countStrikes + strikeCount                // and for each moment that was waited for
	countEnd      = countMoments + turningCount
)

// counterNames gives each counter the name that scenarios use.
func counterNames() [countEnd]string {
	names := [countEnd]string{
		countElections: "elections", countLeaders: "leaders", countTerms: "terms",
		countDeposed: "deposed", countDeposedUncommitted: "deposed.uncommitted",
		countTruncations: "truncations", countMessages: "messages",
		countLost: "lost", countDuplicated: "duplicated",
		countCrashes: "crashes", countRestarts: "restarts", countTorn: "torn", countStopped: "stopped",
		countCuts: "cuts", countPauses: "pauses", countCommits: "commits",
		countSuspends: "suspends", countTimersLate: "timers.late",
		countCrashesWriting: "crashes.writing", countCrashesKeptNone: "crashes.kept-none",
		countCrashesKeptSome: "crashes.kept-some", countCrashesKeptAll: "crashes.kept-all",
		countReordered: "writes.reordered", countDisksLost: "disks.lost", countDisksSpared: "disks.spared",
		countClockDrifts: "clocks.drifting", countClockStops: "clocks.stopped", countClockJumps: "clocks.jumped", countClockSlews: "clocks.slewed",
		countClockWanders: "clocks.wandering", countClockStrobes: "clocks.strobed",
		countGranted: "grant.granted", countRejected: "grant.rejected",
		countReleased: "release.released", countNotFound: "release.not-found",
		countExtended: "extend.extended", countNotExtended: "extend.not-found",
		countExtendRefused: "extend.refused",
		countSessions:      "sessions", countSessionUnknown: "sessions.unknown", countEvicted: "sessions.evicted",
		countRepeated:       "repeated",
		countExpireProposed: "expire.proposed", countExpireBare: "expire.bare",
		countExpireExisted: "expire.existed", countExpireNewer: "expire.newer", countExpireFree: "expire.free",
		countCleanups: "cleanups", countHeld: "try.held", countNotLeader: "answers.not-leader",
		countUnknown: "answers.unknown", countLateGrants: "grant.late",
		countWritten: "written", countRead: "read", countRefused: "refused", countNoops: "noops", countViolations: "violations",
		countReads: "reads", countReadsFailed: "reads.failed",
		countReadsLocal: "reads.local", countReadsStale: "reads.stale",
		countTransfers: "transfers", countTransfersRefused: "transfers.refused",
		countTransfersDone: "transfers.done", countTransfersGivenUp: "transfers.given-up",
		countSnapshots: "snapshots", countSnapshotsRefused: "snapshots.refused",
		countSnapshotsInstalled: "snapshots.installed", countSnapshotsRestored: "snapshots.restored",
		countSnapshotsSuffix: "snapshots.suffix", countSnapshotsConflict: "snapshots.conflict",
		countSnapshotsLost: "snapshots.lost", countSnapshotsUnnamed: "snapshots.unnamed",
		countSnapshotsSent: "snapshots.sent", countSnapshotsResent: "snapshots.resent",
		countMembersChanged: "members.changed", countMembersRefused: "members.refused",
		countMembersAdded: "members.added", countMembersPromoted: "members.promoted", countMembersRemoved: "members.removed",
		countMembersUnknown: "members.unknown", countMembersTakenBack: "members.taken-back",
		countMembersLeft: "members.left", countRunsWithBoth: "runs.both",
		countBeliefsOverlap: "beliefs.overlap",
		countHistories:      "histories", countHistoriesOperations: "histories.operations",
		countHistoriesGaveUp: "histories.gave-up", countHistoriesCut: "histories.cut",
		countLeadersTwo: "leaders.two", countLeadersInherit: "leaders.inherit",
		countElectionsAgain: "elections.again", countDeposedAlone: "deposed.alone",
		countCommitsEarlier: "commits.earlier-term", countCommitsAhead: "commits.ahead-of-disk",
		countExpireOutlived: "expire.outlived", countReadsDeposed: "reads.deposed",
		countHeartbeats: "messages.append.empty",
	}
	for k := messageVote; k <= messageWrite; k++ {
		names[countMessages+counter(k)] = "messages." + k.String()
	}
	names[countRecoveries] = "recoveries"
	names[countRecoveriesLeaderless] = "recoveries.leaderless"
	names[countRecoveriesBroken] = "recoveries.broken"
	names[countRecoveriesLapsed] = "recoveries.lapsed"
	for i, k := range strikeKinds() {
		names[countStrikes+counter(i)] = "strikes." + k.name
	}
	for i, t := range turnings() {
		names[countMoments+counter(i)] = "moments." + t.name
	}
	return names
}

// CounterNames lists what "expect count" can ask, in order.
func CounterNames() []string {
	all := counterNames()
	names := all[:]
	slices.Sort(names)
	return names
}

// counterNamed returns a counter by its name.
func counterNamed(name string) (counter, bool) {
	names := counterNames()
	i := slices.Index(names[:], name)
	return counter(i), i >= 0
}

// named returns a counter's value by its name; 0 for one that there is not.
func (c *counters) named(name string) int64 {
	i, ok := counterNamed(name)
	if !ok {
		return 0
	}
	return c[i]
}

func (w *World) countState(before, after *raft.Status) {
	if after.Role == raft.Candidate && after.Term > before.Term {
		w.counters[countElections]++
	}
	if after.Role == raft.Leader && before.Role != raft.Leader {
		w.counters[countLeaders]++
	}
	if before.Role == raft.Leader && after.Role != raft.Leader {
		w.counters[countDeposed]++
		if before.LastIndex > before.CommitIndex {
			w.counters[countDeposedUncommitted]++
		}
	}
	w.counters[countTerms] = max(w.counters[countTerms], int64(after.Term))
}

func (w *World) countProposed(p *fsm.Proposed) {
	switch {
	case p.Cause == fsm.ForCleanup:
		w.counters[countCleanups]++
	case p.Cause == fsm.ForLease && p.Envelope.Kind == fsm.Expire:
		w.counters[countExpireProposed]++
	case p.Cause == fsm.ForLease:
		w.counters[countExpireBare]++
	}
}

// countMembers counts what a committed change made of the servers.
func (w *World) countMembers(before, after raft.Configuration) {
	w.counters[countMembersChanged]++
	voters := func(c raft.Configuration) (n int) {
		for _, m := range c {
			if m.Voter {
				n++
			}
		}
		return n
	}
	switch {
	case len(after) > len(before):
		w.counters[countMembersAdded]++
	case len(after) < len(before):
		w.counters[countMembersRemoved]++
	case voters(after) > voters(before):
		w.counters[countMembersPromoted]++
	}
}

// countBoth counts a run, at its end, in which servers took snapshots by themselves while others came
// and went.
func (w *World) countBoth() {
	if w.config.snapshotEvery > 0 && w.counters[countSnapshots] > 0 && w.counters[countMembersChanged] > 0 {
		w.counters[countRunsWithBoth]++
	}
}

// countApplied counts an entry once, when the first node applies it.
func (w *World) countApplied(a *fsm.Applied) {
	w.counters[countCommits]++
	if a.Members != nil {
		w.countMembers(at(w.ledger.sets, a.Index-1).members, a.Members)
	}
	if a.Result.Again {
		w.counters[countRepeated]++
		return
	}
	switch a.Result.Kind {
	case fsm.Granted:
		w.counters[countGranted]++
	case fsm.GrantRejected:
		w.counters[countRejected]++
	case fsm.Released:
		w.counters[countReleased]++
	case fsm.NotFound:
		if a.Envelope.Kind == fsm.Extend {
			w.counters[countNotExtended]++
		} else {
			w.counters[countNotFound]++
		}
	case fsm.Extended:
		w.counters[countExtended]++
	case fsm.Opened:
		w.counters[countSessions]++
	case fsm.SessionUnknown:
		w.counters[countSessionUnknown]++
	case fsm.ResultNoop:
		w.counters[countNoops]++
	case fsm.Expired:
		holder, held := w.ledger.holder[a.Envelope.Key]
		switch {
		case a.Result.Existed:
			w.counters[countExpireExisted]++
		case held && holder != a.Envelope.Token:
			w.counters[countExpireNewer]++
		default:
			w.counters[countExpireFree]++
		}
	}
}
