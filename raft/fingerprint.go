package raft

import (
	"fmt"
	"slices"
)

// This file is for a search through all that can happen: it needs copies of a core, and to know whether
// it has been in a state before.

// Clone returns an independent copy. Entries are shared, since nothing changes them.
func (c *Core) Clone() *Core {
	d := *c
	d.log.entries = slices.Clip(c.log.entries)
	d.peers = slices.Clone(c.peers)
	for i := range d.peers {
		d.peers[i].inflight = slices.Clone(d.peers[i].inflight)
	}
	d.configurations = slices.Clone(c.configurations)
	d.outstanding = slices.Clone(c.outstanding)
	d.held = slices.Clone(c.held)
	d.reading.pending, d.reading.answered = slices.Clone(c.reading.pending), slices.Clone(c.reading.answered)
	d.snapshots.incoming.Data = slices.Clip(c.snapshots.incoming.Data)
	d.ready = nil
	return &d
}

// AppendState appends all that decides what this server will do, in one fixed form: two cores with
// equal forms act alike on equal inputs for ever. Left out are the readings of the clock and the drawn timeouts, since a search lets
// any timer run out at any moment, and how many writes there were, since only the differences count.
func (c *Core) AppendState(b []byte) []byte {
	b = appendNumbers(b, uint64(c.config.ID), uint64(c.currentTerm), uint64(c.votedFor), uint64(c.role),
		uint64(c.leader), uint64(c.commitIndex), uint64(c.lastApplied), uint64(c.log.unsaved),
		uint64(c.log.base), uint64(c.log.baseTerm), uint64(len(c.peers)))
	b = appendEntries(b, c.log.entries)
	b = appendMembers(b, c.configurations[0].members)
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
	b = appendNumbers(b, uint64(c.transfer.to), flag(c.transfer.told))
	b = c.snapshots.appendState(b)
	return c.reading.appendState(b)
}

// ahead is how many writes after the last durable one a write is, 0 for one that is durable.
func (c *Core) ahead(seq uint64) uint64 { return max(seq, c.saved) - c.saved }

func (p *peer) appendState(b []byte) []byte {
	b = appendNumbers(b, uint64(p.id), uint64(p.removed), uint64(p.nextIndex), uint64(p.matchIndex), uint64(p.sentCommit),
		flag(p.vote)|flag(p.refusal)<<1|flag(p.probing)<<2|flag(p.probed)<<3|flag(p.beat)<<4,
		p.round, uint64(len(p.inflight)))
	for _, i := range p.inflight {
		b = appendNumbers(b, uint64(i))
	}
	return p.sending.appendState(appendNumbers(b, uint64(p.offset)))
}

func (s *snapshots) appendState(b []byte) []byte {
	b = appendNumbers(b, uint64(s.marker), flag(s.asked), uint64(s.incoming.term))
	b = AppendMessage(s.saving.appendState(s.last.appendState(b)), s.request)
	return s.incoming.appendState(s.restore.appendState(b))
}

func (s *Snapshot) appendState(b []byte) []byte {
	if s == nil {
		return append(b, 0)
	}
	b = appendNumbers(b, 1, uint64(s.LastIncludedIndex), uint64(s.LastIncludedTerm), uint64(len(s.Data)))
	return appendMembers(append(b, s.Data...), s.Members)
}

func (r *reading) appendState(b []byte) []byte {
	b = appendNumbers(b, r.round, uint64(len(r.pending)))
	for _, q := range r.pending {
		b = appendNumbers(b, q.id, uint64(q.term), uint64(q.leader), q.round, uint64(q.index))
		b = AppendMessage(b, q.request)
	}
	return b
}

// AppendMessage appends a message, in one fixed form.
func AppendMessage(b []byte, m Message) []byte {
	b = appendNumbers(b, uint64(m.From), uint64(m.To), uint64(m.Term), m.Call)
	switch body := m.Body.(type) {
	case AppendEntries:
		b = appendNumbers(b, 1, uint64(body.PrevLogIndex), uint64(body.PrevLogTerm), uint64(body.LeaderCommit), body.Round)
		return appendEntries(b, body.Entries)
	case AppendEntriesReply: // as below, but these are most of all
		return appendNumbers(b, 2, uint64(body.RequestTerm), uint64(body.PrevLogIndex), flag(body.Success),
			uint64(body.MatchIndex), uint64(body.ConflictTerm), uint64(body.ConflictIndex), body.Round)
	case InstallSnapshot:
		b = appendNumbers(b, 3, uint64(body.LastIncludedIndex), uint64(body.LastIncludedTerm), body.Offset,
			flag(body.Done), uint64(len(body.Data)))
		return appendMembers(append(b, body.Data...), body.Members)
	}
	return fmt.Appendf(b, "%T%v", m.Body, m.Body) // numbers and flags alone
}

func appendEntries(b []byte, entries []Entry) []byte {
	b = appendNumbers(b, uint64(len(entries)))
	for _, e := range entries {
		b = appendNumbers(b, uint64(e.Term), uint64(len(e.Command)))
		b = append(b, e.Command...)
		b = appendMembers(b, e.Members)
	}
	return b
}

func appendMembers(b []byte, members Configuration) []byte {
	b = appendNumbers(b, uint64(len(members)))
	for _, m := range members {
		b = appendNumbers(b, uint64(m.ID), flag(m.Voter), uint64(len(m.Address)))
		b = append(b, m.Address...)
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
