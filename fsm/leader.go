package fsm

import (
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
	waiting   map[string][]Request // Grants that wait, by key, first come first served
	expiring  map[Token]bool       // tenures for which an Expire is in the log
	touched   []string             // keys of which something changed, so that a waiter may be due
}

// A proposal remembers who waits for an entry. Its call is 0 if nobody does, or no longer.
type proposal struct {
	index   raft.Index
	request Request
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
		term:     s.Term,
		start:    s.LastIndex,
		ahead:    map[string]*future{},
		waiting:  map[string][]Request{},
		expiring: map[Token]bool{},
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
	for _, p := range l.proposals {
		if p.request.Call != 0 {
			r.reply(Reply{Call: p.request.Call, Status: Unknown})
		}
	}
	queued := l.early
	for _, key := range slices.Sorted(maps.Keys(l.waiting)) {
		queued = append(queued, l.waiting[key]...)
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
	r.leases.Advance(r.now)
	for _, o := range r.leases.lapsed {
		r.expire(o)
	}
	for _, q := range l.early {
		r.admit(q)
	}
	l.early = l.early[:0]
	for i := 0; i < len(l.touched); i++ { // grantNext may add to them
		r.grantNext(l.touched[i])
	}
	l.touched = l.touched[:0]
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
	r.leader.expiring[o.token] = true
	e := Envelope{Command: Command{Kind: Expire, Key: o.key, Token: o.token}}
	if r.config.Rules.NoExpireToken {
		e.Command = Command{Kind: Release, Key: o.key}
	}
	r.propose(e, o.token, ForLease, Request{})
}

// propose appends a command to the log. Meant is the tenure that it is to end, 0 for any.
func (r *Replica) propose(e Envelope, meant Token, cause Cause, q Request) {
	if e.Kind == Release && r.config.Rules.NoReleaseToken {
		e.Token = 0
	}
	index, term, err := r.core.Propose(e.Append(nil))
	if err != nil {
		panic("fsm: a leadership outlived the core's: " + err.Error())
	}
	r.leader.proposals = append(r.leader.proposals, proposal{index, q, q.Attempt, cause, meant})
	r.out.Proposed = append(r.out.Proposed, Proposed{index, term, cause, meant, e})
	r.leader.note(&r.table, index, e, meant)
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
	}
	q := p.request
	switch {
	case p.cause == ForClient && result.Kind == Granted && q.Call == 0:
		// The client has gone before it was answered, and nobody else has asked in its place: the
		// lock would be a ghost. The Release names the token that was just granted, so that it
		// cannot remove a later tenure.
		//spec:rule L4
		release := Command{Kind: Release, Key: e.Key, Token: result.Token}
		r.propose(Envelope{Command: release}, result.Token, ForCleanup, Request{})
	case q.Call == 0: // nobody waits
	case result.Kind == GrantRejected && !q.Try:
		// Another Grant was faster, as happens without the gate. This one waits for its turn.
		l.waiting[q.Key] = append(l.waiting[q.Key], q)
		l.touched = append(l.touched, q.Key)
	default:
		// "Respond after entry applied to state machine."
		//spec:rule Leaders.2a
		r.reply(Reply{Call: q.Call, Status: Answered, Result: result, Attempt: p.attempt})
	}
}
