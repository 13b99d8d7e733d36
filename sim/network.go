package sim

import (
	"cmp"
	"slices"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// link is the network in one direction between two actors.
type link struct {
	delayMin, delayMax trace.Time
	tail               trace.Time
	tailPPM            int
	lossPPM            int
	duplicatePPM       int
	cut                bool
	holds              uint32 // kinds of messages that are kept in the network, a bit each
	sent               uint64 // messages so far: the draws' ordinal,
	opening            uint64 // and of those that begin sessions
}

// messageKind tells messages apart for selections, counters and pictures.
type messageKind uint8

const (
	messageVote messageKind = iota + 1
	messageVoteReply
	messageAppend
	messageAppendReply
	messagePreVote
	messagePreVoteReply
	messageRequest
	messageRequestReply
	messageRead // a follower asks its leader for a read
	messageReadReply
	messageTransfer // a leader tells a follower to campaign
	messageTransferReply
	messageSnapshot // a leader sends a part of a snapshot
	messageSnapshotReply
	messageDisconnect // a client's connection closes
	messageWrite      // a client calls a fenced resource, to write or to read
)

var messageKindNames = [...]string{
	messageVote: trace.Vote, messageVoteReply: trace.VoteReply,
	messageAppend: trace.Append, messageAppendReply: trace.AppendReply,
	messagePreVote: trace.PreVote, messagePreVoteReply: trace.PreVoteReply,
	messageRead: trace.ReadIndex, messageReadReply: trace.ReadIndexReply,
	messageTransfer: trace.TimeoutNow, messageTransferReply: trace.TimeoutNowReply,
	messageSnapshot: trace.Snapshot, messageSnapshotReply: trace.SnapshotReply,
	messageRequest: "request", messageRequestReply: "request-reply",
	messageDisconnect: "disconnect", messageWrite: "write",
}

func (k messageKind) String() string { return messageKindNames[k] }

func kindOf(body raft.Body) messageKind {
	switch body.(type) {
	case raft.RequestVote:
		return messageVote
	case raft.RequestVoteReply:
		return messageVoteReply
	case raft.AppendEntries:
		return messageAppend
	case raft.PreVote:
		return messagePreVote
	case raft.PreVoteReply:
		return messagePreVoteReply
	case raft.ReadIndex:
		return messageRead
	case raft.ReadIndexReply:
		return messageReadReply
	case raft.TimeoutNow:
		return messageTransfer
	case raft.TimeoutNowReply:
		return messageTransferReply
	case raft.InstallSnapshot:
		return messageSnapshot
	case raft.InstallSnapshotReply:
		return messageSnapshotReply
	}
	return messageAppendReply
}

// flight is a message on its way.
type flight struct {
	from, to int32 // actors
	kind     messageKind
	flying   bool
	held     bool   // by a hold, or because the run is manual
	inside   bool   // it has reached its resource and takes its time there
	gen      uint32 // counts the slot's uses, so that a stale delivery finds nothing
	order    uint64 // of sending, over all messages
	key, nth uint64 // of its draws: its receiver's, and which of the messages on its link it is
	id       int64  // of the trace event that sent it
	raft     raft.Message
	client   *clientMessage // for the kinds that clients send and get
}

// clientMessage is what travels between a client and a server, or to a resource.
type clientMessage struct {
	request fsm.Request // Seq and Attempt tell which request is meant; Call is unset on the way
	reply   fsm.Reply
	token   fsm.Token  // of a call to a resource,
	read    bool       // which changes nothing there
	takes   trace.Time // or takes so long
}

// send puts a message into the network.
func (w *World) send(f *flight) {
	l := &w.links[f.from][f.to]
	w.number(f)
	n, a, b := f.nth, w.actors[f.from].key, f.key
	w.counters[countMessages]++
	w.counters[countMessages+counter(f.kind)]++
	if a, ok := f.raft.Body.(raft.AppendEntries); ok && len(a.Entries) == 0 {
		w.counters[countHeartbeats]++
	}
	if s, ok := f.raft.Body.(raft.InstallSnapshot); ok {
		w.countPart(w.actors[f.from].node, f.raft.To, part{f.raft.Term, s.LastIncludedIndex, s.Offset})
	}
	f.id = w.traceSend(f)
	if l.cut {
		w.lose(f, "cut")
		return
	}
	if l.lossPPM > 0 && chance(draw(w.seed, streamLoss, a, b, n), l.lossPPM) {
		w.note(f, "drop", 0)
		w.lose(f, "loss")
		return
	}
	delay := w.delay(f, streamDelay)
	if delay > l.delayMax {
		w.note(f, "slow", delay)
	}
	w.launch(f, delay)
	if l.duplicatePPM > 0 && chance(draw(w.seed, streamDuplicate, a, b, n), l.duplicatePPM) {
		w.duplicate(f)
	}
}

// number gives a message what its draws depend on. Those that begin sessions are counted apart: when
// a client begins one, and how often, changes nothing for what it wants afterwards.
func (w *World) number(f *flight) {
	l := &w.links[f.from][f.to]
	f.key = w.actors[f.to].key
	if f.client != nil && f.client.request.Kind == fsm.Open && f.kind != messageDisconnect {
		l.opening++
		f.key, f.nth = scramble(f.key), l.opening
		return
	}
	l.sent++
	f.nth = l.sent
}

// duplicate sends a copy of a message, which takes its own time.
func (w *World) duplicate(f *flight) {
	w.counters[countDuplicated]++
	w.launch(f, w.delay(f, streamCopy))
}

// delay draws how long a message takes.
func (w *World) delay(f *flight, s stream) trace.Time {
	l := &w.links[f.from][f.to]
	n, a, b := f.nth, w.actors[f.from].key, f.key
	bits := draw(w.seed, s, a, b, n)
	if l.tailPPM > 0 && chance(draw(w.seed, streamTail, a, b, n<<1|uint64(s)&1), l.tailPPM) {
		return between(bits, l.delayMax, max(l.tail, l.delayMax))
	}
	return between(bits, l.delayMin, l.delayMax)
}

// launch gives a message a slot and, unless something holds it, a time of arrival.
func (w *World) launch(f *flight, delay trace.Time) {
	w.order++
	f.order, f.flying, f.gen = w.order, true, 0
	f.held = w.manual || w.isHeld(f)
	var slot uint32
	if n := len(w.freeSlots); n > 0 {
		slot = w.freeSlots[n-1]
		w.freeSlots = w.freeSlots[:n-1]
		f.gen = w.flights[slot].gen + 1
		w.flights[slot] = *f
	} else {
		slot = uint32(len(w.flights))
		w.flights = append(w.flights, *f)
	}
	if !f.held {
		w.schedule(event{at: w.now + delay, kind: eventDeliver, slot: slot, gen: f.gen})
	}
}

// land takes a message out of the network. It stays where it is until its slot is freed.
func (w *World) land(slot uint32) *flight {
	f := &w.flights[slot]
	f.flying = false
	return f
}

// free lets another message have the slot of one that has landed.
func (w *World) free(slot uint32) { w.freeSlots = append(w.freeSlots, slot) }

// discard takes a message out of the network that nobody gets.
func (w *World) discard(slot uint32, why string) {
	w.lose(w.land(slot), why)
	w.free(slot)
}

// arrive is the delivery of a message whose time has come.
func (w *World) arrive(slot, gen uint32) {
	if f := &w.flights[slot]; !f.flying || f.gen != gen || f.held {
		return // delivered, dropped or held since
	}
	w.deliver(slot)
}

// deliver hands a message to its receiver, if the link and the receiver are up.
func (w *World) deliver(slot uint32) {
	f := w.land(slot)
	if w.links[f.from][f.to].cut {
		w.lose(f, "cut")
	} else {
		w.handOver(f)
	}
	w.free(slot)
}

// handOver gives a message that has arrived to a node, a client or a resource.
func (w *World) handOver(f *flight) {
	to := &w.actors[f.to]
	switch {
	case to.node != nil:
		w.nodeReceives(to.node, f)
	case to.client != nil:
		w.clientReceives(to.client, f)
	default:
		w.resourceReceives(f)
	}
}

func (w *World) lose(f *flight, why string) {
	w.counters[countLost]++
	w.traceLost(f, why)
}

// matches reports whether a message is among those that a selection names. Append never takes a
// reply.
func (w *World) matches(f *flight, from, to Actor, kind string) bool {
	return w.isActor(f.from, from) && w.isActor(f.to, to) && (kind == "" || kind == f.kind.String())
}

// isActor reports whether an actor is the one that is named: itself, any node for Everyone, any for
// "".
func (w *World) isActor(i int32, name Actor) bool {
	switch name {
	case "":
		return true
	case Everyone:
		return w.actors[i].node != nil
	}
	return w.actors[i].name == name
}

// isHeld reports whether the network keeps a message back.
func (w *World) isHeld(f *flight) bool {
	return w.links[f.from][f.to].holds&(1<<f.kind) != 0
}

// selected returns the slots of the messages in flight that a selection names, oldest first.
func (w *World) selected(m Messages) []uint32 {
	var slots []uint32
	for i := range w.flights {
		if f := &w.flights[i]; f.flying && w.matches(f, m.From, m.To, m.Kind) {
			slots = append(slots, uint32(i))
		}
	}
	slices.SortFunc(slots, func(a, b uint32) int {
		return cmp.Compare(w.flights[a].order, w.flights[b].order)
	})
	return slots
}

// setHold makes the network keep messages back, those on their way too, or stop doing so. What it
// kept then arrives at once, in the order in which it was sent.
func (w *World) setHold(m Messages, on bool) {
	for from := range w.links {
		for to := range w.links[from] {
			if w.isActor(int32(from), m.From) && w.isActor(int32(to), m.To) {
				w.links[from][to].setHold(m.Kind, on)
			}
		}
	}
	for _, slot := range w.selected(m) {
		f := &w.flights[slot]
		held := w.manual || w.isHeld(f)
		if f.held && !held {
			f.gen++
			w.schedule(event{at: w.now, kind: eventDeliver, slot: slot, gen: f.gen})
		}
		f.held = held
	}
}

func (l *link) setHold(kind string, on bool) {
	for k := messageVote; k <= messageWrite; k++ {
		switch {
		case kind != "" && kind != k.String():
		case on:
			l.holds |= 1 << k
		default:
			l.holds &^= 1 << k
		}
	}
}
