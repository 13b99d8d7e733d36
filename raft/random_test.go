package raft_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ticketing/raft"
)

// Whatever the network, the disks, the clocks and crashes do, every promise of doc.go holds, and
// once they stop doing it the cluster gets on with its work. The observer looks after each input;
// each run is a subtest, so that a failure names the one to run again.
func TestRandomRunsKeepEveryPromise(t *testing.T) {
	seeds := uint64(800)
	if testing.Short() {
		seeds /= 10
	}
	var all met
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			m := newChaos(t, seed).run(2000)
			all.leaders += m.leaders
			all.commits += m.commits
			all.replaced += m.replaced
			all.lost += m.lost
			all.reads += m.reads
			all.transfers += m.transfers
			all.failedReads += m.failedReads
			all.disorder += m.disorder
			all.adds += m.adds
			all.promotions += m.promotions
			all.removals += m.removals
			all.leavers += m.leavers
			all.fallbacks += m.fallbacks
			all.early += m.early
			all.taken += m.taken
			all.installed += m.installed
			all.chunks += m.chunks
			all.kept += m.kept
			all.dropped += m.dropped
		})
	}
	if t.Failed() || all.leaders == 0 {
		return // there is something to look at, or a single run was asked for
	}
	t.Logf("%d runs met %+v", seeds, all)
	for name, count := range map[string]int{
		"leaders": all.leaders, "commits": all.commits, "replaced logs": all.replaced,
		"transfers": all.transfers, "reads": all.reads, "failed reads": all.failedReads,
		"lost writes": all.lost, "writes out of order": all.disorder,
	} {
		if count < int(seeds) {
			t.Errorf("the runs met too few %s to show anything: %d", name, count)
		}
	}
	for name, count := range map[string]int{
		"members added": all.adds, "promoted": all.promotions, "removed": all.removals,
		"leaders that left": all.leavers, "changes taken back": all.fallbacks,
		"changes that came too early": all.early,
		"snapshots taken":             all.taken / 20, "snapshots installed": all.installed,
		"parts of snapshots": all.chunks / 20,
	} {
		if count < int(seeds)/20 {
			t.Errorf("the runs met too few %s to show anything: %d", name, count)
		}
	}
	for name, count := range map[string]int{
		"snapshots before a part of the log": all.kept, "snapshots in place of another log": all.dropped,
	} {
		if count < int(seeds)/400 {
			t.Errorf("the runs met too few %s to show anything: %d", name, count)
		}
	}
}

// chaos is a cluster and what happens to it. Each run has its own mix of faults: one in which
// everything happens equally often would seldom get far in any direction.
type chaos struct {
	*cluster
	rng     *rand.Rand
	serial  int                   // of the last command
	asked   map[uint64]raft.Index // by read: what was committed when it was asked
	read    map[bool]int          // reads that were answered, and that failed
	actions []func()
	loss    float64 // the part of the messages that is lost
	repeat  float64 // that is delivered more than once
	disturb float64 // that overtakes others
}

func newChaos(t *testing.T, seed uint64) *chaos {
	rng := rand.New(rand.NewPCG(seed, 1))
	size := 3 + 2*rng.IntN(2)
	c := newCluster(t, setup{
		size: size, batch: 1 + rng.IntN(4), window: 1 + rng.IntN(4), careful: seed%2 == 1,
		joining: rng.IntN(3), chunk: 1 + rng.IntN(200), keep: raft.Index(rng.IntN(4)),
	})
	c.failure = fmt.Sprintf("seed %d: go test ./raft -run '%s$'", seed, t.Name())
	h := &chaos{cluster: c, rng: rng, asked: map[uint64]raft.Index{}, read: map[bool]int{}}
	for _, n := range c.nodes {
		n.slow = rng.IntN(2) == 0
		n.lazy = rng.IntN(3) == 0
		n.twins = seed%8 == 0
	}
	h.loss, h.repeat, h.disturb = rng.Float64()*0.2, rng.Float64()*0.3, rng.Float64()
	for _, action := range []struct {
		do            func()
		least, spread int
	}{
		{h.someMessage, 60, 60},
		{h.someWrite, 10, 60},
		{h.someTake, 10, 60},
		{h.someProposal, 5, 20},
		{h.someHeartbeat, 2, 10},
		{h.someRead, 2, 10},
		{h.someTransfer, 2, 6},
		{h.someChange, 0, 12},
		{h.someSnapshot, 0, 20},
		{h.someSaved, 2, 10},
		{h.someTimeout, 1, 6},
		{h.someTick, 1, 6},
		{h.someCrash, 0, 4},
		{h.someRestart, 2, 6},
		{h.someCut, 0, 3},
		{h.heal, 1, 4},
	} {
		weight := action.least + rng.IntN(action.spread)
		h.actions = append(h.actions, slices.Repeat([]func(){action.do}, weight)...)
	}
	return h
}

func (h *chaos) run(steps int) met {
	for range steps {
		h.actions[h.rng.IntN(len(h.actions))]()
		h.checkReads()
	}
	h.recover()
	h.observer.met.leaders = len(h.observer.leaders)
	h.observer.met.commits = len(h.observer.commits)
	h.observer.met.reads, h.observer.met.failedReads = h.read[true], h.read[false]
	return h.observer.met
}

// recover ends all faults. A majority is up, talks, and its disks work: then there is a leader
// after some timeouts, a command commits, and all servers hold and apply the same.
func (h *chaos) recover() {
	h.heal()
	now := raft.Time(0)
	for _, n := range h.nodes {
		n.slow, n.lazy = false, false
		if n.core == nil {
			h.restart(n.id)
		}
		if n.saving != nil {
			h.saveSnapshot(n.id)
		}
		h.take(n)
		now = max(now, n.core.Deadline())
	}
	h.retire()
	h.cluster.run()
	leader := raft.ServerID(0)
	for end := now + 20*electionTimeout; leader == 0 || h.canPropose(leader) != nil; leader = h.leader() {
		if now += heartbeatTimeout; now > end {
			h.fatal("no leader that takes proposals after 20 election timeouts without a fault")
		}
		h.elapse(now)
	}
	h.propose(leader, "the last")
	h.cluster.run()
	h.retire() // those whom this has removed
	h.elapse(h.core(leader).Deadline() + 2*electionTimeout)
	members, _ := h.core(leader).Members()
	for _, m := range members {
		n := h.node(m.ID)
		same(h.t, fmt.Sprintf("%s\nlog of %d", h.failure, n.id), h.log(leader), h.log(n.id))
		same(h.t, "applied", h.log(leader), n.applied)
		n.sent = nil
	}
	h.heartbeat(leader)
	h.cluster.run()
	if sent := h.outbox(leader); len(sent) != len(members)-1 {
		h.fatal("the leader of an idle cluster sends more than heartbeats: %v", sent)
	}
}

// retire stops those who are not of the cluster any more, and may not have been told, for an operator.
// It is only needed where others let themselves be disturbed.
func (h *chaos) retire() {
	if h.setup.careful {
		return
	}
	last, at := h.setup.first(), raft.Index(0) // the last committed configuration
	for _, done := range h.observer.commits {
		if done.Members != nil {
			last, at = done.Members, done.Index
		}
	}
	stay := map[raft.ServerID]bool{}
	keep := func(members raft.Configuration) {
		for _, m := range members {
			stay[m.ID] = true
		}
	}
	keep(last)
	for _, n := range h.nodes {
		disk := h.diskOf(n).all()
		for _, e := range disk[min(len(disk), int(at)):] {
			keep(e.Members)
		}
	}
	for _, n := range h.nodes {
		if !stay[n.id] {
			h.crash(n.id, 0)
		}
	}
}

// someone is a server that is up, or nil.
func (h *chaos) someone() *node {
	n := h.nodes[h.rng.IntN(len(h.nodes))]
	if n.core == nil {
		return nil
	}
	return n
}

func (h *chaos) someMessage() {
	var busy []link
	for _, from := range h.nodes {
		for _, to := range h.nodes {
			if l := (link{from.id, to.id}); len(h.queues[l]) > 0 {
				busy = append(busy, l)
			}
		}
	}
	if len(busy) == 0 {
		return
	}
	l := busy[h.rng.IntN(len(busy))]
	at := 0
	if h.rng.Float64() < h.disturb {
		at = h.rng.IntN(len(h.queues[l]))
	}
	if h.rng.Float64() < h.loss {
		h.queues[l] = slices.Delete(h.queues[l], at, at+1)
		return
	}
	h.deliverAt(l.from, l.to, at, h.rng.Float64() >= h.repeat)
}

func (h *chaos) someWrite() {
	if n := h.someone(); n != nil && len(n.writes) > 0 {
		h.save(n.id, n.writes[h.rng.IntN(len(n.writes))].Seq)
	}
}

func (h *chaos) someTake() {
	if n := h.someone(); n != nil {
		h.take(n)
	}
}

func (h *chaos) someProposal() {
	n := h.someone()
	if leader := h.leader(); leader != 0 && h.rng.IntN(4) > 0 {
		n = h.node(leader)
	}
	if n != nil && n.core.Status().Role == raft.Leader && n.core.Transferring() == 0 {
		h.serial++
		h.propose(n.id, fmt.Sprint(h.serial))
	}
}

func (h *chaos) someHeartbeat() {
	if n := h.someone(); n != nil {
		h.heartbeat(n.id)
	}
}

// someTransfer lets a leader hand over to another server.
func (h *chaos) someTransfer() {
	n, to := h.someone(), h.nodes[h.rng.IntN(len(h.nodes))].id
	if n != nil && n.core.Status().Role == raft.Leader && n.core.Clone().Transfer(to) == nil {
		h.transfers(n.id, to)
		h.observer.met.transfers++
	}
}

// someChange lets a leader add, promote, demote or remove some server, itself included.
func (h *chaos) someChange() {
	n := h.someone()
	if leader := h.leader(); leader != 0 {
		n = h.node(leader)
	}
	if n == nil || n.core.Status().Role != raft.Leader {
		return
	}
	now, _ := n.core.Members()
	next, id := slices.Clone(now), raft.ServerID(h.rng.IntN(len(h.nodes)))+1
	for _, m := range now {
		if !m.Voter && h.rng.IntN(2) == 0 {
			id = m.ID // there are few learners, or none would ever vote
		}
	}
	i := slices.IndexFunc(now, func(m raft.Member) bool { return m.ID == id })
	var counter *int
	switch {
	case i < 0:
		next = append(next, raft.Member{ID: id, Address: fmt.Sprint("host", id)})
		counter = &h.observer.met.adds
	case !now[i].Voter:
		next[i].Voter = true
		counter = &h.observer.met.promotions
	case h.rng.IntN(4) == 0:
		next[i].Voter = false
		counter = new(int)
	default:
		next = slices.Delete(next, i, i+1)
		counter = &h.observer.met.removals
	}
	switch err := h.canChange(n.id, next); {
	case err == nil:
		h.change(n.id, next)
		*counter++
	case errors.Is(err, raft.ErrChanging):
		h.observer.met.early++
	}
}

// someSnapshot gives a core a snapshot of its state machine, of now or of a moment ago.
func (h *chaos) someSnapshot() {
	n := h.someone()
	if n == nil || len(n.applied) == 0 {
		return
	}
	last := raft.Index(len(n.applied))
	index := last - min(last-1, raft.Index(h.rng.IntN(3)))
	if s := n.core.Snapshot(); n.saving == nil && (s == nil || s.LastIncludedIndex < index) &&
		n.core.Clone().Compact(index, nil) == nil {
		h.compact(n.id, index)
	}
}

// someSaved completes the saving of a snapshot.
func (h *chaos) someSaved() {
	if n := h.someone(); n != nil && n.saving != nil {
		h.saveSnapshot(n.id)
	}
}

// someRead asks a server, the leader or not, that knows of a leader.
func (h *chaos) someRead() {
	n := h.someone()
	if n == nil || n.core.Status().Leader == 0 {
		return
	}
	id := uint64(len(h.asked)) + 1
	h.asked[id] = raft.Index(len(h.observer.commits))
	h.asks(n.id, id)
}

// checkReads checks that no read is answered with less than was committed anywhere when it was asked.
func (h *chaos) checkReads() {
	for _, n := range h.nodes {
		for _, r := range h.reads(n.id) {
			h.read[r.OK]++
			if want := h.asked[r.ID]; r.OK && r.Index < want {
				h.fatal("read %d at server %d: index %d, but %d was committed when it came", r.ID, n.id, r.Index, want)
			}
		}
	}
}

func (h *chaos) someTimeout() {
	if n := h.someone(); n != nil {
		h.timeout(n.id)
	}
}

func (h *chaos) someTick() {
	if n := h.someone(); n != nil {
		early := raft.Time(h.rng.Int64N(int64(heartbeatTimeout))) - heartbeatTimeout/2
		h.tick(n.id, n.core.Deadline()-early)
	}
}

func (h *chaos) someCrash() {
	if n := h.someone(); n != nil {
		h.crash(n.id, h.rng.IntN(len(n.writes)+1))
	}
}

func (h *chaos) someRestart() {
	if n := h.nodes[h.rng.IntN(len(h.nodes))]; n.core == nil {
		h.restart(n.id)
	}
}

// someCut cuts one direction or both.
func (h *chaos) someCut() {
	a, b := h.nodes[h.rng.IntN(len(h.nodes))].id, h.nodes[h.rng.IntN(len(h.nodes))].id
	if h.down[link{a, b}] = true; h.rng.IntN(2) == 0 {
		h.cut(a, b)
	}
}
