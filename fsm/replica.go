package fsm

import (
	"fmt"
	"maps"
	"slices"

	"ticketing/raft"
)

// Rules takes single precautions away, so that a simulation can show what each is for. The zero
// value has all of them on, and a server never sets another. Nothing in Table.Apply can be
// switched.
type Rules struct {
	NoExpireToken  bool // propose the bare Release of the specification where an Expire would be proposed
	NoReleaseToken bool // propose every Release with token 0
	NoGate         bool // propose Acquires on arrival, whoever holds the key
	NoNoopWait     bool // act as leader before the own start-of-term entry is applied
	NoRequestIDs   bool // take a request that is sent again for a new one
}

// Config is what a replica is told once.
type Config struct {
	Raft raft.Config

	// GrantOnApplied decides Grants on the applied table only. Normally a leader decides them on
	// the state after its whole log, so that a Release and the next waiter's Grant leave together.
	GrantOnApplied bool

	// TokenFloor is less than every token that this cluster gives out, and not less than any that an
	// earlier one has given out for the same resources. The table starts with it. So it must be the same
	// on all servers and at every start, as if it were the log's first entry.
	TokenFloor Token

	// SnapshotEvery is after how many applied entries a snapshot is taken; 0 stands for never, but by
	// Compact.
	SnapshotEvery raft.Index

	Rules Rules
}

// A Request is what a client wants. Invalid ones are answered at once and change nothing.
type Request struct {
	Call    uint64   // the driver's name for it, unique here and not 0; its Reply has the same
	Client  ClientID // the session; 0 for none, and then a repeated request is a new one
	Seq     uint64   // the client's number for it; the same again when it is sent again
	Lowest  uint64   // the client's requests below this number are closed; at most Seq
	Attempt uint32   // grows each time that it is sent again
	Owner   string
	Kind    Kind // Grant, Release, Extend, Noop, or Open
	Key     string
	LeaseMS int64 // Grant, Extend: 1 to MaxLeaseMS
	Token   Token // Release, Extend
	Try     bool  // Grant: do not wait
	Text    string
}

// Status says what a Reply is.
type Status uint8

const (
	Answered   Status = iota // Result is what the committed command came to
	Held                     // a try: the key is held or promised; nothing was proposed
	NotLeader                // nothing was proposed; Leader may know better
	Unknown                  // proposed, and then this server was deposed: it may yet happen, or not
	Superseded               // a newer attempt of the request has arrived, which will be answered
	Expiring                 // an Extend: it is too late, an Expire of the tenure is in the log; nothing was proposed
	Full                     // a Grant: too many wait; nothing was proposed
	Busy                     // too much is not committed; nothing was proposed, ask again
	Invalid                  // Err says why
)

func (s Status) String() string {
	switch s {
	case Answered:
		return "answered"
	case Held:
		return "held"
	case NotLeader:
		return "not leader"
	case Unknown:
		return "unknown"
	case Superseded:
		return "superseded"
	case Expiring:
		return "expiring"
	case Full:
		return "full"
	case Busy:
		return "busy"
	case Invalid:
		return "invalid"
	}
	return fmt.Sprintf("Status(%d)", uint8(s))
}

// A Reply answers a Request's call. Every call gets at most one: none after its Disconnect.
type Reply struct {
	Call   uint64
	Status Status
	Result Result
	Index  raft.Index // Answered: the entry that came to it; of a Read, the least that the table holds

	// Attempt is the newest attempt of the request that the leader had when it proposed the
	// command. A client counts its lease from before it sent that one.
	// It is 0, and the lease counts from the first, if the result was told again.
	Attempt uint32
	Leader  raft.ServerID // NotLeader: who leads, if known
	Err     error         // Invalid; or of a NotFound, ErrTokenAhead
}

// Cause says why a leader proposed a command.
type Cause uint8

const (
	ForClient  Cause = iota // a client asked
	ForLease                // a lease ran out on the leader's clock
	ForCleanup              // its client has gone before it was answered
)

func (c Cause) String() string {
	switch c {
	case ForClient:
		return "client"
	case ForLease:
		return "lease"
	case ForCleanup:
		return "cleanup"
	}
	return fmt.Sprintf("Cause(%d)", uint8(c))
}

// Proposed tells an observer about an entry that this leader has appended. Meant is the tenure that
// a Release or an Expire was meant for, whatever its command names; 0 is any.
type Proposed struct {
	Index    raft.Index
	Term     raft.Term
	Cause    Cause
	Meant    Token
	Envelope Envelope
	Members  raft.Configuration // of an entry that changes the servers; Envelope is empty then
}

// Applied tells an observer about an entry that was applied.
type Applied struct {
	Index    raft.Index
	Term     raft.Term
	Envelope Envelope
	Result   Result
	Hash     uint64             // of the table afterwards
	Holder   Token              // of the key afterwards, 0 if it is free
	Members  raft.Configuration // of an entry that changes the servers; Envelope is empty then
}

// Output is what there is to do. It is the replica's, and valid until the next Take.
type Output struct {
	Messages []raft.Message // as in raft.Output
	Write    raft.Write     // as in raft.Output
	Save     *raft.Snapshot // as in raft.Output
	Restored raft.Index     // the table has become that of a leader's snapshot up to here, 0 if not
	Replies  []Reply
	Proposed []Proposed
	Applied  []Applied
}

// Replica is one server of the lock service, whole but for network, disk and clock: a raft.Core,
// the table that its committed entries make, the leases in it, and the waiting requests. The
// simulator and the server drive this same value.
type Replica struct {
	config  Config
	core    *raft.Core
	now     raft.Time
	table   Table
	reached raft.Index // the last entry that the table holds
	leases  Leases
	leader  *leadership // nil unless this server leads
	retired bool        // and never leads again
	reads   reads
	changes []change // of members, that are not answered
	out     Output   // what is collected for the next Take,
	taken   Output   // and what the last one has returned
	failed  error

	snapshots snapshots
}

// New returns a replica that starts, or starts again, with what survived on its disk. Its table is
// the snapshot's, or empty, until it learns what is committed.
func New(config Config, durable raft.Durable, now raft.Time) (*Replica, error) {
	core, err := raft.New(config.Raft, durable, now)
	if err != nil {
		return nil, err
	}
	r := &Replica{config: config, core: core, now: now, table: Table{tokens: config.TokenFloor}}
	if durable.Snapshot != nil {
		if err := r.restore(durable.Snapshot); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Tick tells the replica what its clock reads. It comes before any other input.
func (r *Replica) Tick(now raft.Time) {
	r.core.Tick(now)
	r.now = max(r.now, now)
}

// Deadline is the next reading of the clock at which Tick and Take have something to do. Only a
// leader acts on leases. A snapshot under way goes on at once, one to take or one that was restored.
func (r *Replica) Deadline() raft.Time {
	if r.snapshots.taking != nil || r.leases.Recounting() {
		return r.now
	}
	deadline := r.core.Deadline()
	if r.leader != nil && r.leader.ready {
		if next, ok := r.leases.Next(); ok && !r.leases.crowded() {
			deadline = min(deadline, next)
		}
	}
	return deadline
}

// ElectionTimeout and HeartbeatTimeout are raft's.
func (r *Replica) ElectionTimeout()  { r.core.ElectionTimeout() }
func (r *Replica) HeartbeatTimeout() { r.core.HeartbeatTimeout() }

// LeaseTimeout declares a lease over whatever the clock reads, see Leases.Lapse.
func (r *Replica) LeaseTimeout(key string, token Token) { r.leases.Lapse(key, token) }

// Receive takes a message from another server, see raft.Core.Receive.
func (r *Replica) Receive(m raft.Message) error { return r.core.Receive(m) }

// Saved reports that a write is durable, see raft.Core.Saved.
func (r *Replica) Saved(seq uint64) { r.core.Saved(seq) }

// SnapshotSaved reports that Save is durable, see raft.Core.SnapshotSaved.
func (r *Replica) SnapshotSaved(index raft.Index) {
	r.core.SnapshotSaved(index)
	r.snapshots.saved(index)
}

// Transfer begins to hand leadership over, see raft.Core.Transfer.
func (r *Replica) Transfer(to raft.ServerID) error { return r.core.Transfer(to) }

// Transferring reports to whom leadership is on its way, 0 for nobody.
func (r *Replica) Transferring() raft.ServerID { return r.core.Transferring() }

// Request takes a client's request. Its answer comes in a Take, this one's or a later one's. A
// server that does not lead says so and passes nothing on: a proposal that wanders may arrive when
// nobody wants it any more.
func (r *Replica) Request(q Request) {
	if err := q.check(); err != nil {
		r.reply(Reply{Call: q.Call, Status: Invalid, Err: err})
		return
	}
	r.observeLeadership()
	if r.leader == nil {
		r.reply(Reply{Call: q.Call, Status: NotLeader, Leader: r.core.Status().Leader})
		return
	}
	r.leader.early = append(r.leader.early, q)
}

func (q Request) check() error {
	if err := checkOwner(q.Owner); err != nil {
		return err
	}
	if err := q.checkSession(); err != nil {
		return err
	}
	switch q.Kind {
	case Open:
		return nil
	case Noop:
		if !printable(q.Text) {
			return fmt.Errorf("%w: text %q", ErrCommand, q.Text)
		}
		return nil
	case Grant:
		if err := checkLease(q.LeaseMS); err != nil {
			return err
		}
		return checkKey(q.Key)
	case Extend:
		if err := checkLease(q.LeaseMS); err != nil {
			return err
		}
		if q.Token == 0 {
			return ErrToken
		}
		return checkKey(q.Key)
	case Release:
		return checkKey(q.Key)
	}
	return fmt.Errorf("%w that a client can give: %s", ErrCommand, q.Kind)
}

// checkSession checks what names a request.
func (q Request) checkSession() error {
	switch {
	case q.Client == 0:
		return nil
	case q.Seq < q.Lowest:
		return fmt.Errorf("%w: %d with %d as the lowest", ErrClosed, q.Seq, q.Lowest)
	case q.Seq-q.Lowest >= maxOpen:
		return fmt.Errorf("%w: %d with %d as the lowest", ErrTooMany, q.Seq, q.Lowest)
	case q.Kind == Open:
		return fmt.Errorf("%w that a client can give in a session, %d: %s", ErrCommand, q.Client, q.Kind)
	}
	return nil
}

// Disconnect tells that the caller of a request, a read or a change of members has gone before the
// answer was handed to it. There will be none. Only the request's Call and Key are looked at.
func (r *Replica) Disconnect(q Request) {
	r.out.Replies = slices.DeleteFunc(r.out.Replies, func(y Reply) bool { return y.Call == q.Call })
	r.reads.disconnect(q.Call)
	r.changes = slices.DeleteFunc(r.changes, func(c change) bool { return c.call == q.Call })
	if r.leader != nil {
		r.leader.disconnect(q)
	}
}

// Undelivered tells that the Granted which a Take returned as y could not be handed to the caller of
// q, who has gone. The lock is given back, unless its client has come back for it. Only the
// leadership that gave the answer can know that: of an answer from an earlier one nothing is done,
// and the lease ends the tenure.
func (r *Replica) Undelivered(q Request, y Reply) {
	r.observeLeadership()
	l := r.leader
	if l == nil || y.Index <= l.start || y.Result.Kind != Granted || y.Result.Again {
		return
	}
	l.ghosts = append(l.ghosts, ghost{q, y.Result.Token})
}

// Take returns what there is to do since the last Take. First it applies what is committed, then it
// decides what to propose on seeing that, and then it takes raft's output, so that all of it leaves
// together. An error says that the log holds what this replica cannot read. It has then stopped,
// loudly and for good; its outputs are empty.
func (r *Replica) Take() (*Output, error) {
	if r.failed != nil {
		return &Output{}, r.failed
	}
	r.observeLeadership()
	if r.leader != nil {
		r.leader.heir, r.leader.busy = r.core.Transferring(), false
	}
	if r.failed = r.catchUp(); r.failed != nil {
		return &Output{}, r.failed
	}
	if r.leader != nil {
		r.lead()
	}
	r.compact()
	core := r.core.Take() // what is committed is applied already, and proposing commits nothing
	r.answerReads(core.Reads)
	r.answerChanges()
	if core.Save != nil {
		r.snapshots.saving = core.Save.LastIncludedIndex
	}
	// A Request may add a reply before the next Take. So what comes next is collected in the slices of
	// the Take before this one.
	next, out := &r.out, &r.taken
	out.Messages, out.Write, out.Save = core.Messages, core.Write, core.Save
	out.Restored, next.Restored = next.Restored, 0
	out.Replies, next.Replies = next.Replies, out.Replies[:0]
	out.Proposed, next.Proposed = next.Proposed, out.Proposed[:0]
	out.Applied, next.Applied = next.Applied, out.Applied[:0]
	return out, nil
}

// catchUp brings the table to what is committed: by a leader's snapshot if there is one, and the
// entries behind it.
func (r *Replica) catchUp() error {
	if s := r.core.TakeRestore(); s != nil {
		if err := r.restore(s); err != nil {
			return err
		}
		r.out.Restored = s.LastIncludedIndex
	} else {
		r.leases.Recount(&r.table, r.now)
	}
	r.snapshots.read = nil // if there was one, and the log has all that it says
	for _, e := range r.core.TakeCommitted() {
		if err := r.apply(e); err != nil {
			return err
		}
	}
	return nil
}

// apply carries out a committed entry.
func (r *Replica) apply(entry raft.Entry) error {
	e, err := Decode(entry.Command)
	if err != nil {
		return fmt.Errorf("entry %d of term %d: %w", entry.Index, entry.Term, err)
	}
	result := r.table.Apply(entry.Index, e)
	r.reached = entry.Index
	switch {
	case result.Again: // a duplicate sets no lease and ends none
	case result.Kind == Granted || result.Kind == Extended:
		tenure, _ := r.table.Holder(e.Key)
		r.leases.Start(e.Key, tenure, r.now)
	case result.Kind == Released || result.Kind == Expired && result.Existed:
		r.leases.Stop(e.Key)
	}
	holder, _ := r.table.Holder(e.Key)
	r.out.Applied = append(r.out.Applied,
		Applied{entry.Index, entry.Term, e, result, r.table.Hash(), holder.Token, entry.Members})
	if r.leader != nil {
		r.applied(entry, e, result)
	}
	return nil
}

func (r *Replica) reply(y Reply) { r.out.Replies = append(r.out.Replies, y) }

// Core gives an observer the Raft state. It is only to be read.
func (r *Replica) Core() *raft.Core { return r.core }

// Table gives an observer the applied table. It is only to be read.
func (r *Replica) Table() *Table { return &r.table }

// LeaseTimes tells an observer how much is left of the leases that this server counts, see
// Leases.Left. It is as of the last Tick.
func (r *Replica) LeaseTimes(most int) ([]LeaseTime, bool) { return r.leases.Left(r.now, most) }

// Retire answers all who wait as if this server had been deposed: its driver is about to stop. The
// driver gives it no more requests.
func (r *Replica) Retire() {
	r.retired = true
	if r.leader != nil {
		r.resign(0) // if anybody else leads, this server has not heard of it
	}
	r.refuseReads()
}

// Failed returns the error that has stopped the replica, if one has.
func (r *Replica) Failed() error { return r.failed }

// Clone returns an independent copy, with what still waits to be taken.
func (r *Replica) Clone() *Replica {
	c := *r
	c.core = r.core.Clone()
	c.table = r.table.Clone()
	c.leases = r.leases.clone()
	c.snapshots = r.snapshots.clone()
	c.reads, c.changes = r.reads.clone(), slices.Clone(r.changes)
	c.taken = Output{}
	c.out = Output{
		Replies:  slices.Clone(r.out.Replies),
		Proposed: slices.Clone(r.out.Proposed),
		Applied:  slices.Clone(r.out.Applied),
	}
	if r.leader != nil {
		c.leader = r.leader.clone()
	}
	return &c
}

func (l *leadership) clone() *leadership {
	c := *l
	c.early = slices.Clone(l.early)
	c.proposals = slices.Clone(l.proposals)
	c.ahead = make(map[string]*future, len(l.ahead))
	for key, f := range l.ahead {
		copied := *f
		c.ahead[key] = &copied
	}
	c.waiting = make(map[string][]waiter, len(l.waiting))
	for key, queue := range l.waiting {
		c.waiting[key] = slices.Clone(queue)
	}
	c.expiring = maps.Clone(l.expiring)
	c.ending, c.extending = maps.Clone(l.ending), maps.Clone(l.extending)
	c.touched = slices.Clone(l.touched)
	c.ghosts, c.retold = slices.Clone(l.ghosts), maps.Clone(l.retold)
	return &c
}
