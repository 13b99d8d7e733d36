package linear

import (
	"cmp"
	"slices"

	"ticketing/fsm"
)

// How far the search looks: so many operations behind the first that has no place yet, and so many
// that may have happened or not. It gives up beyond, and says so.
const (
	windowBits = 256
	openBits   = 64
)

// place is where the search is: which operations have been carried out, and what that came to. Two
// ways to the same place go on alike.
type place struct {
	first  int                     // of those that returned, the first that is not carried out
	window [windowBits / 64]uint64 // those behind it that are: bit i is first+i
	open   uint64                  // those of unknown outcome that are
	state  state
}

// search is the search for the order of one key.
type search struct {
	done     []Operation // those that returned, by their calls
	open     []Operation // those of unknown outcome which can make a difference
	late     late
	answered map[fsm.Token]bool // some Acquire's answer tells of it
	failed   map[place]bool
	budget   int // so many places more

	gaveUp   bool
	furthest int // the most that place.first has been
}

// prepare sorts a key's operations.
//
//   - A Release of unknown outcome that names a token ends no tenure but that. So it is a bound on
//     the end of it, and no operation that the search would have to try at every place. An Extend is
//     like it: the new lease may be shorter than the old one.
//   - An Acquire of unknown outcome that nobody has seen anything of is in nobody's way: what it
//     was granted is over before anything that would contradict it. One that somebody has seen
//     waits until then; see try.
func prepare(all []Operation) *search {
	s := &search{late: late{}, answered: map[fsm.Token]bool{}, failed: map[place]bool{}}
	for _, o := range all {
		if o.Kind == Acquire && o.Outcome == OK {
			s.answered[o.Token] = true
		}
	}
	seen := map[string]int64{} // of an owner a tenure that no Acquire's answer tells of, the last time
	var somebody int64         // the same of a tenure of which nobody has said whose it is
	for _, o := range all {
		switch {
		case o.Outcome != Unknown:
			s.done = append(s.done, o)
			switch {
			case o.Kind == Get && o.Token != 0 && !s.answered[o.Token]:
				seen[o.Owner] = max(seen[o.Owner], o.Return+1)
			case o.Kind == Acquire && o.Outcome == No, o.Kind != Get && o.Outcome == OK && !s.answered[o.Token]:
				somebody = max(somebody, o.Return+1)
			}
		case o.Kind != Acquire && o.Token != 0:
			s.late[o.Token] = append(s.late[o.Token], o)
		}
	}
	for _, o := range all {
		explains := o.Kind == Acquire && o.Call < max(somebody, seen[o.Client]) || o.Kind == Release && o.Token == 0
		if o.Outcome == Unknown && explains {
			o.Return = Never
			s.open = append(s.open, o)
		}
	}
	byCall := func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) }
	slices.SortStableFunc(s.done, byCall)
	slices.SortStableFunc(s.open, byCall)
	return s
}

// from reports whether there is an order of all that is left at a place. Next may be whatever was
// called before anything else that is left had returned.
func (s *search) from(p place) bool {
	for p.window[0]&1 != 0 {
		p.shift()
	}
	s.furthest = max(s.furthest, min(p.first, len(s.done)-1))
	if p.first == len(s.done) {
		return true
	}
	if s.gaveUp || s.failed[p] {
		return false
	}
	limit, end := s.ahead(&p)
	if s.budget--; s.budget < 0 || len(s.open) > openBits || end-p.first >= windowBits {
		s.gaveUp = true
		return false
	}
	for _, settled := range []bool{true, false} {
		for i := p.first; i < end; i++ {
			o := &s.done[i]
			if p.has(i) || o.Call > limit || p.state.settles(o) != settled {
				continue
			}
			if s.try(p, i, limit) {
				return true
			}
			if settled {
				return s.fails(p)
			}
		}
	}
	return s.tryReleases(p, limit) || s.fails(p)
}

// fails remembers a place from which there is no order.
func (s *search) fails(p place) bool {
	s.failed[p] = true
	return false
}

// ahead looks how far ahead of a place the next operation can be: none that is called later than
// limit, or that is not before end.
func (s *search) ahead(p *place) (limit int64, end int) {
	limit, end = Never, p.first
	for ; end < len(s.done) && s.done[end].Call <= limit && end-p.first < windowBits; end++ {
		if !p.has(end) {
			limit = min(limit, s.done[end].Return)
		}
	}
	return limit, end
}

// try carries out the ith of the operations that returned. If it sees a lock that no answer tells
// of, each Acquire of unknown outcome may have been carried out just before. Before that it would
// have been in the way of others only, since it counts from as early as the key was free for it.
func (s *search) try(p place, i int, limit int64) bool {
	o := &s.done[i]
	if next, right := p.state.step(o, s.late); right && s.from(p.with(i, next)) {
		return true
	}
	if !s.seesOther(o) {
		return false
	}
	for j := range s.open {
		a := &s.open[j]
		if a.Kind != Acquire || a.Call > limit || o.Kind == Get && o.Owner != a.Client || !s.isNext(&p, j) {
			continue
		}
		granted, _ := p.state.step(a, s.late)
		if next, right := granted.step(o, s.late); right {
			q := p.with(i, next)
			q.open |= 1 << j
			if s.from(q) {
				return true
			}
		}
	}
	return false
}

// isNext reports whether the jth of the open operations is left, and the first of those that are like
// it. Which of them it was would make no difference later: all have been called by now.
func (s *search) isNext(p *place, j int) bool {
	for i := range s.open[:j] {
		a, b := &s.open[i], &s.open[j]
		if p.open>>i&1 == 0 && a.Kind == b.Kind && a.Client == b.Client && a.Lease == b.Lease && a.Left == b.Left {
			return false
		}
	}
	return p.open>>j&1 == 0
}

// seesOther reports whether an operation sees a lock that no Acquire's answer tells of.
func (s *search) seesOther(o *Operation) bool {
	switch o.Kind {
	case Acquire:
		return o.Outcome == No
	case Get:
		return o.Token != 0 && !s.answered[o.Token]
	}
	return o.Outcome == OK && !s.answered[o.Token]
}

// tryReleases carries out a Release of unknown outcome that names no token.
func (s *search) tryReleases(p place, limit int64) bool {
	for j := range s.open {
		o := &s.open[j]
		if o.Kind != Release || o.Call > limit || !s.isNext(&p, j) {
			continue
		}
		if next, right := p.state.step(o, s.late); right {
			q := p
			q.state = next
			q.open |= 1 << j
			if s.from(q) {
				return true
			}
		}
	}
	return false
}

// with is the place at which the ith operation is carried out, too.
func (p place) with(i int, next state) place {
	p.state = next
	p.window[(i-p.first)/64] |= 1 << ((i - p.first) % 64)
	return p
}

func (p *place) has(i int) bool {
	i -= p.first
	return p.window[i/64]>>(i%64)&1 != 0
}

// shift moves the window one operation on.
func (p *place) shift() {
	p.first++
	for i := range p.window {
		p.window[i] >>= 1
		if i+1 < len(p.window) {
			p.window[i] |= p.window[i+1] << 63
		}
	}
}
