package raft

import (
	"fmt"
	"slices"
)

// Check returns an error if one server's state is one that no run of a correct core reaches. It
// looks at this server alone; what must hold between servers only an observer of all can see.
func Check(c *Core) error {
	last := c.log.lastIndex()
	switch {
	// AE.5 and Leaders.4 both stop at an entry that the log holds, and what is committed is never
	// cut off.
	case c.commitIndex > last:
		return fmt.Errorf("commitIndex %d is beyond the last entry %d", c.commitIndex, last)
	// Only committed entries are handed out to be applied.
	case c.lastApplied > c.commitIndex:
		return fmt.Errorf("lastApplied %d is beyond commitIndex %d", c.lastApplied, c.commitIndex)
	// Whatever changes the log moves this mark down to the change, and a Take up to the end.
	case c.log.unsaved < 1 || c.log.unsaved > last+1:
		return fmt.Errorf("first unsaved index %d is outside 1 to %d", c.log.unsaved, last+1)
	case c.saved > c.seq:
		return fmt.Errorf("write %d is saved, the last one handed out was %d", c.saved, c.seq)
	// Messages from strangers are refused before anything looks at them.
	case c.votedFor != 0 && c.votedFor != c.config.ID && c.peer(c.votedFor) == nil:
		return fmt.Errorf("a vote for server %d, which is not of this cluster", c.votedFor)
	// A campaign begins with the vote for oneself, and the vote goes only with the term.
	case c.role != Follower && c.votedFor != c.config.ID:
		return fmt.Errorf("a %s of term %d whose vote is for %d", c.role, c.currentTerm, c.votedFor)
	case c.role == Leader && c.leader != c.config.ID:
		return fmt.Errorf("the leader of term %d follows %d", c.currentTerm, c.leader)
	// A leadership begins with an entry of its own, and a leader only appends.
	case c.role == Leader && c.log.lastTerm() != c.currentTerm:
		return fmt.Errorf("the leader of term %d has no entry of that term", c.currentTerm)
	}
	if err := checkTerms(c); err != nil {
		return err
	}
	if c.role != Leader {
		return nil
	}
	for _, p := range c.peers {
		switch {
		// What a follower is known to have is never sent again, and nothing beyond the end is.
		case p.matchIndex > last || p.nextIndex <= p.matchIndex || p.nextIndex > last+1:
			return fmt.Errorf("peer %d: nextIndex %d, matchIndex %d, last entry %d",
				p.id, p.nextIndex, p.matchIndex, last)
		// The window bounds what is unanswered; while probing there is one message, not counted
		// here.
		case len(p.inflight) > c.config.Window || p.probing && len(p.inflight) > 0:
			return fmt.Errorf("peer %d: %d messages in flight, probing %v", p.id, len(p.inflight), p.probing)
		}
	}
	return nil
}

// checkTerms: indexes follow one another, terms never fall along a log nor pass currentTerm.
func checkTerms(c *Core) error {
	term := Term(1)
	for i, e := range c.log.entries {
		if e.Index != Index(i)+1 {
			return fmt.Errorf("entry %d stands at %d", e.Index, i+1)
		}
		if e.Term < term || e.Term > c.currentTerm {
			return fmt.Errorf("entry %d has term %d, after %d and in currentTerm %d",
				e.Index, e.Term, term, c.currentTerm)
		}
		term = e.Term
	}
	return nil
}

// Delta returns an error if no input can lead from one state to the next of the same server,
// without a crash between them. Before is a Clone.
//
// The paper's sentences behind the cases: terms increase monotonically; one vote a term; a leader
// stays one until a later term; at most one leader a term; commitIndex and lastApplied increase
// monotonically; a committed entry, and a leader's own, is never deleted or overwritten.
func Delta(before, after *Core) error {
	same := after.currentTerm == before.currentTerm
	switch {
	case after.currentTerm < before.currentTerm:
		return fmt.Errorf("currentTerm fell from %d to %d", before.currentTerm, after.currentTerm)
	case same && before.votedFor != 0 && after.votedFor != before.votedFor:
		return fmt.Errorf("the vote of term %d changed from %d to %d",
			after.currentTerm, before.votedFor, after.votedFor)
	case same && before.role == Leader && after.role != Leader:
		return fmt.Errorf("the leader of term %d became a %s in it", after.currentTerm, after.role)
	case same && before.leader != 0 && after.role == Follower && after.leader != before.leader:
		return fmt.Errorf("the leader of term %d changed from %d to %d",
			after.currentTerm, before.leader, after.leader)
	case after.commitIndex < before.commitIndex:
		return fmt.Errorf("commitIndex fell from %d to %d", before.commitIndex, after.commitIndex)
	case after.lastApplied < before.lastApplied:
		return fmt.Errorf("lastApplied fell from %d to %d", before.lastApplied, after.lastApplied)
	case after.saved < before.saved || after.seq < before.seq:
		return fmt.Errorf("writes went back: %d of %d saved, then %d of %d",
			before.saved, before.seq, after.saved, after.seq)
	}
	keep := before.commitIndex
	if before.role == Leader && same {
		keep = before.log.lastIndex() // Leader Append-Only
	}
	equal := func(a, b Entry) bool { return a.Index == b.Index && a.Term == b.Term }
	if after.log.lastIndex() < keep ||
		!slices.EqualFunc(before.log.entries[:keep], after.log.entries[:keep], equal) {
		return fmt.Errorf("an entry among the first %d, which had to stay, is gone or replaced", keep)
	}
	return nil
}
