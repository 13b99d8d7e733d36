package raft

import (
	"cmp"
	"errors"
	"fmt"
)

// ServerID names a server. 0 is no server: an empty vote, an unknown leader.
type ServerID uint64

// Term numbers the periods of leadership, from 1 up (section 5.1). 0 is before the first election.
type Term uint64

// Index is a position in the log, from 1 up. 0 is before the first entry.
type Index uint64

// Time is a reading, or a difference of two readings, of one server's own monotonic clock in
// microseconds. Readings of two servers must never be compared.
type Time int64

// An Entry is one slot of the log. An empty Command is the no-op with which a leader starts its
// term. Command is never changed once it is in an entry, so copies of the entry may share it.
type Entry struct {
	Index   Index
	Term    Term
	Command []byte
	Members Configuration // of an entry that changes the servers, see membership.go; nil in all others
}

// A Message is an RPC's request or its reply. Every request that Receive accepts is answered by
// exactly one reply, possibly much later and in another term; the paper's servers retry and so do
// ours, so either may be lost.
type Message struct {
	From, To ServerID
	Term     Term   // the sender's currentTerm when it composed the message
	Call     uint64 // chosen by the requester's driver, echoed in the reply, never read here
	Body     Body
}

// Body is one of RequestVote, AppendEntries, PreVote (prevote.go), ReadIndex (readindex.go),
// TimeoutNow (transfer.go), InstallSnapshot (snapshot.go) and their replies.
type Body interface {
	// receive is what the receiver does, once the message is found to be one that can be.
	receive(*Core, Message)
}

// answer is what all replies are: each echoes the term of its request.
type answer interface {
	Body
	answers() (requestTerm Term, yes bool)
}

// RequestVote is a candidate's question (Figure 2). The term and the candidate are the message's.
type RequestVote struct {
	LastLogIndex Index
	LastLogTerm  Term
	Transfer     bool // the leader has told the candidate to campaign, see transfer.go
}

// RequestVoteReply answers RequestVote.
type RequestVoteReply struct {
	RequestTerm Term // echoes the term of the request, so that no vote is counted in another term
	VoteGranted bool
}

// AppendEntries carries entries from a leader to a follower, or none as a heartbeat (Figure 2). The
// term and the leader are the message's.
type AppendEntries struct {
	PrevLogIndex Index
	PrevLogTerm  Term
	Entries      []Entry
	LeaderCommit Index
	Round        uint64 // of heartbeats that confirm the leader's term, see readindex.go
}

// AppendEntriesReply answers AppendEntries. A success says that the follower's log is the leader's
// up to PrevLogIndex, and durably so up to MatchIndex. A refusal says where to look next.
type AppendEntriesReply struct {
	RequestTerm   Term  // echoes the term of the request
	PrevLogIndex  Index // echoes the request
	Success       bool
	MatchIndex    Index  // on success: the last index that this request verified and that is durable
	ConflictTerm  Term   // on refusal: the term of the follower's entry at PrevLogIndex, 0 if none
	ConflictIndex Index  // on refusal: that term's first index, or the one behind the log's last
	Round         uint64 // echoes the request
}

func (r RequestVote) receive(c *Core, m Message)        { c.receiveRequestVote(m, r) }
func (r RequestVoteReply) receive(c *Core, m Message)   { c.receiveRequestVoteReply(m, r) }
func (a AppendEntries) receive(c *Core, m Message)      { c.receiveAppendEntries(m, a) }
func (r AppendEntriesReply) receive(c *Core, m Message) { c.receiveAppendEntriesReply(m, r) }

func (r RequestVoteReply) answers() (Term, bool)   { return r.RequestTerm, r.VoteGranted }
func (r AppendEntriesReply) answers() (Term, bool) { return r.RequestTerm, r.Success }

// ErrMalformed is wrapped by every error of Receive: a correct peer cannot have sent the message.
var ErrMalformed = errors.New("malformed message")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// maxTerm is more than any number of elections comes to. A greater term is made up, and to adopt it
// would bring the counter close to its end.
const maxTerm Term = 1 << 62

// validate refuses what no correct peer can send, before anything has changed. It is the one place
// that distrusts; the handlers rely on it.
func (c *Core) validate(m Message) error {
	switch {
	case m.To != c.config.ID:
		return malformed("it is for server %d, this is %d", m.To, c.config.ID)
	case m.From == 0 || m.From == c.config.ID:
		return malformed("server %d is not another server", m.From)
	case m.Term > maxTerm || m.Term == 0 && !beforeElection(m.Body): // prevote.go
		return malformed("term %d from server %d; terms go from 1 to 2^62", m.Term, m.From)
	}
	switch body := m.Body.(type) {
	case RequestVote:
		return validatePosition(body.LastLogIndex, body.LastLogTerm, m.Term-1)
	case PreVote:
		return validatePosition(body.LastLogIndex, body.LastLogTerm, m.Term)
	case AppendEntries:
		return c.validateAppend(m, body)
	case InstallSnapshot:
		return c.validateInstall(m, body) // snapshot.go
	case answer:
		return c.validateAnswer(m, body)
	case ReadIndex, TimeoutNow:
		return nil
	}
	return malformed("unknown body %T", m.Body)
}

// validatePosition checks an (index, term) pair: both zero or neither, and no term beyond most.
func validatePosition(index Index, term, most Term) error {
	if (index == 0) != (term == 0) || term > most {
		return malformed("no log can hold term %d at index %d; the term is at most %d", term, index, most)
	}
	return nil
}

// validateAnswer checks that a reply is one to a request that this server can have sent.
func (c *Core) validateAnswer(m Message, body answer) error {
	requestTerm, yes := body.answers()
	if requestTerm == 0 && !beforeElection(m.Body) || requestTerm > c.currentTerm { // prevote.go
		return malformed("server %d answers a request of term %d, never sent", m.From, requestTerm)
	}
	r, appended := m.Body.(AppendEntriesReply)
	if appended && m.Term < requestTerm || yes && m.Term != requestTerm {
		return malformed("server %d in term %d cannot give this answer to a request of term %d",
			m.From, m.Term, requestTerm)
	}
	last := max(r.PrevLogIndex, r.MatchIndex)
	current := c.role == Leader && requestTerm == c.currentTerm
	if current && (last > c.log.lastIndex() || r.Round > c.reading.round) {
		return malformed("server %d answers for index %d and round %d; the log ends at %d, the last was %d",
			m.From, last, r.Round, c.log.lastIndex(), c.reading.round)
	}
	return nil
}

// validateLeader checks that no second leader speaks in a term.
func (c *Core) validateLeader(m Message) error {
	if m.Term == c.currentTerm && c.leader != 0 && c.leader != m.From {
		return malformed("server %d claims to lead term %d, which %d leads", m.From, m.Term, c.leader)
	}
	return nil
}

// validateAppend checks that a log can hold the entries, that no second leader speaks in a term, and
// that nothing committed is contradicted: Log Matching, Election Safety and Leader
// Completeness make each impossible among correct servers.
func (c *Core) validateAppend(m Message, a AppendEntries) error {
	if err := cmp.Or(validatePosition(a.PrevLogIndex, a.PrevLogTerm, m.Term), c.validateLeader(m)); err != nil {
		return err
	}
	if err := checkEntries(a.PrevLogIndex, a.PrevLogTerm, m.Term, a.Entries); err != nil {
		return malformed("%v", err)
	}
	if m.Term < c.currentTerm {
		return nil // AE.1 refuses it whatever it holds
	}
	if err := c.validateCommitted(a.PrevLogIndex, a.PrevLogTerm); err != nil {
		return err
	}
	for _, e := range a.Entries {
		if err := c.validateCommitted(e.Index, e.Term); err != nil {
			return err
		}
	}
	return nil
}

// validateCommitted checks that a term at an index contradicts nothing that is committed here.
func (c *Core) validateCommitted(index Index, term Term) error {
	if t, ok := c.log.term(index); ok && index <= c.commitIndex && t != term {
		return malformed("index %d is committed with term %d, not %d", index, t, term)
	}
	return nil
}
