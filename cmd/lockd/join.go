package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ticketing/raft"
	"ticketing/rpc"
)

// joinPatience is how long a server looks for the cluster that it is to join.
const joinPatience = 30 * time.Second

// membership is a server's that has joined a cluster. It stands in the server's directory, and is
// there before the cluster hears of the server: if a member has none, then its directory was lost,
// and with it its votes. Who the members are says the log.
type membership struct {
	id      raft.ServerID
	address string // where others reach it
}

func memberFile(dir string) string { return filepath.Join(dir, "member") }

func (m membership) text() []byte {
	return sealed(fmt.Appendf(nil, "ticketing member 1\nid %d\naddress %q\n", m.id, m.address))
}

// readMembership reads what a join has written; nil if there was none.
func readMembership(dir string) (*membership, error) {
	text, err := os.ReadFile(memberFile(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // that one the log explains
		return nil, nil
	case err != nil:
		return nil, err
	}
	var m membership
	var sum string
	_, err = fmt.Sscanf(string(text), "ticketing member 1\nid %d\naddress %q\nsum %s\n",
		&m.id, &m.address, &sum)
	if err != nil || !bytes.Equal(m.text(), text) {
		return nil, fmt.Errorf("%s is damaged: remove it and start this server with -peers, all "+
			"members and where they listen; lockctl member list tells", memberFile(dir))
	}
	return &m, nil
}

// hasRun reports whether a directory has a log.
func hasRun(dir string) (bool, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	return len(logs) > 0, err
}

// joined fills in what is known of a server that has joined before, or is to join now.
func (o *options) joined(ran bool) error {
	m, err := readMembership(o.dir)
	switch {
	case err != nil:
		return err
	case m == nil && ran && o.join != "":
		return fmt.Errorf("%w: a server has run in %s, and has not joined a cluster from there; start "+
			"it with -peers as before, or use a new -dir", errUsage, o.dir)
	case m != nil && m.id != o.serverID():
		return fmt.Errorf("%w: -id %d, but %s is the directory of server %d", errUsage, o.id, o.dir, m.id)
	case m != nil:
		o.member = m
		if o.advertise == "" {
			o.advertise = m.address
		}
	case o.join == "" && m == nil:
		return fmt.Errorf("%w: no server has joined a cluster from %s: use -join with servers of the "+
			"cluster, or -peers with all of them if it is to be a new one", errUsage, o.dir)
	}
	if !ran && o.join == "" {
		return fmt.Errorf("%w: server %d was about to join a cluster when it was stopped; start it "+
			"with -join", errUsage, o.id)
	}
	if o.advertise == "" {
		o.advertise = o.listen
	}
	if err := rpc.CheckAddr(o.advertise); err != nil {
		return fmt.Errorf("%w: -advertise, or -listen without it, is where others reach this server: "+
			"%w", errUsage, err)
	}
	if m != nil && o.advertise != m.address {
		return fmt.Errorf("%w: -advertise %s, but the cluster knows server %d at %s; another address "+
			"is another server: remove this one, and join under a new -id with a new -dir",
			errUsage, o.advertise, o.id, m.address)
	}
	if o.listen == "" {
		o.listen = o.advertise
	}
	return nil
}

// enter asks the cluster in.
func (o *options) enter(ctx context.Context, security *tls.Config, log *slog.Logger) error {
	ctx, stop := context.WithTimeout(ctx, joinPatience)
	defer stop()
	client, err := rpc.Dial(ctx, strings.Split(o.join, ","), rpc.Options{TLS: security})
	if err != nil {
		return fmt.Errorf("joining by way of %s: %w; -join names servers of the cluster that run",
			o.join, err)
	}
	defer client.Close()
	y, err := client.Members(ctx)
	if err != nil {
		return fmt.Errorf("joining by way of %s: asking who the members are: %w", o.join, err)
	}
	own := identity{cluster: o.cluster, floor: y.Floor}
	if own.number() != y.Cluster {
		return fmt.Errorf("%w: at %s there is a cluster, but it is not -cluster %s", errUsage, o.join,
			o.cluster)
	}
	isMember, err := o.mayEnter(y.Members)
	if err != nil {
		return err
	}
	if o.member == nil {
		if err := o.settle(own); err != nil {
			return err
		}
	}
	if isMember {
		log.Info("is a member already")
		return nil
	}
	if err := client.Add(ctx, o.serverID(), o.advertise); err != nil {
		return fmt.Errorf("joining by way of %s: %w; to start it again with -join does no harm",
			o.join, err)
	}
	log.Info("joined as a learner; lockctl member promote lets it vote when it has caught up",
		"addr", o.advertise)
	return nil
}

// mayEnter refuses a server that has forgotten what it was: it has no log. Where a join was cut
// short, the directory has the member's file already, and that it is a member is no news. But one
// that votes, or has acknowledged entries, has had a log.
func (o *options) mayEnter(members []rpc.MemberInfo) (isMember bool, err error) {
	i := slices.IndexFunc(members, func(m rpc.MemberInfo) bool { return m.ID == o.serverID() })
	switch {
	case i < 0:
		return false, nil
	case o.member == nil:
		return false, fmt.Errorf("server %d is a member, and %s has nothing of it: a server that has "+
			"lost its directory has forgotten its votes; lockctl member remove %d, and join under an "+
			"-id that no server has had", o.id, o.dir, o.id)
	case members[i].Voter || members[i].Match > 0:
		return false, fmt.Errorf("server %d is a member that has run, and its log is gone from %s: it "+
			"has forgotten its votes; lockctl member remove %d, and join under an -id that no server "+
			"has had, with a new -dir", o.id, o.dir, o.id)
	case members[i].Address != o.advertise:
		return false, fmt.Errorf("the cluster knows server %d at %s, and not at %s; join under an -id "+
			"that no server has had", o.id, members[i].Address, o.advertise)
	}
	return true, nil
}

// settle writes down, durably, which cluster this server is of, and that it is one of its own id.
func (o *options) settle(own identity) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	was, err := readIdentity(o.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = own.write(o.dir)
	case err == nil && was != own:
		err = fmt.Errorf("lockd init has made %s for a server of %v, and the cluster is %v; use a "+
			"new -dir", o.dir, was, own)
	}
	if err != nil {
		return err
	}
	o.member = &membership{o.serverID(), o.advertise}
	return writeDurably(memberFile(o.dir), o.member.text())
}

// runMember runs a server that has joined a cluster, or joins it now. Others are told where it
// listens by the log.
func runMember(ctx context.Context, o options, logger *slog.Logger) error {
	log := logger.With("node", o.id)
	ran, err := hasRun(o.dir)
	if err != nil {
		return err
	}
	if err := o.joined(ran); err != nil {
		return err
	}
	security, err := o.loadTLS()
	if err != nil {
		return err
	}
	if err := o.checkReach(security); err != nil {
		return err
	}
	if o.listen != o.advertise {
		if err := checkTwin(ctx, o.serverID(), o.advertise, security); err != nil {
			return err
		}
	}
	// One that has a log has been let in. It must not need the others to start again: they may need it.
	if !ran {
		if err := o.enter(ctx, security, log); err != nil {
			return err
		}
	}
	return o.serve(ctx, nil, security, logger)
}
