package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ticketing/fsm"
	"ticketing/rpc"
)

// lockRecord is a lock as JSON. The token is a string: many programs read JSON's numbers as
// floating-point ones, which do not hold all tokens.
type lockRecord struct {
	Key     string    `json:"key"`
	Token   fsm.Token `json:"token,string"`
	Owner   string    `json:"owner,omitempty"`
	LeaseMS int64     `json:"lease_ms"`
}

func lockJSON(key string, token fsm.Token, owner string, lease time.Duration) lockRecord {
	return lockRecord{key, token, owner, lease.Milliseconds()}
}

func infoJSON(i rpc.Info) lockRecord {
	return lockRecord{i.Key, i.Token, i.Owner, int64(i.LeaseMS)}
}

func infoText(i rpc.Info) string {
	return fmt.Sprintf("%-20s token %-8d lease %-10v owner %q", i.Key, i.Token,
		time.Duration(i.LeaseMS)*time.Millisecond, i.Owner)
}

func (c *command) get(ctx context.Context, k *rpc.Client) (int, error) {
	info, held, err := k.Get(ctx, c.key)
	if err != nil {
		return 0, err
	}
	if !held {
		return exitFailed, c.print(map[string]any{"key": c.key, "held": false}, "not held")
	}
	return 0, c.print(infoJSON(info), infoText(info))
}

func (c *command) list(ctx context.Context, k *rpc.Client) error {
	all, err := k.List(ctx)
	if err != nil {
		return err
	}
	records, lines := []lockRecord{}, []string{}
	for _, i := range all {
		records, lines = append(records, infoJSON(i)), append(lines, infoText(i))
	}
	if len(all) == 0 {
		lines = append(lines, "no locks")
	}
	return c.print(records, strings.Join(lines, "\n"))
}

type statusRecord struct {
	Addr    string    `json:"addr"`
	Error   string    `json:"error,omitempty"`
	ID      uint64    `json:"id,omitempty"`
	Role    string    `json:"role,omitempty"`
	Term    uint64    `json:"term,omitempty"`
	Leader  string    `json:"leader,omitempty"`
	Commit  uint64    `json:"commit"`
	Applied uint64    `json:"applied"`
	Last    uint64    `json:"last"`
	Held    int       `json:"held"`
	Tokens  fsm.Token `json:"last_token,string"`
	Hash    string    `json:"table,omitempty"`
}

// status asks all servers, and fails if one of them does not answer.
func (c *command) status(ctx context.Context, k *rpc.Client, addrs []string) error {
	var failed error
	for _, addr := range addrs {
		s, err := k.Status(ctx, addr)
		r, text := statusRecord{Addr: addr}, addr+"  "+s.String()
		if err != nil {
			failed = fmt.Errorf("a server does not answer: %w", err)
			r.Error, text = err.Error(), addr+"  does not answer"
		} else {
			r = statusRecord{
				Addr: addr, ID: uint64(s.ID), Role: s.Role, Term: uint64(s.Term), Leader: s.Leader,
				Commit: uint64(s.Commit), Applied: uint64(s.Applied), Last: uint64(s.Last),
				Held: s.Held, Tokens: s.Tokens, Hash: fmt.Sprintf("%016x", s.Hash),
			}
		}
		if err := c.print(r, text); err != nil {
			return err
		}
	}
	return failed
}
