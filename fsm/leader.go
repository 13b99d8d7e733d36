package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ticketing/raft"
)

// leadership is what a server knows and wants while it leads. It begins empty and is dropped whole:
// a leader that was deposed has nothing left to propose, to answer or to count (rule L5), and
// nothing is ever passed on to its successor (rule L7), who has its own table, clock and clients.
//
//spec:rule L5
//spec:rule L7
type leadership struct {
	term      raft.Term
	start     raft.Index // its start-of-term entry
	ready     bool       // that entry is applied, or is not waited for
	early     []Request  // not yet looked at
	proposals []proposal // appended and not yet applied, by rising index
	ahead     map[string]*future
	waiting   map[string][]waiter // Grants that wait, by key, first come first served
	waiters   int                 // all of them
	arrivals  uint64              // requests that were looked at
	expiring  map[Token]bool      // tenures for which this leader's Expire is in the log
	ending    map[tenureOf]int    // Expires in the log that are not applied, whoever appended them,
	extending map[tenureOf]int    // and Extends
	touched   []string            // keys of which something changed, so that a waiter may be due
	ghosts    []ghost             // Granted replies that could not be handed over
	retold    map[string]Token    // by key, the tenure that was told again to its client

	// While the log takes no proposals, see propose.
	heir   raft.ServerID // to whom leadership is on its way, as of the last Take; 0 for nobody
	busy   bool          // the core has refused a proposal in this Take: too much is not committed
	behind bool          // keys among those touched were put off
}

// A ghost is a tenure whose client does not know of it, and the request that it came from.
type ghost struct {
	request Request
	token   Token
}

// A tenureOf names a tenure, as a command does. Any client can send an Extend with the token of
// another key's tenure: it must not count for that one.
type tenureOf struct {
	key   string
	token Token
}

// maxExpiring is how many Expires a leader has in its log at once, so that a million leases that
// end together do not stand before everything else; maxWaiters how many Grants wait, of all keys: a
// request that comes again is looked for among those that wait for its key.
const (
	maxExpiring = 256
	maxWaiters  = 1 << 12
)

// A waiter is a Grant that waits for its turn. Turns are given in the order of arrival.
type waiter struct {
	Request
	turn uint64
}

// A proposal remembers who waits for an entry. Its call is 0 if nobody does, or no longer.
type proposal struct {
	index   raft.Index
	request Request
	turn    uint64 // the request's, for a Grant that has to wait again
	attempt uint32 // the request's newest when this was appended
	cause   Cause
	meant   Token
}

// observeLeadership notices that this server has begun or ceased to lead.
func (r *Replica) observeLeadership() {
	s := r.core.Status()
	leads := s.Role == raft.Leader
	if r.leader != nil && (!leads || s.Term != r.leader.term) {
		r.resign(s.Leader)
	}
	if !leads || r.leader != nil || r.retired {
		return
	}
	r.leader = &leadership{
		term:      s.Term,
		start:     s.LastIndex,
		ahead:     map[string]*future{},
		waiting:   map[string][]waiter{},
		expiring:  map[Token]bool{},
		ending:    map[tenureOf]int{},
		extending: map[tenureOf]int{},
		retold:    map[string]Token{},
	}
	// What the log holds beyond the applied table is part of the state to decide on, whoever
	// appended it.
	for i := s.LastApplied + 1; i < s.LastIndex; i++ {
		if e, err := Decode(r.core.Entries(i, i)[0].Command); err == nil {
			r.leader.note(&r.table, i, e, e.Token)
		}
	}
	r.leader.ready = r.config.Rules.NoNoopWait
}

// resign answers all who wait. Nothing was proposed for those in a queue. Of what was proposed it
// is not known whether it will be committed by another leader: to say that it did not happen would
// be a guess.
func (r *Replica) resign(leader raft.ServerID) {
	l := r.leader
	r.leader = nil
	leader = cmp.Or(leader, l.heir)
	for _, p := range l.proposals {
		if p.request.Call != 0 {
			r.reply(Reply{Call: p.request.Call, Status: Unknown})
		}
	}
	queued := l.early
	for _, key := range slices.Sorted(maps.Keys(l.waiting)) {
		for _, w := range l.waiting[key] {
			queued = append(queued, w.Request)
		}
	}
	for _, q := range queued {
		r.reply(Reply{Call: q.Call, Status: NotLeader, Leader: leader})
	}
}

// lead proposes what is due: ended leases first, then what clients want, then Grants to those who
// wait.
func (r *Replica) lead() {
	l := r.leader
	// A new leader's table may lag behind its log, so that it believes in tenures that are over. It
	// starts when its own first entry is applied: then all that came before is as well.
	//spec:rule L1
	if !l.ready {
		return
	}
	if !r.leases.Recounting() { // or it would expire tenures that are long over
		r.leases.Advance(r.now)
		for _, o := range r.leases.Over(maxExpiring) {
			r.expire(o)
		}
	}
	ghosts := l.ghosts
	l.ghosts = l.ghosts[:0] // those that are put off are added again, none before its own place
	for _, g := range ghosts {
		r.giveBack(g)
	}
	if l.behind { // whoever was put off comes before those who have come since
		r.grantWaiting()
	}
	for _, q := range l.early {
		r.admit(q)
	}
	l.early = l.early[:0]
	r.grantWaiting()
}

// expire proposes the end of a tenure whose lease is over, once per tenure and leadership: the
// entry stays in the log while this server leads, and another leader sees to its own. It looks at
// the applied table alone. A Release of the tenure, even the next Grant, may already be in the log;
// then the Expire comes late, and Table.Apply sees to that.
//
//spec:rule L3
func (r *Replica) expire(o lapse) {
	if r.leader.expiring[o.token] {
		return
	}
	// An Extend that is on its way will give the tenure a new lease. The token is no help here: it
	// guards a later tenure from an Expire, and not the same one that has been extended.
	//spec:rule L6
	if r.leader.extending[tenureOf{o.key, o.token}] > 0 {
		return
	}
	e := Envelope{Command: Command{Kind: Expire, Key: o.key, Token: o.token}}
	if r.config.Rules.NoExpireToken {
		e.Command = Command{Kind: Release, Key: o.key}
	}
	if !r.propose(e, o.token, ForLease, waiter{}) {
		return // it stays among those that are over, for the next Take
	}
	r.leader.expiring[o.token] = true
	if r.config.Rules.NoExpireToken {
		r.leader.ending[tenureOf{o.key, o.token}]++ // as note does it for an Expire
	}
}

// propose appends a command to the log. Meant is the tenure that it is to end, 0 for any. It reports
// whether the log has taken it. None does while leadership is on its way to another server, and there
// is a bound on what is not committed. Both pass: a transfer that comes to nothing is given up, and
// what is committed makes room. So what a client asks is refused, and it asks again; but nobody asks
// again for an ended lease, a ghost or the next in a queue. Those stay where they are until a Take in
// which the log takes them, before whatever comes then. After one refusal all else is refused in the
// same Take, so that nothing small gets past something large.
//
//spec:rule L8
func (r *Replica) propose(e Envelope, meant Token, cause Cause, q waiter) bool {
	if r.leader.heir != 0 || r.leader.busy {
		return false
	}
	if e.Kind == Release && r.config.Rules.NoReleaseToken {
		e.Token = 0
	}
	if r.config.Rules.NoRequestIDs {
		e.Client, e.Seq, e.Lowest = 0, 0, 0
	}
	index, term, err := r.core.Propose(e.Append(nil))
	if errors.Is(err, raft.ErrBusy) {
		r.leader.busy = true
		return false
	}
	if err != nil {
		panic("fsm: a leadership outlived the core's: " + err.Error())
	}
	r.leader.proposals = append(r.leader.proposals,
		proposal{index, q.Request, q.turn, q.Attempt, cause, meant})
	r.out.Proposed = append(r.out.Proposed, Proposed{index, term, cause, meant, e, nil})
	r.leader.note(&r.table, index, e, meant)
	return true
}

// refusal answers a client whose request was not proposed. Where leadership is on its way to another
// server it is sent there: that one most likely leads before it has come, and if not sends it back.
func (l *leadership) refusal(call uint64) Reply {
	if l.heir != 0 {
		return Reply{Call: call, Status: NotLeader, Leader: l.heir}
	}
	return Reply{Call: call, Status: Busy}
}

// applied tells the leader what became of an entry: its own, or an earlier leader's.
func (r *Replica) applied(entry raft.Entry, e Envelope, result Result) {
	l := r.leader
	l.settle(&r.table, entry.Index, e, result)
	if entry.Index == l.start {
		l.ready = true
	}
	if len(l.proposals) == 0 || l.proposals[0].index != entry.Index {
		return
	}
	p := l.proposals[0]
	l.proposals = l.proposals[1:]
	if p.cause == ForLease {
		delete(l.expiring, p.meant)
		if e.Kind == Release {
			less(l.ending, tenureOf{e.Key, p.meant}) // as settle does it for an Expire
		}
	}
	q := p.request
	switch {
	case p.cause == ForClient && result.Kind == Granted && !result.Again && q.Call == 0:
		// The client has gone before it was answered, and nobody else has asked in its place: the
		// lock would be a ghost. The Release names the token that was just granted, so that it
		// cannot remove a later tenure. A Grant that is only told again is none of this leader's to
		// withdraw: an earlier answer may have arrived.
		//spec:rule L4
		r.cleanUp(ghost{q, result.Token})
	case q.Call == 0: // nobody waits
	case result.Kind == GrantRejected && !q.Try:
		// Another Grant was faster, as happens without the gate. This one waits for its turn.
		l.queue(waiter{q, p.turn})
	default:
		// "Respond after entry applied to state machine."
		//spec:rule Leaders.2a
		r.reply(r.answer(p, entry.Index, e, result))
	}
}

func (r *Replica) cleanUp(g ghost) {
	e := Envelope{Command: Command{Kind: Release, Key: g.request.Key, Token: g.token}}
	if !r.propose(e, g.token, ForCleanup, waiter{}) {
		r.leader.ghosts = append(r.leader.ghosts, g) // and until then its client may come back for it
	}
}

// answer says what a proposal has come to.
func (r *Replica) answer(p proposal, index raft.Index, e Envelope, result Result) Reply {
	y := Reply{Call: p.request.Call, Status: Answered, Result: result, Index: index, Attempt: p.attempt}
	if result.Again {
		if result.Kind == Granted {
			r.leader.retold[e.Key] = result.Token
		}
		// The lease has been counted since the first time. On which attempt that was proposed, and
		// by which leader, is not known any more.
		y.Attempt = 0
	}
	if result.Kind == NotFound && e.Token > r.table.tokens {
		y.Err = fmt.Errorf("%w: %d", ErrTokenAhead, e.Token)
	}
	return y
}
