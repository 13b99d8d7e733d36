package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"golang.org/x/sync/errgroup"

	"ticketing/rpc"
)

// snapshotted is what a server came to that was to take a snapshot, as JSON.
type snapshotted struct {
	Addr  string `json:"addr"`
	Error string `json:"error,omitempty"`
	taken
}

// snapshot asks all servers at the same time. It fails if one of them does.
func (c *command) snapshot(ctx context.Context, k *rpc.Client) (int, error) {
	addrs := strings.Split(c.servers(), ",")
	all := make([]snapshotted, len(addrs))
	var asking errgroup.Group
	for i, addr := range addrs {
		asking.Go(func() error {
			s, err := k.Snapshot(ctx, addr)
			all[i] = snapshotted{Addr: addr, taken: taken{s.Index, s.Bytes, s.AgeMS}}
			if err != nil {
				all[i].Error = err.Error()
				return errors.New("not all servers have taken one")
			}
			return nil
		})
	}
	failed := asking.Wait()
	value := struct {
		Snapshots []snapshotted `json:"snapshots"`
	}{all}
	return 0, cmp.Or(c.print(value, func(w io.Writer) error { return writeSnapshots(w, all) }), failed)
}

func writeSnapshots(w io.Writer, all []snapshotted) error {
	t := newTable(w)
	t.row("SERVER", "UP TO", "BYTES")
	for _, s := range all {
		if s.Error != "" {
			t.row(s.Addr, "-", s.Error)
			continue
		}
		t.row(s.Addr, s.Index, s.Bytes)
	}
	return t.Flush()
}
