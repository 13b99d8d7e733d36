package raft

import "fmt"

// This file is the driver's side of the core: what it is asked to do, and what waits for its disk.
// Figure 2 puts it in one clause, "updated on stable storage before responding to RPCs"; whole
// classes of lost entries and double votes come from a path that forgets them. Here no handler has
// to remember: handlers change the state in memory, Take derives the write, and every reply and
// vote request is held until that write is durable. Only a leader's AppendEntries go ahead of it.

// HardState is the part of Figure 2's persistent state that is not the log. The two fields are one
// record: a term that survives without its vote could vote twice.
type HardState struct {
	Term     Term
	VotedFor ServerID
}

// Durable is all that survives a crash (Figure 2, "persistent state on all servers").
type Durable struct {
	HardState
	Snapshot *Snapshot // nil if there is none
	Entries  []Entry   // the log behind it; entries that the snapshot covers as well are not needed
}

// A Write is what Take asks to be made durable, in one record. Seq counts writes from 1; 0 means
// that there is nothing to save. HardState is always complete, changed or not. Entries, if any,
// replace everything that is stored at the first one's index and after it.
type Write struct {
	Seq uint64
	HardState
	Snapshot *Snapshot // see snapshot.go; before Entries
	Entries  []Entry
}

// Output is what there is to do. Its slices belong to the core and are valid until the next Take,
// but the entries in them never change and may be kept.
type Output struct {
	Messages  []Message // may be sent at once, without waiting for Write
	Write     Write     // begin to save it, then call Saved with its Seq
	Committed []Entry   // apply them, in order

	Reads   []ReadState // what became of questions to Read
	Save    *Snapshot   // begin to make it durable beside the writes, then call SnapshotSaved
	Restore *Snapshot   // what the state machine becomes, before it applies Committed
}

type pending struct {
	seq   uint64
	first Index // the first index that the write changes; beyond the last when it changes none
	begun Time  // when it was handed out
	done  bool  // reported durable, before an earlier one
}

type held struct {
	after   uint64 // the write that must be durable first
	message Message
}

// Take returns what there is to do since the last Take: the messages that may leave, the one write
// that makes the present state durable, and the entries that have become committed.
func (c *Core) Take() (out Output) {
	c.ready = c.ready[:0]
	c.serveReads() // readindex.go
	if c.role == Leader {
		c.advanceTransfer() // transfer.go
		c.replicate()
		c.dismiss() // membership.go
	}
	if c.dirty() {
		out.Write = c.takeWrite()
	}
	c.release()
	out.Save, out.Restore = c.takeSave(), c.TakeRestore() // snapshot.go
	out.Messages, out.Committed = c.ready, c.TakeCommitted()
	out.Reads, c.reading.answered = c.reading.answered, nil
	return out
}

// TakeCommitted returns the committed entries alone, for a driver whose state machine may propose
// something on seeing them: if it applies them before it calls Take, that leaves with the same
// Take.
//
// "If commitIndex > lastApplied: increment lastApplied, apply log[lastApplied] to state machine."
// An entry is applied as soon as it is committed, whether or not this server's own copy of it is
// durable: a majority's copies are.
//
//spec:rule All.1
func (c *Core) TakeCommitted() []Entry {
	if c.commitIndex == c.lastApplied || c.snapshots.restore != nil {
		return nil
	}
	entries := c.log.slice(c.lastApplied+1, c.commitIndex)
	c.lastApplied = c.commitIndex
	return entries
}

// takeWrite compares the persistent state with what was handed out before. Handlers change state
// and leave it at that, so none can forget to save, and many inputs cost one flush.
func (c *Core) takeWrite() Write {
	c.seq++
	w := Write{Seq: c.seq, HardState: c.hardState()}
	if w.HardState != c.handed {
		c.handed, c.handedSeq = w.HardState, c.seq
	}
	first := c.log.unsaved
	if marker := c.snapshots.marker; marker != 0 { // the log begins behind a snapshot, perhaps anew
		w.Snapshot, first, c.snapshots.marker = c.snapshots.last, min(first, marker), 0
	}
	c.outstanding = append(c.outstanding, pending{seq: c.seq, first: first, begun: c.now})
	if last := c.log.lastIndex(); c.log.unsaved <= last {
		w.Entries = c.log.slice(c.log.unsaved, last)
		c.log.unsaved = last + 1
	}
	return w
}

func (c *Core) hardState() HardState { return HardState{c.currentTerm, c.votedFor} }

// dirty reports whether the persistent state differs from what the writes so far make durable.
func (c *Core) dirty() bool {
	return c.hardState() != c.handed || c.log.unsaved <= c.log.lastIndex() || c.snapshots.marker != 0
}

// Saved reports that the write with this sequence number is durable. Completions may come in any
// order; only an unbroken run of them from the first counts, since a crash may still lose what lies
// before.
func (c *Core) Saved(seq uint64) {
	if seq > c.seq {
		panic(fmt.Sprintf("raft: write %d reported as saved, but only %d were handed out", seq, c.seq))
	}
	for i := range c.outstanding {
		if c.outstanding[i].seq == seq {
			c.outstanding[i].done = true
		}
	}
	n := 0
	for n < len(c.outstanding) && c.outstanding[n].done {
		c.saved = c.outstanding[n].seq
		n++
	}
	c.outstanding = append(c.outstanding[:0], c.outstanding[n:]...)
	switch c.role {
	case Candidate:
		c.countVotes() // the vote for itself may have become durable
	case Leader:
		c.advanceCommit() // its own copies count from here on
	}
}

// durable is the last index up to which this server's log is on its disk and stays there. A later
// write that is still on its way may replace entries that an earlier one has stored: what lies
// behind the first index of any unfinished write does not count, whatever is on the disk at this
// moment.
//
//spec:rule Durable.Prefix
func (c *Core) durable() Index {
	last := c.log.unsaved - 1
	if c.snapshots.marker != 0 {
		last = min(last, c.snapshots.marker-1)
	}
	for _, w := range c.outstanding {
		last = min(last, w.first-1)
	}
	return last
}

// send lets a message leave at once. Only AppendEntries goes this way: a leader's term is durable
// since before it asked for votes, and the entries need not be, as the leader does not count itself
// for them before they are (thesis, section 10.2.1). So its disk works while its followers' do.
//
//spec:rule Durable.Leader
func (c *Core) send(to ServerID, body Body) {
	c.ready = append(c.ready, c.message(to, body))
}

// hold lets a message leave once all that this server now has in memory is durable. Figure 2:
// persistent state is "updated on stable storage before responding to RPCs". The state may have
// come from an earlier input, with its write still on the way; the answer to a repeated request
// waits for it too.
//
//spec:rule Durable.Before
func (c *Core) hold(m Message) {
	after := c.seq
	if c.dirty() {
		after++
	}
	c.held = append(c.held, held{after, m})
}

// holdForTerm is hold for a message that shows this server's term and acknowledges nothing of its
// log that is not durable: the reply to a heartbeat. Were it to wait for entries, a slow disk would
// look like a lost follower. That the logs match at PrevLogIndex, or where they differ, it may say
// from memory: the leader takes it as a hint where to send from, never as a copy.
//
//spec:rule Durable.Heartbeat
func (c *Core) holdForTerm(m Message) {
	after := c.handedSeq
	if c.hardState() != c.handed {
		after = c.seq + 1
	}
	c.held = append(c.held, held{after, m})
}

// release moves the held messages whose write is durable to those that may go, in order.
func (c *Core) release() {
	kept := c.held[:0]
	for _, h := range c.held {
		if h.after > c.saved {
			kept = append(kept, h)
		} else {
			c.ready = append(c.ready, h.message)
		}
	}
	c.held = kept
}

// message composes a request in the present term.
func (c *Core) message(to ServerID, body Body) Message {
	return Message{From: c.config.ID, To: to, Term: c.currentTerm, Body: body}
}

// reply composes the answer to a request.
func (c *Core) reply(request Message, body Body) Message {
	m := c.message(request.From, body)
	m.Call = request.Call
	return m
}
