package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"ticketing/fsm/trace"
	"ticketing/rpc"
)

const help = `lockd is a server of the lock service.

  lockd -dev                                  three servers here, to try it out
  lockd -id N -peers LIST -dir DIR [flags]    one server of a new cluster
  lockd -id N -join LIST -dir DIR [flags]     one more server of one that runs
  lockd init -dir DIR -token-floor N          tokens begin higher; see init -h
  lockd certs -dir DIR [flags]                make certificates; see certs -h
  lockd wal dump DIR                          print a server's log

  -id N            the number of this server, one of those in -peers
  -peers LIST      all servers, as ID=HOST:PORT,ID=HOST:PORT,…: the same on each
  -join LIST       HOST:PORT,… of servers that run; once, to join them
  -advertise ADDR  with -join: where others reach this server (that of -listen)
  -dir DIR         the directory of this server's log, made if it is not there
  -listen ADDR     where to listen, if not at the own address in -peers
  -cluster NAME    keeps clusters apart: the same on all its servers (ticketing)
  -election TIME   the least wait for a leader before an election (1s)
  -heartbeat TIME  the time between a leader's heartbeats (100ms)
  -tls-cert FILE   with -tls-key FILE and -tls-ca FILE: speak TLS; this server's
                   certificate, its private key, and the CA that signed them all
  -insecure        without TLS let whoever can connect take and release locks
  -http ADDR       serve /metrics and /healthz; on loopback /debug/pprof as well
  -snapshot-every N  shorten the log after so many entries, 0: never (100000)
  -trace FILE      write down all that happens, for raftsim trace; made anew
`

// snapshotEvery bounds what a start has to carry out, some tenths of a second's work, and the log, to some
// 13 MB from one snapshot to the next. A snapshot of the largest table, a million locks, has 46 MB.
const snapshotEvery = 100_000

// options is the command line.
type options struct {
	id                     uint64
	peers, dir, listen     string
	join, advertise        string
	member                 *membership // nil for one that has not joined a cluster
	cluster                string
	named                  bool // the command line says which
	election, heartbeat    time.Duration
	tlsCert, tlsKey, tlsCA string
	http                   string
	dev, insecure          bool
	every                  uint64 // entries from one snapshot to the next
	trace                  string
	recorder               *trace.Recorder // that writes there; nil if nothing does
}

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("lockd", flag.ContinueOnError)
	f.Uint64Var(&o.id, "id", 0, "")
	f.StringVar(&o.peers, "peers", "", "")
	f.StringVar(&o.join, "join", "", "")
	f.StringVar(&o.advertise, "advertise", "", "")
	f.StringVar(&o.dir, "dir", "", "")
	f.StringVar(&o.listen, "listen", "", "")
	f.StringVar(&o.cluster, "cluster", defaultCluster, "")
	f.DurationVar(&o.election, "election", time.Second, "")
	f.DurationVar(&o.heartbeat, "heartbeat", 100*time.Millisecond, "")
	f.StringVar(&o.tlsCert, "tls-cert", "", "")
	f.StringVar(&o.tlsKey, "tls-key", "", "")
	f.StringVar(&o.tlsCA, "tls-ca", "", "")
	f.StringVar(&o.http, "http", "", "")
	f.Uint64Var(&o.every, "snapshot-every", snapshotEvery, "")
	f.StringVar(&o.trace, "trace", "", "")
	f.BoolVar(&o.insecure, "insecure", false, "")
	f.BoolVar(&o.dev, "dev", false, "")
	if err := parseFlags(f, args, help, stdout); err != nil {
		return o, err
	}
	f.Visit(func(f *flag.Flag) { o.named = o.named || f.Name == "cluster" })
	if err := o.check(); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	return o, nil
}

func (o options) check() error {
	chosen := o.id != 0 || o.peers != "" || o.dir != "" || o.listen != "" || o.join != "" ||
		o.advertise != ""
	switch {
	case o.dev && chosen:
		return errors.New("-dev chooses -id, -peers, -dir, -listen and all of that by itself; leave them out")
	case o.dev && (o.http != "" || o.hasTLS() || o.insecure):
		return errors.New("-dev is for this machine alone, and has no -http, -tls-… and -insecure")
	case !o.dev && (o.id == 0 || o.dir == ""):
		return errors.New("-id, -dir and -peers or -join are needed, or -dev alone; see lockd -h")
	case o.peers != "" && (o.join != "" || o.advertise != ""):
		return errors.New("-peers is for servers that begin a cluster together, -join and -advertise " +
			"for one that comes later")
	case o.cluster == "":
		return errors.New("-cluster needs a name, the same on all servers of the cluster")
	}
	for addr := range strings.SplitSeq(o.join, ",") {
		if err := rpc.CheckAddr(addr); err != nil && o.join != "" {
			return fmt.Errorf("-join %s: %w; it takes HOST:PORT,… of servers that run", o.join, err)
		}
	}
	return o.checkTimes()
}

// checkTimes refuses times with which a cluster has no leader for long. Between two elections a
// leader must have its say several times, or one late packet is taken for its death.
func (o options) checkTimes() error {
	const least, most = 10 * time.Millisecond, time.Minute
	switch {
	case o.election < least || o.election > most:
		return fmt.Errorf("-election %v is not between %v and %v", o.election, least, most)
	case o.heartbeat < time.Millisecond:
		return fmt.Errorf("-heartbeat %v is less than 1ms", o.heartbeat)
	case o.heartbeat > o.election/3:
		return fmt.Errorf("-heartbeat %v is more than a third of -election %v: followers would "+
			"campaign against a leader that lives; a tenth is usual", o.heartbeat, o.election)
	}
	return nil
}

func (o options) hasTLS() bool { return o.tlsCert != "" || o.tlsKey != "" || o.tlsCA != "" }

// loadTLS reads the certificates; nil stands for no TLS.
func (o options) loadTLS() (*tls.Config, error) {
	if !o.hasTLS() {
		return nil, nil
	}
	for _, f := range []struct{ name, file string }{
		{"-tls-cert", o.tlsCert}, {"-tls-key", o.tlsKey}, {"-tls-ca", o.tlsCA},
	} {
		if f.file == "" {
			return nil, fmt.Errorf("%w: %s is missing: TLS needs -tls-cert, -tls-key and -tls-ca",
				errUsage, f.name)
		}
	}
	config, err := rpc.LoadTLS(o.tlsCert, o.tlsKey, o.tlsCA)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return config, o.checkOwnName(config)
}

// checkOwnName refuses another server's certificate, or a client's: the peers would hang up on it,
// and only their logs would say why.
func (o options) checkOwnName(config *tls.Config) error {
	leaf := config.Certificates[0].Leaf
	for _, name := range []string{rpc.ServerName, rpc.PeerName(o.serverID())} {
		if err := leaf.VerifyHostname(name); err != nil {
			return fmt.Errorf("%w: the certificate in %s is not that of server %d, it does not "+
				"have the DNS name %s: %w", errUsage, o.tlsCert, o.id, name, err)
		}
	}
	return nil
}
