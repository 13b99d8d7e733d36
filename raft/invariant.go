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
	if err := checkTerms(c); err != nil {
		return err
	}
	if err := checkMembers(c); err != nil {
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
	term := max(c.log.baseTerm, 1)
	index := c.log.base
	for _, e := range c.log.entries {
		if index++; e.Index != index {
			return fmt.Errorf("entry %d stands at %d", e.Index, index)
		}
		if e.Term < term || e.Term > c.currentTerm {
			return fmt.Errorf("entry %d has term %d, after %d and in currentTerm %d",
				e.Index, e.Term, term, c.currentTerm)
		}
		term = e.Term
	}
	return nil
}

// checkMembers: the list of configurations is what the log says, and the peers are those of the last,
// with the removed whom a leader has not told. Each differs from the one before by one voter, so that
// their majorities overlap; and a leader that changes the servers has seen all other changes committed.
func checkMembers(c *Core) error {
	list := c.configurations[1:]
	for i, e := range list {
		if n := c.configurations[i].members.differ(e.members); n > 1 && len(c.configurations[i].members) > 0 {
			return fmt.Errorf("the configurations before and at %d differ by %d voters", e.index, n)
		}
		if t, _ := c.log.term(e.index); c.role == Leader && t == c.currentTerm &&
			i > 0 && list[i-1].index > c.commitIndex {
			return fmt.Errorf("changed at %d, and there is an uncommitted change at %d", e.index, list[i-1].index)
		}
	}
	for _, e := range c.log.slice(c.configurations[0].index+1, c.log.lastIndex()) {
		switch {
		case e.Members == nil:
		case len(list) == 0 || list[0].index != e.Index || !slices.Equal(list[0].members, e.Members):
			return fmt.Errorf("the configuration of index %d is not in the list", e.Index)
		default:
			list = list[1:]
		}
	}
	if len(list) > 0 {
		return fmt.Errorf("a configuration of index %d, of an entry that it does not have", list[0].index)
	}
	want, got := c.current().members, Configuration{}
	for _, p := range c.peers {
		if p.removed == 0 {
			got = append(got, Member{ID: p.id, Voter: p.voter})
		}
	}
	if self := want.find(c.config.ID); self != nil {
		got = append(got, Member{ID: self.ID, Voter: c.voter})
	}
	if len(got) != len(want) || want.differ(got) > 0 {
		return fmt.Errorf("servers %v for server %d's peers, where %v are in effect", got, c.config.ID, want)
	}
	return nil
}

// steppedDown reports whether a leader may have ended its leadership by itself: not before it has
// heard nobody, or its disk has stood still, for an election timeout, or its own removal is committed;
// and then it follows nobody.
func steppedDown(before, after *Core) bool {
	cutOff := before.config.CheckQuorum && after.now >= before.quorumDue()
	left := !after.voter && after.current().index <= after.commitIndex
	return (cutOff || left) && after.leader != after.config.ID
}

// Delta returns an error if no input can lead from one state to the next of the same server,
// without a crash between them. Before is a Clone.
//
// The paper's sentences behind the cases: terms increase monotonically; one vote a term; a leader
// stays one until a later term, or steps down; at most one leader a term, whom a server may forget; commitIndex and lastApplied increase
// monotonically; a committed entry, and a leader's own, is never deleted or overwritten.
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
