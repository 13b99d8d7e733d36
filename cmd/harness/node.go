package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/raft/wal"
	"ticketing/rpc"
)

// This file is what the harness does when it runs itself as a server: what lockd does, with a
// trace, with rules that can be taken away, and with somebody on its standard input who moves its
// timers.

const clusterNumber = 1 // there is one cluster in a run

// nodeOptions are the server's command line, which the harness alone writes.
type nodeOptions struct {
	id                  uint64
	peers, dir, listen  string
	join, routes        string
	learners            int // how many of the last peers are
	every, keep         uint64
	election, heartbeat time.Duration
	without, trace      string
	onApplied           bool
	noPreVote           bool
	noCheckQuorum       bool
}

func parseNode(args []string) (o nodeOptions, err error) {
	f := flag.NewFlagSet("harness node", flag.ContinueOnError)
	f.Uint64Var(&o.id, "id", 0, "")
	f.StringVar(&o.peers, "peers", "", "")
	f.StringVar(&o.dir, "dir", "", "")
	f.StringVar(&o.listen, "listen", "", "")
	f.StringVar(&o.join, "join", "", "")
	f.StringVar(&o.routes, "routes", "", "")
	f.IntVar(&o.learners, "learners", 0, "")
	f.Uint64Var(&o.every, "snapshot-every", 0, "")
	f.Uint64Var(&o.keep, "keep", 0, "")
	f.String("cluster", "", "")
	f.DurationVar(&o.election, "election", 0, "")
	f.DurationVar(&o.heartbeat, "heartbeat", 0, "")
	f.StringVar(&o.without, "without", "", "")
	f.StringVar(&o.trace, "trace", "", "")
	f.BoolVar(&o.onApplied, "on-applied", false, "")
	f.BoolVar(&o.noPreVote, "no-prevote", false, "")
	f.BoolVar(&o.noCheckQuorum, "no-checkquorum", false, "")
	return o, f.Parse(args)
}

// runNode runs one server until it is told to stop or whoever has started it is gone.
func runNode(args []string, stdin io.Reader, stderr io.Writer) error {
	o, err := parseNode(args)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	file, err := os.OpenFile(o.trace, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("the server's trace: %w", err)
	}
	recorder := trace.NewRecorder(file, func(err error) { log.Error("no trace", "err", err) })
	err = serve(o, recorder, stdin, log)
	return errors.Join(err, recorder.Close(), file.Close())
}

func serve(o nodeOptions, recorder *trace.Recorder, stdin io.Reader, log *slog.Logger) error {
	// Before it is known to listen: from then on a signal must find it ready.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	n, err := o.start(recorder, log)
	if err != nil {
		return err
	}
	log.Info("listening", "node", o.id)
	gone := make(chan error, 1)
	go func() { gone <- obey(n, stdin) }()
	select {
	case <-ctx.Done():
		return n.Stop()
	case err := <-gone:
		return errors.Join(err, n.Stop())
	case <-n.Done():
		return n.Err()
	}
}

// start opens the server's log and starts the server.
func (o nodeOptions) start(recorder *trace.Recorder, log *slog.Logger) (*rpc.Node, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	config.Trace, config.Log = recorder, log
	store, durable, err := o.open()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	n, err := rpc.Start(config, store, durable, listener)
	if err != nil {
		return nil, errors.Join(err, store.Close(), listener.Close())
	}
	return n, nil
}

// config is what the server is told once. One that joins is told of nobody: the log will say who
// the servers are.
func (o nodeOptions) config() (rpc.Config, error) {
	config := rpc.Config{
		ID: raft.ServerID(o.id), Cluster: clusterNumber,
		ElectionTimeout: o.election, HeartbeatTimeout: o.heartbeat,
		LeastLease: time.Millisecond, // a scenario's leases are as short as its story wants them
		NoPreVote:  o.noPreVote, NoCheckQuorum: o.noCheckQuorum, GrantOnApplied: o.onApplied,
		SnapshotEvery: raft.Index(o.every), Keep: raft.Index(o.keep), KeepNone: o.keep == 0,
		Dial: o.dial(),
	}
	var err error
	comma := func(r rune) bool { return r == ',' }
	config.Rules, err = parseRules(strings.FieldsFunc(o.without, comma))
	if err != nil || o.join != "" {
		return config, err
	}
	members, err := o.members()
	config.Addrs = map[raft.ServerID]string{}
	for _, m := range members {
		config.Addrs[m.ID] = m.Address
	}
	return config, err
}

// members are the servers with which the cluster begins.
func (o nodeOptions) members() (members raft.Configuration, err error) {
	for peer := range strings.SplitSeq(o.peers, ",") {
		number, addr, _ := strings.Cut(peer, "=")
		id, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("-peers: %w", err)
		}
		members = append(members, raft.Member{ID: raft.ServerID(id), Voter: true, Address: addr})
	}
	for i := range o.learners {
		members[len(members)-1-i].Voter = false
	}
	return members, nil
}

// dial connects to the proxy that stands before a server. The log has one address of each server,
// and the way there is another one for each of the others.
func (o nodeOptions) dial() func(context.Context, string) (net.Conn, error) {
	routes := map[string]string{}
	for route := range strings.SplitSeq(o.routes, ",") {
		addr, proxy, _ := strings.Cut(route, "=")
		routes[addr] = proxy
	}
	return func(ctx context.Context, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", cmp.Or(routes[addr], addr))
	}
}

// open opens the server's log. A cluster that begins with learners has an entry that says so, the
// first of all: nothing else could.
func (o nodeOptions) open() (*wal.Log, raft.Durable, error) {
	options := wal.Options{Cluster: clusterNumber, Server: raft.ServerID(o.id)}
	store, durable, err := wal.Open(o.dir, options)
	if err != nil || o.learners == 0 || o.join != "" || durable.Term > 0 {
		return store, durable, err
	}
	members, err := o.members()
	if err == nil {
		err = store.Save(raft.Write{
			Seq: 1, HardState: raft.HardState{Term: 1},
			Entries: []raft.Entry{{Index: 1, Term: 1, Members: members}},
		})
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return nil, raft.Durable{}, err
	}
	return wal.Open(o.dir, options)
}

// obey carries out what is said on the standard input, until its end: then the harness is gone.
func obey(n *rpc.Node, stdin io.Reader) error {
	lines := bufio.NewScanner(stdin)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "timeout":
			n.ElectionTimeout()
		case "beat":
			n.HeartbeatTimeout()
		case "propose":
			n.Propose(rest)
		default:
			return fmt.Errorf("the harness says %q, which a server does not know", word)
		}
	}
	return lines.Err()
}

// parseRules makes the rules that the names take away.
func parseRules(names []string) (fsm.Rules, error) {
	var rules fsm.Rules
	for _, name := range names {
		switch name {
		case "expire-token":
			rules.NoExpireToken = true
		case "release-token":
			rules.NoReleaseToken = true
		case "gate":
			rules.NoGate = true
		case "noop-wait":
			rules.NoNoopWait = true
		case "request-ids":
			rules.NoRequestIDs = true
		default:
			return rules, fmt.Errorf("a server cannot do without %q", name)
		}
	}
	return rules, nil
}
