package raft

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// This file is the change of servers, one at a time (thesis, chapter 4, with the correction of 2015),
// which is not in Figure 2. Who is in the cluster is told by entries of the log, and each server goes
// by the latest that is in its own. Servers learn of it at different moments, and need not agree on
// one: any majority of n servers and any of n+1 share a server, so nothing is ever decided twice. All
// else here is to make sure that two configurations by which servers go differ by no more than one.

// A Member is a server of the cluster. Its address is for the driver and never read here, but two
// servers cannot have the same.
type Member struct {
	ID      ServerID
	Voter   bool // otherwise a learner: it is sent the log and counts for nothing
	Address string
}

// A Configuration is the set of all servers, by rising id.
type Configuration []Member

// ErrMembers is wrapped by ChangeMembers' errors about what it is asked for; ErrChanging by those that
// pass: an earlier change is not committed, a learner not caught up.
var (
	ErrMembers  = errors.New("impossible change of members")
	ErrChanging = errors.New("members cannot be changed now")
)

// effective is a configuration and the index of its entry.
type effective struct {
	index   Index
	members Configuration
}

// ChangeMembers appends an entry that changes the servers to next: one is added as a learner, promoted,
// demoted or removed; addresses may change with it, or alone. The index and term name the entry, as
// with Propose. Errors are ErrNotLeader, ErrTransferring, ErrMembers and ErrChanging.
//
// A server that has lost its disk comes back under another id: it has forgotten its votes.
func (c *Core) ChangeMembers(next Configuration) (Index, Term, error) {
	next = slices.SortedFunc(slices.Values(next), func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	switch {
	case c.role != Leader:
		return 0, 0, ErrNotLeader
	case c.Transferring() != 0:
		return 0, 0, ErrTransferring
	}
	if err := cmp.Or(c.checkStep(next), c.checkSettled(next)); err != nil {
		return 0, 0, err
	}
	// It is in effect from here on, and not from its commit: those who have to commit it are counted
	// by it. If it made the majority smaller, something may be committed now.
	//spec:rule Members.Append
	c.configurations = append(c.configurations, effective{c.log.lastIndex() + 1, next})
	c.setPeers()
	index := c.log.append(Entry{Term: c.currentTerm, Members: next})
	c.advanceCommit()
	return index, c.currentTerm, nil
}

// checkStep refuses what can never be the next configuration. A new server does not vote at once:
// while it has nothing, it would be one more for a majority and no help to get one.
func (c *Core) checkStep(next Configuration) error {
	if err := next.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrMembers, err)
	}
	now := c.current().members
	for _, m := range next {
		if m.Voter && now.find(m.ID) == nil {
			return fmt.Errorf("%w: server %d is new and has to be added as a learner", ErrMembers, m.ID)
		}
	}
	if slices.Equal(now, next) {
		return fmt.Errorf("%w: it is what there is", ErrMembers)
	}
	if n := now.differ(next); n > 1 {
		return fmt.Errorf("%w: it changes %d servers, and can change one", ErrMembers, n)
	}
	return nil
}

// checkSettled refuses a change that comes too early.
func (c *Core) checkSettled(next Configuration) error {
	// Two changes on their way could both be made of the same configuration, and differ by two.
	//spec:rule Members.One
	if last := c.current().index; last > c.commitIndex {
		return fmt.Errorf("%w: the change at index %d is not committed", ErrChanging, last)
	}
	// A change that this leader does not know of may be on its way as well, in the log of an earlier
	// one. Once an entry of this term is committed, whoever has only that change cannot be elected.
	//spec:rule Members.OwnTerm
	if !c.ownTermCommitted() {
		return fmt.Errorf("%w: the new leader has committed nothing yet", ErrChanging)
	}
	for _, p := range c.peers {
		if m := next.find(p.id); !p.voter && m != nil && m.Voter && !c.caughtUp(p) {
			return fmt.Errorf("%w: server %d has not caught up", ErrChanging, p.id)
		}
	}
	return nil
}

// caughtUp reports whether a learner could vote: it has answered this leader within an election
// timeout, and its log is at most one message's entries behind what is committed.
//
//spec:rule Members.CaughtUp
func (c *Core) caughtUp(p peer) bool {
	return p.matchIndex > 0 && p.heard+c.config.ElectionTimeout > c.now &&
		p.matchIndex+Index(c.config.MaxBatch) >= c.commitIndex
}

// first is the configuration that servers are started with. It is in no log, so nobody knows addresses.
func (c Config) first() (members Configuration) {
	for _, id := range slices.Sorted(slices.Values(c.Voters)) {
		members = append(members, Member{ID: id, Voter: true})
	}
	return members
}

// Members returns the configuration in effect, which is not to be changed, and the index of its entry:
// 0 if it is the first, the snapshot's if it came with one.
func (c *Core) Members() (Configuration, Index) {
	e := c.current()
	return e.members, e.index
}

func (c *Core) current() effective { return c.configurations[len(c.configurations)-1] }

// membersAt returns the configuration in effect at an index that is not before the snapshot.
func (c *Core) membersAt(i Index) Configuration {
	var members Configuration
	for _, e := range c.configurations {
		if e.index <= i {
			members = e.members
		}
	}
	return members
}

// rebaseMembers begins the list of configurations anew behind a snapshot. It is called when the log
// has been brought in line with it.
func (c *Core) rebaseMembers(index Index, members Configuration) {
	list := []effective{{index, members}}
	for _, e := range c.configurations {
		if e.index > index && e.index <= c.log.lastIndex() {
			list = append(list, e)
		}
	}
	c.configurations = list
	c.setPeers()
}

// readMembers brings the list of configurations in line with a log that has changed from an index on.
// If an entry that had changed the servers is gone, the configuration before it is in effect again.
//
//spec:rule Members.Fallback
func (c *Core) readMembers(from Index) {
	keep := len(c.configurations)
	for keep > 1 && c.configurations[keep-1].index >= from {
		keep--
	}
	changed := keep < len(c.configurations)
	c.configurations = c.configurations[:keep]
	for i := max(from, c.configurations[0].index+1); i <= c.log.lastIndex(); i++ {
		if e := c.log.slice(i, i)[0]; e.Members != nil {
			c.configurations = append(c.configurations, effective{i, e.Members})
			changed = true
		}
	}
	if changed {
		c.setPeers()
	}
}

// setPeers makes peers of all others in the configuration in effect. What is known about one that stays
// is kept. A leader goes on with one that is removed, until it has been told (see dismiss): it can
// learn of its removal from nobody else. If that one is added again meanwhile, it is a new one, and has
// to show anew what it has: its disk may have been replaced.
func (c *Core) setPeers() {
	members := c.current().members
	c.voter = false
	var peers []peer
	for _, m := range members {
		if m.ID == c.config.ID {
			c.voter = m.Voter
			continue
		}
		p := peer{id: m.ID, nextIndex: c.log.lastIndex() + 1, probing: true, heard: c.now}
		if known := c.peer(m.ID); known != nil && known.removed == 0 {
			p = *known
		}
		p.voter = m.Voter
		peers = append(peers, p)
	}
	for _, p := range c.peers {
		if c.role == Leader && members.find(p.id) == nil {
			p.voter, p.removed = false, max(p.removed, c.current().index)
			peers = append(peers, p)
		}
	}
	slices.SortFunc(peers, func(a, b peer) int { return cmp.Compare(a.id, b.id) })
	c.peers = peers
}

// dismiss is called by Take when everybody has been told what is committed. It forgets the removed who
// do not answer, and those who have the entry, once they are told that it is committed: what has told
// them before may have overtaken the entry, and been refused. If this leader is not a voter any more, it
// is its own turn: until now it was needed, as nobody else may have the entry that removes it.
//
//spec:rule Members.Leave
func (c *Core) dismiss() {
	if c.voter && len(c.peers) < len(c.current().members) {
		return // the others are all members, too
	}
	c.peers = slices.DeleteFunc(c.peers, func(p peer) bool {
		switch {
		case p.removed == 0 || p.removed > c.commitIndex:
			return false
		case p.removed <= p.matchIndex && c.log.base <= p.matchIndex:
			p.nextIndex = p.matchIndex + 1 // what was sent behind that may not be there yet
			c.sendAppend(&p, nil)
			return true
		}
		return c.now >= p.heard+c.config.ElectionTimeout
	})
	if !c.voter && c.current().index <= c.commitIndex {
		c.stepDown()
	}
}

// mayCampaign reports whether this server is a voter, or was one and does not know that the change is
// committed. It may be the only one that has that entry, and then nobody else can be elected.
func (c *Core) mayCampaign() bool {
	for i, e := range slices.Backward(c.configurations) {
		if m := e.members.find(c.config.ID); m != nil && m.Voter {
			return true
		}
		if i == 0 || e.index <= c.commitIndex {
			break
		}
	}
	return false
}

// stranger reports whether a message is of no interest: an answer from a server that is not in the
// configuration, or one from a server on its way out that has a later term. Requests are heard from
// everybody, since it is this server's configuration that may be old.
func (c *Core) stranger(m Message) bool {
	if _, ok := m.Body.(answer); !ok {
		return false
	}
	p := c.peer(m.From)
	return p == nil || p.removed != 0 && m.Term > c.currentTerm
}

func (ms Configuration) find(id ServerID) *Member {
	for i := range ms {
		if ms[i].ID == id {
			return &ms[i]
		}
	}
	return nil
}

// differ counts the servers that are in one of two configurations only, or vote in one only.
func (ms Configuration) differ(other Configuration) (n int) {
	for _, m := range ms {
		if o := other.find(m.ID); o == nil || o.Voter != m.Voter {
			n++
		}
	}
	for _, o := range other {
		if ms.find(o.ID) == nil {
			n++
		}
	}
	return n
}

// check returns an error if no cluster can consist of these servers.
func (ms Configuration) check() error {
	addresses := map[string]bool{}
	for i, m := range ms {
		switch {
		case m.ID == 0:
			return errors.New("a server has id 0, which means nobody")
		case i > 0 && m.ID <= ms[i-1].ID:
			return fmt.Errorf("server %d is there twice, or out of order", m.ID)
		case m.Address != "" && addresses[m.Address]:
			return fmt.Errorf("two servers have the address %s", m.Address)
		}
		addresses[m.Address] = true
	}
	if !slices.ContainsFunc(ms, func(m Member) bool { return m.Voter }) {
		return errors.New("no server votes")
	}
	return nil
}
