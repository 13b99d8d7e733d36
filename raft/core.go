package raft

import "cmp"

// Role is what a server currently is (section 5.1).
type Role uint8

const (
	Follower Role = iota
	Candidate
	Leader
	PreCandidate // asks whether it could win before it becomes a candidate, see prevote.go
)

func (r Role) String() string {
	return [...]string{"follower", "candidate", "leader", "pre-candidate"}[r]
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
	// the next leader and applies its log from the first entry again, or from its snapshot.
	//spec:rule State.Volatile
	commitIndex, lastApplied Index

	role   Role
	leader ServerID // whom this server follows in currentTerm; 0 if unknown
	peers  []peer   // all other servers, by rising id
	voter  bool     // this server's vote counts

	configurations []effective // of the log, in order, and the one before; see membership.go

	now                       Time
	electionDue, heartbeatDue Time
	contact                   Time   // when the leader was last heard
	timeouts                  uint64 // how many election timeouts were drawn: Config.Jitter's argument

	reading   reading   // readindex.go
	transfer  transfer  // transfer.go
	snapshots snapshots // snapshot.go
	backlog   backlog   // backlog.go

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
	id      ServerID
	voter   bool  // its vote counts
	removed Index // the entry that has removed it, 0 if none has: see membership.go

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
	heard      Time    // when a reply of this leadership last came
	round      uint64  // the last round of heartbeats that it has answered

	sending   *Snapshot // that it is being sent, see snapshot.go
	offset    int       // of the next chunk
	chunkSent Time      // when the last one was sent
}

// New returns a server that starts, or starts again, with what survived on its disk. It is a
// follower and knows no leader (section 5.2). The error says which field is wrong.
func New(config Config, durable Durable, now Time) (*Core, error) {
	if err := cmp.Or(config.check(), durable.check()); err != nil {
		return nil, err
	}
	c := &Core{
		config:      config,
		currentTerm: durable.Term,
		votedFor:    durable.VotedFor,
		log:         durable.log(), // snapshot.go
		handed:      durable.HardState,
		now:         now,
	}
	c.startFrom(durable.Snapshot) // snapshot.go
	c.resetElectionTimer()
	return c, nil
}

// Tick tells the core what this server's clock reads, and acts if a timeout is over. A clock that
// goes back is taken to stand still: decisions rest on elapsed time, never on how often Tick is
// called.
func (c *Core) Tick(now Time) {
	if now < c.now {
		return
	}
	c.now = now
	switch {
	case c.role != Leader && now < c.electionDue:
	case c.role != Leader:
		c.ElectionTimeout()
	case now >= c.quorumDue(): // checkquorum.go
		c.stepDown() // checkquorum.go
	case now >= c.heartbeatDue:
		c.HeartbeatTimeout()
	}
}

// Deadline is the next reading of this server's clock at which Tick has something to do.
func (c *Core) Deadline() Time {
	if c.role != Leader {
		return c.electionDue
	}
	due := min(c.heartbeatDue, c.quorumDue()) // checkquorum.go
	if c.transfer.to != 0 {
		due = min(due, c.transfer.due)
	}
	return due
}

// Receive takes a message from the network. An error wraps ErrMalformed, nothing has changed, and
// there is no reply: the peer is broken or hostile.
func (c *Core) Receive(m Message) error {
	if err := c.validate(m); err != nil || c.stranger(m) { // membership.go
		return err
	}
	// "If RPC request or response contains term T > currentTerm: set currentTerm = T, convert to
	// follower." Before anything else is looked at: whoever is behind must learn it from any
	// message. The exception is for those who would depose a leader that is well.
	//spec:rule All.2
	if m.Term > c.currentTerm && !c.disturbs(m) { // checkquorum.go
		c.becomeFollower(m.Term)
	}
	m.Body.receive(c, m)
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
