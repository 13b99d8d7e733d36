package raft

// AppendState appends all that decides what this server will do, in one fixed form: two cores with
// equal forms act alike on equal inputs for ever. It is how a search tells whether it has been in a
// state before. Left out are the readings of the clock and the drawn timeouts, since a search lets
// any timer run out at any moment, and how many writes there were, since only the differences count.
func (c *Core) AppendState(b []byte) []byte {
	b = appendNumbers(b, uint64(c.config.ID), uint64(c.currentTerm), uint64(c.votedFor), uint64(c.role),
		uint64(c.leader), uint64(c.commitIndex), uint64(c.lastApplied), uint64(c.log.unsaved))
	b = appendEntries(b, c.log.entries)
	for i := range c.peers {
		b = c.peers[i].appendState(b)
	}
	b = appendNumbers(b, uint64(c.handed.Term), uint64(c.handed.VotedFor), c.ahead(c.handedSeq),
		c.ahead(c.seq), uint64(len(c.outstanding)), uint64(len(c.held)))
	for _, w := range c.outstanding {
		b = appendNumbers(b, c.ahead(w.seq), uint64(w.first), flag(w.done))
	}
	for _, h := range c.held {
		b = AppendMessage(appendNumbers(b, c.ahead(h.after)), h.message)
	}
	return b
}

// ahead is how many writes after the last durable one a write is, 0 for one that is durable.
func (c *Core) ahead(seq uint64) uint64 { return max(seq, c.saved) - c.saved }

func (p *peer) appendState(b []byte) []byte {
	b = appendNumbers(b, uint64(p.nextIndex), uint64(p.matchIndex), uint64(p.sentCommit),
		flag(p.vote)|flag(p.refusal)<<1|flag(p.probing)<<2|flag(p.probed)<<3|flag(p.beat)<<4,
		uint64(len(p.inflight)))
	for _, i := range p.inflight {
		b = appendNumbers(b, uint64(i))
	}
	return b
}

// AppendMessage appends a message, in one fixed form.
func AppendMessage(b []byte, m Message) []byte {
	b = appendNumbers(b, uint64(m.From), uint64(m.To), uint64(m.Term), m.Call)
	switch body := m.Body.(type) {
	case RequestVote:
		b = appendNumbers(b, 1, uint64(body.LastLogIndex), uint64(body.LastLogTerm))
	case RequestVoteReply:
		b = appendNumbers(b, 2, uint64(body.RequestTerm), flag(body.VoteGranted))
	case AppendEntries:
		b = appendNumbers(b, 3, uint64(body.PrevLogIndex), uint64(body.PrevLogTerm), uint64(body.LeaderCommit))
		b = appendEntries(b, body.Entries)
	case AppendEntriesReply:
		b = appendNumbers(b, 4, uint64(body.RequestTerm), uint64(body.PrevLogIndex), flag(body.Success),
			uint64(body.MatchIndex), uint64(body.ConflictTerm), uint64(body.ConflictIndex))
	}
	return b
}

func appendEntries(b []byte, entries []Entry) []byte {
	b = appendNumbers(b, uint64(len(entries)))
	for _, e := range entries {
		b = appendNumbers(b, uint64(e.Term), uint64(len(e.Command)))
		b = append(b, e.Command...)
	}
	return b
}

func appendNumbers(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = AppendNumber(b, n)
	}
	return b
}

// AppendNumber appends a number in as many bytes as it needs: seven bits a byte, and the high bit on
// all but the last, so that none is the beginning of another.
func AppendNumber(b []byte, n uint64) []byte {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func flag(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}
