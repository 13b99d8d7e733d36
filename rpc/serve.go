package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync"
	"time"

	"ticketing/raft"
)

// Status says what became of a request. The zero value is no good news: it is what a reply says of
// which nothing has arrived.
type Status uint8

const (
	Refused    Status = iota // not for this server, or from one that it does not know
	OK                       // done
	Held                     // a try: the key is held or promised to another
	NotFound                 // there is no such tenure
	NotLeader                // nothing was done; the reply may say who leads
	Unknown                  // it may yet happen, or not
	Superseded               // a newer attempt has arrived, which will be answered
	Invalid                  // the reply says why
	Busy                     // nothing was done: too many requests wait on this connection
)

const (
	maxConns    = 2048 // open at once; more are closed on arrival
	maxRequests = 256  // being worked on for one connection
)

var errWrongSender = fmt.Errorf("%w: another server answers at a peer's address", raft.ErrMalformed)

// serve accepts connections until the node ends.
func (n *Node) serve(listener net.Listener) error {
	stop := context.AfterFunc(n.ctx, func() { listener.Close() })
	defer stop()
	slots := make(chan struct{}, maxConns)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		c, err := listener.Accept()
		if n.ctx.Err() != nil {
			if err == nil {
				c.Close()
			}
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accepting connections: %w", err)
		}
		if err != nil { // out of file descriptors, most likely: it passes
			n.log.Warn("accepting a connection", "err", err)
			select {
			case <-n.ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		select {
		case slots <- struct{}{}:
			sessions.Go(func() { n.session(c); <-slots })
		default:
			c.Close()
		}
	}
}

// session is one connection, with services of its own: that is how a handler knows whose caller has
// left.
type session struct {
	node  *Node
	ctx   context.Context // ends when the connection or the node does
	slots chan struct{}
}

func (n *Node) session(raw net.Conn) {
	if tcp, ok := raw.(*net.TCPConn); ok {
		// A machine that vanishes says no goodbye. Its requests should not wait for hours.
		err := tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 5,
		})
		if err != nil {
			n.log.Warn("setting keep-alive", "err", err)
		}
	}
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { raw.Close() })
	s := &session{n, ctx, make(chan struct{}, maxRequests)}
	server := rpc.NewServer()
	for name, service := range map[string]any{"Raft": raftService{s}, "Lock": lockService{s}} {
		if err := server.RegisterName(name, service); err != nil {
			panic("rpc: " + err.Error())
		}
	}
	server.ServeConn(newConn(raw, n.config.ElectionTimeout, cancel)) // returns after its handlers
}

// begin counts a request in, unless there are too many. The caller calls end.
func (s *session) begin() bool {
	select {
	case s.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *session) end() { <-s.slots }

// raftService is Raft's RPCs, as another server calls them.
type raftService struct{ *session }

func (r raftService) RequestVote(a *RequestVoteArgs, y *RequestVoteReply) error {
	m, ok := r.receive(a.Header, a.RequestVote)
	if body, fits := m.Body.(raft.RequestVoteReply); ok && fits {
		*y = RequestVoteReply{OK, r.header(m), body}
	}
	return nil
}

func (r raftService) AppendEntries(a *AppendEntriesArgs, y *AppendEntriesReply) error {
	m, ok := r.receive(a.Header, a.AppendEntries)
	if body, fits := m.Body.(raft.AppendEntriesReply); ok && fits {
		*y = AppendEntriesReply{OK, r.header(m), body}
	}
	return nil
}

func (r raftService) header(m raft.Message) Header {
	return Header{r.node.config.Cluster, m.From, m.To, m.Term}
}

// receive hands a request to the core and waits for the reply, which comes when all that it says is
// saved.
func (r raftService) receive(h Header, body raft.Body) (raft.Message, bool) {
	n := r.node
	if !r.begin() {
		return raft.Message{}, false
	}
	defer r.end()
	m, call, reply := h.message(body), n.calls.Add(1), make(chan raft.Message, 1)
	m.Call = call
	entered := n.enter(r.ctx, n.fromPeers, func() {
		err := n.checkCluster(h)
		if err == nil {
			err = n.replica.Receive(m)
		}
		if err != nil {
			n.blame(h.From, err)
			close(reply)
			return
		}
		n.requesters[call] = reply
	})
	if !entered {
		return raft.Message{}, false
	}
	select {
	case m, ok := <-reply:
		return m, ok
	case <-r.ctx.Done():
		n.enter(n.ctx, n.fromPeers, func() { delete(n.requesters, call) })
		return raft.Message{}, false
	}
}

func (n *Node) checkCluster(h Header) error {
	if h.Cluster == n.config.Cluster {
		return nil
	}
	return fmt.Errorf("%w: it is from server %d of another cluster", raft.ErrMalformed, h.From)
}

// blame logs that a peer has sent what no correct peer sends, once for each, and once for all
// strangers together: a log must not grow as fast as someone likes. The loop calls it.
func (n *Node) blame(from raft.ServerID, err error) {
	id := from
	if n.peers[id] == nil {
		id = 0
	}
	if !n.blamed[id] {
		n.blamed[id] = true
		n.log.Warn("refused a message; more from there are not logged",
			"from", uint64(from), "err", err)
	}
}
