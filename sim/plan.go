package sim

import (
	"fmt"
	"slices"
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// FaultNames lists the levels of the random search.
func FaultNames() []string { return []string{"mild", "harsh", "swarm"} }

// How long a random run lasts: faults and clients until chaosEnd, then peace.
const (
	chaosEnd = 8 * trace.Second
	peace    = 20 * time.Second
)

// crowded is how many others it takes for all who were there to be forgotten.
const crowded = 4096

// planner makes the scenario of a seed. What it decides is keyed by what is decided, so that its
// parts do not depend on one another.
type planner struct {
	seed     uint64
	draws    uint64 // the seed of what is decided now: from the fork on another one
	fork     *fork
	harsh    bool
	nodes    int // at the start
	servers  int // that there ever are
	batch    int
	lines    []Line
	keys     []string
	blackout trace.Time // when the whole cluster loses power,
	another  trace.Time // and what takes its place from a fork on
}

// A topic is what a plan's draw is about.
type topic uint64

const (
	topicShape topic = iota + 1
	topicNetwork
	topicClock
	topicClient
	topicNodeFault
	topicCut
	topicRepeat
	topicCrowd
	topicRead
	topicTransfer
	topicSnapshot
	topicMembers
	topicClass
	topicConfig
	topicSwarm
	topicHabit
	topicLinger
	topicFault
)

// from says when what is decided next takes place, or begins.
func (p *planner) from(t trace.Time) {
	p.draws = p.seed
	if p.fork.before(t) {
		p.draws = p.fork.seed
	}
}

// pick draws 0 … n-1 for the ith decision about something.
func (p *planner) pick(t topic, about int, i int, n int64) int64 {
	return below(draw(p.draws, streamPlan, uint64(t), uint64(about), uint64(i)), n)
}

// once is pick for what is decided about the whole run.
func (p *planner) once(t topic, about int, i int, n int64) int64 {
	return below(draw(p.seed, streamPlan, uint64(t), uint64(about), uint64(i)), n)
}

// within draws a time between lo and hi.
func (p *planner) within(t topic, about, i int, lo, hi trace.Time) trace.Time {
	return lo + trace.Time(p.pick(t, about, i, int64(hi-lo)+1))
}

// Plan makes the random scenario of a seed: a cluster, a network, clocks, clients and faults, mild
// or harsh, all as lines of the scenario language. With nodes 0 the seed chooses 3 or 5. With "swarm"
// it chooses much more, see swarm.go.
func Plan(seed uint64, faults string, nodes int) (*Scenario, error) {
	return planWith(seed, faults, nodes, nil)
}

// planForked is Plan with what begins from a fork on drawn from another seed. What has begun by then ends
// as it would have, and what has been stays.
func planForked(seed uint64, faults string, nodes int, f *fork) (*Scenario, error) {
	s, err := Plan(seed, faults, nodes)
	if err != nil || f == nil {
		return s, err
	}
	other, err := planWith(seed, faults, nodes, f)
	if err != nil {
		return nil, err
	}
	past := func(l Line) bool { return !endsSetUp(l.Command) || isAt(l.Command) && micros(timeOf(l.Command)) < f.at }
	s.Lines = append(slices.DeleteFunc(s.Lines, func(l Line) bool { return !past(l) }),
		slices.DeleteFunc(other.Lines, past)...)
	return s, nil
}

func planWith(seed uint64, faults string, nodes int, f *fork) (*Scenario, error) {
	if !slices.Contains(FaultNames(), faults) {
		return nil, fmt.Errorf("unknown faults %q; expected mild, harsh or swarm%s", faults, Nearest(faults, FaultNames()))
	}
	if nodes < 0 || nodes > maxNodes {
		return nil, fmt.Errorf("%d nodes: expected 1 to %d, or 0 to let each seed choose", nodes, maxNodes)
	}
	p := &planner{seed: seed, draws: seed, fork: f, harsh: faults == "harsh", nodes: nodes, keys: []string{"door", "gate", "vault"}}
	if faults == "swarm" {
		return drawSwarm(*p, nodes).scenario(), nil
	}
	if nodes == 0 {
		p.nodes = 3 + 2*int(p.once(topicShape, 0, 0, 2))
	}
	p.setUp()
	p.clients()
	p.crowd()
	p.reads()
	p.transfers()
	p.snapshots()
	p.blackouts()
	p.members()
	p.clockTroubles()
	for id := 1; id <= p.nodes; id++ {
		p.nodeFaults(raft.ServerID(id))
	}
	if p.nodes > 1 {
		p.cuts()
	}
	p.end()
	return &Scenario{
		Name:  fmt.Sprintf("%s-%d", faults, seed),
		Title: fmt.Sprintf("Random faults (%s), seed %d", faults, seed),
		Lines: p.lines,
	}, nil
}

func (p *planner) add(c Command)              { p.lines = append(p.lines, Line{Command: c}) }
func (p *planner) at(t trace.Time, c Command) { p.add(At{Time: duration(t), Command: c}) }
func duration(t trace.Time) time.Duration     { return time.Duration(t) * time.Microsecond }
func choose[T any](i int64, from ...T) T      { return from[i] }

// setUp draws the cluster, its protocol's constants, its network and its clocks.
func (p *planner) setUp() {
	p.add(SetNodes{N: p.nodes})
	p.add(SetSeed{Seed: p.seed})
	off := false
	config := SetConfig{
		Election:  choose(p.pick(topicShape, 1, 0, 3), 150*time.Millisecond, 200*time.Millisecond, 300*time.Millisecond),
		Heartbeat: choose(p.pick(topicShape, 2, 0, 3), 30*time.Millisecond, 50*time.Millisecond, 75*time.Millisecond),
		Batch:     choose(p.pick(topicShape, 3, 0, 4), 1, 2, 8, 64),
		Window:    choose(p.pick(topicShape, 4, 0, 4), 1, 2, 4, 16),
	}
	if p.pick(topicShape, 6, 0, 4) == 0 {
		config.PreVote = &off
	}
	// A server that was removed and asks for votes for ever is kept quiet by either of the two. Without
	// both there need not be a leader in the end, and the documentation says so.
	quiet := p.changesMembers() && config.PreVote != nil
	if p.pick(topicShape, 7, 0, 4) == 0 && !quiet {
		config.CheckQuorum = &off
	}
	p.batch = config.Batch
	p.compaction(&config)
	if p.pick(topicShape, 5, 0, 4) == 0 {
		config.Pipeline = &off
	}
	p.add(config)
	most := choose(p.pick(topicNetwork, 0, 0, 3), 10*time.Millisecond, 20*time.Millisecond, 40*time.Millisecond)
	loss, double := int(p.pick(topicNetwork, 1, 0, 10_000)), int(p.pick(topicNetwork, 2, 0, 10_000))
	link := LinkSpec{DelaySet: true, DelayMin: time.Millisecond, DelayMax: most, LossPPM: &loss, DuplicatePPM: &double}
	if p.harsh {
		loss, double = loss*10, double*10
		link.TailSet, link.TailPPM = true, int(p.pick(topicNetwork, 3, 0, 50_000))
		link.Tail = duration(p.within(topicNetwork, 4, 0, 100*trace.Millisecond, 1500*trace.Millisecond))
	}
	p.add(SetNetwork{LinkSpec: link})
	for id := 1; id <= p.nodes; id++ {
		rate := 950_000 + p.pick(topicClock, id, 0, 100_000)
		if p.harsh && p.pick(topicClock, id, 1, 3) == 0 {
			rate = choose(p.pick(topicClock, id, 2, 4), int64(500_000), 800_000, 1_250_000, 2_000_000)
		}
		p.add(SetClock{Actor: NodeActor(raft.ServerID(id)), RatePPM: rate})
	}
}

// cuts draws partitions, one-way cuts, links that hold messages and servers whose network stands
// still, one after another.
func (p *planner) cuts() {
	most := 4 * trace.Second
	if p.harsh {
		most = 1200 * trace.Millisecond
	}
	p.from(0)
	t := p.within(topicCut, 0, 0, 300*trace.Millisecond, most)
	for i := 1; t < chaosEnd; i++ {
		i := i * 8
		p.from(t)
		long := p.within(topicCut, 0, i, 50*trace.Millisecond, 900*trace.Millisecond)
		one := raft.ServerID(p.pick(topicCut, 0, i+1, int64(p.nodes))) + 1
		two := raft.ServerID(p.pick(topicCut, 0, i+2, int64(p.nodes))) + 1
		end := min(t+long, chaosEnd)
		switch p.pick(topicCut, 0, i+3, 5) {
		case 0:
			p.at(t, Isolate{Node: one})
			p.at(end, Heal{})
		case 1:
			p.at(t, CutOne{From: NodeActor(one), To: Everyone})
			p.at(end, Heal{})
		case 2:
			p.at(t, Cut{Groups: p.groups(i)})
			p.at(end, Heal{})
		case 3:
			held := Messages{From: NodeActor(one), To: Everyone}
			if one != two {
				held.To = NodeActor(two)
			}
			p.at(t, Hold{Messages: held})
			p.at(end, Hold{Messages: held, Again: true})
		case 4: // nothing is lost, but all that was on its way arrives when others have gone on
			from, to := Messages{From: NodeActor(one), To: Everyone}, Messages{From: Everyone, To: NodeActor(one)}
			p.at(t, Hold{Messages: from})
			p.at(t, Hold{Messages: to})
			p.at(end, Hold{Messages: to, Again: true})
			p.at(end, Hold{Messages: from, Again: true})
		}
		p.readsAround(one, i, t, end)
		p.changeAround(i, t, end)
		t = end + p.within(topicCut, 0, i+4, 20*trace.Millisecond, most)
	}
}

// groups splits the nodes in two.
func (p *planner) groups(i int) [][]Actor {
	groups := make([][]Actor, 2)
	for id := 1; id <= p.nodes; id++ {
		g := p.pick(topicCut, id, i, 2)
		groups[g] = append(groups[g], NodeActor(raft.ServerID(id)))
	}
	for g, other := range [][]Actor{groups[1], groups[0]} {
		if len(groups[g]) == 0 {
			groups[g], groups[1-g] = other[:1], other[1:]
		}
	}
	return groups
}

// end lets what is broken come back, and asks for what must follow.
func (p *planner) end() {
	p.add(RunFor{For: duration(chaosEnd + 100*trace.Millisecond)})
	p.add(Heal{})
	p.add(Until{Cond: CondConverged{}, Within: peace})
	for _, key := range p.keys {
		p.add(Until{Cond: CondFree{Key: key, At: Everyone}, Within: peace})
	}
}
