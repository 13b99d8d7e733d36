package raft_test

import (
	"bytes"
	"fmt"
	"slices"

	"ticketing/raft"
)

// An observer sees all servers and all their disks, and remembers. It knows what must hold between
// servers and across crashes, which no server can see for itself. Its sentences are the paper's
// where that has one.
type observer struct {
	leaders map[raft.Term]raft.ServerID
	votes   map[ballot]raft.ServerID    // whom a server voted for in a term
	logs    map[raft.Term]history       // the log of each term's leader when it was last seen
	said    map[raft.ServerID]raft.Term // the highest term that a server has sent
	commits []commit                    // commits[0] is about index 1
	entries []raft.Entry                // of commits
	met     met
}

// met counts what a run has come across, so that a random one can show that it is worth something.
type met struct {
	leaders, commits int
	replaced         int // logs that lost entries to a conflict
	lost             int // writes that were under way in a crash, and lost
	disorder         int // writes that completed before an earlier one
	transfers        int
	reads            int // that were answered
	failedReads      int // that were not

	adds, promotions, removals int // of members, as leaders have begun them
	leavers                    int // leaders that stepped down as they were no voters any more
	fallbacks                  int // configurations that were taken back
	early                      int // changes that were refused because they came too early

	taken           int // snapshots of a server's own
	chunks          int // parts of snapshots that were sent, but for the first of each
	installed, kept int // a leader's; and those after which the log went on
	dropped         int // those before which it held another entry where the snapshot ends
}

type ballot struct {
	term  raft.Term
	voter raft.ServerID
}

// commit is an entry and the term in which it was committed, and by which servers' majority: its
// leader is the first to know.
type commit struct {
	raft.Entry
	in raft.Term
	by raft.Configuration
}

func newObserver() observer {
	return observer{
		leaders: map[raft.Term]raft.ServerID{},
		votes:   map[ballot]raft.ServerID{},
		logs:    map[raft.Term]history{},
		said:    map[raft.ServerID]raft.Term{},
	}
}

func sameEntry(a, b raft.Entry) bool {
	return a.Index == b.Index && a.Term == b.Term && bytes.Equal(a.Command, b.Command) &&
		slices.Equal(a.Members, b.Members)
}

// observe looks at the cluster after an input to one server.
func (c *cluster) observe(n *node) error {
	for _, check := range []func(*node) error{
		c.observeTerm, c.observeLeader, c.observeLog, c.observeCommit, c.observeMembers,
		c.observeSnapshot,
	} {
		if err := check(n); err != nil {
			return err
		}
	}
	return c.observeDisks()
}

// TermMonotone: across crashes too, a server's term is never below one that it has ever sent.
func (c *cluster) observeTerm(n *node) error {
	if s := n.core.Status(); s.Term < c.observer.said[n.id] {
		return fmt.Errorf("TermMonotone: in %d, it has spoken in %d", s.Term, c.observer.said[n.id])
	}
	return nil
}

// ElectionSafety, LeaderQuorum, LeaderCompleteness.
func (c *cluster) observeLeader(n *node) error {
	s, o := n.core.Status(), &c.observer
	if s.Role != raft.Leader {
		return nil
	}
	log := c.history(n.core)
	o.logs[s.Term] = log
	for i, done := range o.commits {
		if done.in < s.Term && !log.holds(done.Entry) {
			return fmt.Errorf("LeaderCompleteness: leads term %d without entry %d of term %d, "+
				"committed in term %d", s.Term, i+1, done.Term, done.in)
		}
	}
	if id, known := o.leaders[s.Term]; known {
		if id != n.id {
			return fmt.Errorf("ElectionSafety: %d and %d lead term %d", id, n.id, s.Term)
		}
		return nil
	}
	o.leaders[s.Term] = n.id
	if n.disk.HardState != (raft.HardState{Term: s.Term, VotedFor: n.id}) {
		return fmt.Errorf("PersistBeforeSend: leads term %d, saved %+v", s.Term, n.disk.HardState)
	}
	members, _ := n.core.Members()
	if votes := o.votesFor(n.id, s.Term); !majority(members, votes) {
		return fmt.Errorf("LeaderQuorum: leads term %d with votes of %v; servers %v", s.Term, votes, members)
	}
	return nil
}

// LogMatching: two logs that hold an entry with the same index and term are equal up to it.
func (c *cluster) observeLog(n *node) error {
	log := c.history(n.core)
	for _, other := range c.nodes {
		if other == n || other.core == nil {
			continue
		}
		theirs := c.history(other.core)
		i := min(log.last(), theirs.last())
		for i > 0 && log.at(i).Term != theirs.at(i).Term {
			i--
		}
		// Before its first entry a server has a snapshot, of which others know.
		for least := raft.Index(max(len(log.before), len(theirs.before))); i > least; i-- {
			if !sameEntry(log.at(i), theirs.at(i)) {
				return fmt.Errorf("LogMatching: %d differs at %d, not behind", other.id, i)
			}
		}
	}
	return nil
}

// StateMachineSafety, before it is applied even: all commit the same entry at an index.
func (c *cluster) observeCommit(n *node) error {
	s, o := n.core.Status(), &c.observer
	log := c.history(n.core)
	for i := raft.Index(len(o.commits)) + 1; i <= raft.Index(len(log.before)); i++ { // blank
		o.entries, o.commits = append(o.entries, log.at(i)), append(o.commits, commit{Entry: log.at(i)})
	}
	for i := raft.Index(len(log.before)) + 1; i <= s.CommitIndex; i++ {
		e := log.at(i)
		if int(i) > len(o.commits) {
			by, _ := n.core.Members()
			o.commits = append(o.commits, commit{Entry: e, in: s.Term, by: by})
			o.entries = append(o.entries, e)
		}
		if !sameEntry(o.commits[i-1].Entry, e) {
			return fmt.Errorf("StateMachineSafety: commits %v at %d, where %v is committed",
				e, i, o.commits[i-1].Entry)
		}
	}
	for i, e := range n.applied[min(len(n.applied), int(n.core.FirstIndex())-1):] {
		if i += int(n.core.FirstIndex()) - 1; !sameEntry(o.commits[i].Entry, e) {
			return fmt.Errorf("StateMachineSafety: applied %v for %v", e, o.commits[i].Entry)
		}
	}
	return nil
}

// CommitDurable: what is committed is on a majority's disks, then and ever after. MatchSound: what
// a leader believes to be on a follower's disk is there. Not while the test plays the others, whose
// disks nobody can see.
func (c *cluster) observeDisks() error {
	if c.setup.only != 0 {
		return nil
	}
	o := &c.observer
	if len(o.commits) > 0 {
		var copies []raft.ServerID
		last := o.commits[len(o.commits)-1]
		for _, n := range c.nodes {
			if c.diskOf(n).holds(last.Entry) {
				copies = append(copies, n.id)
			}
		}
		if !majority(last.by, copies) {
			return fmt.Errorf("CommitDurable: entry %d is committed and on the disks of %v; servers %v",
				last.Index, copies, last.by)
		}
	}
	for _, leader := range c.nodes {
		if leader.core == nil || leader.core.Status().Role != raft.Leader {
			continue
		}
		for _, f := range c.nodes {
			_, match := leader.core.Progress(f.id)
			if match == 0 || f.disk.Term > leader.core.Status().Term {
				continue
			}
			if e := c.history(leader.core).at(match); !c.diskOf(f).holds(e) {
				return fmt.Errorf("MatchSound: %d counts on entry %d at %d, whose disk has %v",
					leader.id, match, f.id, terms(c.diskOf(f).all()))
			}
		}
	}
	return nil
}

// observeMessage looks at a message that leaves. PersistBeforeSend: the term, the vote and the
// entries that it reveals are on the sender's disk, or overtaken there by a later term.
// LeaderAuthentic: only the leader of a term speaks for it. VoteOnce: one vote for each server and
// term.
func (c *cluster) observeMessage(n *node, m raft.Message) error {
	o := &c.observer
	o.said[n.id] = max(o.said[n.id], m.Term)
	if m.From != n.id || m.Term > n.disk.Term {
		return fmt.Errorf("PersistBeforeSend: the disk of %d holds term %d", n.id, n.disk.Term)
	}
	current := m.Term == n.disk.Term
	vote, match := raft.ServerID(0), raft.Index(0)
	switch m.Body.(type) {
	case raft.AppendEntries, raft.InstallSnapshot:
		if o.leaders[m.Term] != n.id {
			return fmt.Errorf("LeaderAuthentic: term %d is led by %d", m.Term, o.leaders[m.Term])
		}
	}
	switch b := m.Body.(type) {
	case raft.RequestVote:
		vote = n.id
	case raft.InstallSnapshot:
		o.met.chunks += int(min(b.Offset, 1))
	case raft.RequestVoteReply:
		if b.VoteGranted {
			vote = m.To
		}
	case raft.AppendEntriesReply:
		if b.Success {
			match = b.MatchIndex
		}
	case raft.InstallSnapshotReply:
		if b.Installed {
			match = b.LastIncludedIndex
		}
	}
	if current && vote != 0 && n.disk.VotedFor != vote {
		return fmt.Errorf("PersistBeforeSend: the disk holds a vote for %d", n.disk.VotedFor)
	}
	if current && match > 0 {
		disk := c.diskOf(n)
		if match > disk.last() {
			return fmt.Errorf("PersistBeforeSend: the disk holds %d entries", disk.last())
		}
		log, known := o.logs[m.Term] // unknown if the test plays the leader
		if known && !disk.holds(log.at(match)) {
			return fmt.Errorf("MatchSound: entry %d on the disk is of term %d, the leader's of %d",
				match, disk.at(match).Term, log.at(match).Term)
		}
	}
	return o.vote(m.Term, n.id, vote)
}

func (o *observer) vote(term raft.Term, voter, candidate raft.ServerID) error {
	if candidate == 0 {
		return nil
	}
	b := ballot{term, voter}
	if before, voted := o.votes[b]; voted && before != candidate {
		return fmt.Errorf("VoteOnce: %d votes for %d and %d in term %d",
			voter, before, candidate, term)
	}
	o.votes[b] = candidate
	return nil
}

// hearVote counts a vote that the test casts for a server it plays.
func (o *observer) hearVote(m raft.Message) {
	if r, ok := m.Body.(raft.RequestVoteReply); ok && r.VoteGranted {
		o.votes[ballot{m.Term, m.From}] = m.To
	}
}
