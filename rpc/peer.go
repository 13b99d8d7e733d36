package rpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/rpc"
	"slices"
	"sync"
	"time"

	"ticketing/raft"
)

// Header is what all of Raft's RPCs and replies carry.
type Header struct {
	Cluster  uint64
	From, To raft.ServerID
	Term     raft.Term
	Call     uint64 // of a request: the sender's number for it, 0 if it keeps no trace
}

// The paper's RPCs. gob does not send zero values and leaves what it does not receive as it was:
// each call needs a reply of its own. A reply of which nothing arrived has the Status Refused.
type (
	RequestVoteArgs struct {
		Header
		raft.RequestVote
	}
	RequestVoteReply struct {
		Status Status
		Header
		raft.RequestVoteReply
	}
	AppendEntriesArgs struct {
		Header
		raft.AppendEntries
	}
	AppendEntriesReply struct {
		Status Status
		Header
		raft.AppendEntriesReply
	}
)

// maxCalls is how many calls to one peer may be unanswered: raft's window and as much again for
// heartbeats.
const maxCalls = 2 * window

// peer is another server, as this one speaks to it. It has queues and a goroutine of its own, so
// that one that is slow or silent delays nobody else.
type peer struct {
	id     raft.ServerID
	addr   string
	queue  chan raft.Message // in order; raft sends again what does not fit
	latest chan raft.Message // the newest of those of which an older one is worth nothing
	ctx    context.Context   // ends when the peer is not needed any more
	part   context.CancelFunc

	// The loop's alone.
	leaves bool      // it is in the configuration no more
	told   raft.Time // when there was last something to tell it

	mu     sync.Mutex
	silent bool // as it was last logged
}

func newPeer(id raft.ServerID, addr string) *peer {
	return &peer{
		id: id, addr: addr,
		queue: make(chan raft.Message, maxCalls), latest: make(chan raft.Message, 1),
	}
}

// enqueue is called by the loop alone and never waits.
func (p *peer) enqueue(m raft.Message) {
	if mayBeOld(m.Body) {
		select {
		case <-p.latest:
		default:
		}
		p.latest <- m
		return
	}
	if a, ok := m.Body.(raft.AppendEntries); ok {
		a.Entries = slices.Clone(a.Entries)
		m.Body = a
	}
	select {
	case p.queue <- m:
	default:
	}
}

// next waits for a message. Entries go first: they are as good as a heartbeat, and a heartbeat that
// overtakes them would be refused.
func (p *peer) next(ctx context.Context) (raft.Message, bool) {
	select {
	case m := <-p.queue:
		return m, true
	default:
	}
	select {
	case m := <-p.queue:
		return m, true
	case m := <-p.latest:
		return m, true
	case <-ctx.Done():
		return raft.Message{}, false
	}
}

// talk is the peer's goroutine: it connects, again and again. The pauses stay below the election
// timeout, so that a peer that comes back is not left out of the next election.
func (n *Node) talk(p *peer) {
	most := n.config.ElectionTimeout / 2
	pause := most / 16
	for p.ctx.Err() == nil {
		ctx, stop := context.WithTimeout(p.ctx, most)
		c, err := n.config.Dial(ctx, p.addr)
		if err == nil {
			c, err = secure(ctx, c, n.config.TLS, PeerName(p.id))
		}
		stop()
		if err == nil {
			pause = most / 16
			err = n.converse(p, c)
		}
		if errors.Is(err, errUnproven) || remoteAlert(err) {
			n.blames.add(noHandshake, p.id, p.addr, err)
		}
		n.logSilence(p, err)
		select {
		case <-p.ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2+1)):
		}
		pause = min(2*pause, most)
	}
}

// logSilence logs that a peer does not answer, and why, or with no error that it does again: not
// each attempt, only the change.
func (n *Node) logSilence(p *peer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if silent := err != nil; silent == p.silent || n.open.Err() != nil || p.ctx.Err() != nil {
		return
	}
	p.silent = err != nil
	if p.silent {
		n.log.Warn("a peer does not answer", "peer", uint64(p.id), "addr", p.addr, "err", err)
	} else {
		n.log.Info("a peer answers again", "peer", uint64(p.id), "addr", p.addr)
	}
}

// converse sends messages over one connection until a call fails. It says why.
func (n *Node) converse(p *peer, raw net.Conn) error {
	ctx, hangUp := context.WithCancelCause(p.ctx)
	var framed *conn
	framed = newConn(raw, n.config.ElectionTimeout, func() { hangUp(framed.failure()) })
	client := rpc.NewClient(framed)
	// Close before anything waits: it ends the calls, and a write that hangs.
	closed := context.AfterFunc(ctx, func() { client.Close() }) // nothing is lost by its error
	var calls sync.WaitGroup
	defer calls.Wait()
	defer func() {
		hangUp(nil)
		if closed() {
			client.Close()
		}
	}()
	slots := make(chan struct{}, maxCalls)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		m, ok := p.next(ctx)
		if !ok {
			return context.Cause(ctx)
		}
		call := n.call(client, m)
		calls.Go(func() {
			if err := n.await(ctx, p, call); err != nil {
				hangUp(err)
			}
			<-slots
		})
	}
}

var errLate = errors.New("it did not answer in time")

// await waits for the reply to a call, and not for long: net/rpc knows no deadlines, and a
// connection that was cut comes back late and then delivers what nobody wants any more. With an
// error the connection is to be given up. A snapshot's last chunk is answered when all of it is on
// the disk, and that may take its time; the heartbeats beside it tell whether the connection works.
func (n *Node) await(ctx context.Context, p *peer, call *rpc.Call) error {
	begun := n.now()
	timer := time.NewTimer(n.config.ElectionTimeout)
	defer timer.Stop()
	if a, ok := call.Args.(*InstallSnapshotArgs); ok && a.Done {
		timer.Stop()
	}
	select {
	case <-call.Done:
	case <-timer.C:
		return errLate
	case <-ctx.Done():
		select {
		case <-call.Done: // the answer came first, as when a peer stops
		default:
			return context.Cause(ctx)
		}
	}
	if call.Error != nil {
		return call.Error
	}
	h, m, status := replyMessage(call.Reply)
	if status != OK {
		return nil // it did not want it; it has logged why
	}
	if h.From != p.id {
		n.enter(n.ctx, n.fromPeers, func() { n.blameFor(h, p.addr, errWrongAnswer) })
		return errWrongAnswer
	}
	n.logSilence(p, nil)
	n.enter(n.ctx, n.fromPeers, func() {
		if err := n.replica.Receive(m); err != nil {
			n.blameFor(h, p.addr, err)
			return
		}
		n.witness.received(m, numberOf(call.Args))
		if _, ok := m.Body.(raft.AppendEntriesReply); ok {
			n.answered[p.id] = max(n.answered[p.id], begun)
		}
	})
	return nil
}

func (h Header) message(body raft.Body) raft.Message {
	return raft.Message{From: h.From, To: h.To, Term: h.Term, Body: body}
}
