package rpc

import (
	"sync"
	"sync/atomic"
	"time"
)

// Limits on what others may ask of a server at the same time.
const (
	// More connections than any sensible number of clients and peers need, and few enough that
	// they fit into 4096 file descriptors twice and cost some 30 MB.
	maxConns = 2048

	// Requests for locks, who may wait for long. A client has a connection for each; so half of all
	// connections can always be closed for new ones. Releases are not counted: those who wait must
	// not keep a holder from giving back what they wait for.
	maxWaiting = maxConns / 2

	// Requests being worked on for one connection. A program with more has other connections.
	maxRequests = 256

	// Within this time a connection has shown its certificate, and within this time it has sent a
	// request, or it is among the first to be closed. Clients send theirs at once.
	firstPatience = 5 * time.Second
)

// visitors are the connections that others have opened. When there are too many, those give way
// that are of the least use: to turn away whoever comes last would let anyone shut out the peers,
// who may have to connect again at any time.
type visitors struct {
	mu       sync.Mutex
	all      map[*session]bool
	waiting  int    // requests, see maxWaiting
	closed   uint64 // to make room
	refused  uint64 // since there was no room
	draining bool
}

// visit is what visitors know of a session.
type visit struct {
	requests int       // being worked on
	spoke    bool      // has sent a request
	peer     bool      // has sent a valid message of Raft's
	idle     time.Time // since when, if there are no requests
	names    []string  // in its certificate
	draining atomic.Bool
}

// admit lets a connection in, if need be in another one's place.
func (v *visitors) admit(s *session) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.draining || len(v.all) >= maxConns && !v.makeRoom() {
		v.refused++
		return false
	}
	s.idle = time.Now()
	v.all[s] = true
	return true
}

// relieve closes a connection that is of no use.
func (v *visitors) relieve() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.makeRoom()
}

func (v *visitors) leave(s *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.all, s)
}

// makeRoom closes the connection that has been of no use for the longest time. The caller holds the
// mutex.
func (v *visitors) makeRoom() bool {
	var first *session
	now := time.Now()
	silent := func(s *session) bool { return !s.spoke && now.Sub(s.idle) >= firstPatience }
	for s := range v.all {
		switch {
		case s.requests > 0 || s.peer:
		case first == nil || silent(s) && !silent(first):
			first = s
		case silent(s) == silent(first) && s.idle.Before(first.idle):
			first = s
		}
	}
	if first == nil {
		return false
	}
	v.closed++
	delete(v.all, first)
	first.cancel()
	return true
}

// begin counts a request in, unless there are too many. The caller calls end. Waits says that the
// answer may take long.
func (v *visitors) begin(s *session, waits bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.spoke = true
	if s.requests >= maxRequests || waits && v.waiting >= maxWaiting {
		return false
	}
	s.requests++
	if waits {
		v.waiting++
	}
	return true
}

func (v *visitors) end(s *session, waited bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.requests--
	s.idle = time.Now()
	if waited {
		v.waiting--
	}
}

// recognise notes that a session belongs to a peer.
func (v *visitors) recognise(s *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.peer = true
}

// drain lets nobody in any more and reads nothing more from those who are: each connection is
// closed when its last answer is written.
func (v *visitors) drain() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.draining = true
	for s := range v.all {
		s.draining.Store(true)
		if err := s.raw.SetReadDeadline(time.Now()); err != nil {
			s.cancel() // it is closed already
		}
	}
}

// census is how full it is, for the metrics.
type census struct {
	connections, waiting int
	closed, refused      uint64
}

func (v *visitors) census() census {
	v.mu.Lock()
	defer v.mu.Unlock()
	return census{len(v.all), v.waiting, v.closed, v.refused}
}
