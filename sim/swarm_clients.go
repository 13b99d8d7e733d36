package sim

import (
	"time"

	"ticketing/fsm/trace"
)

// This file draws what clients do in a swarm run, each with the habits that the run has.

// swarmClients draws lock users: each takes a lock, uses it and parts with it, again and again.
func (s *swarm) swarmClients() {
	names := []Actor{"A", "B", "C", "D", "E"}
	names = names[:1+s.pick(topicShape, 6, 0, int64(len(names)))]
	keys := s.keys[:1+s.pick(topicShape, 7, 0, int64(len(s.keys)))]
	longest := s.logarithmic(topicClient, -1, 0, 100, 1500) // ms
	for c, name := range names {
		if s.in[classClientClock] {
			s.add(SetClock{Actor: name, RatePPM: trueRate/2 + s.pick(topicClient, c, 1, trueRate)})
		}
	}
	for c, name := range names {
		t := s.within(topicClient, c, 0, 300*trace.Millisecond, trace.Second)
		for i := 16; t < chaosEnd; i += 16 {
			u := &habit{s: s, name: name, about: c, i: i, begin: t}
			u.key = keys[s.pick(topicClient, c, i, int64(len(keys)))]
			u.lease = trace.Time(s.logarithmic(topicClient, c, i+1, longest/4, longest)) * trace.Millisecond
			t = u.turn() + s.gap(c, i)
		}
	}
}

// gap is how long a client waits before it asks again.
func (s *swarm) gap(c, i int) trace.Time {
	if s.in[classHurry] {
		return s.within(topicClient, c, i+6, 0, 5*trace.Millisecond) // the Release is still on its way
	}
	return s.within(topicClient, c, i+6, 5*trace.Millisecond, 300*trace.Millisecond)
}

// habit is how a client behaves that takes a lock once.
type habit struct {
	s            *swarm
	name         Actor
	key          string
	about, i     int
	begin, lease trace.Time
}

// does reports whether it does what a class is about: some do, the more often the higher its rate.
func (u *habit) does(c class) bool {
	return u.s.in[c] && u.s.pick(topicHabit, u.about<<8|int(c), u.i, u.s.rate[c]) < 300
}

func (u *habit) within(c class, j int, lo, hi trace.Time) trace.Time {
	return u.s.within(topicHabit, u.about<<8|int(c), u.i+j, lo, max(lo, hi))
}

func (u *habit) do(t trace.Time, what string) { u.s.at(t, ClientDo{Client: u.name, Do: what}) }

// turn draws one acquisition and all that goes with it, and returns when it is over.
func (u *habit) turn() trace.Time {
	s, lease := u.s, u.lease
	s.at(u.begin, Acquire{
		Client: u.name, Key: u.key, Lease: duration(lease), Try: s.pick(topicClient, u.about, u.i+2, 8) == 0,
	})
	end := u.begin + lease*trace.Time(s.pick(topicClient, u.about, u.i+3, 70)+30)/100
	if u.does(classOverstay) {
		end = u.begin + lease*trace.Time(s.pick(topicClient, u.about, u.i+3, 50)+90)/100
	}
	s.at(s.within(topicClient, u.about, u.i+5, u.begin, end), Write{Client: u.name, Key: u.key})
	if u.does(classRetry) {
		u.do(u.within(classRetry, 1, u.begin, end), "retry")
	}
	if u.does(classExtend) {
		at := u.within(classExtend, 1, (u.begin+end)/2, end)
		s.at(at, Extend{Client: u.name, Key: u.key, Lease: duration(lease)})
	}
	if u.does(classLeave) { // before or after it has its answer
		gone := u.within(classLeave, 1, u.begin, u.begin+40*trace.Millisecond)
		u.do(gone, "disconnect")
		if s.pick(topicHabit, u.about, u.i+2, 2) == 0 {
			return max(gone, end)
		}
		u.do(gone+u.within(classLeave, 3, trace.Millisecond, 100*trace.Millisecond), "retry")
	}
	if u.does(classClientPause) {
		back := u.within(classClientPause, 1, 20*trace.Millisecond, 2*lease)
		u.do(u.within(classClientPause, 2, u.begin, end), "pause")
		u.do(end+back, "resume")
	}
	u.part(end)
	return end
}

// part draws how it gives the lock back, if it does.
func (u *habit) part(end trace.Time) {
	switch u.s.pick(topicClient, u.about, u.i+7, 10) {
	case 0: // it forgets; the lease ends the tenure
	case 1:
		u.do(end, "disconnect")
	default:
		u.s.at(end, ReleaseLock{Client: u.name, Key: u.key})
		if u.does(classRetry) {
			u.do(end+trace.Time(3*time.Millisecond/time.Microsecond), "retry")
		}
	}
}
