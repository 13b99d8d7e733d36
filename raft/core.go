package raft

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Role is what a server currently is (section 5.1).
type Role uint8

const (
	Follower Role = iota
	Candidate
	Leader
)

func (r Role) String() string {
	switch r {
	case Follower:
		return "follower"
	case Candidate:
		return "candidate"
	case Leader:
		return "leader"
	}
	return fmt.Sprintf("Role(%d)", uint8(r))
}

// Config is what a server is told once. All fields are required.
type Config struct {
	ID     ServerID   // this server; one of Voters
	Voters []ServerID // all servers of the cluster, this one included

	// ElectionTimeout is the least time without a leader after which a server campaigns; each wait
	// is this plus a jitter. HeartbeatTimeout is how often a leader speaks when it has nothing to
	// say. A message's round trip should be well below the first and the second at most a third of
	// it.
	ElectionTimeout, HeartbeatTimeout Time

	// Jitter returns what to add to the nth election timeout, 0 ≤ jitter < ElectionTimeout. It must
	// be a pure function of n, and a different one on each server: servers that draw alike split
	// every vote.
	Jitter func(n uint64) Time

	MaxBatch int // the most entries in one AppendEntries
	Window   int // the most AppendEntries with entries that may be unanswered at a peer
}

// Core is one server's Raft state and the driver's side of it. It starts with New.
type Core struct {
	config Config

	// "Persistent state on all servers", Figure 2. In memory these run ahead of the disk; held,
	// below, keeps that from showing.
	//spec:rule State.Persistent
	currentTerm Term
	votedFor    ServerID
	log         log

	// "Volatile state on all servers". Neither is saved: a restarted server learns commitIndex from
	// the next leader and applies its log from the first entry again.
	//spec:rule State.Volatile
	commitIndex, lastApplied Index

	role   Role
	leader ServerID // whom this server follows in currentTerm; 0 if unknown
	peers  []peer   // all other servers, by rising id

	now                       Time
	electionDue, heartbeatDue Time
	timeouts                  uint64 // how many election timeouts were drawn: Config.Jitter's argument

	// The way to the disk (durability.go). The state above is changed at once, in memory. Take
	// hands the difference out as write number seq; until Saved has named it and all before it, it
	// is outstanding. Messages that show the state are held until their write is at or below saved,
	// and then ready for the next Take.
	seq         uint64    // the last write handed out
	saved       uint64    // every write up to this one is durable
	outstanding []pending // the writes after saved, in order
	handed      HardState // the hard state in the last write handed out
	handedSeq   uint64    // the last write that changed the hard state
	held        []held    // messages that wait for a write
	ready       []Message // messages that may go
}

// peer is what this server knows about another one.
//
// A leader begins by probing: it does not know where the follower's log agrees with its own, so it
// sends one message and waits. A refusal moves nextIndex down, an acceptance ends the probing. From
// then on nextIndex runs ahead: messages follow one another without waiting, up to a window. If one
// is lost, whatever comes next, a heartbeat at the latest, is refused, since it does not follow on
// the follower's log; then the leader probes again.
type peer struct {
	id ServerID

	vote    bool // has granted its vote to this candidate in currentTerm
	refusal bool // has refused it

	// "Volatile state on leaders, reinitialized after election": the next entry to send, and the
	// highest known to be durable there.
	//spec:rule State.Leader
	nextIndex, matchIndex Index

	probing    bool    // it is not known whether the follower's log reaches nextIndex-1
	probed     bool    // while probing: a message with entries is on its way
	inflight   []Index // while not probing: the last index of each unanswered message with entries
	beat       bool    // a heartbeat is due
	sentCommit Index   // the highest commitIndex sent
}

// New returns a server that starts, or starts again, with what survived on its disk. It is a
// follower and knows no leader (section 5.2). The error says which field is wrong.
func New(config Config, durable Durable, now Time) (*Core, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if err := durable.check(config); err != nil {
		return nil, err
	}
	c := &Core{
		config:      config,
		currentTerm: durable.Term,
		votedFor:    durable.VotedFor,
		log: log{
			entries: slices.Clone(durable.Entries),
			unsaved: Index(len(durable.Entries)) + 1,
		},
		handed: durable.HardState,
		now:    now,
	}
	for _, id := range config.Voters {
		if id != config.ID {
			c.peers = append(c.peers, peer{id: id})
		}
	}
	slices.SortFunc(c.peers, func(a, b peer) int { return cmp.Compare(a.id, b.id) })
	c.resetElectionTimer()
	return c, nil
}

func (c Config) check() error {
	ids := slices.Sorted(slices.Values(c.Voters))
	switch {
	case !slices.Contains(ids, c.ID):
		return fmt.Errorf("config: ID %d is not among Voters %v", c.ID, c.Voters)
	case ids[0] == 0:
		return errors.New("config: a voter has ID 0, which means nobody")
	case len(slices.Compact(ids)) != len(c.Voters):
		return fmt.Errorf("config: Voters %v names a server twice", c.Voters)
	case c.HeartbeatTimeout <= 0:
		return fmt.Errorf("config: HeartbeatTimeout is %d µs, must be positive", c.HeartbeatTimeout)
	case c.HeartbeatTimeout >= c.ElectionTimeout:
		return fmt.Errorf("config: HeartbeatTimeout (%d µs) must be less than ElectionTimeout (%d µs), "+
			"or followers campaign against a live leader", c.HeartbeatTimeout, c.ElectionTimeout)
	case c.Jitter == nil:
		return errors.New("config: Jitter is missing")
	case c.MaxBatch < 1 || c.Window < 1:
		return fmt.Errorf("config: MaxBatch (%d) and Window (%d) must be at least 1", c.MaxBatch, c.Window)
	}
	return nil
}

func (d Durable) check(config Config) error {
	var term Term
	for i, e := range d.Entries {
		if e.Index != Index(i)+1 {
			return fmt.Errorf("durable state: entry %d stands where %d belongs", e.Index, i+1)
		}
		if e.Term < max(term, 1) || e.Term > d.Term {
			return fmt.Errorf("durable state: entry %d has term %d, after %d and with current term %d",
				e.Index, e.Term, term, d.Term)
		}
		term = e.Term
	}
	if d.VotedFor != 0 && d.Term == 0 {
		return fmt.Errorf("durable state: a vote for server %d in term 0", d.VotedFor)
	}
	if d.VotedFor != 0 && !slices.Contains(config.Voters, d.VotedFor) {
		return fmt.Errorf("durable state: a vote for server %d, not among Voters %v",
			d.VotedFor, config.Voters)
	}
	return nil
}

// Tick tells the core what this server's clock reads, and acts if a timeout is over. A clock that
// goes back is taken to stand still: decisions rest on elapsed time, never on how often Tick is
// called.
func (c *Core) Tick(now Time) {
	if now < c.now {
		return
	}
	c.now = now
	if now < c.Deadline() {
		return
	}
	if c.role == Leader {
		c.HeartbeatTimeout()
		return
	}
	c.ElectionTimeout()
}

// Deadline is the next reading of this server's clock at which Tick has something to do.
func (c *Core) Deadline() Time {
	if c.role == Leader {
		return c.heartbeatDue
	}
	return c.electionDue
}

// Receive takes a message from the network. An error wraps ErrMalformed, nothing has changed, and
// there is no reply: the peer is broken or hostile.
func (c *Core) Receive(m Message) error {
	if err := c.validate(m); err != nil {
		return err
	}
	// "If RPC request or response contains term T > currentTerm: set currentTerm = T, convert to
	// follower." Before anything else is looked at: whoever is behind must learn it from any
	// message.
	//spec:rule All.2
	if m.Term > c.currentTerm {
		c.becomeFollower(m.Term)
	}
	switch body := m.Body.(type) {
	case RequestVote:
		c.receiveRequestVote(m, body)
	case RequestVoteReply:
		c.receiveRequestVoteReply(m, body)
	case AppendEntries:
		c.receiveAppendEntries(m, body)
	case AppendEntriesReply:
		c.receiveAppendEntriesReply(m, body)
	}
	return nil
}

func (c *Core) peer(id ServerID) *peer {
	for i := range c.peers {
		if c.peers[i].id == id {
			return &c.peers[i]
		}
	}
	return nil
}

// quorum is the least number of servers that is a majority of all.
func (c *Core) quorum() int { return (len(c.peers)+1)/2 + 1 }

// Clone returns an independent copy. Entries are shared, since nothing changes them.
func (c *Core) Clone() *Core {
	d := *c
	d.log.entries = slices.Clip(c.log.entries)
	d.peers = slices.Clone(c.peers)
	for i := range d.peers {
		d.peers[i].inflight = slices.Clone(d.peers[i].inflight)
	}
	d.outstanding = slices.Clone(c.outstanding)
	d.held = slices.Clone(c.held)
	d.ready = nil
	return &d
}

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
	p := c.peer(id)
	if p == nil {
		return 0, 0
	}
	return p.nextIndex, p.matchIndex
}
