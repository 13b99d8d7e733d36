package raft

import "slices"

// This file is ReadIndex (thesis, section 6.4), which is not in Figure 2: reads that are as good as
// if they stood in the log, without an entry. A leader that was deposed and does not know it has an
// old state and answers with confidence; so before it answers it makes sure that it still led when
// the question came. It remembers its commitIndex, asks all others in a round of heartbeats, and when
// a majority has answered in its term, nobody else can have committed anything before the question.
//
// Rounds have numbers that are taken before the heartbeats leave and are never used again: the answer
// to an earlier round says nothing about a later question. There are no lease reads here, which do
// without the round: they would be as right as the servers' clocks.

// A ReadState tells what became of a question to Core.Read.
type ReadState struct {
	ID uint64
	// With OK, a state machine that has applied everything up to Index is at least as new as any was
	// when the question came. Otherwise leadership was lost, or could not be confirmed.
	OK    bool
	Index Index
}

// ReadIndex is the question of a server that does not lead.
type ReadIndex struct{ ID uint64 }

// ReadIndexReply answers ReadIndex.
type ReadIndexReply struct {
	RequestTerm Term   // echoes the term of the request
	ID          uint64 // echoes the request
	Success     bool
	Index       Index
}

func (r ReadIndex) receive(c *Core, m Message)      { c.receiveReadIndex(m, r) }
func (r ReadIndexReply) receive(c *Core, m Message) { c.receiveReadIndexReply(m, r) }
func (r ReadIndexReply) answers() (Term, bool)      { return r.RequestTerm, r.Success }

// read is a question that is not answered yet.
type read struct {
	id      uint64
	request Message // of the server that asks this leader, if it is not its own
	term    Term    // in which it was asked
	leader  ServerID
	asked   Time
	round   uint64 // that confirms it, 0 if that has not begun
	index   Index
}

// reading is what a server knows of questions.
type reading struct {
	round    uint64 // the last that this leader has begun
	pending  []read
	answered []ReadState
}

// Read asks for an index as ReadState describes it; Output.Reads brings it, with the same id, which
// the caller chooses and does not use twice. A server that does not lead asks its leader.
func (c *Core) Read(id uint64) error {
	if c.leader == 0 {
		return ErrNotLeader
	}
	c.ask(read{id: id})
	if c.leader != c.config.ID {
		c.holdForTerm(c.message(c.leader, ReadIndex{ID: id}))
	}
	return nil
}

func (c *Core) ask(r read) {
	r.term, r.leader, r.asked = c.currentTerm, c.leader, c.now
	c.reading.pending = append(c.reading.pending, r)
}

// receiveReadIndex takes the question of another server.
func (c *Core) receiveReadIndex(m Message, r ReadIndex) {
	if c.role != Leader || m.Term != c.currentTerm {
		c.holdForTerm(c.reply(m, ReadIndexReply{RequestTerm: m.Term, ID: r.ID}))
		return
	}
	c.ask(read{id: r.ID, request: m})
}

// receiveReadIndexReply takes the leader's answer.
func (c *Core) receiveReadIndexReply(m Message, r ReadIndexReply) {
	i := slices.IndexFunc(c.reading.pending, func(p read) bool {
		return p.id == r.ID && p.term == r.RequestTerm && p.leader == m.From
	})
	if i < 0 {
		return // it has taken too long
	}
	c.reading.pending = slices.Delete(c.reading.pending, i, i+1)
	c.reading.answered = append(c.reading.answered, ReadState{r.ID, r.Success, r.Index})
}

// serveReads begins a round for questions that have none, and answers those whose round is over. It
// is called by Take, before what a round needs is composed.
//
//spec:rule Read.Index
func (c *Core) serveReads() {
	if len(c.reading.pending) == 0 {
		return
	}
	c.beginRound()
	confirmed := c.confirmedRound()
	c.reading.pending = slices.DeleteFunc(c.reading.pending, func(r read) bool {
		// The leader in whose hands it was is not the leader, or cannot show that it is.
		lost := r.term != c.currentTerm || r.leader != c.leader || c.now >= r.asked+c.config.ElectionTimeout
		over := lost || r.round != 0 && r.round <= confirmed
		if over {
			c.answerRead(r, !lost)
		}
		return over
	})
}

// beginRound lets all questions that came since the last round share the next. A new leader cannot
// know what is committed before an entry of its own term is: what its predecessor had committed, and
// told a client, may still look uncommitted here.
//
//spec:rule Read.OwnTerm
func (c *Core) beginRound() {
	if c.role != Leader || !c.ownTermCommitted() {
		return
	}
	if c.confirmedRound() < c.reading.round {
		return // one is under way; what has come since waits for the next
	}
	begins := slices.IndexFunc(c.reading.pending, func(r read) bool { return r.round == 0 })
	if begins < 0 {
		return
	}
	c.reading.round++
	for i := begins; i < len(c.reading.pending); i++ { // the last to come have none
		c.reading.pending[i].round, c.reading.pending[i].index = c.reading.round, c.commitIndex
	}
	for i := range c.peers {
		c.peers[i].beat = true
	}
}

// ownTermCommitted reports whether an entry of the present term is committed.
func (c *Core) ownTermCommitted() bool {
	t, _ := c.log.term(c.commitIndex)
	return t == c.currentTerm
}

// confirmedRound is the last round that a majority has answered, this server included.
func (c *Core) confirmedRound() uint64 {
	return reached(c, c.reading.round, func(p *peer) uint64 { return p.round })
}

func (c *Core) answerRead(r read, ok bool) {
	if !ok {
		r.index = 0
	}
	if r.request.From == 0 {
		c.reading.answered = append(c.reading.answered, ReadState{r.id, ok, r.index})
		return
	}
	c.holdForTerm(c.reply(r.request, ReadIndexReply{r.request.Term, r.id, ok, r.index}))
}
