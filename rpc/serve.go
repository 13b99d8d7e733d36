package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
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
	Busy                     // nothing was done: too many requests wait here already
	Full                     // nothing was done: too many wait for locks
	Closed                   // what this request was granted is over; it is not carried out again
	Gone                     // the session is over: the request is not carried out, now or ever
	TableFull                // nothing was done: as many locks are held as there may be
	Expiring                 // an Extend: the end of that tenure is on its way
	Ahead                    // no such token has been given out yet
	Reused                   // the session has used the request's number for another one
	Below                    // the request's number is below the lowest open one that it names
	TooFar                   // the request's number is too far above that
	Changing                 // nothing was done: it is too early for this change of members
	Already                  // nothing was done: the members are so
	GivenUp                  // a Transfer: the server that was asked leads as before; the reply says why
)

// serve lets others in until the node is to stop. Then it sees to it that all who wait hear
// something.
func (n *Node) serve(listener net.Listener) error {
	stop := context.AfterFunc(n.open, func() { listener.Close() })
	defer stop()
	err := n.accept(listener)
	// Who does not read its answer, or waits for a disk that hangs, does not keep the node.
	giveUp := time.AfterFunc(n.config.ElectionTimeout, n.cancel)
	defer giveUp.Stop()
	n.enter(n.ctx, n.fromPeers, n.retire)
	n.visitors.drain()
	n.sessions.Wait()
	n.cancel()
	return err
}

// accept accepts connections until the listener is closed.
func (n *Node) accept(listener net.Listener) error {
	failing := false // as it was last logged
	for {
		c, err := listener.Accept()
		if n.open.Err() != nil {
			if err == nil {
				c.Close()
			}
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accepting connections: %w", err)
		}
		if err != nil { // out of file descriptors, most likely; the log on disk needs some, too
			if !failing {
				n.log.Warn("accepting a connection", "err", err)
			}
			failing = true
			n.visitors.relieve()
			select {
			case <-n.open.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		failing = false
		s := &session{node: n, raw: c}
		s.ctx, s.cancel = context.WithCancel(n.ctx)
		if !n.visitors.admit(s) {
			s.cancel()
			c.Close()
			continue
		}
		n.sessions.Go(func() {
			defer n.visitors.leave(s)
			defer s.cancel()
			s.run()
		})
	}
}

// session is one connection, with services of its own: that is how a handler knows whose caller has
// left.
type session struct {
	node   *Node
	raw    net.Conn
	ctx    context.Context // ends when the connection or the node does
	cancel context.CancelFunc
	visit
}

func (s *session) addr() string { return s.raw.RemoteAddr().String() }

// run serves the connection until it ends.
func (s *session) run() {
	n := s.node
	if tcp, ok := s.raw.(*net.TCPConn); ok {
		// A machine that vanishes says no goodbye. Its requests should not wait for hours.
		err := tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 5,
		})
		if err != nil {
			n.log.Warn("setting keep-alive", "addr", s.addr(), "err", err)
		}
	}
	context.AfterFunc(s.ctx, func() { s.raw.Close() })
	c, names, err := welcome(s.ctx, s.raw, n.config.TLS)
	if err != nil {
		if s.ctx.Err() == nil && !s.draining.Load() {
			n.blames.add(noHandshake, 0, s.addr(), err)
		}
		return
	}
	s.names = names
	server := rpc.NewServer()
	for name, service := range map[string]any{"Raft": raftService{s}, "Lock": lockService{s}} {
		if err := server.RegisterName(name, service); err != nil {
			panic("rpc: " + err.Error())
		}
	}
	framed := newConn(c, n.config.ElectionTimeout, s.broken)
	server.ServeCodec(newCodec(framed, n.rosterIndex)) // returns after its handlers
	if err := framed.mistake(s.spoke); err != nil {
		n.blames.add(notARequest, 0, s.addr(), err)
	}
}

// broken is called when nothing can be read any more, or written. While the node stops, the former
// is its own doing, and the last answers are still to be written.
func (s *session) broken() {
	if !s.draining.Load() {
		s.cancel()
	}
}

func (s *session) begin(waits bool) bool { return s.node.visitors.begin(s, waits) }
func (s *session) end(waited bool)       { s.node.visitors.end(s, waited) }

// raftService is Raft's RPCs, as another server calls them.
type raftService struct{ *session }

func (r raftService) RequestVote(a *RequestVoteArgs, y *RequestVoteReply) error {
	respond(r, a.Header, a.RequestVote, func(h Header, b raft.RequestVoteReply) {
		*y = RequestVoteReply{OK, h, b}
	})
	return nil
}

func (r raftService) AppendEntries(a *AppendEntriesArgs, y *AppendEntriesReply) error {
	respond(r, a.Header, a.AppendEntries, func(h Header, b raft.AppendEntriesReply) {
		*y = AppendEntriesReply{OK, h, b}
	})
	return nil
}

// respond lets the core answer a request, and hands on what it says. If there is no answer, or none to
// such a request, the reply stays as it is: Refused.
func respond[B raft.Body](r raftService, h Header, request raft.Body, fill func(Header, B)) {
	m, ok := r.receive(h, request)
	if body, fits := m.Body.(B); ok && fits {
		fill(Header{r.node.config.Cluster, m.From, m.To, m.Term, 0}, body)
	}
}

// receive hands a request to the core and waits for the reply, which comes when all that it says is
// saved.
func (r raftService) receive(h Header, body raft.Body) (raft.Message, bool) {
	n := r.node
	if !r.begin(false) {
		return raft.Message{}, false
	}
	defer r.end(false)
	known := false // to be read when there is a reply
	m, call, reply := h.message(body), n.calls.Add(1), make(chan raft.Message, 1)
	m.Call = call
	entered := n.enter(r.ctx, n.fromPeers, func() {
		err := r.check(h)
		if err == nil {
			err = n.checkSender(h.From, body)
		}
		if err == nil {
			err = n.replica.Receive(m)
		}
		if err != nil {
			n.blameFor(h, r.addr(), err)
			close(reply)
			return
		}
		n.witness.received(m, h.Call)
		known = n.hear(h, body, r.session)
		n.requesters[call] = reply
	})
	if !entered {
		return raft.Message{}, false
	}
	select {
	case m, ok := <-reply:
		if ok && known {
			n.visitors.recognise(r.session)
		}
		return m, ok
	case <-r.ctx.Done():
		n.enter(n.ctx, n.fromPeers, func() { delete(n.requesters, call) })
		return raft.Message{}, false
	}
}

// check refuses what the core cannot know to be wrong.
func (r raftService) check(h Header) error {
	if h.Cluster != r.node.config.Cluster {
		return fmt.Errorf("%w: it is from server %d of another cluster, by name or by token floor",
			raft.ErrMalformed, h.From)
	}
	if !r.maySpeakAs(h.From) {
		return fmt.Errorf("%w: server %d, the certificate is for %q", errWrongName, h.From, r.names)
	}
	return nil
}
