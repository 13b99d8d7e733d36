package raft

import (
	"cmp"
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
	// A snapshot stands for what is committed. What it does not, and what is not applied, is in the log.
	case c.log.base > min(c.snapshots.index(), c.lastApplied) || c.snapshots.index() > c.commitIndex:
		return fmt.Errorf("the log begins behind entry %d, with a snapshot of %d, applied %d, committed %d",
			c.log.base, c.snapshots.index(), c.lastApplied, c.commitIndex)
	// Whatever changes the log moves this mark down to the change, and a Take up to the end.
	case c.log.unsaved <= c.log.base || c.log.unsaved > last+1:
		return fmt.Errorf("first unsaved index %d is outside %d to %d", c.log.unsaved, c.log.base+1, last+1)
	case c.saved > c.seq:
		return fmt.Errorf("write %d is saved, the last one handed out was %d", c.saved, c.seq)
	// A campaign begins with the vote for oneself, and the vote goes only with the term.
	case (c.role == Candidate || c.role == Leader) && c.votedFor != c.config.ID:
		return fmt.Errorf("a %s of term %d whose vote is for %d", c.role, c.currentTerm, c.votedFor)
	case c.role == Leader && c.leader != c.config.ID:
		return fmt.Errorf("the leader of term %d follows %d", c.currentTerm, c.leader)
	// A leadership begins with an entry of its own, and a leader only appends.
	case c.role == Leader && c.log.lastTerm() != c.currentTerm:
		return fmt.Errorf("the leader of term %d has no entry of that term", c.currentTerm)
	}
	// Indexes follow one another, terms never fall along a log nor pass currentTerm.
	entries := checkEntries(c.log.base, c.log.baseTerm, c.currentTerm, c.log.entries)
	if err := cmp.Or(entries, checkMembers(c)); err != nil {
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

// checkMembers: the list of configurations and the peers are what one gets by reading the log anew, with
// the removed whom a leader has not told. Each configuration differs from the one before by one voter,
// so that their majorities overlap; and a leader that changes the servers has seen every other change
// committed.
func checkMembers(c *Core) error {
	anew := *c
	anew.configurations, anew.peers = slices.Clone(c.configurations[:1]), nil
	anew.readMembers(anew.configurations[0].index + 1)
	anew.setPeers()
	equal := func(a, b effective) bool { return a.index == b.index && slices.Equal(a.members, b.members) }
	if !slices.EqualFunc(c.configurations, anew.configurations, equal) {
		return fmt.Errorf("goes by the configurations %v, its log says %v",
			c.configurations, anew.configurations)
	}
	staying := slices.DeleteFunc(slices.Clone(c.peers), func(p peer) bool { return p.removed != 0 })
	alike := func(a, b peer) bool { return a.id == b.id && a.voter == b.voter }
	if c.voter != anew.voter || !slices.EqualFunc(staying, anew.peers, alike) {
		return fmt.Errorf("its peers are not those of the configuration %v", c.current().members)
	}
	for i, e := range c.configurations[1:] {
		before := c.configurations[i]
		if before.members != nil && before.members.differ(e.members) > 1 {
			return fmt.Errorf("%v and, at %d, %v differ by more than one voter",
				before.members, e.index, e.members)
		}
		t, _ := c.log.term(e.index)
		if c.role == Leader && t == c.currentTerm && before.index > c.commitIndex {
			return fmt.Errorf("changed at %d, and the change at %d is not committed", e.index, before.index)
		}
	}
	return nil
}

// steppedDown reports whether a leader may have ended its leadership by itself: not before it has
// heard nobody, or its disk has stood still, for an election timeout, or its own removal is committed;
// and then it follows nobody.
func steppedDown(before, after *Core) bool {
	cutOff := after.now >= before.quorumDue()
	left := !after.voter && after.current().index <= after.commitIndex
	return (cutOff || left) && after.leader != after.config.ID
}

// Delta returns an error if no input can lead from one state to the next of the same server,
// without a crash between them. Before is a Clone.
//
// The paper's sentences behind the cases: terms increase monotonically; one vote a term; a leader
// stays one until a later term, or steps down; at most one leader a term, whom a server may forget;
// commitIndex and lastApplied increase monotonically; a committed entry, and a leader's own, is never
// deleted or overwritten.
func Delta(before, after *Core) error {
	same := after.currentTerm == before.currentTerm
	switch {
	case after.currentTerm < before.currentTerm:
		return fmt.Errorf("currentTerm fell from %d to %d", before.currentTerm, after.currentTerm)
	case same && before.votedFor != 0 && after.votedFor != before.votedFor:
		return fmt.Errorf("the vote of term %d changed from %d to %d",
			after.currentTerm, before.votedFor, after.votedFor)
	case same && before.role == Leader && after.role != Leader && !steppedDown(before, after):
		return fmt.Errorf("the leader of term %d became a %s in it", after.currentTerm, after.role)
	case same && before.leader != 0 && after.leader != 0 && after.leader != before.leader:
		return fmt.Errorf("the leader of term %d changed from %d to %d",
			after.currentTerm, before.leader, after.leader)
	case after.commitIndex < before.commitIndex:
		return fmt.Errorf("commitIndex fell from %d to %d", before.commitIndex, after.commitIndex)
	case after.lastApplied < before.lastApplied:
		return fmt.Errorf("lastApplied fell from %d to %d", before.lastApplied, after.lastApplied)
	case after.log.base < before.log.base || after.snapshots.index() < before.snapshots.index():
		return fmt.Errorf("the log began behind entry %d, with a snapshot of %d; then %d and %d",
			before.log.base, before.snapshots.index(), after.log.base, after.snapshots.index())
	case after.saved < before.saved || after.seq < before.seq:
		return fmt.Errorf("writes went back: %d of %d saved, then %d of %d",
			before.saved, before.seq, after.saved, after.seq)
	}
	keep := before.commitIndex
	if before.role == Leader && same {
		keep = before.log.lastIndex() // Leader Append-Only
	}
	for i := max(before.log.base, after.log.base); i <= keep; i++ { // both have it, or it was to stay
		was, _ := before.log.term(i)
		if is, ok := after.log.term(i); i <= before.log.lastIndex() && (!ok || is != was) {
			return fmt.Errorf("an entry among the first %d, which had to stay, is gone or replaced", keep)
		}
	}
	return nil
}
