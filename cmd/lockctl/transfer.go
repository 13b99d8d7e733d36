package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ticketing/raft"
	"ticketing/rpc"
)

// transfer lets another server lead.
func (c *command) transfer(ctx context.Context, k *rpc.Client) (int, error) {
	began := time.Now()
	id, addr, err := k.Transfer(ctx, raft.ServerID(c.to))
	if errors.Is(err, rpc.ErrInvalid) {
		return 0, fmt.Errorf("%w; lockctl status tells the servers' ids, and who leads", err)
	}
	if err != nil {
		return 0, err
	}
	took := time.Since(began)
	value := struct {
		Leader uint64  `json:"leader"`
		Addr   string  `json:"addr"`
		TookMS float64 `json:"took_ms"`
	}{uint64(id), addr, float64(took.Microseconds()) / 1000}
	return 0, c.print(value, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "server %d leads, at %s, after %v\n", id, addr,
			took.Round(100*time.Microsecond))
		return err
	})
}
