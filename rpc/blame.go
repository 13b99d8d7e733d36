package rpc

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ticketing/raft"
)

// fault is a kind of thing that no correct peer or client does.
type fault uint8

const (
	malformed       fault = iota // a message that contradicts itself or what was agreed on
	unknownPeer                  // a message from a server that is not of the cluster
	anotherCluster               // a message from a server of another cluster
	anotherAddress               // a message that is for another server
	ownID                        // a message from a server that has this one's id
	twoPlaces                    // messages from one server by two connections at the same time
	wrongName                    // a message from a server that the sender's certificate does not name
	wrongAnswer                  // an answer from another server than the one that was asked
	noHandshake                  // a connection whose certificate is missing or wrong, or without TLS
	notARequest                  // a connection on which something else was sent
	faults          int   = iota
	firstConnection       = noHandshake // from here on they are faults of connections
)

func (f fault) String() string {
	return [faults]string{
		"malformed", "unknown peer", "another cluster", "another address", "own id", "two places",
		"wrong name", "wrong answer", "no handshake", "not a request",
	}[f]
}

// blamePause is how long a fault of one peer is not logged again. All strangers together count as
// one: a log must not grow as fast as someone likes.
const blamePause = 10 * time.Minute

// blames counts what others do wrong, and logs it.
type blames struct {
	log   *slog.Logger
	mu    sync.Mutex
	count [faults]uint64
	until map[blame]time.Time // it is not logged before
}

type blame struct {
	fault fault
	peer  raft.ServerID // 0 for strangers
}

// add blames a server of the cluster, or, if its id is 0, whoever is at that address.
func (b *blames) add(f fault, peer raft.ServerID, addr string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count[f]++
	who, now := blame{f, peer}, time.Now()
	if now.Before(b.until[who]) {
		return
	}
	b.until[who] = now.Add(blamePause)
	what := "refused a message"
	if f >= firstConnection {
		what = "refused a connection"
	}
	b.log.Warn(what+"; more of the kind are not logged for a while", "reason", f.String(),
		"peer", uint64(peer), "addr", addr, "err", err)
}

func (b *blames) counts() [faults]uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// blameFor finds out what is wrong with a message that was refused, and logs it.
func (n *Node) blameFor(h Header, addr string, err error) {
	f := malformed
	switch {
	case errors.Is(err, errWrongName):
		f = wrongName
	case errors.Is(err, errTwoPlaces):
		f = twoPlaces
	case errors.Is(err, errWrongAnswer):
		f = wrongAnswer
	case h.Cluster != n.config.Cluster:
		f = anotherCluster
	case h.From == n.config.ID:
		f = ownID
		err = fmt.Errorf("two servers have the id %d, or one of them has its own address for a "+
			"peer's: %w", h.From, err)
	case n.peers[h.From] == nil:
		f = unknownPeer
	case h.To != n.config.ID:
		f = anotherAddress
	}
	peer := h.From
	if n.peers[peer] == nil {
		peer = 0
	}
	n.blames.add(f, peer, addr, err)
}

var (
	errWrongName   = fmt.Errorf("%w: the certificate is not that server's", raft.ErrMalformed)
	errWrongAnswer = fmt.Errorf("%w: another server answers at a peer's address", raft.ErrMalformed)
	errTwoPlaces   = errors.New("two servers seem to have this id: they take turns")
)

// voice is where a peer's messages come from.
type voice struct {
	session, former *session
	returns         int // to a connection that had been followed by another one
}

// wonder looks for a second server of the same id in another way. One of them answers this leader, so
// it has heard it, and cannot ask for votes before an election timeout is over; but the other does.
// The loop calls it.
func (n *Node) wonder(h Header, body raft.Body, addr string) {
	heard, ok := n.answered[h.From]
	least := raft.Time(n.config.ElectionTimeout.Microseconds()) * 9 / 10 // no two clocks are alike
	if _, asks := body.(raft.PreVote); asks && ok && n.now() < heard+least {
		n.blameFor(h, addr, errTwoPlaces)
	}
}

// maxReturns is how often a peer may seem to speak by an old connection again. A peer that connects
// anew closes the old one first; what was on its way there may come once behind.
const maxReturns = 3

// listen notes where a peer's message came from, so that two servers with one id are found out.
// The loop calls it.
func (n *Node) listen(h Header, s *session) {
	v := n.voices[h.From]
	if v == nil {
		v = &voice{session: s}
		n.voices[h.From] = v
	}
	if v.session == s {
		return
	}
	if v.former != s {
		v.returns = 0
	} else if v.returns++; v.returns == maxReturns {
		n.blameFor(h, s.addr(), fmt.Errorf("%w with %s", errTwoPlaces, v.session.addr()))
		v.returns = 0
	}
	v.session, v.former = s, v.session
}
