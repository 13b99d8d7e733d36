package linear

import "ticketing/fsm"

// state is one key of the lock table, at moments of which only bounds are known.
type state struct {
	held  bool
	owner string
	token fsm.Token // 0 while nobody has seen the token of the tenure
	last  fsm.Token // the greatest that was seen on this key
	begun int64     // the lease of the tenure is counted from no earlier than that
	until int64     // the tenure may be over by itself from then on: its lease, or a clean-up
	since int64     // what somebody has seen of the present tenure, or of the key being free, is no earlier
}

// step carries out an operation, at the first moment at which it can be, and reports whether its
// answer is right then. When a lease's end is noticed has no upper bound; so a tenure ends by itself
// only where nothing else explains an answer. To do everything as early as that loses nothing: from
// an earlier moment all is possible that is from a later one.
func (s state) step(o *Operation, late late) (state, bool) {
	right := true
	switch {
	case o.Kind == Acquire && o.Outcome == No:
		right = s.held
		s.reach(o.Call)
	case o.Kind == Acquire:
		s.lapse()
		s.reach(o.Call)
		right = o.Outcome == Unknown || o.Token > s.last
		s.held, s.owner, s.token, s.last = true, o.Client, o.Token, max(s.last, o.Token)
		s.begun = s.since
		s.lease(o, late)
	case o.Kind == Get && o.Token == 0:
		s.lapse()
		s.reach(o.Call)
	case o.Kind == Get:
		right = s.holds(o.Token, late) && s.owner == o.Owner
		s.reach(o.Call)
	case o.Outcome == No && o.Token != 0: // it came too late, but the end may have been long before
		if s.token == o.Token {
			s.lapse()
		}
	case o.Outcome == No: // there was nothing that it might have released
		s.lapse()
		s.reach(o.Call)
	case o.Kind == Release:
		right = s.held && o.Token == 0 || s.holds(o.Token, late)
		s.reach(o.Call)
		s.end()
	default:
		right = s.holds(o.Token, late)
		s.begun = max(s.begun, o.Call)
		s.reach(s.begun)
		s.lease(o, late)
	}
	return s, right && s.since <= o.Return
}

func (s *state) reach(t int64) { s.since = max(s.since, t) }

// lease begins a countdown.
func (s *state) lease(o *Operation, late late) {
	s.until = s.begun + o.Lease
	if o.Left != 0 {
		s.until = min(s.until, max(s.begun, o.Left))
	}
	s.bound(late)
}

// late is the Releases and Extends of unknown outcome, by the tenures that they name. No other than its
// holder names a tenure. So what such a Release does to it is what a clean-up does: it may end it, from
// its call on. An Extend may give it a lease that ends earlier.
type late map[fsm.Token][]Operation

func (s *state) bound(late late) {
	for i := range late[s.token] {
		o := &late[s.token][i]
		s.until = min(s.until, max(s.begun, o.Call)+o.Lease) // a Release has none
	}
}

// lapse ends the tenure by itself, if there is one.
func (s *state) lapse() {
	if s.held {
		s.reach(s.until)
		s.end()
	}
}

func (s *state) end() { s.held, s.owner, s.token, s.begun, s.until = false, "", 0, 0, 0 }

// holds reports whether a token is the holder's. One that nobody has seen yet may be any that is
// greater than those before, and from then on is this one.
func (s *state) holds(token fsm.Token, late late) bool {
	if s.held && s.token == 0 && token > s.last {
		s.token, s.last = token, token
		s.bound(late)
	}
	return s.held && s.token == token
}

// settles reports whether an operation fits what is there, takes nothing away from what can come
// next, and will not fit better later. So it need not be tried at any other place.
func (s *state) settles(o *Operation) bool {
	switch {
	case o.Token == 0:
		return false
	case o.Kind == Get:
		return s.token == o.Token
	}
	return o.Kind != Acquire && o.Outcome == No && s.token != o.Token
}
