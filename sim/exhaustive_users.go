package sim

import (
	"slices"

	"ticketing/fsm"
)

// This file is the two clients of the search. One has one request at a time, as those of the
// simulator have; with its next request it says that it has done with the one before.

// user is a client.
type user struct {
	session fsm.ClientID
	sent    []sent    // its requests, by number from 1; never written
	open    bool      // the last one is not answered
	token   fsm.Token // that it was granted last
	gave    bool      // it has asked to release that one
}

type sent struct {
	request fsm.Request
	to      int
}

func userName(i int) string { return string(rune('A' + i)) }

// waitsAt reports whether a user's last request waits at a server. If that was replaced, the user
// gives up on it as soon as it wants something else.
func (me *user) waitsAt(n int) bool { return me.open && me.sent[len(me.sent)-1].to == n }

// userSteps lists what a client can do at a leader. It asks for the lock, or for a new lease, only
// as far as it knows that it does not hold the lock, or does; it gives back what it may have lost.
// A is the one that asks first: the other half of the states is this one with the names exchanged.
func (s *locks) userSteps(u, n int, add func(do act, who, where, nth int)) {
	me := &s.users[u]
	holds := me.token != 0 && !me.gave
	switch {
	case me.waitsAt(n):
		if s.left.disconnects > 0 {
			add(actLeave, u, n, 0)
		}
	case holds:
		add(actRelease, u, n, 0)
		if s.left.extends > 0 {
			add(actExtend, u, n, 0)
		}
	case s.left.acquires > 0 && (u == 0 || len(s.users[0].sent) > 0):
		add(actAcquire, u, n, 0)
	}
	s.copySteps(u, n, add)
}

// copySteps lists what can arrive once more. A copy of the last request is no different from one
// that the client sends again.
func (s *locks) copySteps(u, n int, add func(do act, who, where, nth int)) {
	me := &s.users[u]
	last := len(me.sent) - 1
	if s.left.duplicates == 0 || last < 0 {
		return
	}
	add(actRetry, u, n, 0)
	for i, q := range me.sent {
		if q.to == n && i < last {
			add(actRepeat, u, n, i)
		}
	}
}

// ask lets a client do something.
func (s *locks) ask(step lockStep) {
	u, n := int(step.who), int(step.where)
	me := &s.users[u]
	q := fsm.Request{Key: searchKey}
	switch step.do {
	case actAcquire:
		s.left.acquires--
		q.Kind, q.LeaseMS = fsm.Grant, searchLease
	case actRelease:
		me.gave = true
		q.Kind, q.Token = fsm.Release, me.token
	case actExtend:
		s.left.extends--
		q.Kind, q.Token, q.LeaseMS = fsm.Extend, me.token, searchLease
	case actLeave:
		s.left.disconnects--
		me.open = false
		s.touch(n).Disconnect(me.sent[len(me.sent)-1].request)
		s.settle(n, s.watch)
		s.recorder.leave(u, n)
		return
	case actRetry:
		s.left.duplicates--
		me.open = true
		last := me.sent[len(me.sent)-1].request
		me.sent = slices.Clone(me.sent)
		me.sent[len(me.sent)-1].to = n
		s.recorder.retry(u, n)
		s.request(n, last)
		return
	case actRepeat:
		s.left.duplicates--
		s.recorder.repeat(u, n)
		s.request(n, me.sent[step.nth].request)
		return
	}
	number := uint64(len(me.sent)) + 1
	q.Client, q.Seq, q.Lowest, q.Owner = me.session, number, number, userName(u)
	q.Call, q.Attempt = uint64(u+1)<<8|number, 1
	s.recorder.ask(u, n, me.open, q)
	me.sent = append(slices.Clip(me.sent), sent{q, n})
	me.open = true
	s.request(n, q)
}

// request hands a request to a server. All its copies have one call: that a newer attempt takes an
// older one's place makes no difference to a client that hears of both, and disconnecting ends
// both.
func (s *locks) request(n int, q fsm.Request) {
	s.touch(n).Request(q)
	s.settle(n, s.watch)
	s.recorder.settle()
}

// hear is what a user makes of a reply: the answer to its open request, whichever copy it is to.
func (s *locks) hear(node int, y fsm.Reply) {
	u, number := int(y.Call>>8)-1, int(y.Call&0xff)
	me := &s.users[u]
	s.judge.reply(u, number, y)
	answer := me.open && number == len(me.sent)
	s.recorder.reply(node, u, answer)
	if !answer || y.Status == fsm.Superseded {
		return
	}
	me.open = false
	if y.Status == fsm.Answered && y.Result.Kind == fsm.Granted {
		if me.token != y.Result.Token {
			me.token, me.gave = y.Result.Token, false
		}
		s.judge.heard(y.Result.Token)
	}
}

// appendState leaves out what no step can look at any more. N is the leader.
func (me *user) appendState(b []byte, left *scope, n int) []byte {
	b = append(b, byte(len(me.sent)), byte(me.token))
	b = appendFlags(b, me.open, me.gave, me.waitsAt(n))
	if left.duplicates == 0 && !left.wide {
		return b
	}
	for _, q := range me.sent {
		b = append(b, byte(q.request.Kind), byte(q.request.Token), byte(q.to))
	}
	return b
}

func appendFlags(b []byte, flags ...bool) []byte {
	for _, f := range flags {
		x := byte(0)
		if f {
			x = 1
		}
		b = append(b, x)
	}
	return b
}
