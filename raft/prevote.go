package raft

// This file is PreVote (thesis, section 9.6), which is not in Figure 2: before it enters a new term a
// server asks whether anybody would vote for it there. A server that nobody hears, or that hears
// nobody, would otherwise count its term up at every timeout, and depose the leader with it when it
// comes back, although it cannot win and nothing was wrong. It is on with Config.PreVote.
//
// The questions are about the term after the sender's and are sent in the term that the sender is
// in, so here as everywhere the larger term of two spreads with any message. A question that carried
// the next term instead would have to be exempt from All.2, and then a server with a long log and a
// low term and one with a short log and a high term refuse each other for ever.

// PreVote asks whether the receiver would grant its vote if the sender campaigned in the term after
// the message's.
type PreVote struct {
	LastLogIndex Index
	LastLogTerm  Term
}

// PreVoteReply answers PreVote. A yes binds nobody to anything.
type PreVoteReply struct {
	RequestTerm Term // echoes the term of the request
	VoteGranted bool
}

func (r PreVote) receive(c *Core, m Message)      { c.receivePreVote(m, r) }
func (r PreVoteReply) receive(c *Core, m Message) { c.receivePreVoteReply(m, r) }
func (r PreVoteReply) answers() (Term, bool)      { return r.RequestTerm, r.VoteGranted }

// beforeElection reports whether a message can be sent in term 0, in which nobody was elected yet.
func beforeElection(b Body) bool {
	switch b.(type) {
	case PreVote, PreVoteReply:
		return true
	}
	return false
}

// preCampaign asks all others, and campaigns when a majority would vote for this server. Nothing
// that is saved changes. Whoever asks has heard nothing for an election timeout, so it forgets its
// leader; with the memory it would refuse the others who ask, and when a leader dies everybody
// remembers it.
//
//spec:rule PreVote.Ask
func (c *Core) preCampaign() {
	c.role, c.leader = PreCandidate, 0
	c.askForVotes(c.holdForTerm, PreVote{c.log.lastIndex(), c.log.lastTerm()})
	c.countPreVotes()
}

// receivePreVote answers without a trace: it gives no vote away, and it does not restart the
// election timer, or servers that ask in vain could keep those quiet who might win.
//
//spec:rule PreVote.Grant
func (c *Core) receivePreVote(m Message, r PreVote) {
	grant := m.Term == c.currentTerm && !c.hearsLeader() && c.upToDate(r.LastLogIndex, r.LastLogTerm)
	c.holdForTerm(c.reply(m, PreVoteReply{RequestTerm: m.Term, VoteGranted: grant}))
}

// receivePreVoteReply counts an answer as receiveRequestVoteReply counts a vote.
func (c *Core) receivePreVoteReply(m Message, r PreVoteReply) {
	if c.role != PreCandidate || r.RequestTerm != c.currentTerm {
		return
	}
	p := c.peer(m.From)
	p.vote, p.refusal = r.VoteGranted, !r.VoteGranted
	c.countPreVotes()
}

// countPreVotes ends the asking if it is decided. Its own yes needs no disk.
//
//spec:rule PreVote.Majority
func (c *Core) countPreVotes() {
	switch {
	case c.majority(true, func(p *peer) bool { return p.vote }):
		c.campaign(false)
	case c.majority(false, func(p *peer) bool { return p.refusal }):
		c.becomeFollower(c.currentTerm)
	}
}
