package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"ticketing/raft"
	"ticketing/rpc"
)

// runDev runs three servers until the context ends, or one of them does.
func runDev(
	ctx context.Context, o options, log *slog.Logger, level *slog.LevelVar, stdout io.Writer,
) (err error) {
	dir, err := os.MkdirTemp("", "lockd-dev-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	addrs, listeners, err := devListeners()
	if err != nil {
		return err
	}
	nodes, err := o.startDev(dir, addrs, listeners, log)
	defer func() { err = errors.Join(err, stopDev(nodes, level)) }()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for _, n := range nodes {
		go func() {
			<-n.Done() // by itself, or stopped above, at the latest
			stop()
		}()
	}
	fmt.Fprintf(stdout, "Three servers run in this process.\nWhat they store is in %s, until they "+
		"stop.\n\n", dir)
	for i, n := range nodes {
		fmt.Fprintf(stdout, "  server %d  %s\n", i+1, n.Addr())
	}
	if err := greet(ctx, nodes, stdout); err != nil {
		return err
	}
	<-ctx.Done()
	fmt.Fprintln(stdout, "\nStopping. A second signal ends it at once.")
	return nil
}

// greet waits until there is a leader, and says who it is and what to do now. It says nothing if
// the context ends first.
func greet(ctx context.Context, nodes []*rpc.Node, stdout io.Writer) error {
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr())
	}
	client, err := rpc.Dial(ctx, addrs, rpc.Options{})
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer client.Close()
	if _, _, err := client.Get(ctx, "demo"); err != nil { // only a leader answers
		return unlessEnded(ctx, err)
	}
	for _, addr := range addrs {
		s, err := client.Status(ctx, addr)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		if s.Role == raft.Leader.String() {
			fmt.Fprintf(stdout, "\nServer %d leads. In another terminal, paste\n\n", s.ID)
		}
	}
	where := ""
	if !slices.Equal(addrs, devAddrs()) {
		where = " -addrs " + strings.Join(addrs, ",")
	}
	fmt.Fprintf(stdout, "  go run ./cmd/lockctl lock%s demo -- sh -c 'echo $LOCK_TOKEN'\n\n"+
		"Ctrl-C stops all three.\n", where)
	return nil
}

func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// startDev starts all servers. With an error come those that have started.
func (o options) startDev(
	dir string, addrs map[raft.ServerID]string, listeners []net.Listener, log *slog.Logger,
) ([]*rpc.Node, error) {
	var nodes []*rpc.Node
	for i, l := range listeners {
		own := filepath.Join(dir, strconv.Itoa(i+1))
		n, err := o.start(raft.ServerID(i+1), addrs, own, l, nil, log)
		if err != nil {
			for _, later := range listeners[i+1:] {
				err = errors.Join(err, later.Close())
			}
			return nodes, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// stopDev stops all at the same time: nobody should be elected in between. That one sees another go
// first is nothing to warn of.
func stopDev(nodes []*rpc.Node, level *slog.LevelVar) error {
	level.Set(slog.LevelError)
	var group errgroup.Group
	for _, n := range nodes {
		group.Go(n.Stop)
	}
	return group.Wait()
}

// devAddrs is where lockctl looks by itself.
func devAddrs() []string { return []string{"127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003"} }

// devListeners listens at the addresses that lockctl tries by itself, or where there is room.
func devListeners() (map[raft.ServerID]string, []net.Listener, error) {
	addrs := map[raft.ServerID]string{}
	var listeners []net.Listener
	for i, addr := range devAddrs() {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			l, err = net.Listen("tcp", "127.0.0.1:0")
		}
		if err != nil {
			for _, earlier := range listeners {
				err = errors.Join(err, earlier.Close())
			}
			return nil, nil, err
		}
		addrs[raft.ServerID(i+1)], listeners = l.Addr().String(), append(listeners, l)
	}
	return addrs, listeners, nil
}
