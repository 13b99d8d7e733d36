package sim

import (
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file draws the faults of a swarm run.

// strikesOf lists which strikes each class of faults consists of.
func strikesOf(c class) []string {
	return map[class][]string{
		classCrash: {"crash"}, classTear: {"tear"}, classScatter: {"scatter"}, classWreck: {"wreck"},
		classPause: {"pause"}, classStall: {"stall"}, classSpoil: {"spoil"},
		classIsolate: {"isolate"}, classOneWay: {"mute", "deafen"}, classDelay: {"delay"},
		classTransfer: {"transfer"},
	}[c]
}

// whole lists the strikes at one server of all classes that are in, but for those that are over at once.
func (s *swarm) whole() (all []string) {
	for c := range classCount {
		if s.in[c] && c != classTransfer && c != classWreck {
			all = append(all, strikesOf(c)...)
		}
	}
	return all
}

// times draws when something happens that comes as often as the rate of its class says.
func (s *swarm) times(c class, each func(i int, t trace.Time)) {
	if !s.in[c] {
		return
	}
	gap := trace.Time(s.rate[c]) * trace.Millisecond
	t := s.within(topicSwarm, int(c), 0, 100*trace.Millisecond, gap+100*trace.Millisecond)
	for i := 1; t < chaosEnd; i++ {
		each(i*16, t)
		t += s.within(topicSwarm, int(c), i*16, gap/2, 3*gap/2)
	}
}

// lasts draws how long a fault lasts that begins at t. It is over when the first phase is.
func (s *swarm) lasts(c class, i int, t trace.Time) time.Duration {
	long := s.logarithmic(topicSwarm, int(c), i+1, 10, 2000)
	return max(min(time.Duration(long)*time.Millisecond, duration(chaosEnd-trace.Millisecond-t)), time.Millisecond)
}

// target draws whom a fault is for: the leader in half of the cases, the next candidate in a quarter,
// anybody in the others.
func (s *swarm) target(c class, i int) string {
	switch s.pick(topicSwarm, int(c), i+3, 4) {
	case 0, 1:
		return whoLeader
	case 2:
		return whoCandidate
	}
	return string(NodeActor(raft.ServerID(s.pick(topicSwarm, int(c), i+4, int64(s.nodes))) + 1))
}

// faults draws all that befalls servers and the links between them.
func (s *swarm) faults() {
	for c := range classCount {
		if kinds := strikesOf(c); kinds != nil {
			s.times(c, func(i int, t trace.Time) {
				what := kinds[s.pick(topicSwarm, int(c), i+5, int64(len(kinds)))]
				s.at(t, Strike{What: what, Who: s.target(c, i), For: s.lasts(c, i, t)})
			})
		}
	}
	s.times(classPartition, func(i int, t trace.Time) {
		if s.nodes > 1 {
			s.at(t, Cut{Groups: s.groups(i)})
			s.at(t+trace.Time(s.lasts(classPartition, i, t)/time.Microsecond), Heal{})
		}
	})
	s.times(classSnapshot, func(i int, t trace.Time) {
		s.at(t, Compact{Node: raft.ServerID(s.pick(topicSwarm, int(classSnapshot), i+6, int64(s.nodes))) + 1})
	})
	s.times(classMoment, s.moment)
	s.times(classCompound, s.compound)
	if s.in[classCrowd] {
		s.at(s.within(topicCrowd, 1, 0, trace.Second, chaosEnd/2), Connect{Others: crowded})
	}
	s.powerCut()
	s.reads()
}

// moment draws a fault for a moment inside a server. Most often it is for that server, and it crashes.
func (s *swarm) moment(i int, t trace.Time) {
	c, moments := int(classMoment), MomentNames()
	on := On{Moment: moments[s.pick(topicSwarm, c, i+7, int64(len(moments)))]}
	if nth := s.logarithmic(topicSwarm, c, i+8, 1, 32); nth > 1 {
		on.Nth = int(nth)
	}
	on.Who = choose(s.pick(topicSwarm, c, i+10, 4), whoIt, whoIt, whoIt, whoLeader)
	on.What = choose(s.pick(topicSwarm, c, i+11, 8),
		"crash", "crash", "tear", "scatter", "isolate", "mute", "pause", "stall")
	on.For = s.lasts(classMoment, i, t)
	s.at(t, on)
}

// compound draws a fault that is made of others. It lasts long enough to be one.
func (s *swarm) compound(i int, t trace.Time) {
	kinds := compoundStrikes()
	k := kinds[s.pick(topicSwarm, int(classCompound), i+7, int64(len(kinds)))]
	long := time.Duration(s.logarithmic(topicSwarm, int(classCompound), i+8, 400, 3000)) * time.Millisecond
	if left := duration(chaosEnd - trace.Millisecond - t); long <= left {
		s.at(t, Strike{What: k.name, For: long})
	}
}

// powerCut draws when the whole cluster loses power.
func (s *swarm) powerCut() {
	if !s.in[classPower] {
		return
	}
	t := s.within(topicSwarm, int(classPower), 2, trace.Second, chaosEnd-trace.Second)
	back := s.within(topicSwarm, int(classPower), 3, 10*trace.Millisecond, 500*trace.Millisecond)
	s.at(t, Crash{Node: Everyone, How: s.torn(topicSwarm, int(classPower), 4)})
	s.at(t+back, Restart{Node: Everyone})
}

// memberChanges draws who is added, gets a vote and is removed.
func (s *swarm) memberChanges() {
	s.times(classMembers, func(i int, t trace.Time) {
		c := Change{Do: choose(s.pick(topicMembers, 3, i, 6), opAdd, opAdd, opAdd, opPromote, opRemove, opRemove)}
		if c.Do == opAdd && s.servers < min(s.nodes+mostNewcomers, maxNodes) && s.pick(topicMembers, 4, i, 2) == 0 {
			s.servers++
			c.Node = raft.ServerID(s.servers)
		} else {
			c.Node = raft.ServerID(s.pick(topicMembers, 5, i, int64(s.servers))) + 1
		}
		c.Learner = c.Do == opAdd && s.pick(topicMembers, 6, i, 3) == 0
		s.at(t, c)
	})
}
