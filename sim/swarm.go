package sim

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// A search in which every run has every fault finds what takes all of them, and little else: a bug that
// needs a long calm, or one fault alone and often, drowns. So with "swarm" each seed first draws which
// classes of faults its run has at all, and how often, then the constants of the protocol and the habits
// of clients (swarm testing: Groce, Zhang, Eide, Chen and Regehr, 2012).
//
// A run has two phases, see [Recover].

// A class of faults, or of what clients do, is in a run or not.
type class int

const (
	classLoss class = iota
	classDuplicate
	classTail
	classSlowDisk
	classDrift
	classCrash
	classTear
	classScatter
	classWreck
	classPause
	classStall
	classSpoil
	classPower
	classPartition
	classIsolate
	classOneWay
	classDelay
	classTransfer
	classSnapshot
	classMembers
	classMoment
	classCompound
	classRetry
	classExtend
	classLeave
	classOverstay
	classHurry
	classClientPause
	classClientClock
	classCrowd
	classCount
)

var classNames = [classCount]string{
	classLoss: "loss", classDuplicate: "duplicate", classTail: "tail", classSlowDisk: "slow-disk",
	classDrift: "drift", classCrash: "crash", classTear: "tear", classScatter: "scatter", classWreck: "wreck",
	classPause: "pause", classStall: "stall", classSpoil: "spoil", classPower: "power",
	classPartition: "partition", classIsolate: "isolate", classOneWay: "one-way", classDelay: "delay",
	classTransfer: "transfer", classSnapshot: "snapshot", classMembers: "members",
	classMoment: "moment", classCompound: "compound",
	classRetry: "retry", classExtend: "extend", classLeave: "leave", classOverstay: "overstay",
	classHurry: "hurry", classClientPause: "client-pause", classClientClock: "client-clock", classCrowd: "crowd",
}

// swarm is a planner that has drawn what its run is like.
type swarm struct {
	planner
	in    [classCount]bool
	rate  [classCount]int64 // parts per million, or milliseconds between two
	drew  []string          // the same for people
	rules []string          // that are taken away
}

// drawSwarm draws what the run of a seed is like.
func drawSwarm(p planner, nodes int) *swarm {
	s := &swarm{planner: p}
	s.draws = s.seed // a fork leaves the plan of a swarm as it is
	s.nodes = nodes
	if nodes == 0 {
		s.nodes = choose(s.pick(topicShape, 0, 0, 12), 1, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 7)
	}
	s.servers = s.nodes
	s.classes()
	return s
}

// scenario makes the lines.
func (s *swarm) scenario() *Scenario {
	s.config()
	s.network()
	s.disksAndClocks()
	s.swarmClients()
	s.faults()
	s.memberChanges()
	s.lingering()
	s.add(RunFor{For: duration(chaosEnd)})
	s.add(Recover{})
	drew := fmt.Sprintf("drew %d servers; %s", s.nodes, strings.Join(s.drew, " "))
	return &Scenario{
		Name:  fmt.Sprintf("swarm-%d", s.seed),
		Title: fmt.Sprintf("Random faults (swarm), seed %d", s.seed),
		Lines: append([]Line{{Prose: drew}}, s.lines...),
	}
}

// classes draws which classes are in.
func (s *swarm) classes() {
	for c := range classCount {
		if s.pick(topicClass, int(c), 0, rarity(c)) != 0 {
			continue
		}
		s.in[c] = true
		s.rate[c] = s.logarithmic(topicClass, int(c), 1, 150, 5000)
		text := classNames[c]
		switch c {
		case classLoss, classDuplicate, classTail:
			s.rate[c] = s.logarithmic(topicClass, int(c), 1, 1000, 250_000)
			text += "=" + percentText(int(s.rate[c]))
		case classSlowDisk, classDrift, classPower, classClientClock, classHurry, classCrowd:
		default:
			text += "/" + brief(time.Duration(s.rate[c])*time.Millisecond)
		}
		s.drew = append(s.drew, text)
	}
}

// rarity is one in how many runs a class is in. A crowd takes as long as several runs without one.
func rarity(c class) int64 {
	if c == classCrowd {
		return 16
	}
	return 2
}

// logarithmic draws a number between lo and hi so that each doubling is as likely as the next, in whole
// numbers.
func (p *planner) logarithmic(t topic, about, i int, lo, hi int64) int64 {
	doublings := int64(bits.Len64(uint64(hi/lo))) - 1
	least := lo << p.pick(t, about, i, doublings+1)
	return least + p.pick(t, about, i+1, min(2*least, hi+1)-least)
}

// disksAndClocks draws which disks are slow and which clocks are wrong, and how much.
func (s *swarm) disksAndClocks() {
	most := s.logarithmic(topicClock, 0, 5, 100, 900_000) // ppm
	for id := range raft.ServerID(s.nodes) {
		n, who := int(id)+1, NodeActor(id+1)
		if s.in[classSlowDisk] && s.pick(topicClock, n, 3, 2) == 0 {
			sync := time.Duration(s.logarithmic(topicClock, n, 4, 1, 100)) * time.Millisecond
			s.add(SetDisk{Node: who, SyncSet: true, SyncMin: sync / 2, SyncMax: sync})
		}
		if s.in[classDrift] {
			s.add(SetClock{Actor: who, RatePPM: trueRate + s.pick(topicClock, n, 0, 2*most) - most})
		}
	}
}

// lingering draws faults that begin at the end of the first phase and never end: those who are not in
// the majority that heals keep them.
func (s *swarm) lingering() {
	at := chaosEnd - trace.Millisecond
	for id := range raft.ServerID(s.nodes) {
		n := int(id) + 1
		kinds := s.whole()
		if i := s.pick(topicLinger, n, 0, int64(2*len(kinds))); i < int64(len(kinds)) {
			s.at(at-s.within(topicLinger, n, 1, 0, trace.Second), Strike{What: kinds[i], Who: string(NodeActor(id + 1))})
		}
	}
}
