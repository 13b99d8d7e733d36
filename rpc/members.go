package rpc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ticketing/raft"
)

// follow makes the peers those of the configuration that is in effect. Config.Addrs are the servers
// that a cluster begins with, and where they listen until the log says so; whoever is in the log
// counts, whatever this server was started with. The loop calls it after every Take.
func (n *Node) follow() {
	members, index := n.replica.Core().Members()
	if !slices.Equal(members, n.members) {
		n.adopt(members, index)
	}
	if index <= n.replica.Core().Status().CommitIndex { // or it may be taken back
		n.agreed.Store(uint64(index))
	}
	n.sayIfRemoved(index)
	// A leader goes on telling one that it has removed, until that one knows. So its goroutine stays
	// until there was nothing to tell for as long as a leader can be silent.
	for id, p := range n.peers {
		if p.leaves && n.now() >= p.told+raft.Time(n.config.ElectionTimeout.Microseconds()) {
			n.part(p)
			delete(n.voices, id)
			delete(n.answered, id)
		}
	}
}

// adopt starts to talk to those that are new, or have moved.
func (n *Node) adopt(members raft.Configuration, index raft.Index) {
	n.members = members
	places := maps.Clone(n.config.Addrs)
	if places == nil {
		places = map[raft.ServerID]string{}
	}
	for _, m := range members {
		if m.Address != "" {
			places[m.ID] = m.Address
		}
	}
	n.places.Store(&places)
	for _, p := range n.peers {
		p.leaves, p.told = true, n.now()
	}
	for _, m := range members {
		p := n.peers[m.ID]
		if p != nil && p.addr != places[m.ID] {
			n.part(p)
			p = nil
		}
		switch {
		case m.ID == n.config.ID:
			n.belonged = true
		case p == nil:
			n.meet(m.ID, places[m.ID])
		default:
			p.leaves = false
		}
	}
	voters, learners := namesOf(members)
	n.log.Info("members", "index", uint64(index), "voters", voters, "learners", learners)
}

// meet starts a peer's goroutine. The loop's, or Start's, is in the group, so that has not ended.
func (n *Node) meet(id raft.ServerID, addr string) {
	p := newPeer(id, addr)
	p.ctx, p.part = context.WithCancel(n.ctx)
	n.peers[id] = p
	n.group.Go(func() error { n.talk(p); return nil })
}

func (n *Node) part(p *peer) {
	p.part()
	delete(n.peers, p.id)
}

// removal is the index of the committed entry that has removed this server; 0 if there is none. One
// that is new and catches up goes by configurations that were before it: it has to have belonged.
func (n *Node) removal(index raft.Index) raft.Index {
	if !n.belonged || n.isMember() || index > n.replica.Core().Status().CommitIndex {
		return 0
	}
	return index
}

func (n *Node) isMember() bool { return memberOf(n.members, n.config.ID) != nil }

func (n *Node) learns() bool {
	m := memberOf(n.members, n.config.ID)
	return m != nil && !m.Voter
}

func (n *Node) sayIfRemoved(index raft.Index) {
	removal := n.removal(index)
	if removal != n.removed && removal != 0 {
		n.log.Warn("this server was removed from the cluster; stop it", "index", uint64(removal))
	}
	n.removed = removal
}

// hasBelonged reports whether a server was a member before it was started. One that the cluster began
// with was, though all that says so may be gone with the log.
func (c Config) hasBelonged(durable raft.Durable) bool {
	id := c.ID
	if s := durable.Snapshot; c.Addrs[id] != "" || s != nil && memberOf(s.Members, id) != nil {
		return true
	}
	return slices.ContainsFunc(durable.Entries, func(e raft.Entry) bool {
		return memberOf(e.Members, id) != nil
	})
}

func memberOf(members raft.Configuration, id raft.ServerID) *raft.Member {
	i := slices.IndexFunc(members, func(m raft.Member) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return &members[i]
}

// addrOf is where a server listens, "" if that is not known. Anybody may call it.
func (n *Node) addrOf(id raft.ServerID) string { return (*n.places.Load())[id] }

// rosterIndex is what Roster says. Anybody may call it.
func (n *Node) rosterIndex() raft.Index { return raft.Index(n.agreed.Load()) }

// namesOf lists the ids of those who vote and of those who do not.
func namesOf(members raft.Configuration) (voters, learners string) {
	var lists [2][]string
	for _, m := range members {
		kind := 1
		if m.Voter {
			kind = 0
		}
		lists[kind] = append(lists[kind], strconv.FormatUint(uint64(m.ID), 10))
	}
	return strings.Join(lists[0], ","), strings.Join(lists[1], ",")
}

// checkSender refuses strangers while a leader is heard that lives: a server that was removed, or
// whose list of servers is wrong. If it is this server that does not know of a new one, and the
// others have elected that one, then the old leader falls silent, and the new one is heard. The
// core hears everybody, since its configuration may be old.
//
// A new server, which has nothing but what it was started with, votes for no stranger at all: if two
// lists of servers contradict each other, that could elect two leaders in one term.
func (n *Node) checkSender(from raft.ServerID, body raft.Body) error {
	s := n.replica.Core().Status()
	if from == n.config.ID || from == s.Leader || n.peers[from] != nil {
		return nil
	}
	_, votes := body.(raft.RequestVote)
	_, preVotes := body.(raft.PreVote)
	switch {
	case n.hearsLeader(s):
		return fmt.Errorf("%w: server %d is not one of the members, it was removed or its list of "+
			"servers is wrong", raft.ErrMalformed, from)
	case s.LastIndex == 0 && (votes || preVotes):
		return fmt.Errorf("%w: server %d is not one of those that this server was started with",
			raft.ErrMalformed, from)
	}
	return nil
}

// hear notes that a message was accepted, and reports whether a peer has sent it. What would be kept of
// strangers has no bound.
func (n *Node) hear(h Header, body raft.Body, s *session) (known bool) {
	if n.replica.Core().Status().Leader == h.From {
		n.heard = n.now()
	}
	if n.peers[h.From] == nil {
		return false
	}
	n.listen(h, s)
	n.wonder(h, body, s.addr())
	return true
}

// hearsLeader reports whether a leader has been heard within an election timeout. A leader without a
// majority steps down by itself.
func (n *Node) hearsLeader(s raft.Status) bool {
	lately := n.now() < n.heard+raft.Time(n.config.ElectionTimeout.Microseconds())
	return s.Role == raft.Leader || s.Leader != 0 && lately
}
