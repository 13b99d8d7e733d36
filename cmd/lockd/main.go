// Command lockd is a server of the lock service.
//
//	lockd -id 1 -peers 1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003 -dir DIR
//	lockd -dev
//
// The first form runs one server of a cluster, the second three in this process, for trying things
// out. SIGINT and SIGTERM stop it; it then exits with 0. It exits with 1 when a server has stopped
// by itself, and with 2 when it was called wrongly.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ticketing/raft"
	"ticketing/raft/wal"
	"ticketing/rpc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `lockd is a server of the lock service.

  lockd -id N -peers 1=HOST:PORT,2=HOST:PORT,3=HOST:PORT -dir DIR [-listen HOST:PORT]
  lockd -dev

`

// options is the command line.
type options struct {
	id                  uint64
	peers, dir, listen  string
	cluster             string
	election, heartbeat time.Duration
	dev, insecure       bool
}

var errUsage = errors.New("wrong usage")

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("lockd", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprint(stderr, usage); f.PrintDefaults() }
	f.Uint64Var(&o.id, "id", 0, "the `number` of this server, one of those in -peers")
	f.StringVar(&o.peers, "peers", "", "all servers, `ID=HOST:PORT,…`, the same on each")
	f.StringVar(&o.dir, "dir", "", "the `directory` of this server's log, made if it is not there")
	f.StringVar(&o.listen, "listen", "", "the `address` to listen at, if not that in -peers")
	f.StringVar(&o.cluster, "cluster", "ticketing", "a `name` that keeps clusters apart")
	f.DurationVar(&o.election, "election", time.Second, "the least `time` before an election")
	f.DurationVar(&o.heartbeat, "heartbeat", 100*time.Millisecond, "the `time` between heartbeats")
	f.BoolVar(&o.insecure, "insecure", false, "listen beyond loopback, without authentication")
	f.BoolVar(&o.dev, "dev", false, "run three servers here, in a temporary directory")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%w: unexpected argument %q; see lockd -h", errUsage, f.Arg(0))
	}
	if o.dev && (o.id != 0 || o.peers != "" || o.dir != "" || o.listen != "") {
		return o, fmt.Errorf("%w: -dev chooses id, peers, directory and address", errUsage)
	}
	if !o.dev && (o.id == 0 || o.peers == "" || o.dir == "") {
		return o, fmt.Errorf("%w: -id, -peers and -dir are needed, or -dev; see lockd -h", errUsage)
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if err == nil && o.dev {
		err = runDev(ctx, o, log, stdout)
	} else if err == nil {
		err = runOne(ctx, o, log)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "lockd:", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

// runOne runs one server until the context ends.
func runOne(ctx context.Context, o options, log *slog.Logger) error {
	addrs, err := parsePeers(o.peers)
	if err != nil {
		return err
	}
	own, ok := addrs[raft.ServerID(o.id)]
	if !ok {
		return fmt.Errorf("%w: -id %d is not among -peers %s", errUsage, o.id, o.peers)
	}
	if o.listen == "" {
		o.listen = own
	}
	if !o.insecure && !loopback(o.listen) {
		return fmt.Errorf("%w: %s can be reached from other machines, and whoever does may take "+
			"and release locks; say -insecure if that is meant", errUsage, o.listen)
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	n, err := o.start(raft.ServerID(o.id), addrs, o.dir, listener, log)
	if err != nil {
		return err
	}
	log.Info("listening", "node", o.id, "addr", listener.Addr().String(), "dir", o.dir)
	select {
	case <-ctx.Done():
		log.Info("stopping", "node", o.id)
		return n.Stop()
	case <-n.Done():
		return n.Err()
	}
}

// start opens a server's log and starts the server. The listener is closed if that fails.
func (o options) start(
	id raft.ServerID, addrs map[raft.ServerID]string, dir string, l net.Listener, log *slog.Logger,
) (*rpc.Node, error) {
	name := fnv.New64a()
	name.Write([]byte(o.cluster)) // it never fails
	cluster := name.Sum64() | 1   // never 0
	store, durable, err := wal.Open(dir, wal.Options{Cluster: cluster, Server: id})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if r := store.Recovered(); r.Bytes > 0 {
		log.Warn("dropped the end of a write that a crash has cut", "node", uint64(id),
			"file", r.File, "offset", r.Offset, "bytes", r.Bytes, "reason", r.Reason)
	}
	n, err := rpc.Start(rpc.Config{
		ID: id, Addrs: addrs, Cluster: cluster,
		ElectionTimeout: o.election, HeartbeatTimeout: o.heartbeat, Log: log,
	}, store, durable, l)
	if err != nil {
		return nil, errors.Join(err, store.Close(), l.Close())
	}
	return n, nil
}

// parsePeers reads 1=host:port,2=host:port.
func parsePeers(s string) (map[raft.ServerID]string, error) {
	addrs := map[raft.ServerID]string{}
	for part := range strings.SplitSeq(s, ",") {
		number, addr, _ := strings.Cut(strings.TrimSpace(part), "=")
		id, err := strconv.ParseUint(number, 10, 64)
		if err != nil || id == 0 {
			return nil, fmt.Errorf("%w: -peers: %q is not ID=HOST:PORT with an ID from 1",
				errUsage, part)
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, fmt.Errorf("%w: -peers: %q: %w", errUsage, part, err)
		}
		if addrs[raft.ServerID(id)] != "" {
			return nil, fmt.Errorf("%w: -peers names server %d twice", errUsage, id)
		}
		addrs[raft.ServerID(id)] = addr
	}
	return addrs, nil
}

// loopback reports whether an address can be reached from this machine alone.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// runDev runs three servers until the context ends.
func runDev(ctx context.Context, o options, log *slog.Logger, stdout io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "lockd-dev-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	addrs, listeners, err := devListeners()
	if err != nil {
		return err
	}
	var nodes []*rpc.Node
	defer func() {
		for _, n := range nodes {
			err = errors.Join(err, n.Stop())
		}
	}()
	var all []string
	for i, l := range listeners {
		id := raft.ServerID(i + 1)
		n, err := o.start(id, addrs, filepath.Join(dir, strconv.Itoa(i+1)), l, log)
		if err != nil {
			for _, later := range listeners[i+1:] {
				err = errors.Join(err, later.Close())
			}
			return err
		}
		nodes, all = append(nodes, n), append(all, addrs[id])
	}
	fmt.Fprintf(stdout, "Three servers listen at %s.\nWhat they store is in %s until they stop.\n\n"+
		"  go run ./cmd/lockctl lock -addrs %s demo -- sh -c 'echo $LOCK_TOKEN'\n\n",
		strings.Join(all, " "), dir, strings.Join(all, ","))
	select {
	case <-ctx.Done():
	case <-nodes[0].Done(): // by itself: Stop, above, says why
	case <-nodes[1].Done():
	case <-nodes[2].Done():
	}
	return nil
}

// devListeners listens at the addresses that lockctl tries by itself, or where there is room.
func devListeners() (map[raft.ServerID]string, []net.Listener, error) {
	addrs := map[raft.ServerID]string{}
	var listeners []net.Listener
	for id := raft.ServerID(1); id <= 3; id++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 7000+id))
		if err != nil {
			l, err = net.Listen("tcp", "127.0.0.1:0")
		}
		if err != nil {
			for _, earlier := range listeners {
				err = errors.Join(err, earlier.Close())
			}
			return nil, nil, err
		}
		addrs[id], listeners = l.Addr().String(), append(listeners, l)
	}
	return addrs, listeners, nil
}
