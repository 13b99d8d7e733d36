package raft

import "cmp"

// becomeFollower enters a later term, in which this server has not voted and knows no leader, or
// falls back within its term. The vote goes only with the term: a server that forgets it in a term
// that it has voted in may vote twice. The election timer runs on, since an unknown server with a
// high term and a short log must not be able to keep everyone quiet by asking again and again.
func (c *Core) becomeFollower(term Term) {
	if term > c.currentTerm {
		c.currentTerm, c.votedFor, c.leader = term, 0, 0
	}
	if c.role == Leader { // it had no election timer, and knows the others no more
		c.resetElectionTimer()
		c.peers = nil
		c.setPeers() // membership.go
	}
	c.role = Follower
}

// resetElectionTimer starts a new wait, of a length that is drawn anew each time so that split
// votes are rare and do not repeat (section 5.2).
//
//spec:rule Election.Random
func (c *Core) resetElectionTimer() {
	c.electionDue = c.now + c.config.ElectionTimeout + c.config.Jitter(c.timeouts)
	c.timeouts++
}

// ElectionTimeout is what Tick does when the election timer runs out. A follower: "if election
// timeout elapses without receiving AppendEntries RPC from current leader or granting vote to
// candidate: convert to candidate". A candidate: "if election timeout elapses: start new election".
// A leader has no such timer and ignores it.
//
//spec:rule Followers.2
//spec:rule Candidates.4
func (c *Core) ElectionTimeout() {
	switch {
	case c.role == Leader:
	case !c.mayCampaign(): // membership.go
		c.resetElectionTimer()
	case c.config.PreVote:
		c.preCampaign() // prevote.go
	default:
		c.campaign(false)
	}
}

// campaign begins an election; with transfer, because the leader said so.
func (c *Core) campaign(transfer bool) {
	// "On conversion to candidate, start election: increment currentTerm, vote for self, reset
	// election timer, send RequestVote RPCs to all other servers." They leave, and its own vote
	// counts, once term and vote are durable. Otherwise it could crash, forget, and vote for
	// another in the same term.
	//spec:rule Candidates.1
	c.currentTerm++
	c.role, c.votedFor, c.leader = Candidate, c.config.ID, 0
	c.askForVotes(c.hold, RequestVote{c.log.lastIndex(), c.log.lastTerm(), transfer})
}

// askForVotes asks all others, of whom none has answered yet.
func (c *Core) askForVotes(hold func(Message), question Body) {
	c.resetElectionTimer()
	for i := range c.peers {
		p := &c.peers[i]
		p.vote, p.refusal = false, false
		hold(c.message(p.id, question))
	}
}

// receiveRequestVote answers a candidate.
func (c *Core) receiveRequestVote(m Message, r RequestVote) {
	grant := c.mayVoteFor(m, r)
	if grant {
		c.votedFor = m.From
		// The candidate may win; to campaign now would be to depose it. A refusal leaves the timer
		// alone: a candidate that cannot win must not keep those quiet who can.
		//spec:rule Followers.Timer
		c.resetElectionTimer()
	}
	// "Respond to RPCs from candidates and leaders": always, even to an old term, or the sender
	// would never learn of the new one.
	//spec:rule Followers.1
	c.hold(c.reply(m, RequestVoteReply{RequestTerm: m.Term, VoteGranted: grant}))
}

// mayVoteFor is the receiver's part of the RequestVote RPC.
func (c *Core) mayVoteFor(m Message, r RequestVote) bool {
	// "Reply false if term < currentTerm": that election is over. A later term that this server has
	// not entered is one that would disturb.
	//spec:rule RV.1
	if m.Term != c.currentTerm {
		return false
	}
	// "If votedFor is null or candidateId": one vote a term, and the same answer to a repeated
	// request.
	//spec:rule RV.2
	if c.votedFor != 0 && c.votedFor != m.From {
		return false
	}
	// "… and candidate's log is at least as up-to-date as receiver's log, grant vote": a later last
	// term wins, and with equal last terms the longer log (section 5.4.1). Not "both at least as
	// large": then a long log of an old term and a short one of a new term would refuse each other
	// for ever. Whoever lacks a committed entry is refused by some member of every majority, since
	// each has a member that holds the entry.
	//spec:rule RV.UpToDate
	return c.upToDate(r.LastLogIndex, r.LastLogTerm)
}

// upToDate reports whether a log that ends so is at least as up-to-date as this server's.
func (c *Core) upToDate(lastIndex Index, lastTerm Term) bool {
	return cmp.Or(cmp.Compare(lastTerm, c.log.lastTerm()), cmp.Compare(lastIndex, c.log.lastIndex())) >= 0
}

// receiveRequestVoteReply counts a vote. Only a candidate counts, and only an answer to a request
// of its present term: a slow yes to an earlier campaign is not a vote in this one.
//
//spec:rule Election.Reply
func (c *Core) receiveRequestVoteReply(m Message, r RequestVoteReply) {
	if c.role != Candidate || r.RequestTerm != c.currentTerm {
		return
	}
	// A flag for each server, not a counter: a reply that arrives twice is one vote.
	p := c.peer(m.From)
	p.vote, p.refusal = r.VoteGranted, !r.VoteGranted
	c.countVotes()
}

// countVotes ends the campaign if it is decided.
func (c *Core) countVotes() {
	own := c.saved >= c.handedSeq && c.hardState() == c.handed // its own counts once it is durable
	// "If votes received from majority of servers: become leader." Two majorities share a server,
	// and it votes once a term: so there is at most one leader a term.
	//spec:rule Candidates.2
	if c.majority(own, func(p *peer) bool { return p.vote }) {
		c.becomeLeader()
		return
	}
	// With a majority against it this campaign cannot succeed any more.
	//spec:rule Election.Refused
	if c.majority(false, func(p *peer) bool { return p.refusal }) {
		c.becomeFollower(c.currentTerm)
	}
}

// majority reports whether more than half of all voters say yes: this one says own, each other what
// ask returns. Whatever takes a majority is decided here, and whoever does not vote is not counted,
// be it this server.
//
//spec:rule Members.Quorum
func (c *Core) majority(own bool, ask func(*peer) bool) bool {
	ahead := 0 // by how much the yes outnumber the no
	count := func(voter, yes bool) {
		switch {
		case voter && yes:
			ahead++
		case voter:
			ahead--
		}
	}
	count(c.voter, own)
	for i := range c.peers {
		count(c.peers[i].voter, ask(&c.peers[i]))
	}
	return ahead > 0
}

// reached is the greatest number that a majority has reached, of this server's own and the others'.
// There are few servers; to look at all each time cannot go stale.
func reached[T ~int64 | ~uint64](c *Core, own T, of func(*peer) T) (best T) {
	for i := -1; i < len(c.peers); i++ {
		n := own
		if i >= 0 {
			n = of(&c.peers[i])
		}
		if n > best && c.majority(own >= n, func(p *peer) bool { return of(p) >= n }) {
			best = n
		}
	}
	return best
}

// becomeLeader starts a leadership. It knows nothing of the others' logs yet.
func (c *Core) becomeLeader() {
	c.role, c.leader, c.reading.round = Leader, c.config.ID, 0
	c.transfer = transfer{}
	c.peers = nil
	c.setPeers() // membership.go
	// A leader may not count copies of earlier terms' entries as commits (Leaders.4), so it starts
	// with an entry of its own that does nothing (section 8). It is also the first AppendEntries
	// that all others get: "upon election: send initial empty AppendEntries RPCs (heartbeat) to
	// each server".
	//spec:rule Leaders.Noop
	c.log.append(Entry{Term: c.currentTerm})
	c.heartbeatDue = c.now + c.config.HeartbeatTimeout
}
