package sim

import (
	"fmt"
	"slices"

	"ticketing/fsm"
	"ticketing/raft"
)

// membersLogged compares what a core goes by with what was written of its log. A configuration that
// counts too late, or longer than its entry is there, shows here.
func membersLogged() invariant {
	return invariant{
		name:     "members-logged",
		sentence: "a server goes by the latest configuration in its own log, committed or not",
		took: func(w *World, n *node, out *fsm.Output) string {
			members, index := n.replica.Core().Members()
			logged := n.members()
			if index != logged.index || !slices.Equal(members, logged.members) {
				return fmt.Sprintf("it goes by %s of entry %d, and its log says %s, entry %d",
					membersText(members), index, membersText(logged.members), logged.index)
			}
			return ""
		},
	}
}

// oneChange looks at every change that comes into a log. What is committed the one history knows, so a
// server may well have two of which it does not know that they are.
func oneChange() invariant {
	return invariant{
		name:     "one-change",
		sentence: "a log has at most one change of the servers that is not committed",
		append: func(w *World, n *node, before *raft.Status, entries []raft.Entry) string {
			var open []raft.Index
			for _, e := range n.sets[1:] {
				record, committed := w.ledger.committedAt(e.index)
				if hash, _ := chainAt(n.chains, e.index); !committed || hash != record.chain {
					open = append(open, e.index)
				}
			}
			if len(open) > 1 {
				return fmt.Sprintf("the changes at %d and %d are in its log, and neither is committed", open[0], open[1])
			}
			return ""
		},
	}
}

// majoritiesOverlap looks at configurations that can decide something at the same time: those that
// follow one another in a log, and the one by which a leader is elected along with the last that was
// committed before its term.
func majoritiesOverlap() invariant {
	return invariant{
		name:     "majorities-overlap",
		sentence: "any two majorities that can decide at the same time have a server in common",
		append: func(w *World, n *node, before *raft.Status, entries []raft.Entry) string {
			for i, e := range n.sets[1:] {
				if one := n.sets[i]; len(one.members) > 0 && disjoint(one.members, e.members) {
					return fmt.Sprintf("%s follows on %s in its log, and a majority of each can have nobody in common",
						membersText(e.members), membersText(one.members))
				}
			}
			return ""
		},
		change: func(w *World, n *node, before, after *raft.Status) string {
			if !becameLeader(before, after) {
				return ""
			}
			last := w.ledger.membersBefore(after.Term)
			if mine := n.members().members; disjoint(last, mine) {
				return fmt.Sprintf("it leads term %d by %s, while %s is committed, and a majority of each can have nobody in common",
					after.Term, membersText(mine), membersText(last))
			}
			return ""
		},
	}
}

// disjoint reports whether a majority of one set and one of another can have no voter in common. Each
// takes first the voters that are in that set alone.
func disjoint(a, b raft.Configuration) bool {
	var both, onlyA, onlyB int
	for _, m := range a {
		switch {
		case !m.Voter:
		case votes(b, m.ID):
			both++
		default:
			onlyA++
		}
	}
	for _, m := range b {
		if m.Voter && !votes(a, m.ID) {
			onlyB++
		}
	}
	return max(majority(both+onlyA)-onlyA, 0)+max(majority(both+onlyB)-onlyB, 0) <= both
}

// majority is how many of so many are one.
func majority(of int) int { return of/2 + 1 }

// membersBefore returns the last configuration that was committed in an earlier term than this one.
func (l *ledger) membersBefore(term raft.Term) raft.Configuration {
	var members raft.Configuration
	for _, e := range l.sets {
		if record, known := l.committedAt(e.index); !known || record.by < term {
			members = e.members
		}
	}
	return members
}
