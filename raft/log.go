package raft

import (
	"cmp"
	"fmt"
	"slices"
)

// log is the sequence of entries that a server has stored, in memory. It begins behind base, which is
// 0 until a snapshot stands for what was before (snapshot.go); entries[0] has index base+1.
//
// A slice of entries that has left the log (in a message, a write, a clone) shares the log's array.
// So an array slot, once filled, is never filled anew: appending fills slots that nobody else can
// see, and replacing a conflicting suffix moves the log to an array of its own.
type log struct {
	base     Index
	baseTerm Term
	entries  []Entry
	unsaved  Index // the first index not yet handed out in a write; lastIndex+1 when there is none
}

func (l *log) lastIndex() Index { return l.base + Index(len(l.entries)) }

// lastTerm is the term of the last entry, 0 if there never was one.
func (l *log) lastTerm() Term {
	t, _ := l.term(l.lastIndex())
	return t
}

// term returns the term of the entry at i. Index 0 has term 0: all logs agree before their first
// entry. Of an index beyond the last or before the base nothing is known, which is not the same as 0.
func (l *log) term(i Index) (Term, bool) {
	if i == l.base {
		return l.baseTerm, true
	}
	if i < l.base || i > l.lastIndex() {
		return 0, false
	}
	return l.entries[i-1-l.base].Term, true
}

// matches reports whether this log is the same as one that has term t at i, up to there. Before the
// base all are, since what a snapshot covers is committed: old messages may reach below it.
//
//spec:rule Snapshot.Covered
func (l *log) matches(i Index, t Term) bool {
	known, ok := l.term(i)
	return i < l.base || ok && known == t
}

// slice returns the entries lo to hi, both included, without a copy. Its capacity ends where it
// ends, so that nobody can append into the log through it.
func (l *log) slice(lo, hi Index) []Entry {
	return l.entries[lo-1-l.base : hi-l.base : hi-l.base]
}

// firstOf returns the first index whose entry has term t or a later one, lastIndex+1 if there is
// none. Terms never fall along a log, so it can search by halving.
func (l *log) firstOf(t Term) Index {
	i, _ := slices.BinarySearchFunc(l.entries, t, func(e Entry, t Term) int { return cmp.Compare(e.Term, t) })
	return l.base + Index(i) + 1
}

// append adds an entry of the leader's own, and gives it its index.
func (l *log) append(e Entry) Index {
	e.Index = l.lastIndex() + 1
	l.entries = append(l.entries, e)
	return e.Index
}

// store brings the log in line with entries that follow a position which matches.
func (l *log) store(entries []Entry) {
	for i, e := range entries {
		// What is there already stays. The message may be an old one, and what stands behind these
		// entries may have been acknowledged since: to cut there would lose it.
		if l.matches(e.Index, e.Term) {
			continue
		}
		// "If an existing entry conflicts with a new one (same index but different terms), delete
		// the existing entry and all that follow it." Only a conflict deletes. The kept part's
		// capacity is cut as well, so that what is appended next does not write into slots that
		// others still read.
		//spec:rule AE.3
		if e.Index <= l.lastIndex() {
			l.entries = slices.Clip(l.entries[:e.Index-1-l.base])
		}
		// "Append any new entries not already in the log": this one and, since none can stand
		// behind the last, all that follow it.
		//spec:rule AE.4
		l.unsaved = min(l.unsaved, e.Index)
		l.entries = append(l.entries, entries[i:]...)
		return
	}
}

// checkEntries returns an error if no log can hold these entries, in the term most at the latest, behind
// an entry at index with that term.
func checkEntries(index Index, term, most Term, entries []Entry) error {
	term = max(term, 1) // no entry has term 0
	for _, e := range entries {
		if index++; e.Index != index || index == 0 {
			return fmt.Errorf("entry %d stands where %d belongs", e.Index, index)
		}
		if e.Term < term || e.Term > most {
			return fmt.Errorf("entry %d has term %d, after %d and in term %d", index, e.Term, term, most)
		}
		if e.Members != nil {
			if err := e.Members.check(); err != nil {
				return fmt.Errorf("entry %d: %w", index, err)
			}
			if len(e.Command) > 0 {
				return fmt.Errorf("entry %d is a command and a change of servers at once", index)
			}
		}
		term = e.Term
	}
	return nil
}
