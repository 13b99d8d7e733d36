package rpc

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// network is a network in memory, for tests inside a bubble: whoever waits in it waits for a
// channel or the clock, so that the bubble's time can go on. A host is a name, and its address is
// that name with a port. Each direction between two hosts is a link of its own.
type network struct {
	mu        sync.Mutex
	links     map[[2]string]*wire
	listeners map[string]*listener
	dials     map[[2]string][]time.Time // when each was begun, by the hosts from and to
}

// wire is one direction between two hosts.
type wire struct {
	delay   time.Duration
	held    bool          // what is sent waits for the release, and then arrives in order
	cut     bool          // what is sent vanishes
	refused bool          // nobody can connect this way
	flows   chan struct{} // closed while it is neither held nor cut
	streams map[*stream]bool
	writes  int // since the beginning
	wasted  int // segments for which nobody was there any more
}

func newNetwork() *network {
	return &network{
		links: map[[2]string]*wire{}, listeners: map[string]*listener{},
		dials: map[[2]string][]time.Time{},
	}
}

// link is called with the lock held.
func (n *network) link(from, to string) *wire {
	name := [2]string{from, to}
	l := n.links[name]
	if l == nil {
		l = &wire{flows: make(chan struct{}), streams: map[*stream]bool{}}
		close(l.flows)
		n.links[name] = l
	}
	return l
}

// set changes links in one step. Names of hosts that are not known yet will do.
func (n *network) set(change func(*wire), pairs ...[2]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range pairs {
		l := n.link(p[0], p[1])
		flowed := !l.held && !l.cut
		change(l)
		switch flows := !l.held && !l.cut; {
		case flows && !flowed:
			close(l.flows)
		case !flows && flowed:
			l.flows = make(chan struct{})
		}
		for s := range l.streams {
			if l.cut && len(s.queue) > 0 { // what is on its way is lost as well
				s.lost, s.queue = true, nil
			}
			kick(s.readable)
		}
	}
}

// stop makes a host do as one whose process is stopped: connections that it has fall silent, and
// the system accepts new ones for it, on which nothing comes either.
func (n *network) stop(name string, others ...string) (later *listener) {
	n.mu.Lock()
	for _, p := range both(name, others...) {
		for s := range n.link(p[0], p[1]).streams {
			s.lost, s.queue = true, nil
		}
	}
	n.mu.Unlock()
	return n.listen(name)
}

// waiting counts the segments that are on their way from one host to another, and the most that one
// connection has there.
func (n *network) waiting(from, to string) (all, most int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.link(from, to).streams {
		k := 0
		for _, g := range s.queue {
			if !g.fin {
				k++
			}
		}
		all, most = all+k, max(most, k)
	}
	return all, most
}

// written counts what a host has sent to all others.
func (n *network) written(from string) (writes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, l := range n.links {
		if name[0] == from {
			writes += l.writes
		}
	}
	return writes
}

// counts returns what a link has counted.
func (n *network) counts(from, to string) (writes, wasted int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.link(from, to)
	return l.writes, l.wasted
}

// tried tells when one host began to dial another.
func (n *network) tried(from, to string) []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dials[[2]string{from, to}])
}

// both are the links between a host and some others, in both directions.
func both(a string, others ...string) (pairs [][2]string) {
	for _, b := range others {
		pairs = append(pairs, [2]string{a, b}, [2]string{b, a})
	}
	return pairs
}

var errRefused = errors.New("connection refused")

// dialer returns what a host dials with.
func (n *network) dialer(from string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		to, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		n.mu.Lock()
		name := [2]string{from, to}
		n.dials[name] = append(n.dials[name], time.Now())
		there, back := n.link(from, to), n.link(to, from)
		n.mu.Unlock()
		// The first packet, and the answer to it.
		for _, l := range []*wire{there, back} {
			if err := n.cross(ctx, l); err != nil {
				return nil, err
			}
		}
		return n.connect(there, back, from, to)
	}
}

// cross waits until one packet has come through.
func (n *network) cross(ctx context.Context, l *wire) error {
	for {
		n.mu.Lock()
		flows, delay := l.flows, l.delay
		n.mu.Unlock()
		select {
		case <-flows:
		case <-ctx.Done():
			return ctx.Err()
		}
		n.mu.Lock()
		up := !l.held && !l.cut
		n.mu.Unlock()
		if !up {
			continue
		}
		if delay == 0 {
			return ctx.Err()
		}
		select {
		case <-time.After(delay):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *network) connect(there, back *wire, from, to string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[to]
	if l == nil || there.refused {
		return nil, errRefused
	}
	out, in := there.stream(), back.stream()
	near := &pipe{n: n, in: in, out: out, closed: make(chan struct{}), from: from, to: to}
	far := &pipe{n: n, in: out, out: in, closed: make(chan struct{}), from: to, to: from}
	select {
	case l.backlog <- far:
		return near, nil
	default:
		return nil, errRefused
	}
}

// host is the address of a host.
type host string

func (host) Network() string  { return "bubble" }
func (h host) String() string { return string(h) + ":1" }

// listener is where a host accepts connections. A host has at most one.
type listener struct {
	n       *network
	host    host
	backlog chan *pipe
	once    sync.Once
	closed  chan struct{}
}

func (n *network) listen(name string) *listener {
	l := &listener{
		n: n, host: host(name), backlog: make(chan *pipe, 1024), closed: make(chan struct{}),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[name] = l
	return l
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case p := <-l.backlog:
		return p, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close also closes the connections that nobody has accepted.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		if l.n.listeners[string(l.host)] == l {
			delete(l.n.listeners, string(l.host))
		}
		l.n.mu.Unlock()
		close(l.closed)
		for len(l.backlog) > 0 {
			(<-l.backlog).Close()
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.host }
