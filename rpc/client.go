package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/rpc"
	"slices"
	"sync"
	"time"

	"ticketing/raft"
)

// Options describes a client. It is a struct and no list of functions: what can be set is seen at
// one glance, and the zero value is a client that works.
type Options struct {
	// Owner is a label that others see beside its locks: 255 bytes of UTF-8 at most, without
	// control characters and quotes. It decides nothing. Who knows a lock's token may release it,
	// and a token is no secret.
	Owner string

	// TLS is for connections to servers, which must prove to be ServerName; see LoadTLS. nil stands
	// for none.
	TLS *tls.Config

	// Dial connects to a server, and must give up when the context ends. nil stands for TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// NoHints makes a server that does not lead end a request with a NotLeaderError. Otherwise the
	// client turns to the leader, and when none is known keeps asking until the context ends.
	NoHints bool
}

const (
	dialTimeout  = 500 * time.Millisecond
	writeTimeout = 2 * time.Second
	farewell     = time.Second     // for a server to say what became of a request that is given up
	replyTimeout = 2 * time.Second // for what is answered at once; less if a lease ends
	leastPause   = 20 * time.Millisecond
	mostPause    = 300 * time.Millisecond
	maxIdle      = 8 // connections
)

// Client takes locks for a program. It starts with Dial and ends with Close. All methods may be
// called at the same time.
//
// A Client is one holder: while it has a key, or waits for it, its Lock and TryLock for that key
// return ErrAlreadyHeld. Goroutines that compete for a key need a Client each, or a sync.Mutex of
// their own.
type Client struct {
	given   []string // addresses of servers
	options Options
	ctx     context.Context
	close   context.CancelFunc

	opening chan struct{} // whoever is in it opens a session

	mu     sync.Mutex
	addrs  []string   // of the members, as far as it knows, and those that it was given
	roster raft.Index // of the entry that says who the former are
	sought raft.Index // the newest such entry that it has asked about
	asked  time.Time  // when it last did
	pass   *pass      // for new requests; nil if there is none
	leader string     // whom it believes to lead; "" if it does not know
	turn   int        // whom to ask next then
	idle   []*link
	locks  map[*Lock]bool  // whose Done is open
	keys   map[string]bool // theirs, and those that are asked for
	active sync.WaitGroup  // calls of methods
	closed bool
}

// link is a connection to a server. While a request is on it nobody else uses it: closing it is how
// a request is cancelled.
type link struct {
	*rpc.Client
	addr string
	conn net.Conn
}

// finish tells the server that no request will follow. It still may answer those that it has, and
// closes the connection then. It is false if the connection has no way to tell.
func (l *link) finish() bool {
	half, ok := l.conn.(interface{ CloseWrite() error })
	return ok && half.CloseWrite() == nil
}

// Dial returns a client of the cluster whose servers listen at addrs, each host:port; some of them
// suffice. It waits until one can be reached or the context ends, which is an ErrNoLeader; the
// context governs nothing after that.
func Dial(ctx context.Context, addrs []string, options Options) (*Client, error) {
	if len(addrs) == 0 {
		return nil, errors.New("rpc: no address was given")
	}
	for _, addr := range addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, fmt.Errorf("rpc: the address %q is not host:port: %w", addr, err)
		}
	}
	c := &Client{
		given: slices.Clone(addrs), addrs: slices.Clone(addrs), asked: time.Now(),
		options: options, opening: make(chan struct{}, 1),
		turn: rand.IntN(len(addrs)), locks: map[*Lock]bool{}, keys: map[string]bool{},
	}
	c.ctx, c.close = context.WithCancel(context.Background())
	if c.options.Dial == nil {
		c.options.Dial = dialTCP
	}
	l, err := c.connect(ctx)
	if err != nil {
		c.close()
		return nil, err
	}
	c.release(l)
	return c, nil
}

// Close closes the connections, ends all calls with ErrClosed and waits for them to return: no
// goroutine of the client is left then. Locks are not given back: each stays until its lease is
// over, though its Done is closed now.
func (c *Client) Close() {
	c.close()
	c.mu.Lock()
	c.closed = true
	idle, locks := c.idle, c.locks
	c.idle, c.locks, c.keys = nil, nil, nil
	c.mu.Unlock()
	for _, l := range idle {
		l.Close()
	}
	for l := range locks {
		l.end(ErrClosed)
	}
	c.active.Wait()
}

// begin starts a method's call: its context ends with the client too.
func (c *Client) begin(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, ErrClosed
	}
	c.active.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		c.active.Done()
	}, nil
}

// connect returns a connection to the leader, as far as it is known, or to another server; and none
// once the context has ended, since nobody would wait for what is asked then.
func (c *Client) connect(ctx context.Context) (*link, error) {
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		last := errors.New("it was not looked for")
		for range c.servers() {
			addr, l := c.pick()
			if l == nil {
				var err error
				if l, err = c.dial(ctx, addr); err != nil {
					c.learn(addr, "")
					last = err
				}
			}
			if l != nil && ctx.Err() == nil {
				return l, nil
			}
			if l != nil {
				c.release(l)
			}
			if ctx.Err() != nil {
				break
			}
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("%w (%w)", err, last)
		}
	}
}

func (c *Client) dial(ctx context.Context, addr string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	raw, err := c.options.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	raw, err = secure(ctx, raw, c.options.TLS, ServerName)
	if err != nil {
		return nil, err
	}
	return &link{rpc.NewClient(newConn(raw, writeTimeout, func() {})), addr, raw}, nil
}

// sleep pauses for about so long. Its error says that the context ended before a leader was found.
func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause/2 + rand.N(pause)):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNoLeader, context.Cause(ctx))
	}
}

// pick returns whom to ask, and a connection if there is one to spare.
func (c *Client) pick() (string, *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addr := c.leader
	if addr == "" {
		addr = c.addrs[c.turn%len(c.addrs)]
		c.turn++
	}
	i := slices.IndexFunc(c.idle, func(l *link) bool { return l.addr == addr })
	if i < 0 {
		return addr, nil
	}
	l := c.idle[i]
	c.idle = slices.Delete(c.idle, i, i+1)
	return addr, l
}

func (c *Client) servers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.addrs)
}

// learn notes that a server does not lead, and who does, if it knows.
func (c *Client) learn(from, leader string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if leader == from {
		leader = ""
	}
	if leader != "" || c.leader == from {
		c.leader = leader
	}
}

// release keeps a connection on which nothing waits for the next call. If there are too many, the
// one goes that was used the longest ago: its server may be gone, too.
func (c *Client) release(l *link) {
	c.mu.Lock()
	surplus := l
	if !c.closed {
		c.idle, surplus = append(c.idle, l), nil
		if len(c.idle) > maxIdle {
			surplus, c.idle = c.idle[0], slices.Delete(c.idle, 0, 1)
		}
	}
	c.mu.Unlock()
	if surplus != nil {
		surplus.Close()
	}
}
