// Package cluster runs the servers of a cluster as processes of their own, for tests and for
// teaching: each with its own directory, log file and process group, and on wish with a proxy in
// each link between them that can lose, keep back and delay what passes.
//
// It promises that no server outlives the program that started it, as far as the system can do
// that. The caller owes a Stop, a binary that takes lockd's flags, writes a line with
// "msg=listening" to its standard error when it is ready, and stops with exit code 0 on SIGTERM.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ticketing/raft"
)

// Config says what to start.
type Config struct {
	Binary string   // the program
	Lead   []string // words between the program's name and its flags, such as a subcommand
	Dir    string   // for logs and what the servers store; made if it is not there
	N      int      // servers; 0 stands for 3

	// Later is how many more may come with Enter, and have an address from the start.
	Later int

	// Args are further arguments of a server, after lockd's flags. nil stands for none.
	Args func(raft.ServerID) []string

	// Wrap is a command that runs the server's: "strace -f", "nsenter --net=…". nil stands for
	// none. The signals below reach all of the process group.
	Wrap func(raft.ServerID) []string

	// Listen is where each server listens. nil stands for free ports on loopback.
	Listen map[raft.ServerID]string

	Election, Heartbeat time.Duration // 0 stands for 300 ms and 50 ms

	// Proxied puts a proxy into each link; see Links.
	Proxied bool

	// Routed tells each server where all listen, as it is in the log, and besides with
	// -routes ADDR=PROXY,… whom to call instead. Without it the proxies are in -peers, and the servers
	// must stay the same. lockd has no such flag.
	Routed bool
}

// Cluster is a cluster that was started. Its methods may be called at the same time, but those on
// one server only one after the other.
type Cluster struct {
	config Config
	addrs  map[raft.ServerID]string
	links  *Links // nil if not proxied

	mu        sync.Mutex
	ids       []raft.ServerID            // of those that have not left
	joined    map[raft.ServerID]bool     // those that came later
	processes map[raft.ServerID]*process // the newest of each server
}

const (
	patience = 20 * time.Second // for a server to start or stop
	attempts = 5                // to find ports that nobody takes in the meantime
)

// ErrUnexpectedEnd says that a server ended by itself.
var ErrUnexpectedEnd = errors.New("the server ended by itself")

// errPortTaken says that somebody took a server's port before the server could.
var errPortTaken = errors.New("the port was taken")

// Start starts the servers and waits until all of them listen. The context bounds that, and not how
// long they run.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	for range attempts {
		var c *Cluster
		c, err = start(ctx, config)
		if err == nil {
			return c, nil
		}
		if config.Listen != nil || !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, err
}

func (c Config) withDefaults() (Config, error) {
	if c.Binary == "" || c.Dir == "" {
		return c, errors.New("cluster: Config needs Binary and Dir")
	}
	if c.Routed && !c.Proxied {
		return c, errors.New("cluster: Config has Routed, and no Proxied: there is nowhere to go by")
	}
	if c.N == 0 {
		c.N = 3
	}
	if c.Election == 0 {
		c.Election = 300 * time.Millisecond
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = 50 * time.Millisecond
	}
	none := func(raft.ServerID) []string { return nil }
	if c.Args == nil {
		c.Args = none
	}
	if c.Wrap == nil {
		c.Wrap = none
	}
	return c, nil
}

func start(ctx context.Context, config Config) (*Cluster, error) {
	c := &Cluster{
		config: config, addrs: maps.Clone(config.Listen), joined: map[raft.ServerID]bool{},
		processes: map[raft.ServerID]*process{},
	}
	for i := range config.N {
		c.ids = append(c.ids, raft.ServerID(i+1))
	}
	var err error
	if c.addrs == nil {
		if c.addrs, err = freeAddrs(config.N + config.Later); err != nil {
			return nil, err
		}
	}
	if config.Proxied {
		if c.links, err = newLinks(c.addrs); err != nil {
			return nil, err
		}
	}
	for _, id := range c.IDs() {
		if err := c.launch(id); err != nil {
			return nil, errors.Join(err, c.abandon())
		}
	}
	for _, id := range c.IDs() {
		if err := c.ready(ctx, id); err != nil {
			return nil, errors.Join(err, c.abandon())
		}
	}
	return c, nil
}

// freeAddrs finds free ports on loopback. They are below those that systems give to outgoing
// connections, or one of those might sit on a server's port while the server is down.
func freeAddrs(n int) (map[raft.ServerID]string, error) {
	addrs := map[raft.ServerID]string{}
	var held []io.Closer // all at once, so that no port is found twice
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for tries := 0; len(addrs) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000)))
		if err == nil {
			held = append(held, l)
			addrs[raft.ServerID(len(held))] = l.Addr().String()
		} else if tries > 100 {
			return nil, fmt.Errorf("looking for a free port on loopback: %w", err)
		}
	}
	return addrs, nil
}

// IDs returns the servers' numbers, from 1 up: those with which the cluster began, and have not left,
// and those that have joined.
func (c *Cluster) IDs() []raft.ServerID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ids)
}

// Addrs returns where the servers listen, in the order of their numbers. Clients go there, past
// the proxies.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, id := range c.IDs() {
		addrs = append(addrs, c.Addr(id))
	}
	return addrs
}

// Addr returns where a server listens.
func (c *Cluster) Addr(id raft.ServerID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addrs[id]
}

// Links returns the links between the servers. Only a proxied cluster has them.
func (c *Cluster) Links() *Links { return c.links }

// Dial is for the clients' Options: it connects past the proxies, whose addresses the servers name
// when they are asked who leads.
func (c *Cluster) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return c.DialAs("")(ctx, addr)
}

// DialAs is Dial for a client that may have joined the Links: then it goes through its own.
func (c *Cluster) DialAs(client string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		if c.links != nil {
			addr = c.links.route(client, addr)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
}

// Dir returns where a server stores what it must not forget.
func (c *Cluster) Dir(id raft.ServerID) string {
	return filepath.Join(c.config.Dir, fmt.Sprint(id))
}

func (c *Cluster) logFile(id raft.ServerID) string { return c.Dir(id) + ".log" }

// Log returns all that a server has written to its standard output and error, in all its lives.
func (c *Cluster) Log(id raft.ServerID) string {
	text, err := os.ReadFile(c.logFile(id))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (c *Cluster) process(id raft.ServerID) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes[id]
}

// failure says what a server has to say about its end.
func (c *Cluster) failure(id raft.ServerID, err error) error {
	lines := strings.Split(strings.TrimSpace(c.Log(id)), "\n")
	last := lines[max(0, len(lines)-5):]
	return fmt.Errorf("server %d: %w; its log ends:\n%s", id, err, strings.Join(last, "\n"))
}

// launch starts a server's process.
func (c *Cluster) launch(id raft.ServerID) error {
	if err := os.MkdirAll(c.config.Dir, 0o700); err != nil {
		return err
	}
	c.mu.Lock()
	binary := c.config.Binary
	c.mu.Unlock()
	words := slices.Concat(c.config.Wrap(id), []string{binary}, c.config.Lead, c.others(id), []string{
		"-id", fmt.Sprint(id), "-dir", c.Dir(id), "-listen", c.Addr(id), "-cluster", "harness",
		"-election", c.config.Election.String(), "-heartbeat", c.config.Heartbeat.String(),
	}, c.config.Args(id))
	p, err := startProcess(words, c.logFile(id))
	if err != nil {
		return fmt.Errorf("starting server %d: %w", id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes[id] = p
	return nil
}

// others are the arguments that tell a server of the others: all with which the cluster began, or,
// for one that joins, whom to ask.
func (c *Cluster) others(id raft.ServerID) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	if c.joined[id] {
		for _, other := range c.ids {
			if other != id {
				list = append(list, c.addrs[other])
			}
		}
		return append([]string{"-join", strings.Join(list, ",")}, c.routes(id)...)
	}
	for i := range c.config.N {
		other := raft.ServerID(i + 1)
		addr := c.addrs[other]
		if c.links != nil && other != id && !c.config.Routed {
			addr = c.links.proxy(Name(id), Name(other))
		}
		list = append(list, fmt.Sprintf("%d=%s", other, addr))
	}
	return append([]string{"-peers", strings.Join(list, ",")}, c.routes(id)...)
}

// routes are the arguments that tell a server whom to call instead of others.
func (c *Cluster) routes(id raft.ServerID) []string {
	if !c.config.Routed {
		return nil
	}
	var list []string
	for other := range raft.ServerID(len(c.addrs)) {
		if other++; other != id {
			list = append(list, c.addrs[other]+"="+c.links.proxy(Name(id), Name(other)))
		}
	}
	return []string{"-routes", strings.Join(list, ",")}
}

// ready waits until a server listens.
func (c *Cluster) ready(ctx context.Context, id raft.ServerID) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p := c.process(id)
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		log := c.Log(id)
		log = log[min(p.from, len(log)):]
		if strings.Contains(log, "msg=listening") {
			return nil
		}
		select {
		case <-look.C:
		case <-p.done:
			if log = c.Log(id)[p.from:]; strings.Contains(log, "address already in use") {
				return fmt.Errorf("server %d at %s: %w", id, c.Addr(id), errPortTaken)
			}
			return c.failure(id, ErrUnexpectedEnd)
		case <-ctx.Done():
			return c.failure(id, fmt.Errorf("it does not listen: %w", ctx.Err()))
		}
	}
}
