package rpc

import (
	"cmp"
	"slices"
	"time"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// witness notes for the trace what the loop gives to the replica and takes from it. It decides
// nothing, and nil notes nothing. The loop alone calls it.
//
// The loop takes what follows from several inputs at once, so what caused what is worked out here;
// docs/trace.md says how.
type witness struct {
	recorder *trace.Recorder
	name     string
	core     *raft.Core
	now      raft.Time // when the loop last looked at the clock

	before  raft.Status // after the last Take
	status  raft.Status // after the last input
	votes   trace.Votes
	disk    trace.WriteRecord // what is on the disk
	writes  []recorded        // on their way there
	foreign *raft.Snapshot    // a leader's, that was given to the disk
	calls   uint64            // the last number given to a request to a peer
	asked   map[uint64]uint64 // requests of peers that wait for a reply: their numbers, by call
	clients map[uint64]fsm.Request

	// Of the inputs since the last Take. Places in it count from 1.
	batch   []trace.Event
	places  map[uint64]int // of requests, by call
	wishes  map[wishID]int // of clients' requests
	clock   int            // of the clock, if it had something to say
	turning int            // of the last input that changed the state, 0 for none
	turned  *raft.Message  // that input, if it was a message
	keeping int            // of a snapshot's that is on the disk, 0 for none
}

// recorded is a write, and where the stored log ends with it.
type recorded struct {
	trace.WriteRecord
	end raft.Index
}

// wishID names a client's request, as the envelope of its entry does.
type wishID struct {
	client fsm.ClientID
	seq    uint64
}

// observe makes the node's witness, if there is a trace, and notes the start.
func (n *Node) observe(durable *raft.Durable) {
	if n.config.Trace == nil {
		return
	}
	status := n.replica.Core().Status()
	w := &witness{
		recorder: n.config.Trace, name: trace.NodeName(n.config.ID), core: n.replica.Core(),
		now: n.now(), before: status, status: status, votes: trace.Votes{},
		disk: trace.WriteRecord{
			Term: status.Term, Vote: status.VotedFor, Last: status.LastIndex,
			Snapshot: trace.OfSnapshot(durable.Snapshot),
		},
		// Numbers are not used again after a restart: no node sends a message a microsecond.
		calls: uint64(time.Now().UnixMicro()),
		asked: map[uint64]uint64{}, clients: map[uint64]fsm.Request{}, places: map[uint64]int{},
		wishes: map[wishID]int{},
	}
	n.witness = w
	var names []string
	for _, id := range n.config.raft().Voters {
		names = append(names, trace.NodeName(id))
	}
	w.recorder.Open(names, n.config.Cluster)
	w.input(trace.Event{Kind: trace.KindStart, State: trace.OfStatus(status), Snapshot: w.disk.Snapshot})
	for _, e := range w.core.Entries(w.core.FirstIndex(), status.LastIndex) {
		r := trace.OfEntry(e)
		w.follows(trace.Event{Kind: trace.KindAppend, Entry: &r}, 1)
	}
	w.flush()
}

// tick lets the replica look at the clock.
func (n *Node) tick() {
	now, w := n.now(), n.witness
	if w == nil {
		n.replica.Tick(now)
		return
	}
	w.now = now
	kind := trace.KindWake
	switch {
	case now < n.replica.Deadline():
		kind = ""
	case now < w.core.Deadline() && n.replica.Compacting() != 0:
		kind = "" // the next part of a snapshot is due: took finds out if anything else comes of it
	case now < w.core.Deadline():
	case w.status.Role == raft.Leader:
		kind = trace.KindHeartbeatTimeout
	default:
		kind = trace.KindElectionTimeout
	}
	n.replica.Tick(now)
	if kind != "" {
		w.clock = w.input(trace.Event{Kind: kind})
		w.look(nil)
	}
}

// input notes an input and returns its place.
func (w *witness) input(e trace.Event) int {
	if k := len(w.batch); k > 0 {
		w.batch[k-1].More = true
	}
	return w.follows(e, 0)
}

func (w *witness) follows(e trace.Event, cause int) int {
	e.Node, e.Local, e.Cause = w.name, w.now, int64(cause)
	w.batch = append(w.batch, e)
	return len(w.batch)
}

// look sees whether the last input has changed the state. What is durable is no part of it.
func (w *witness) look(m *raft.Message) {
	s := w.core.Status()
	w.status.Durable = s.Durable
	if s != w.status {
		w.turning, w.turned = len(w.batch), m
	}
	w.status = s
}

// received notes a message that the replica has accepted, with the number that its sender has given
// to the request. Call names it here if it is a request.
func (w *witness) received(m raft.Message, number uint64) {
	if w == nil {
		return
	}
	w.votes.Asked(&w.status, &m)
	r := trace.OfMessage(&m)
	r.Call = number
	place := w.input(trace.Event{Kind: trace.KindReceive, Message: r})
	if m.Call != 0 {
		w.asked[m.Call], w.places[m.Call] = number, place
	}
	w.look(&m)
}

// requested notes a client's request.
func (w *witness) requested(q fsm.Request) {
	if w == nil {
		return
	}
	w.clients[q.Call] = q
	r := w.client(q, trace.OfRequest(&q))
	place := w.input(trace.Event{Kind: trace.KindReceive, Client: r})
	w.places[q.Call], w.wishes[wishID{q.Client, q.Seq}] = place, place
}

// left notes that a client has gone before it had its answer.
func (w *witness) left(q fsm.Request) {
	if w == nil {
		return
	}
	r := trace.OfRequest(&q)
	r.Op = trace.Disconnect
	w.input(trace.Event{Kind: trace.KindReceive, Client: w.client(q, r)})
	delete(w.clients, q.Call)
}

// client says who asks and who answers.
func (w *witness) client(q fsm.Request, r *trace.ClientRecord) *trace.ClientRecord {
	r.Client, r.Server = trace.ClientName(q.Owner, q.Client), w.name
	return r
}

// saved notes that a write is on the disk. There is one disk, and it keeps the order.
func (w *witness) saved(seq uint64) {
	if w == nil {
		return
	}
	for len(w.writes) > 0 && w.writes[0].Seq <= seq {
		done := w.writes[0]
		w.writes = w.writes[1:]
		w.disk.Term, w.disk.Vote = done.Term, done.Vote
		w.disk.Last = done.end
		if done.Snapshot != nil {
			w.disk.Snapshot = done.Snapshot
		}
	}
	disk := w.disk
	disk.Seq = seq
	w.input(trace.Event{Kind: trace.KindSaved, Write: &disk})
	w.look(nil)
}

// stopped notes that the node ends. The loop has ended.
func (w *witness) stopped(err error) {
	if w == nil {
		return
	}
	text := trace.ToldToStop
	if err != nil {
		text = err.Error()
	}
	w.follows(trace.Event{Kind: trace.KindStop, Text: text}, len(w.batch))
	w.flush()
}

// flush hands over what has been noted.
func (w *witness) flush() {
	w.recorder.Record(w.batch)
	w.batch, w.clock, w.turning, w.turned = nil, 0, 0, nil
	w.keeping = 0
	clear(w.places)
	clear(w.wishes)
}

// took notes what follows from the inputs, before any of it takes effect outside, and numbers the
// requests that leave.
func (w *witness) took(out *fsm.Output) {
	if w == nil {
		return
	}
	if len(w.batch) == 0 {
		if out.Write.Seq == 0 && out.Save == nil && len(out.Messages)+len(out.Replies)+len(out.Applied) == 0 {
			return // somebody has looked at the table, at most
		}
		w.input(trace.Event{Kind: trace.KindWake})
	}
	last := len(w.batch)
	w.status = w.core.Status()
	w.trims(out, last)
	turning := max(w.turning, w.appended(out, w.batch[:last]))
	if turning == 0 {
		turning = last
	}
	w.becomes(out, turning)
	for i := range out.Messages {
		w.sends(&out.Messages[i], turning, last)
	}
	for i := range out.Replies {
		w.replies(&out.Replies[i], turning)
	}
	w.keeps(out, turning)
	w.flush()
}

// becomes notes what has changed in the server, but for its log.
func (w *witness) becomes(out *fsm.Output, turning int) {
	if e, ok := trace.Changed(&w.before, &w.status, w.turned); ok {
		w.follows(e, turning)
	}
	w.before = w.status
	if out.Write.Seq != 0 {
		r := trace.OfWrite(&out.Write)
		w.writes = append(w.writes, recorded{*r, w.status.LastIndex})
		w.follows(trace.Event{Kind: trace.KindWrite, Write: r}, turning)
	}
	if out.Restored != 0 {
		table := trace.OfSnapshot(w.core.Snapshot())
		w.follows(trace.Event{Kind: trace.KindTable, Snapshot: table}, cmp.Or(w.keeping, turning))
	}
	for i := range out.Applied {
		a := &out.Applied[i]
		w.follows(trace.Applied(a, w.core.Entries(a.Index, a.Index)[0].Command), turning)
	}
}

// appended notes what has come into the log, and returns the place of what the last of it came
// from.
func (w *witness) appended(out *fsm.Output, inputs []trace.Event) (cause int) {
	proposed := out.Proposed
	for _, e := range out.Write.Entries {
		var p *fsm.Proposed
		if len(proposed) > 0 && proposed[0].Index == e.Index {
			p, proposed = &proposed[0], proposed[1:]
		}
		cause = max(cause, w.origin(e, p, inputs)) // they came in the order of the log
		w.follows(trace.Appended(e, w.before.LastIndex, w.status.Role, p), cause)
	}
	return cause
}

// origin is the place of the input that an entry came from: the request or the message that brought
// it, the clock that has ended a lease, or else the last input.
func (w *witness) origin(entry raft.Entry, p *fsm.Proposed, inputs []trace.Event) int {
	if p != nil {
		place := 0
		switch p.Cause {
		case fsm.ForClient:
			place = w.wishes[wishID{p.Envelope.Client, p.Envelope.Seq}]
		case fsm.ForLease:
			place = w.clock
		}
		return cmp.Or(place, len(inputs))
	}
	for i := len(inputs) - 1; i >= 0; i-- {
		m := inputs[i].Message
		if m != nil && slices.ContainsFunc(m.Entries, func(r trace.EntryRecord) bool {
			return r.Index == entry.Index && r.Term == entry.Term
		}) {
			return i + 1
		}
	}
	return len(inputs)
}

func (w *witness) sends(m *raft.Message, turning, last int) {
	cause := turning
	r := trace.OfMessage(m)
	if isReply(m.Body) {
		r.Call = w.asked[m.Call]
		delete(w.asked, m.Call)
		cause = cmp.Or(w.places[m.Call], last)
	} else {
		r.Call = w.number(m)
	}
	if a, ok := m.Body.(raft.AppendEntries); ok && len(a.Entries) == 0 {
		cause = cmp.Or(w.clock, last)
	}
	w.follows(trace.Event{Kind: trace.KindSend, Message: r, Rule: w.votes.RuleOfReply(m)}, cause)
}

// number gives a request to a peer its number. From, To and the number tell it from all others.
func (w *witness) number(m *raft.Message) uint64 {
	w.calls++
	m.Call = w.calls
	return w.calls
}

func (w *witness) replies(y *fsm.Reply, turning int) {
	q, ok := w.clients[y.Call]
	if !ok {
		return // nobody outside has asked: it gives back a lock whose client has gone
	}
	delete(w.clients, y.Call)
	cause := turning
	if place := w.places[y.Call]; place != 0 && y.Status != fsm.Answered {
		cause = place
	}
	w.follows(trace.Event{Kind: trace.KindReply, Client: w.client(q, trace.OfReply(&q, y))}, cause)
}

// numberOf is the number that a request to a peer was given, 0 if there is no trace.
func numberOf(args any) uint64 { return args.(interface{ number() uint64 }).number() }

func (h Header) number() uint64 { return h.Call }
