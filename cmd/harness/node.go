package main

import (
	"bufio"
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
	config := rpc.Config{
		ID: raft.ServerID(o.id), Addrs: map[raft.ServerID]string{}, Cluster: clusterNumber,
		ElectionTimeout: o.election, HeartbeatTimeout: o.heartbeat,
		LeastLease: time.Millisecond, // a scenario's leases are as short as its story wants them
		NoPreVote:  o.noPreVote, NoCheckQuorum: o.noCheckQuorum,
		GrantOnApplied: o.onApplied, Trace: recorder, Log: log,
	}
	for peer := range strings.SplitSeq(o.peers, ",") {
		number, addr, _ := strings.Cut(peer, "=")
		id, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("-peers: %w", err)
		}
		config.Addrs[raft.ServerID(id)] = addr
	}
	var err error
	config.Rules, err = parseRules(strings.FieldsFunc(o.without, func(r rune) bool { return r == ',' }))
	if err != nil {
		return nil, err
	}
	store, durable, err := wal.Open(o.dir, wal.Options{Cluster: clusterNumber, Server: config.ID})
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
