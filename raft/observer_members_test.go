package raft_test

import (
	"fmt"
	"slices"

	"ticketing/raft"
)

// What an observer of all servers knows of configurations.

// voters returns the ids of those who vote.
func voters(members raft.Configuration) (ids []raft.ServerID) {
	for _, m := range members {
		if m.Voter {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// majority says whether more than half of the voters are among these servers.
func majority(members raft.Configuration, ids []raft.ServerID) bool {
	all := voters(members)
	return common(all, ids) > len(all)/2
}

func common(a, b []raft.ServerID) (n int) {
	for _, id := range a {
		if slices.Contains(b, id) {
			n++
		}
	}
	return n
}

// disjoint says whether there can be a majority of one and a majority of the other that share no
// server: each takes those whom the other does not have first.
func disjoint(a, b raft.Configuration) bool {
	as, bs := voters(a), voters(b)
	shared := common(as, bs)
	need := func(all int) int { return max(0, all/2+1-(all-shared)) }
	return need(len(as))+need(len(bs)) <= shared
}

// votesFor returns who has voted for a server in a term, itself included.
func (o *observer) votesFor(id raft.ServerID, term raft.Term) []raft.ServerID {
	votes := []raft.ServerID{id}
	for ballot, candidate := range o.votes {
		if ballot.term == term && candidate == id && ballot.voter != id {
			votes = append(votes, ballot.voter)
		}
	}
	slices.Sort(votes)
	return votes
}

// OneChange: along a log, majorities of two configurations that follow one another share a server, and
// at most one configuration is not committed. InEffect: a server goes by the last of its log.
func (c *cluster) observeMembers(n *node) error {
	before, snapshot := c.setup.first(), n.core.Snapshot()
	if n.id > raft.ServerID(c.setup.size) && (snapshot == nil || snapshot.Members == nil) {
		before = nil
	}
	last, open := raft.Index(0), 0
	for _, e := range c.history(n.core).all() {
		if e.Members == nil {
			continue
		}
		if before != nil && disjoint(before, e.Members) {
			return fmt.Errorf("OneChange: majorities of %v and %v can decide apart", before, e.Members)
		}
		before, last = e.Members, e.Index
		if int(e.Index) > len(c.observer.commits) || !sameEntry(e, c.observer.commits[e.Index-1].Entry) {
			open++
		}
	}
	if open > 1 {
		return fmt.Errorf("OneChange: %d configurations in its log are not committed", open)
	}
	if snapshot != nil {
		last = max(last, snapshot.LastIncludedIndex)
	}
	if members, at := n.core.Members(); at != last || !slices.Equal(members, before) {
		return fmt.Errorf("InEffect: %v since %d, its log says %v since %d", members, at, before, last)
	}
	return nil
}

// first is the configuration that a cluster begins with.
func (s setup) first() (members raft.Configuration) {
	for id := range raft.ServerID(s.size) {
		members = append(members, raft.Member{ID: id + 1, Voter: true})
	}
	return members
}

// observeChange counts what one input has done.
func (m *met) observeChange(before, after *raft.Core) {
	was, is := before.Status(), after.Status()
	_, from := before.Members()
	members, to := after.Members()
	if to < from {
		m.fallbacks++
	}
	if was.Role == raft.Leader && is.Role != raft.Leader && is.Term == was.Term &&
		!slices.Contains(voters(members), is.ID) {
		m.leavers++
	}
}
