package agree

import (
	"math/rand/v2"

	"ticketing/fsm"
	"ticketing/sim/linear"
)

// service is a lock service with two keys and times of its own. It is right unless it is to be spoiled.
type service struct {
	r       *rand.Rand
	now     int64
	counter fsm.Token
	keys    map[string]*lock
	told    []linear.Operation // the locks that their clients know of
	all     []linear.Operation
	spoiled bool
	open    int // requests of unknown outcome, each of which doubles the search
}

type lock struct {
	owner string
	token fsm.Token // 0: it is free
	until int64
}

// The most requests of unknown outcome in a history.
const mostOpen = 4

// history draws what clients saw of the service. Every other one is spoiled.
func history(seed uint64) []linear.Operation {
	s := &service{r: rand.New(rand.NewPCG(seed, 0)), keys: map[string]*lock{"door": {}, "gate": {}}, spoiled: seed%2 == 0}
	for range 10 + s.r.IntN(10) {
		s.serve([]string{"A", "B", "C"}[s.r.IntN(3)], []string{"door", "door", "door", "gate"}[s.r.IntN(4)])
	}
	if s.spoiled {
		s.spoil()
		s.spoil()
	}
	return s.all
}

func (s *service) up(n int64) int64 { return s.r.Int64N(n) }

// serve carries out one request: called before, and answered behind.
func (s *service) serve(client, key string) {
	s.now += s.up(30)
	k := s.keys[key]
	if s.spoiled && s.r.IntN(6) == 0 {
		*k = lock{}
	}
	if k.token != 0 && s.now >= k.until && s.r.IntN(3) > 0 { // it is noticed late
		*k = lock{}
	}
	o := linear.Operation{
		Client: client, Key: key, Outcome: linear.OK, Call: max(0, s.now-s.up(20)), Return: s.now + s.up(20),
	}
	answered := s.open >= mostOpen || s.r.IntN(5) > 0
	done := answered || s.r.IntN(2) == 0
	switch s.r.IntN(6) {
	case 0, 1:
		s.acquire(&o, k, done)
	case 2, 3:
		if !s.name(&o, key) {
			return
		}
		s.part(&o, k, done)
	default:
		o.Kind, o.Token, o.Owner, answered = linear.Get, k.token, k.owner, true
	}
	if !answered {
		s.open++
		o.Outcome, o.Return = linear.Unknown, linear.Never
		if o.Kind == linear.Acquire {
			o.Token = 0
		}
	} else if o.Kind == linear.Acquire && o.Outcome == linear.OK {
		s.told = append(s.told, o)
	}
	s.all = append(s.all, o)
}

// acquire grants a lock, or does not. Its client may hang up, and then the lock may be given back.
func (s *service) acquire(o *linear.Operation, k *lock, done bool) {
	o.Kind, o.Lease = linear.Acquire, 20+s.up(80)
	if s.r.IntN(4) == 0 {
		o.Left = max(1, s.now+s.up(40))
	}
	switch {
	case done && k.token != 0:
		o.Outcome = linear.No
	case done:
		s.counter++
		o.Token = s.counter
		*k = lock{o.Client, o.Token, s.now + o.Lease}
		if o.Left != 0 {
			k.until = min(k.until, o.Left)
		}
	}
}

// name lets a client ask for something about a lock that it knows of.
func (s *service) name(o *linear.Operation, key string) bool {
	var known []linear.Operation
	for _, t := range s.told {
		if t.Key == key && t.Return < s.now {
			known = append(known, t)
		}
	}
	if len(known) == 0 {
		return false
	}
	t := known[len(known)-1-s.r.IntN(min(2, len(known)))]
	o.Client, o.Token, o.Call = t.Client, t.Token, max(o.Call, t.Return+1)
	return true
}

// part gives a lock back, or extends its lease.
func (s *service) part(o *linear.Operation, k *lock, done bool) {
	o.Kind = linear.Release
	if s.r.IntN(2) == 0 {
		o.Kind, o.Lease = linear.Extend, 20+s.up(80)
	}
	switch {
	case o.Token != k.token:
		o.Outcome = linear.No
	case !done:
	case o.Kind == linear.Extend:
		k.until = s.now + o.Lease
	default:
		*k = lock{}
	}
}

// spoil changes one thing that a client has seen.
func (s *service) spoil() {
	i := s.r.IntN(len(s.all))
	o, other := &s.all[i], s.all[s.r.IntN(len(s.all))]
	known := o.Outcome != linear.Unknown
	switch s.r.IntN(6) {
	case 0:
		o.Lease *= 1 + s.up(4)
	case 1:
		if known {
			o.Return = o.Call + s.up(o.Return-o.Call+1)
		}
	case 2:
		if known {
			o.Call += s.up(60)
			o.Return = max(o.Call, o.Return)
		}
	case 3:
		if o.Kind == linear.Get {
			o.Token, o.Owner = other.Token, other.Client
		}
	case 4:
		if o.Kind == linear.Release || o.Kind == linear.Extend {
			o.Outcome = map[linear.Outcome]linear.Outcome{linear.OK: linear.No, linear.No: linear.OK}[o.Outcome]
		}
		if !known {
			o.Outcome = linear.Unknown
		}
	default:
		if o.Kind != linear.Acquire {
			s.all = append(s.all[:i], s.all[i+1:]...)
		}
	}
}
