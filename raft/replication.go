package raft

import "errors"

// ErrNotLeader is returned by Propose on a server that does not lead. Status.Leader may know who
// does.
var ErrNotLeader = errors.New("not the leader")

// Propose appends a command to the log of a leader. The index and term name the entry: if another
// term's entry is committed at that index, this one never will be. The core keeps command, which
// the caller must not change afterwards. Take sends and saves it; Take's Committed says when it is
// decided.
//
// "If command received from client: append entry to local log, respond after entry applied to state
// machine."
//
//spec:rule Leaders.2
func (c *Core) Propose(command []byte) (Index, Term, error) {
	switch {
	case c.role != Leader:
		return 0, 0, ErrNotLeader
	case c.Transferring() != 0: // transfer.go
		return 0, 0, ErrTransferring
	case c.busy(command): // backlog.go
		return 0, 0, ErrBusy
	}
	return c.log.append(Entry{Term: c.currentTerm, Command: command}), c.currentTerm, nil
}

// HeartbeatTimeout is what Tick does when the heartbeat timer runs out: "repeat during idle periods
// to prevent election timeouts". The next one is due a period after this one was, not after it was
// noticed, or late wake-ups would add up; after a long pause the missed ones are skipped.
//
//spec:rule Leaders.1
func (c *Core) HeartbeatTimeout() {
	if c.role != Leader {
		return
	}
	for i := range c.peers {
		c.peers[i].beat = true
	}
	c.heartbeatDue = min(c.heartbeatDue, c.now) + c.config.HeartbeatTimeout
	if c.heartbeatDue <= c.now {
		c.heartbeatDue = c.now + c.config.HeartbeatTimeout
	}
}

// replicate composes what the followers should get now: "if last log index ≥ nextIndex for a
// follower: send AppendEntries RPC with log entries starting at nextIndex".
//
//spec:rule Leaders.3
func (c *Core) replicate() {
	last := c.log.lastIndex()
	for i := range c.peers {
		p := &c.peers[i]
		c.install(p) // snapshot.go: where the entry before nextIndex is gone
		for p.nextIndex <= last && p.open(c.config.Window) {
			end := min(last, p.nextIndex+Index(c.config.MaxBatch)-1)
			c.sendAppend(p, c.log.slice(p.nextIndex, end))
			if p.probing {
				p.probed = true
				break
			}
			p.inflight = append(p.inflight, end)
			p.nextIndex = end + 1
		}
		// An empty one when a heartbeat is due, and when there is a commit to tell and nothing else
		// that would carry it. It names the index before nextIndex: where the follower's log falls
		// short of that, entries were lost on the way, and its refusal tells.
		if p.beat || !p.probing && p.sentCommit < c.commitIndex {
			c.sendAppend(p, nil)
		}
		p.beat = false
	}
}

// open reports whether another message with entries may go to the follower. One whose log is not
// known yet is sent one at a time; otherwise up to window may be unanswered, sent one behind
// another without waiting (thesis, section 10.2.2).
//
//spec:rule Pipeline.Window
func (p *peer) open(window int) bool {
	if p.probing {
		return !p.probed
	}
	return len(p.inflight) < window
}

func (c *Core) sendAppend(p *peer, entries []Entry) {
	prev := p.nextIndex - 1
	prevTerm, _ := c.log.term(prev)
	if p.sending != nil {
		prevTerm = p.sending.LastIncludedTerm
	}
	c.send(p.id, AppendEntries{
		PrevLogIndex: prev,
		PrevLogTerm:  prevTerm,
		Entries:      entries,
		LeaderCommit: c.commitIndex,
		Round:        c.reading.round,
	})
	p.sentCommit = c.commitIndex
}

// receiveAppendEntries is the receiver's part of the AppendEntries RPC.
func (c *Core) receiveAppendEntries(m Message, a AppendEntries) {
	reply := AppendEntriesReply{RequestTerm: m.Term, PrevLogIndex: a.PrevLogIndex, Round: a.Round}
	heartbeat, hold := len(a.Entries) == 0, c.hold
	if heartbeat {
		hold = c.holdForTerm
	}
	// "Reply false if term < currentTerm": the sender was deposed and learns it from the reply's
	// term. Nothing else happens, and the election timer runs on.
	//spec:rule AE.1
	if m.Term < c.currentTerm {
		hold(c.reply(m, reply))
		return
	}
	c.follow(m.From)

	// "Reply false if log doesn't contain an entry at prevLogIndex whose term matches prevLogTerm":
	// else there would be a gap, or different entries below equal ones. A heartbeat is checked like
	// any other.
	//spec:rule AE.2
	if !c.log.matches(a.PrevLogIndex, a.PrevLogTerm) {
		// The refusal names the conflicting term and its first index, so that the leader can step
		// over the whole term at once (section 5.3, last paragraphs).
		//spec:rule Backoff.Hint
		reply.ConflictIndex = c.log.lastIndex() + 1
		if t, ok := c.log.term(a.PrevLogIndex); ok {
			reply.ConflictTerm, reply.ConflictIndex = t, c.log.firstOf(t)
		}
		hold(c.reply(m, reply))
		return
	}
	c.log.store(a.Entries)
	c.readMembers(c.log.unsaved) // membership.go
	verified := a.PrevLogIndex + Index(len(a.Entries))
	// "If leaderCommit > commitIndex, set commitIndex = min(leaderCommit, index of last new
	// entry)". What lies behind the last entry of this very message may be a leftover of another
	// leader. And commitIndex only grows: an older message knows less.
	//spec:rule AE.5
	c.commitIndex = max(c.commitIndex, min(a.LeaderCommit, verified))

	reply.Success, reply.MatchIndex = true, verified
	if heartbeat {
		reply.MatchIndex = min(verified, c.durable())
	}
	hold(c.reply(m, reply))
}

// follow takes the sender of a message for the leader of this term. "If AppendEntries RPC received
// from new leader: convert to follower." The vote for itself stays.
//
//spec:rule Candidates.3
func (c *Core) follow(leader ServerID) {
	if c.role != Follower {
		c.becomeFollower(c.currentTerm)
	}
	c.leader, c.contact = leader, c.now
	c.resetElectionTimer()
}

// receiveAppendEntriesReply learns how far a follower is. Only an answer to a request of this very
// leadership counts: in between, another leader may have replaced what was acknowledged in an
// earlier.
//
//spec:rule Leaders.Reply
func (c *Core) receiveAppendEntriesReply(m Message, r AppendEntriesReply) {
	if c.role != Leader || r.RequestTerm != c.currentTerm {
		return
	}
	p := c.peer(m.From)
	p.heard, p.round = c.now, max(p.round, r.Round)
	if !r.Success {
		c.backOff(p, r)
		return
	}
	// "If successful: update nextIndex and matchIndex for follower." The index is the reply's: what
	// was sent meanwhile is not what was answered. Replies may come in any order, so it only grows.
	//spec:rule Leaders.3a
	p.matchIndex = max(p.matchIndex, r.MatchIndex)
	p.nextIndex = max(p.nextIndex, p.matchIndex+1)
	n := 0
	for n < len(p.inflight) && p.inflight[n] <= p.matchIndex {
		n++
	}
	p.inflight = append(p.inflight[:0], p.inflight[n:]...)
	if p.probing && max(r.PrevLogIndex, r.MatchIndex)+1 >= p.nextIndex {
		p.probing, p.probed, p.sending = false, false, nil
	}
	c.advanceCommit()
}

// backOff moves nextIndex down after a refusal: "if AppendEntries fails because of log
// inconsistency: decrement nextIndex and retry", but by a term at a time. A refusal of what has
// been acknowledged since, or of anything but the probe that is out, is an old one. So each probe
// is lower than the one before and answered for at most once, and a repeated refusal costs no
// message.
//
//spec:rule Leaders.3b
func (c *Core) backOff(p *peer, r AppendEntriesReply) {
	if p.sending != nil || r.PrevLogIndex <= p.matchIndex || p.probing && r.PrevLogIndex+1 != p.nextIndex {
		return
	}
	next := r.ConflictIndex
	// If this log has the conflicting term as well, the two may agree up to its last entry here.
	//spec:rule Backoff.Term
	if last := c.log.firstOf(r.ConflictTerm+1) - 1; r.ConflictTerm > 0 {
		if t, _ := c.log.term(last); t == r.ConflictTerm {
			next = last + 1
		}
	}
	p.nextIndex = max(p.matchIndex+1, min(next, r.PrevLogIndex))
	p.probing, p.probed = true, false
	p.inflight = p.inflight[:0]
}

// advanceCommit moves a leader's commitIndex: "if there exists an N such that N > commitIndex, a
// majority of matchIndex[i] ≥ N, and log[N].term == currentTerm: set commitIndex = N". Without the
// last condition an entry of an earlier term could count as committed and still be replaced (Figure
// 8). What lies below N is committed with it, by Log Matching.
//
//spec:rule Leaders.4
func (c *Core) advanceCommit() {
	n := reached(c, c.durable(), func(p *peer) Index { return p.matchIndex })
	if t, _ := c.log.term(n); n > c.commitIndex && t == c.currentTerm {
		c.commitIndex = n
	}
}
