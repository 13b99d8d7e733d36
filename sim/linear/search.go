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
	done   []Operation // those that returned, by their calls
	open   []Operation // those of unknown outcome which can make a difference
	gone   map[fsm.Token]int64
	seen   map[place]bool
	budget int

	gaveUp   bool
	furthest int // the most that place.first has been
}

// prepare sorts a key's operations.
//
//   - A Release of unknown outcome that names a token ends no tenure but that. So it is a bound on
//     the end of it, and no operation that the search would have to try at every place. An Extend is
//     like it: the new lease may be shorter than the old one.
//   - An Acquire of unknown outcome that nobody has seen anything of is in nobody's way: what it
//     was granted is over before anything that would contradict it.
func prepare(all []Operation) *search {
	s := &search{gone: map[fsm.Token]int64{}, seen: map[place]bool{}}
	answered := map[fsm.Token]bool{}
	for _, o := range all {
		answered[o.Token] = answered[o.Token] || o.Kind == Acquire && o.Outcome == OK
	}
	seen := map[string]int64{} // of an owner a tenure that no Acquire's answer tells of, the last time
	var somebody int64         // the same of a tenure of which nobody has said whose it is
	for _, o := range all {
		switch {
		case o.Outcome != Unknown:
			s.done = append(s.done, o)
			switch {
			case o.Kind == Get && o.Token != 0 && !answered[o.Token]:
				seen[o.Owner] = max(seen[o.Owner], o.Return+1)
			case o.Kind == Acquire && o.Outcome == No, o.Kind != Get && o.Outcome == OK && !answered[o.Token]:
				somebody = max(somebody, o.Return+1)
			}
		case o.Kind != Acquire && o.Token != 0:
			end := o.Call + o.Lease // a Release has none
			if t, limited := s.gone[o.Token]; !limited || end < t {
				s.gone[o.Token] = end
			}
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
	if s.seen[p] || s.gaveUp {
		return false
	}
	if s.seen[p] = true; len(s.seen) > s.budget || len(s.open) > openBits {
		s.gaveUp = true
		return false
	}
	limit := int64(Never)
	end := p.first
	for ; end < len(s.done) && s.done[end].Call <= limit; end++ {
		if !p.has(end) {
			limit = min(limit, s.done[end].Return)
		}
		if end-p.first >= windowBits-1 {
			s.gaveUp = true
			return false
		}
	}
	for i := p.first; i < end; i++ {
		if o := &s.done[i]; !p.has(i) && o.Call <= limit && s.try(p, i, -1, o) {
			return true
		}
	}
	for i := range s.open {
		if o := &s.open[i]; p.open>>i&1 == 0 && o.Call <= limit && s.try(p, -1, i, o) {
			return true
		}
	}
	return false
}

// try carries out one more operation: the ith of those that returned, or the jth of the others.
func (s *search) try(p place, i, j int, o *Operation) bool {
	next, right := p.state.step(o, s.gone)
	if !right {
		return false
	}
	p.state = next
	if j >= 0 {
		p.open |= 1 << j
	} else {
		p.window[(i-p.first)/64] |= 1 << ((i - p.first) % 64)
	}
	return s.from(p)
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
