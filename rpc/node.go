package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ticketing/fsm"
	"ticketing/raft"
)

// Node is one server. It starts with Start and ends with Stop or by itself, when its disk fails.
type Node struct {
	config  Config
	addr    string
	started time.Time
	fsm     fsm.Config
	store   Store
	log     *slog.Logger
	ctx     context.Context // ends when the node does
	cancel  context.CancelFunc
	open    context.Context // ends when the node is to end: nobody is let in any more
	close   context.CancelFunc
	group   *errgroup.Group
	done    chan struct{}
	err     error                                    // valid once done is closed
	calls   atomic.Uint64                            // the last name given to a call
	places  atomic.Pointer[map[raft.ServerID]string] // where servers listen; it is replaced
	agreed  atomic.Uint64                            // see Roster

	visitors *visitors
	sessions sync.WaitGroup
	blames   blames

	// Functions for the loop to call, and its way to the disk and back.
	fromPeers, fromClients, finished chan func()
	writes                           chan raft.Write
	snapshots                        chan keeping

	// The loop's alone, as is all that the functions above touch.
	replica    *fsm.Replica
	members    raft.Configuration // by which the peers are
	belonged   bool               // this server is a member, or was
	removed    raft.Index         // see removal
	heard      raft.Time          // when the leader last was
	peers      map[raft.ServerID]*peer
	witness    *witness                     // nil if there is no trace
	unfinished []raft.Time                  // writes, by when the disk was given them
	callers    map[uint64]caller            // of requests, by call
	questions  questions                    // of clients, who holds a lock
	requesters map[uint64]chan raft.Message // of raft's RPCs, by call
	handovers  []handover
	voices     map[raft.ServerID]*voice
	answered   map[raft.ServerID]raft.Time // when the last AppendEntries was sent that a peer has answered
	metrics    metrics
	newest     raft.Time   // when the last snapshot came to the disk
	seen       raft.Status // as it was last logged
	stalled    bool        // as it was last logged
	retired    bool        // requests are not taken any more
}

// caller is a handler that waits for the answer to a request.
type caller struct {
	reply chan<- fsm.Reply
	kind  fsm.Kind
	since raft.Time
}

// Start starts a server that has, or had before a crash, the given state on its disk. From then on
// store and listener are the node's, and it closes them when it ends.
func Start(config Config, store Store, durable raft.Durable, listener net.Listener) (*Node, error) {
	config = config.withDefaults()
	n := newNode(config, store, listener)
	var err error
	n.fsm = fsm.Config{
		Raft: config.raft(), Rules: config.Rules, GrantOnApplied: config.GrantOnApplied,
		TokenFloor: config.TokenFloor, SnapshotEvery: config.SnapshotEvery,
	}
	n.replica, err = fsm.New(n.fsm, durable, n.now())
	if err != nil {
		return nil, fmt.Errorf("starting server %d: %w", config.ID, err)
	}
	n.observe(&durable)
	n.belonged = config.hasBelonged(durable)
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.group, n.ctx = errgroup.WithContext(ctx)
	n.open, n.close = context.WithCancel(n.ctx)
	n.places.Store(&config.Addrs)
	n.follow()
	n.group.Go(n.loop)
	n.group.Go(n.save)
	n.group.Go(n.saveSnapshots)
	n.group.Go(func() error { return n.serve(listener) })
	go n.finish()
	return n, nil
}

func newNode(config Config, store Store, listener net.Listener) *Node {
	n := &Node{
		config: config, started: time.Now(), store: store, addr: listener.Addr().String(),
		log:         config.Log.With("node", uint64(config.ID)),
		done:        make(chan struct{}),
		peers:       map[raft.ServerID]*peer{},
		fromPeers:   make(chan func(), maxInputs),
		fromClients: make(chan func(), maxInputs),
		finished:    make(chan func(), roomWrites+3),
		writes:      make(chan raft.Write, roomWrites),
		snapshots:   make(chan keeping, 1),
		callers:     map[uint64]caller{},
		requesters:  map[uint64]chan raft.Message{},
		voices:      map[raft.ServerID]*voice{},
		answered:    map[raft.ServerID]raft.Time{},
		visitors:    &visitors{all: map[*session]bool{}},
	}
	n.blames = blames{log: n.log, until: map[blame]time.Time{}}
	return n
}

// now reads this server's monotonic clock, which starts with the node.
func (n *Node) now() raft.Time { return raft.Time(time.Since(n.started).Microseconds()) }

// Addr returns where the node listens.
func (n *Node) Addr() string { return n.addr }

// Done is closed when the node has ended and all that it held is closed.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err says why a node has ended by itself. It is nil while the node runs and after Stop.
func (n *Node) Err() error {
	select {
	case <-n.done:
		return n.err
	default:
		return nil
	}
}

// Stop ends the node and waits for it. First nobody is let in any more. Then all who wait are
// answered: with NotLeader if nothing was done, with Unknown if what they ask for is in the log.
// Then what was given to the disk is saved. None of it waits for another server, and whoever does
// not take the answer is not waited for longer than an election timeout. It returns nil, or what
// has ended the node before.
func (n *Node) Stop() error {
	n.close()
	<-n.done
	return n.err
}

// retire answers all who wait and makes the loop take no more requests. The loop calls it.
func (n *Node) retire() {
	n.retired = true
	n.replica.Retire()
}

func (n *Node) finish() {
	err := n.group.Wait()
	n.cancel()
	n.witness.stopped(err)
	n.err = errors.Join(err, n.store.Close())
	if err != nil {
		n.log.Error("stopped", "err", err)
	}
	close(n.done)
}

// loop is the only goroutine that touches the replica.
func (n *Node) loop() error {
	defer close(n.snapshots)
	defer close(n.writes)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := max(n.replica.Deadline()-n.now(), 0)
		if n.questions.due() {
			wait = 0
		}
		timer.Reset(time.Duration(wait) * time.Microsecond)
		if !n.gather(timer.C) {
			return nil
		}
		n.ask()
		out, err := n.take()
		if err != nil {
			return fmt.Errorf("applying the log: %w", err)
		}
		n.witness.took(out)
		// The write goes to the disk while the messages leave: so a leader's disk works beside
		// its followers'. What must not leave before it is saved, Take has held back.
		if !n.write(out.Write) {
			return nil
		}
		n.follow()
		n.keep(out)
		for _, m := range out.Messages {
			n.send(m)
		}
		for _, y := range out.Replies {
			n.answer(y)
		}
		n.conclude()
		n.metrics.observe(out)
		n.logStatus()
	}
}

// gather waits for an input and then takes all that are there, so that they share one write. It
// returns false when the node ends.
func (n *Node) gather(alarm <-chan time.Time) bool {
	// While a leader's disk is busy clients wait outside, and make one larger write together. Peers
	// do not: they must hear that this server lives. One that does not lead writes nothing for
	// clients, and tells them so.
	clients := n.fromClients
	leads := n.replica.Core().Status().Role == raft.Leader
	if leads && !n.retired && len(n.unfinished) >= maxWrites {
		clients = nil
	}
	input := func() {}
	select {
	case <-n.ctx.Done():
		return false
	case <-alarm:
	case input = <-n.finished:
	case input = <-n.fromPeers:
	case input = <-clients:
	}
	n.tick()
	input()
	for range maxInputs {
		select {
		case input = <-n.finished:
		case input = <-n.fromPeers:
		case input = <-clients:
		default:
			return n.ctx.Err() == nil
		}
		input()
	}
	return n.ctx.Err() == nil
}

// enter hands the loop a function to call. It returns false if the context or the node ends first.
func (n *Node) enter(ctx context.Context, door chan<- func(), input func()) bool {
	select {
	case door <- input:
		return true
	case <-ctx.Done():
	case <-n.ctx.Done():
	}
	return false
}

// send hands a reply to the handler that waits for it, and a request to the peer's goroutine.
func (n *Node) send(m raft.Message) {
	if isReply(m.Body) {
		if waiting, ok := n.requesters[m.Call]; ok {
			delete(n.requesters, m.Call)
			waiting <- m
		}
		return
	}
	if p := n.peers[m.To]; p != nil { // otherwise it has left in this very turn
		p.told = n.now()
		p.enqueue(m)
	}
}

// answer hands a reply to the handler that waits for it.
func (n *Node) answer(y fsm.Reply) {
	if y.Call == n.questions.call {
		n.questions.answer(y) // at this very moment the table is what was asked for
		return
	}
	waiting, ok := n.callers[y.Call]
	if !ok {
		return
	}
	delete(n.callers, y.Call)
	if y.Status == fsm.Answered && y.Result.Kind == fsm.Granted {
		n.metrics.acquire.add(micro(n.now() - waiting.since))
	}
	waiting.reply <- y
}

// otherLeader is whom a server names that does not take requests any more.
func (n *Node) otherLeader() raft.ServerID {
	if leader := n.replica.Core().Status().Leader; leader != n.config.ID {
		return leader
	}
	return 0
}

// logStatus logs what someone who runs a cluster wants to know: who leads, and whether the disk
// works.
func (n *Node) logStatus() {
	if hangs := n.hangs(); hangs != n.stalled {
		n.stalled = hangs
		if hangs {
			n.log.Warn("the disk hangs; as long as it does, this server cannot lead")
		} else {
			n.log.Info("the disk works again")
		}
	}
	s := n.replica.Core().Status()
	if s.Role == n.seen.Role && s.Term == n.seen.Term && s.Leader == n.seen.Leader {
		return
	}
	if s.Role != raft.Follower && s.Term != n.seen.Term {
		n.metrics.elections++
	}
	n.seen = s
	n.log.Info("status",
		"role", s.Role.String(), "term", uint64(s.Term), "leader", uint64(s.Leader))
}
