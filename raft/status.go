package raft

// Status is a server's state at a glance.
type Status struct {
	ID                       ServerID
	Role                     Role
	Term                     Term
	VotedFor                 ServerID
	Leader                   ServerID // whom it believes to lead Term; 0 if unknown
	CommitIndex, LastApplied Index
	LastIndex                Index
	LastTerm                 Term
	Durable                  Index // its log is on its own disk up to here
}

// Status returns the state at a glance.
func (c *Core) Status() Status {
	return Status{
		ID: c.config.ID, Role: c.role, Term: c.currentTerm, VotedFor: c.votedFor, Leader: c.leader,
		CommitIndex: c.commitIndex, LastApplied: c.lastApplied,
		LastIndex: c.log.lastIndex(), LastTerm: c.log.lastTerm(), Durable: c.durable(),
	}
}

// Term returns the term of the entry at i (0 at index 0), and whether the log reaches so far.
func (c *Core) Term(i Index) (Term, bool) { return c.log.term(i) }

// Entries returns the entries lo to hi, both included, which the log must hold. They are shared.
func (c *Core) Entries(lo, hi Index) []Entry { return c.log.slice(lo, hi) }

// Progress returns what a leader knows about a peer: the next index to send it and the highest
// known to be durable there. Both are 0 for a stranger, and mean nothing on a server that does not
// lead.
func (c *Core) Progress(id ServerID) (nextIndex, matchIndex Index) {
	if p := c.peer(id); p != nil {
		return p.nextIndex, p.matchIndex
	}
	return 0, 0
}
