package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"ticketing/raft"
	"ticketing/raft/wal"
	"ticketing/rpc"
)

func (o options) serverID() raft.ServerID { return raft.ServerID(o.id) }

// runServer runs one server until the context ends.
func runServer(ctx context.Context, o options, logger *slog.Logger) error {
	addrs, own, err := o.place()
	if err != nil {
		return err
	}
	if m, err := readMembership(o.dir); err != nil || m != nil {
		return cmp.Or(err, fmt.Errorf("%w: the server of %s has joined a cluster, whose log says who "+
			"the members are; leave -peers out", errUsage, o.dir))
	}
	security, err := o.loadTLS()
	if err != nil {
		return err
	}
	if err := o.checkReach(security); err != nil {
		return err
	}
	if o.listen != own {
		if err := checkTwin(ctx, o.serverID(), own, security); err != nil {
			return err
		}
	}
	return o.serve(ctx, addrs, security, logger)
}

// serve listens and runs the server until the context ends or the server does.
func (o options) serve(
	ctx context.Context, addrs map[raft.ServerID]string, security *tls.Config, logger *slog.Logger,
) error {
	log := logger.With("node", o.id)
	web, err := listenWeb(o.http, log)
	if err != nil {
		return err
	}
	defer web.close()
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("server %d cannot listen at %s, its address in -peers, -advertise or -listen: %w; "+
			"stop what is there, or choose another address", o.id, o.listen, err)
	}
	n, err := o.start(o.serverID(), addrs, o.dir, listener, security, logger)
	if err != nil {
		return err
	}
	log.Info("listening", "addr", listener.Addr().String(), "dir", o.dir, "tls", security != nil)
	if o.member == nil {
		advise(log, len(addrs))
	}
	web.serve(n)
	return o.untilEnd(ctx, n, log)
}

// untilEnd waits until the context ends or the server does.
func (o options) untilEnd(ctx context.Context, n *rpc.Node, log *slog.Logger) error {
	select {
	case <-n.Done():
		return fmt.Errorf("server %d has stopped by itself: %w; it has promised nothing that is "+
			"not in its -dir: mend the cause and start it again", o.id, n.Err())
	case <-ctx.Done():
	}
	log.Info("stopping: a second signal ends it at once")
	switch next, err := n.HandOver(context.Background()); {
	case err != nil: // the others will find out
		log.Warn("leadership was not handed over", "err", err)
	case next != 0:
		log.Info("handed over leadership", "peer", uint64(next))
	}
	if err := n.Stop(); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// place finds this server among the others, and fills in where it listens.
func (o *options) place() (addrs map[raft.ServerID]string, own string, err error) {
	addrs, err = parsePeers(o.peers)
	if err != nil {
		return nil, "", err
	}
	own, ok := addrs[o.serverID()]
	if !ok {
		return nil, "", fmt.Errorf("%w: -id %d is not among -peers %s", errUsage, o.id, o.peers)
	}
	if o.listen == "" {
		o.listen = own
	}
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return nil, "", fmt.Errorf("%w: -listen: %w", errUsage, err)
	}
	return addrs, own, nil
}

// checkReach refuses to let strangers in, unless that is meant.
func (o options) checkReach(security *tls.Config) error {
	if security == nil && !o.insecure && !loopback(o.listen) {
		return fmt.Errorf("%w: %s can be reached from other machines, and whoever does may take "+
			"and release locks; use -tls-cert, -tls-key and -tls-ca (lockd certs makes what they "+
			"need), or say -insecure if that is meant", errUsage, o.listen)
	}
	if security != nil && o.insecure {
		return fmt.Errorf("%w: -insecure is for servers without TLS; leave it out", errUsage)
	}
	return nil
}

// checkTwin asks whether somebody else is this server already. Two with one number, each with a
// memory of its own, would vote twice. It can only find one that can be reached, so it is no
// proof: where this server listens at its own address, the system sees to it.
func checkTwin(ctx context.Context, id raft.ServerID, own string, security *tls.Config) error {
	ctx, stop := context.WithTimeout(ctx, 500*time.Millisecond)
	defer stop()
	client, err := rpc.Dial(ctx, []string{own}, rpc.Options{TLS: security})
	if err != nil {
		return nil // nobody is there, as it should be
	}
	defer client.Close()
	s, err := client.Status(ctx, own)
	switch {
	case err != nil:
		return nil // it is no server of this kind; the peers will not hear from it
	case s.ID != id:
		return fmt.Errorf("at %s, which -peers gives to server %d, server %d answers; "+
			"correct -peers", own, id, s.ID)
	}
	return fmt.Errorf("server %d runs already, at %s; two servers with one number could both "+
		"vote and so elect two leaders; stop that one first, or give this one a number of its own",
		id, own)
}

// start opens a server's log and starts the server. The listener is closed if that fails.
func (o options) start(
	id raft.ServerID, addrs map[raft.ServerID]string, dir string, l net.Listener,
	security *tls.Config, log *slog.Logger,
) (*rpc.Node, error) {
	own, err := o.identify(dir)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	store, durable, err := wal.Open(dir, wal.Options{Cluster: own.number(), Server: id})
	if err != nil {
		err = fmt.Errorf("server %d of %v: %w", id, own, err)
		return nil, errors.Join(err, l.Close())
	}
	if r := store.Recovered(); r.Bytes > 0 {
		log.Warn("dropped the end of a write that a crash has cut", "node", uint64(id),
			"file", r.File, "offset", r.Offset, "bytes", r.Bytes, "reason", r.Reason)
	}
	if own.floor > 0 {
		log.Info("tokens are greater than a floor", "node", uint64(id), "floor", uint64(own.floor))
	}
	if s := durable.Snapshot; s != nil {
		log.Info("starts from a snapshot", "node", uint64(id), "index", uint64(s.LastIncludedIndex),
			"bytes", len(s.Data), "entries", len(durable.Entries))
	}
	if durable.Term == 0 {
		log.Info("the log is empty: only a new server may start so", "node", uint64(id))
	}
	n, err := rpc.Start(rpc.Config{
		ID: id, Addrs: addrs, Cluster: own.number(), TokenFloor: own.floor, TLS: security,
		ElectionTimeout: o.election, HeartbeatTimeout: o.heartbeat, Log: log,
		SnapshotEvery: raft.Index(o.every), Trace: o.recorder,
	}, store, durable, l)
	if err != nil {
		return nil, errors.Join(err, store.Close(), l.Close())
	}
	return n, nil
}
