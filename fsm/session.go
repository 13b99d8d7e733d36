package fsm

import (
	"cmp"
	"slices"

	"ticketing/raft"
)

// This file is an addition to the specification: a request that is sent again is carried out once.
// An answer can be lost, and a client that asks again must not get a second tenure, nor be told
// that its own Release found nothing.
//
// The result of a request is kept with the client's session until the client says, in a later
// request, that it waits for that answer no longer. So a session is as large as its client has
// requests open, and their number has a bound. A session ends when there are too many and it is the
// one that has been silent for longest, counted in log entries: every replica forgets the same one
// at the same entry, and none asks a clock. Whatever that client sends afterwards is refused, and
// never carried out: its session's id, an index of the log, is given to nobody else.

const (
	maxSessions = 4096 // at once; another one ends that which was silent for longest
	maxOpen     = 256  // requests of a session, by number, from its lowest open one
)

// A session is what is remembered of a client.
type session struct {
	last   raft.Index // the entry in which it was last heard
	lowest uint64     // its requests below this one are closed
	done   []outcome  // of its open requests, those that were carried out, by number; never written
}

// An outcome is what a request has come to. The command is kept as a digest: enough to notice that
// a number is used for something else.
type outcome struct {
	seq     uint64
	command uint64
	token   Token
	kind    ResultKind
}

// A silence says that a client was last heard in an entry, or later: see forget.
type silence struct {
	client ClientID
	last   raft.Index
}

func (a silence) compare(b silence) int { return cmp.Compare(a.last, b.last) }

// open begins the session whose id is index.
func (t *Table) open(index raft.Index) {
	if len(t.sessions) >= maxSessions {
		t.forget()
	}
	if t.sessions == nil {
		t.sessions = map[ClientID]session{}
	}
	s := session{last: index}
	t.sessions[ClientID(index)] = s
	t.silences = append(t.silences, silence{ClientID(index), index})
	t.sum += hashSession(ClientID(index), s)
}

// forget ends the session that was silent for longest. The list of silences has one of each client,
// in order, and is put right only here: one that has spoken since goes to its new place. So what a
// client says costs nothing more, and the first in the list that is right is the oldest of all.
func (t *Table) forget() {
	for {
		first := t.silences[0]
		t.silences = t.silences[1:]
		s := t.sessions[first.client]
		if s.last == first.last {
			t.sum -= hashSession(first.client, s)
			delete(t.sessions, first.client)
			return
		}
		first.last = s.last
		i, _ := slices.BinarySearchFunc(t.silences, first, silence.compare)
		t.silences = slices.Insert(t.silences, i, first)
	}
}

// applyOnce carries out a client's request, unless it was carried out before.
func (t *Table) applyOnce(index raft.Index, e Envelope) Result {
	s, known := t.sessions[e.Client]
	if !known {
		return Result{Kind: SessionUnknown}
	}
	if e.Kind == Open || e.Kind == Expire {
		return Result{} // Noop: neither is a client's request in a session, and no leader proposes it
	}
	t.sum -= hashSession(e.Client, s)
	s.last = index
	s.close(e.Lowest)
	result := Result{} // Noop: a duplicate of a request that is closed, or a number too far ahead
	if e.Seq >= s.lowest && e.Seq-s.lowest < maxOpen {
		result = t.remember(&s, index, e)
	}
	t.sessions[e.Client] = s
	t.sum += hashSession(e.Client, s)
	return result
}

// remember returns what an open request has come to, and carries it out if it has not been.
//
//spec:rule Once
func (t *Table) remember(s *session, index raft.Index, e Envelope) Result {
	i, found := s.find(e.Seq)
	if found {
		return t.again(s.done[i], e)
	}
	e.Client = 0
	result := t.Apply(index, e)
	// A rejected Grant has changed nothing, and its client may wait for another try.
	if result.Kind != GrantRejected && result.Kind != TableFull {
		o := outcome{e.Seq, hashCommand(e.Command), result.Token, result.Kind}
		s.done = slices.Insert(slices.Clone(s.done), i, o)
	}
	return result
}

// again answers a duplicate. A token is told again only while its tenure lives: a client must not
// take a lock for its own that is over, and the request is not carried out a second time either.
// The client hears Noop, and asks under a new number if it still wants the lock.
func (t *Table) again(o outcome, e Envelope) Result {
	tenure, held := t.Holder(e.Key)
	switch {
	case o.command != hashCommand(e.Command):
		return Result{Kind: NumberReused}
	case o.kind == Granted && !(held && tenure.Token == o.token):
		return Result{}
	case o.kind == Extended && !(held && tenure.Token == e.Token):
		return Result{Kind: NotFound}
	}
	return Result{Kind: o.kind, Token: o.token, Again: true}
}

// spent reports whether a request will not be carried out, whatever the log still holds: it was
// before, or it is closed. Neither ever changes.
func (t *Table) spent(e Envelope) bool {
	s, known := t.sessions[e.Client]
	_, done := s.find(e.Seq)
	return known && (done || e.Seq < s.lowest)
}

// find returns where the outcome of a request is, or would be.
func (s session) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(s.done, seq, func(o outcome, seq uint64) int {
		return cmp.Compare(o.seq, seq)
	})
}

// close forgets the results of requests below lowest.
func (s *session) close(lowest uint64) {
	if lowest <= s.lowest {
		return
	}
	s.lowest = lowest
	keep, _ := s.find(lowest)
	s.done = s.done[keep:]
}

// Sessions is the number of clients that are remembered.
func (t *Table) Sessions() int { return len(t.sessions) }

func hashSession(id ClientID, s session) uint64 {
	h := mix(mix(uint64(id)) ^ uint64(s.last))
	h = mix(h ^ s.lowest)
	for _, o := range s.done {
		h = mix(h ^ o.seq)
		h = mix(h ^ o.command)
		h = mix(h ^ uint64(o.token))
		h = mix(h ^ uint64(o.kind))
	}
	return h
}

// hashCommand is a digest of all that makes two commands differ.
func hashCommand(c Command) uint64 {
	h := mix(hashText(c.Key, c.Text) ^ uint64(c.Kind))
	return mix(mix(h^uint64(c.Token)) ^ uint64(c.LeaseMS))
}
