package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
	"ticketing/rpc"
)

// record is a lock as JSON. The token is a string: many programs read JSON's numbers as
// floating-point ones, which do not hold all tokens.
type record struct {
	Key     string    `json:"key"`
	Token   fsm.Token `json:"token,string"`
	Owner   string    `json:"owner,omitempty"`
	LeaseMS int64     `json:"lease_ms,omitempty"`
}

func (c *command) record(l *rpc.Lock) record {
	return record{l.Key(), l.Token(), c.owner, c.leaseMS()}
}

// leaseMS is the lease as the service has it: in milliseconds, rounded up.
func (c *command) leaseMS() int64 {
	return int64((c.lease + time.Millisecond - 1) / time.Millisecond)
}

func recordOf(i rpc.Info) record { return record{i.Key, i.Token, i.Owner, int64(i.LeaseMS)} }

func leaseOf(i rpc.Info) time.Duration { return time.Duration(i.LeaseMS) * time.Millisecond }

// source is where an answer comes from that is one server's own.
type source struct {
	From    string     `json:"from,omitempty"`
	Applied raft.Index `json:"applied,omitempty"` // the index up to which that server has applied
}

func (s source) write(w io.Writer) error {
	if s.From == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nThis is what %s has applied, up to index %d. It may be stale.\n",
		s.From, s.Applied)
	return err
}

// fromAny asks one server after the other for what it has itself, until one answers.
func (c *command) fromAny(ask func(addr string) (raft.Index, error)) (source, error) {
	var failed error
	for _, addr := range strings.Split(c.servers(), ",") {
		applied, err := ask(addr)
		if err == nil {
			return source{addr, applied}, nil
		}
		failed = errors.Join(failed, err)
	}
	return source{}, failed
}

func (c *command) get(ctx context.Context, k *rpc.Client) (int, error) {
	var info rpc.Info
	var held bool
	var from source
	var err error
	if !c.local {
		info, held, err = k.Get(ctx, c.key)
	} else {
		from, err = c.fromAny(func(addr string) (applied raft.Index, err error) {
			info, held, applied, err = k.GetLocal(ctx, addr, c.key)
			return applied, err
		})
	}
	if err != nil {
		return 0, err
	}
	value := struct {
		Held bool   `json:"held"`
		Key  string `json:"key"`
		*record
		source
	}{Held: held, Key: c.key, source: from}
	if held {
		r := recordOf(info)
		value.record = &r
	}
	code, locks := exitFailed, []rpc.Info{}
	if held {
		code, locks = 0, []rpc.Info{info}
	}
	return code, c.print(value, func(w io.Writer) error {
		return writeLocks(w, locks, "not held", from)
	})
}

func (c *command) list(ctx context.Context, k *rpc.Client) (int, error) {
	var all []rpc.Info
	var from source
	var err error
	if !c.local {
		all, err = k.List(ctx)
	} else {
		from, err = c.fromAny(func(addr string) (applied raft.Index, err error) {
			all, applied, err = k.ListLocal(ctx, addr)
			return applied, err
		})
	}
	if err != nil {
		return 0, err
	}
	value := struct {
		Locks []record `json:"locks"`
		source
	}{[]record{}, from}
	for _, i := range all {
		value.Locks = append(value.Locks, recordOf(i))
	}
	return 0, c.print(value, func(w io.Writer) error {
		return writeLocks(w, all, "no locks", from)
	})
}

// writeLocks writes a table, or what stands for an empty one.
func writeLocks(w io.Writer, locks []rpc.Info, empty string, from source) error {
	t := newTable(w)
	if len(locks) == 0 {
		t.row(empty)
	} else {
		t.row("KEY", "TOKEN", "LEASE", "OWNER")
	}
	for _, i := range locks {
		t.row(i.Key, i.Token, leaseOf(i), orDash(i.Owner))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return from.write(w)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// table aligns columns.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer) table { return table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// row adds a row. The writer keeps it until Flush, which tells of errors.
func (t table) row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t, "\t")
		}
		fmt.Fprint(t, cell)
	}
	fmt.Fprintln(t)
}
