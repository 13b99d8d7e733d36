package sim

import (
	"slices"

	"ticketing/fsm"
	"ticketing/raft"
)

// This file knows the moments inside a server at which a fault does the most harm. A server says
// everything that it does in its outputs, so nothing in the product has to know of them.

// stage is how far a server has come with what follows from an input.
type stage int

const (
	stageDecided stage = iota // nothing has left it
	stageWriting              // its write has begun and is not durable
	stageSent                 // its messages are on their way
)

// turning is one of those moments, and how it shows.
type turning struct {
	name  string
	stage stage
	is    func(n *node, out *fsm.Output) bool
}

func turnings() []turning {
	return []turning{
		{"committed", stageDecided, func(n *node, _ *fsm.Output) bool { // and it has told nobody
			return n.status.Role == raft.Leader && n.status.CommitIndex > n.before.CommitIndex
		}},
		{"elected", stageDecided, func(n *node, _ *fsm.Output) bool { // and nobody knows
			return becameLeader(&n.before, &n.status)
		}},
		{"granted", stageDecided, func(n *node, out *fsm.Output) bool { // and its client has not heard
			return n.status.Role == raft.Leader && slices.ContainsFunc(out.Applied, func(a fsm.Applied) bool {
				return a.Result.Kind == fsm.Granted
			})
		}},
		{"expiring", stageDecided, func(_ *node, out *fsm.Output) bool { // an Expire is in its log alone
			return slices.ContainsFunc(out.Proposed, func(p fsm.Proposed) bool { return p.Cause == fsm.ForLease })
		}},
		{"deposed", stageDecided, func(n *node, _ *fsm.Output) bool {
			return n.before.Role == raft.Leader && n.status.Role != raft.Leader
		}},
		{"voted", stageWriting, func(n *node, out *fsm.Output) bool { // and the vote is not durable
			return out.Write.Seq != 0 && n.status.VotedFor != 0 && n.status.VotedFor != n.id &&
				(n.status.VotedFor != n.before.VotedFor || n.status.Term != n.before.Term)
		}},
		{"stored", stageWriting, func(n *node, out *fsm.Output) bool { // a follower's entries are not durable
			return n.status.Role == raft.Follower && len(out.Write.Entries) > 0
		}},
		{"sending-snapshot", stageSent, func(_ *node, out *fsm.Output) bool { return sends[raft.InstallSnapshot](out) }},
		{"saving-snapshot", stageSent, func(_ *node, out *fsm.Output) bool { return out.Save != nil }},
		{"handing-over", stageSent, func(_ *node, out *fsm.Output) bool { return sends[raft.TimeoutNow](out) }},
		{"changing-members", stageSent, func(n *node, out *fsm.Output) bool {
			return n.status.Role == raft.Leader && slices.ContainsFunc(out.Write.Entries, func(e raft.Entry) bool {
				return e.Members != nil
			})
		}},
	}
}

// turningCount is how many there are; a test holds it to the list.
const turningCount = 11

// sends reports whether a message of a kind is among what leaves.
func sends[T raft.Body](out *fsm.Output) bool {
	return slices.ContainsFunc(out.Messages, func(m raft.Message) bool { _, ok := m.Body.(T); return ok })
}

// MomentNames lists the moments that on knows.
func MomentNames() (names []string) {
	for _, t := range turnings() {
		names = append(names, t.name)
	}
	return names
}

// waiting is an On that has not come true.
type waiting struct {
	On
	kind counter // of its moment
	turning
	left int // how many such moments it still waits for
}

// arm makes an On wait for its moment.
func (w *World) arms(c On) {
	w.traceCommand(c)
	all := turnings()
	i := slices.IndexFunc(all, func(t turning) bool { return t.name == c.Moment })
	w.waiting = append(w.waiting, &waiting{On: c, kind: counter(i), turning: all[i], left: max(c.Nth, 1)})
}

// comes looks whether a server has come to a moment that somebody waits for, and strikes then. It
// reports whether the server goes on: a crash takes away what it has not done yet.
func (w *World) comes(n *node, out *fsm.Output, at stage) bool {
	return len(w.waiting) == 0 || w.strikes(n, out, at)
}

// strikes is comes where somebody waits for some moment.
func (w *World) strikes(n *node, out *fsm.Output, at stage) bool {
	cause, boots := w.cause, n.boots
	for _, on := range slices.Clone(w.waiting) {
		if on.stage != at || on.left == 0 || !on.is(n, out) {
			continue
		}
		if on.left--; on.left > 0 {
			continue
		}
		w.waiting = slices.DeleteFunc(w.waiting, func(other *waiting) bool { return other == on })
		w.counters[countMoments+on.kind]++
		w.strike(on.Strike, n)
		if !n.alive || n.boots != boots || w.halted {
			return false
		}
	}
	w.cause = cause
	return true
}
