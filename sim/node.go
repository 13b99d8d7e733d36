package sim

import (
	"fmt"
	"slices"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// node is one simulated server: the product's Replica, and around it what a real host has.
type node struct {
	id      raft.ServerID
	index   int32 // in World.actors
	name    Actor
	replica *fsm.Replica
	clock   clock
	disk    disk
	alive   bool
	paused  bool
	asleep  bool    // with its machine: it is paused, and what is sent to it is lost
	inbox   []input // what arrived while it was paused
	boots   uint32
	joins   bool // it is not there from the start

	timerAt  trace.Time // when its timer event is due, unless it is late; 0 if there is none
	timerGen uint32

	calls    map[uint64]openCall // requests that are not answered, by call
	nextCall uint64
	reading  readings
	handing  handing
	changing []changeCall
	parts    map[raft.ServerID]part // the last part of a snapshot that was sent, by receiver

	// What the observer remembers of it.
	status  raft.Status
	before  raft.Status           // the status before the last step
	voted   trace.Votes           // of requests for votes; only when the run is recorded
	sets    []effective           // who the servers are, by its log
	chains  []uint64              // of its log in memory, as disk.chains
	foreign *raft.Snapshot        // a leader's, that it saves or has saved last
	behind  []uint64              // the part of them that the snapshot in the write of this step stands for
	tenures map[string]tenureSeen // that it has applied and that still last, by key
	shadow  *raft.Core            // the core before the input, when World.deep is set
}

type openCall struct {
	client  int32
	request fsm.Request
}

// tenureSeen is when a node applied a Grant or an Extend, or got it in a snapshot, by its own clock.
type tenureSeen struct {
	token fsm.Token
	since raft.Index // the entry that set the lease
	local raft.Time
	lease raft.Time
}

// input is one thing that waits for a paused process.
type input struct {
	flight flight
	saved  uint64         // a finished write, if not 0
	file   *raft.Snapshot // a finished snapshot, if not nil
	read   uint64         // a question's call, if not 0
}

// boot starts a node's process with what is on its disk.
func (w *World) boot(n *node, kind trace.EventKind) error {
	jitter := func(i uint64) raft.Time {
		bits := draw(w.seed, streamElection, uint64(n.id), uint64(n.boots), i)
		return raft.Time(below(bits, int64(w.config.election)))
	}
	replica, err := fsm.New(w.config.replica(n.id, jitter), n.disk.durable, n.clock.at(w.now))
	if err != nil {
		return fmt.Errorf("starting %s: %w", n.name, err)
	}
	n.replica, n.alive, n.paused, n.inbox = replica, true, false, nil
	n.boots++
	n.calls, n.tenures = map[uint64]openCall{}, map[string]tenureSeen{}
	n.handing, n.parts, n.foreign = handing{}, map[raft.ServerID]part{}, nil
	n.changing = nil
	n.chains = slices.Clone(n.disk.chains)
	w.bootMembers(n)
	n.status = replica.Core().Status()
	n.before = n.status
	w.countLeases(n)
	w.traceStart(n, kind)
	w.checks.restart(w, n)
	w.arm(n)
	return nil
}

// crash is a power loss: the process, and what was not synced, are gone.
func (w *World) crash(n *node, torn bool) {
	w.counters[countCrashes]++
	w.awake(n)
	n.alive, n.paused, n.inbox, n.calls = false, false, nil, nil
	w.failReads(n)
	n.timerGen++
	n.timerAt = 0
	w.loseFiles(n)
	n.disk.crash(torn)
	if n.disk.torn {
		w.counters[countTorn]++
	}
	w.checks.store(w, n)
}

// arm schedules the node's timer event for its deadline. One that is due earlier already stands in
// for it and will be armed again: a follower's deadline moves with every heartbeat.
func (w *World) arm(n *node) {
	if w.manual || !n.alive || n.paused {
		return
	}
	t, ok := n.clock.when(n.clock.timers.tick(n.replica.Deadline()))
	if !ok || n.timerAt != 0 && n.timerAt <= t {
		return
	}
	w.rearm(n, max(t, w.now))
}

func (w *World) rearm(n *node, t trace.Time) {
	n.timerGen++
	n.timerAt = max(t, 1)
	t += n.clock.timers.lateness(w.seed, uint64(n.id))
	w.schedule(event{at: t, kind: eventTimer, actor: n.index, gen: n.timerGen})
}

// noticeable is from when on a timer counts as late.
const noticeable = raft.Time(1000)

// nodeTimer is the node's timer event.
func (w *World) nodeTimer(n *node) {
	n.timerAt = 0
	if !n.alive || n.paused {
		return
	}
	late := n.clock.at(w.now) - n.replica.Deadline()
	if late < 0 {
		w.arm(n)
		return
	}
	if late >= noticeable {
		w.counters[countTimersLate]++
	}
	w.wake(n)
}

// wake lets a node read its clock.
func (w *World) wake(n *node) {
	local := n.clock.at(w.now)
	w.traceWake(n, local)
	w.prepare(n)
	n.replica.Tick(local)
	w.step(n, nil)
}

// fire makes one of a node's timers run out now, whatever its clock reads.
func (w *World) fire(n *node, election bool) {
	if !w.tick(n) {
		return
	}
	if election {
		w.traceInput(n, trace.KindElectionTimeout, "")
		n.replica.ElectionTimeout()
	} else {
		w.traceInput(n, trace.KindHeartbeatTimeout, "")
		n.replica.HeartbeatTimeout()
	}
	w.step(n, nil)
}

// tick tells the node the time before another input, and reports whether it runs. In a manual run no node
// reads its clock by itself, or its timers would fire.
func (w *World) tick(n *node) bool {
	if !w.lateTimer(n) {
		return false
	}
	w.prepare(n)
	if !w.manual {
		n.replica.Tick(n.clock.at(w.now))
	}
	return true
}

// lateTimer lets a node act on a timer that is late, since whoever reads the clock for another reason does
// not wait for it. It reports whether the node runs after that.
func (w *World) lateTimer(n *node) bool {
	if w.manual || !n.alive || n.paused || !n.clock.timers.slow() || n.clock.at(w.now) < n.replica.Core().Deadline() {
		return n.alive
	}
	cause := w.cause
	w.wake(n)
	w.cause = cause
	return n.alive
}

// prepare keeps the state before an input, for raft.Delta.
func (w *World) prepare(n *node) {
	if w.deep {
		n.shadow = n.replica.Core().Clone()
	}
}
