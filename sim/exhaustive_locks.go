package sim

import (
	"slices"

	"ticketing/fsm"
	"ticketing/raft"
)

// This file is the lock service in a small scope as a space to search: real replicas, and two
// clients who want one key. Steps are coarse: a client's request and its arrival are one, an answer
// is heard at once, and all AppendEntries that are on their way to a server arrive together, with
// their replies. That leaves open which servers have an entry and which know that it is committed,
// and that is what the precautions in fsm are about.
//
// A lease can run out whenever it runs, at a leader: a server that does not lead proposes nothing,
// and a lease that had run out before it was elected may as well run out right then. So the search
// covers every behaviour of clocks at once.
//
// Unless the scope is wide there are short cuts. S1 leads at first, and commits with S3. S2 gets
// the same entries, learns later than S3 that they are committed, and may be elected, once, with
// the vote of S3, at any moment; from then on S1 takes no part. See docs/defences.md for what that
// leaves out.

// locks is a state of the search.
type locks struct {
	cluster
	left     scope
	users    [searchUsers]user
	judge    judge
	waits    bool                 // a leader waits for its start-of-term entry,
	start    raft.Index           // which of S2 is this; 0 until it is elected
	lapsed   [searchNodes]lapseOf // the countdown that has run out there
	prints   [searchNodes]uint64  // of the replicas, if the scope is wide
	print    uint64
	recorder *recorder // writes the step down, if somebody reads it
}

// lapseOf names a countdown as fsm.Leases does.
type lapseOf struct {
	token fsm.Token
	since raft.Index
}

var _ space[*locks, lockStep] = (*locks)(nil)

func (s *locks) fingerprint() uint64 { return s.print }
func (s *locks) problem() string     { return s.judge.broken }
func (s *locks) noted() uint8        { return s.judge.happens }

// newLocks returns the state in which all begins: S1 leads, both clients have a session, and every
// server has applied that.
func newLocks(config *worldConfig, within scope) (*locks, error) {
	c, err := newCluster(config)
	if err != nil {
		return nil, err
	}
	s := &locks{cluster: c, left: within, waits: !config.rules.NoNoopWait}
	watch := func(t took) {
		for _, y := range t.replies {
			s.users[y.Call-1].session = y.Result.Client
		}
		s.judge.watch(&s.cluster, t)
	}
	s.touch(0).ElectionTimeout()
	s.settle(0, watch)
	s.flush(watch)
	for i := range s.users {
		s.touch(0).Request(fsm.Request{Call: uint64(i) + 1, Kind: fsm.Open, Owner: userName(i)})
		s.settle(0, watch)
		s.flush(watch)
	}
	s.finish()
	return s, nil
}

// take returns the state after a step.
func (s *locks) take(step lockStep) (*locks, bool) {
	t := *s
	t.judge = s.judge.clone()
	if !t.do(step) {
		return nil, false
	}
	t.finish()
	return &t, true
}

func (s *locks) do(step lockStep) bool {
	who, where := int(step.who), int(step.where)
	switch step.do {
	case actLapse:
		s.left.lapses--
		h, _ := s.nodes[where].Table().Holder(searchKey)
		s.lapsed[where] = lapseOf{h.Token, h.Since}
		s.touch(where).LeaseTimeout(searchKey, h.Token)
		s.settle(where, s.watch)
		s.recorder.lapse(where)
	case actReplicate:
		s.replicate(who, where)
	case actCampaign:
		return s.campaign(who, where, int(step.nth))
	default:
		s.ask(step)
	}
	return true
}

// replicate lets a server have what a leader has for it. A new leader may have to look for the
// place where their logs agree, and then that takes another round.
func (s *locks) replicate(from, to int) {
	last := s.status(from).LastIndex
	s.exchange(from, to)
	for !s.left.wide && s.status(from).CommitIndex < last {
		s.exchange(from, to)
	}
	if !s.left.wide && from == 0 && s.left.elections > 0 {
		s.follow()
	}
}

// exchange delivers what is on its way from a leader to another server, and then the replies.
func (s *locks) exchange(from, to int) {
	s.carry(from, to, messageAppend, all)
	s.carry(to, from, messageAppendReply, all)
}

// follow gives S2 as much of what S1 has sent it as it must have to be elected with S3's vote. Its
// replies are lost.
func (s *locks) follow() {
	for s.status(second).LastIndex < s.status(partner).LastIndex {
		s.carry(0, second, messageAppend, 1)
	}
	s.network[second][0] = nil
}

// carry delivers messages, and has it written down.
func (s *locks) carry(from, to int, kind messageKind, n int) {
	s.recorder.carry(from, to, kind, s.deliver(from, to, kind, n, s.watch))
}

// campaign lets a server be elected. A campaign that fails is of no interest: it can only cost a
// leader its term, as one that succeeds does.
func (s *locks) campaign(who, voter, first int) bool {
	s.left.elections--
	if first > 0 {
		s.carry(s.newest(), who, messageAppend, first)
	}
	s.touch(who).ElectionTimeout()
	s.settle(who, s.watch)
	s.recorder.timeout(who)
	s.carry(who, voter, messageVote, 1)
	s.carry(voter, who, messageVoteReply, 1)
	third := searchNodes - who - voter
	s.network[who][third] = slices.DeleteFunc(slices.Clone(s.network[who][third]),
		func(m raft.Message) bool { return kindOf(m.Body) == messageVote })
	if !s.left.wide && s.leads(who) {
		s.judge.forget(s.nodes[who].Core())
		s.start = s.status(who).LastIndex
	}
	if s.status(who).LastApplied < s.judge.applied {
		s.judge.note(notedLagged)
	}
	return s.leads(who)
}

// watch looks at what a replica has done, and hands its replies to the users at once.
func (s *locks) watch(t took) {
	s.judge.watch(&s.cluster, t)
	for _, y := range t.replies {
		s.hear(t.node, y)
	}
}

// finish ends a step. The messages of servers that do not lead any more are lost: nobody would take
// them. The state gets its fingerprint, and what was touched is shared from now on.
func (s *locks) finish() {
	n := s.newest()
	for i := range s.nodes {
		if !s.leads(i) || !s.left.wide && i != n {
			s.network[i] = [searchNodes][]raft.Message{}
		}
	}
	var space [1024]byte
	b := s.left.appendState(space[:0])
	for i := range s.users {
		b = s.users[i].appendState(b, &s.left, n)
	}
	b = s.judge.appendState(b)
	if s.left.wide {
		b = s.appendWide(b)
	} else {
		b = s.appendNarrow(b, n)
	}
	s.print = digest(b)
	s.own = 0
}
