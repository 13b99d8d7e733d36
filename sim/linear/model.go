package linear

import "ticketing/fsm"

// state is one key of the lock table, at a moment of which only a bound is known.
type state struct {
	held  bool
	owner string
	token fsm.Token // 0 while nobody has seen the token of the tenure
	last  fsm.Token // the greatest that was seen on this key
	until int64     // the tenure may be over by itself from then on: its lease, or a clean-up
	now   int64     // it is this time at the earliest
}

// step carries out an operation, at the first moment at which it can be, and reports whether its
// answer is right then. When a lease's end is noticed has no upper bound; so a tenure ends by itself
// only where nothing else explains an answer. To do everything as early as that loses nothing: from
// an earlier moment all is possible that is from a later one.
func (s state) step(o *Operation, gone map[fsm.Token]int64) (state, bool) {
	s.now = max(s.now, o.Call)
	right := true
	switch {
	case o.Kind == Acquire && o.Outcome == No:
		right = s.held
	case o.Kind == Acquire:
		s.lapse()
		right = o.Outcome == Unknown || o.Token > s.last
		s.held, s.owner, s.token, s.last = true, o.Client, o.Token, max(s.last, o.Token)
		s.lease(o, gone)
	case o.Kind == Get && o.Token == 0:
		s.lapse()
	case o.Kind == Get:
		right = s.holds(o.Token, gone) && s.owner == o.Owner
	case o.Outcome == No: // a Release or an Extend that came too late, or never had anything
		if s.token == o.Token || o.Token == 0 {
			s.lapse()
		}
	case o.Token == 0: // a Release of whatever is there
		right = s.held
		s.end()
	default:
		right = s.holds(o.Token, gone)
		if o.Kind == Release {
			s.end()
		} else {
			s.lease(o, gone)
		}
	}
	return s, right && s.now <= o.Return
}

// lease begins a countdown. No other than its holder names a tenure by its token. So a Release that
// nobody knows the outcome of does to it what a clean-up does: it may end it, from its call on.
func (s *state) lease(o *Operation, gone map[fsm.Token]int64) {
	s.until = s.now + o.Lease
	if o.Left != 0 {
		s.until = min(s.until, max(s.now, o.Left))
	}
	s.bound(gone)
}

func (s *state) bound(gone map[fsm.Token]int64) {
	if t, limited := gone[s.token]; limited {
		s.until = min(s.until, max(s.now, t))
	}
}

// lapse ends the tenure by itself, if there is one.
func (s *state) lapse() {
	if s.held {
		s.now = max(s.now, s.until)
		s.end()
	}
}

func (s *state) end() { s.held, s.owner, s.token, s.until = false, "", 0, 0 }

// holds reports whether a token is the holder's. One that nobody has seen yet may be any that is
// greater than those before, and from then on is this one.
func (s *state) holds(token fsm.Token, gone map[fsm.Token]int64) bool {
	if s.held && s.token == 0 && token > s.last {
		s.token, s.last = token, token
		s.bound(gone)
	}
	return s.held && s.token == token
}
