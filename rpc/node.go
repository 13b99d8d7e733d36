package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ticketing/fsm"
	"ticketing/raft"
)

// Store is a server's disk. When Save has returned nil, the write survives; see raft.Write. Only
// one goroutine uses it at a time.
type Store interface {
	Save(raft.Write) error
	Close() error
}

// Node is one server. It starts with Start and ends with Stop or by itself, when its disk fails.
type Node struct {
	config  Config
	addr    string
	started time.Time
	store   Store
	log     *slog.Logger
	ctx     context.Context // ends when the node does
	cancel  context.CancelFunc
	group   *errgroup.Group
	done    chan struct{}
	err     error // valid once done is closed
	peers   map[raft.ServerID]*peer
	calls   atomic.Uint64 // the last name given to a call

	// Functions for the loop to call, and its way to the disk and back.
	fromPeers, fromClients, finished chan func()
	writes                           chan raft.Write

	// The loop's alone, as is all that the functions above touch.
	replica    *fsm.Replica
	unfinished int                          // writes
	callers    map[uint64]chan fsm.Reply    // of requests, by call
	requesters map[uint64]chan raft.Message // of raft's RPCs, by call
	blamed     map[raft.ServerID]bool       // whose malformed messages were logged; 0 is strangers
	seen       raft.Status                  // as it was last logged
}

// Start starts a server that has, or had before a crash, the given state on its disk. From then on
// store and listener are the node's, and it closes them when it ends.
func Start(config Config, store Store, durable raft.Durable, listener net.Listener) (*Node, error) {
	config = config.withDefaults()
	n := newNode(config, store, listener)
	var err error
	if n.replica, err = fsm.New(fsm.Config{Raft: config.raft(), Rules: config.Rules}, durable, n.now()); err != nil {
		return nil, fmt.Errorf("starting server %d: %w", config.ID, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.group, n.ctx = errgroup.WithContext(ctx)
	n.group.Go(n.loop)
	n.group.Go(n.save)
	n.group.Go(func() error { return n.serve(listener) })
	for _, p := range n.peers {
		n.group.Go(func() error { n.talk(p); return nil })
	}
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
		finished:    make(chan func(), roomWrites+2),
		writes:      make(chan raft.Write, roomWrites),
		callers:     map[uint64]chan fsm.Reply{},
		requesters:  map[uint64]chan raft.Message{},
		blamed:      map[raft.ServerID]bool{},
	}
	for id, addr := range config.Addrs {
		if id != config.ID {
			n.peers[id] = newPeer(id, addr)
		}
	}
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

// Stop ends the node and waits for it. Requests that still wait are not answered.
func (n *Node) Stop() error {
	n.cancel()
	<-n.done
	return n.err
}

func (n *Node) finish() {
	err := n.group.Wait()
	n.cancel()
	n.err = errors.Join(err, n.store.Close())
	if err != nil {
		n.log.Error("stopped", "err", err)
	}
	close(n.done)
}

// loop is the only goroutine that touches the replica.
func (n *Node) loop() error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := max(n.replica.Deadline()-n.now(), 0)
		timer.Reset(time.Duration(wait) * time.Microsecond)
		if !n.gather(timer.C) {
			return nil
		}
		out, err := n.replica.Take()
		if err != nil {
			return fmt.Errorf("applying the log: %w", err)
		}
		// The write goes to the disk while the messages leave: so a leader's disk works beside
		// its followers'. What must not leave before it is saved, Take has held back.
		if w := out.Write; w.Seq != 0 {
			w.Entries = slices.Clone(w.Entries)
			n.unfinished++
			select {
			case n.writes <- w:
			case <-n.ctx.Done():
				return nil
			}
		}
		for _, m := range out.Messages {
			n.send(m)
		}
		for _, y := range out.Replies {
			n.answer(y)
		}
		n.logStatus()
	}
}

// gather waits for an input and then takes all that are there, so that they share one write. It
// returns false when the node ends.
func (n *Node) gather(alarm <-chan time.Time) bool {
	// While the disk is busy clients wait outside, and make one larger write together. Peers do
	// not: they must hear that this server lives.
	clients := n.fromClients
	if n.unfinished >= maxWrites {
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
	n.replica.Tick(n.now())
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

// save is the goroutine that saves. An error ends it, and with it the node: what it cannot remember
// it must not promise.
func (n *Node) save() error {
	for {
		select {
		case <-n.ctx.Done():
			return nil
		case w := <-n.writes:
			if err := n.store.Save(w); err != nil {
				return fmt.Errorf("saving write %d: %w", w.Seq, err)
			}
			n.finished <- func() { // there is room for all writes that can be unfinished
				n.unfinished--
				n.replica.Saved(w.Seq)
			}
		}
	}
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
	switch m.Body.(type) {
	case raft.RequestVoteReply, raft.AppendEntriesReply:
		if waiting, ok := n.requesters[m.Call]; ok {
			delete(n.requesters, m.Call)
			waiting <- m
		}
	default:
		n.peers[m.To].enqueue(m)
	}
}

// answer hands a reply to the handler that waits for it.
func (n *Node) answer(y fsm.Reply) {
	if waiting, ok := n.callers[y.Call]; ok {
		delete(n.callers, y.Call)
		waiting <- y
	}
}

// logStatus logs what someone who runs a cluster wants to know: who leads.
func (n *Node) logStatus() {
	s := n.replica.Core().Status()
	if s.Role == n.seen.Role && s.Term == n.seen.Term && s.Leader == n.seen.Leader {
		return
	}
	n.seen = s
	n.log.Info("status",
		"role", s.Role.String(), "term", uint64(s.Term), "leader", uint64(s.Leader))
}
