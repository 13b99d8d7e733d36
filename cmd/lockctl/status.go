package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ticketing/fsm"
	"ticketing/raft"
	"ticketing/rpc"
)

// health is a server as JSON.
type health struct {
	Addr    string      `json:"addr"`
	Error   string      `json:"error,omitempty"`
	ID      uint64      `json:"id,omitempty"`
	Role    string      `json:"role,omitempty"` // raft's, or learner, or removed
	Removed raft.Index  `json:"removed_at,omitempty"`
	Term    raft.Term   `json:"term"`
	Leader  string      `json:"leader,omitempty"`
	Commit  raft.Index  `json:"commit"`
	Applied raft.Index  `json:"applied"`
	Last    raft.Index  `json:"last"`
	Held    int         `json:"held"`
	Tokens  fsm.Token   `json:"last_token,string"`
	Hash    string      `json:"hash,omitempty"`
	Leases  []remaining `json:"leases"`
	More    bool        `json:"more_leases,omitempty"` // than are listed

	First    raft.Index `json:"first"` // entry that is still in the log
	Snapshot *taken     `json:"snapshot,omitempty"`
}

// taken is a server's last snapshot.
type taken struct {
	Index raft.Index `json:"index"`
	Bytes int        `json:"bytes"`
	AgeMS int64      `json:"age_ms"` // no more than the server's own
}

// remaining is what is left of a lease by one server's own count.
type remaining struct {
	Key    string    `json:"key"`
	Token  fsm.Token `json:"token,string"`
	LeftMS int64     `json:"left_ms"`
}

// cluster is all servers as JSON. Differ says at which index two of them have different tables.
type cluster struct {
	Servers []health   `json:"servers"`
	Differ  raft.Index `json:"tables_differ_at,omitempty"`
}

// status asks all servers at the same time. It fails if one does not answer, or if two contradict
// each other.
func (c *command) status(ctx context.Context, k *rpc.Client) (int, error) {
	addrs := strings.Split(c.servers(), ",")
	all := cluster{Servers: make([]health, len(addrs))}
	var asking errgroup.Group
	for i, addr := range addrs {
		asking.Go(func() error {
			s, err := k.Status(ctx, addr)
			all.Servers[i] = healthOf(addr, s, err)
			if err != nil {
				return errors.New("not all servers answer")
			}
			return nil
		})
	}
	failed := asking.Wait()
	all.Differ = differ(all.Servers)
	if all.Differ > 0 {
		failed = fmt.Errorf("servers that have applied the log up to index %d have different "+
			"tables; this must never be: stop the service and keep its directories", all.Differ)
	}
	return 0, cmp.Or(c.print(all, all.write), failed)
}

func healthOf(addr string, s rpc.StatusReply, err error) health {
	if err != nil {
		return health{Addr: addr, Error: err.Error(), Leases: []remaining{}}
	}
	h := health{
		Addr: addr, ID: uint64(s.ID), Role: roleOf(s), Removed: s.Removed, Term: s.Term, Leader: s.Leader,
		Commit: s.Commit, Applied: s.Applied, Last: s.Last,
		Held: s.Held, Tokens: s.Tokens, Hash: fmt.Sprintf("%016x", s.Hash),
		Leases: []remaining{}, More: s.MoreLeases, First: s.First,
	}
	if s.Snapshot.Index > 0 {
		h.Snapshot = &taken{s.Snapshot.Index, s.Snapshot.Bytes, s.Snapshot.AgeMS}
	}
	for _, l := range s.Leases {
		h.Leases = append(h.Leases, remaining{l.Key, l.Token, l.Left})
	}
	return h
}

func roleOf(s rpc.StatusReply) string {
	switch {
	case s.Removed != 0:
		return "removed"
	case s.Learner:
		return "learner"
	}
	return s.Role
}

// differ returns an index up to which two servers have applied and have different tables, or 0.
func differ(servers []health) raft.Index {
	hashes := map[raft.Index]string{}
	for _, s := range servers {
		if s.Error != "" {
			continue
		}
		if other, seen := hashes[s.Applied]; seen && other != s.Hash {
			return s.Applied
		}
		hashes[s.Applied] = s.Hash
	}
	return 0
}

func (all cluster) write(w io.Writer) error {
	ids := map[string]string{"": "-"}
	for _, s := range all.Servers {
		if s.Error == "" {
			ids[s.Addr] = fmt.Sprint(s.ID)
		}
	}
	t := newTable(w)
	t.row("SERVER", "ID", "ROLE", "TERM", "LEADER", "COMMIT", "APPLIED", "LAST", "LOCKS", "TABLE")
	for _, s := range all.Servers {
		if s.Error != "" {
			t.row(s.Addr, "-", "silent", "-", "-", "-", "-", "-", "-", "-")
			continue
		}
		t.row(s.Addr, s.ID, s.Role, s.Term, cmp.Or(ids[s.Leader], s.Leader),
			s.Commit, s.Applied, s.Last, s.Held, s.Hash[:8])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range all.Servers {
		if s.Error != "" {
			fmt.Fprintf(w, "\n%s\n", s.Error)
		}
		if s.Removed != 0 {
			fmt.Fprintf(w, "\nServer %d was removed from the cluster at index %d; stop it.\n", s.ID,
				s.Removed)
		}
	}
	if err := all.writeSnapshots(w); err != nil {
		return err
	}
	return all.writeLeases(w)
}

// writeSnapshots writes what each server has of snapshots, unless none has one.
func (all cluster) writeSnapshots(w io.Writer) error {
	if !slices.ContainsFunc(all.Servers, func(s health) bool { return s.Snapshot != nil }) {
		return nil
	}
	fmt.Fprintln(w, "\nThe last snapshot of each server, and where its log begins:")
	t := newTable(w)
	t.row("SERVER", "UP TO", "BYTES", "AGE", "LOG FROM")
	for _, s := range all.Servers {
		switch {
		case s.Error != "":
			t.row(s.Addr, "-", "-", "-", "-")
		case s.Snapshot == nil:
			t.row(s.Addr, "none", "-", "-", s.First)
		default:
			age := time.Duration(s.Snapshot.AgeMS) * time.Millisecond
			t.row(s.Addr, s.Snapshot.Index, s.Snapshot.Bytes, age.Round(time.Second), s.First)
		}
	}
	return t.Flush()
}

// tenure is what a row of remaining times is about.
type tenure struct {
	key   string
	token fsm.Token
}

// writeLeases writes what is left of each lease, with a column for each server's count.
func (all cluster) writeLeases(w io.Writer) error {
	left, more := all.leases()
	if len(left) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nWhat is left of each lease, by each server's own count:")
	t := newTable(w)
	head := []any{"KEY", "TOKEN"}
	for _, s := range all.Servers {
		head = append(head, s.Addr)
	}
	t.row(head...)
	order := func(a, b tenure) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.token, b.token))
	}
	for _, k := range slices.SortedFunc(maps.Keys(left), order) {
		t.row(append([]any{k.key, k.token}, left[k]...)...)
	}
	if more {
		t.row("…")
	}
	return t.Flush()
}

// leases returns the rows, with a cell for each server. More says that some were not told.
func (all cluster) leases() (left map[tenure][]any, more bool) {
	left = map[tenure][]any{}
	for i, s := range all.Servers {
		more = more || s.More
		for _, l := range s.Leases {
			k := tenure{l.Key, l.Token}
			if left[k] == nil {
				left[k] = slices.Repeat([]any{"-"}, len(all.Servers))
			}
			d := time.Duration(l.LeftMS) * time.Millisecond
			left[k][i] = d.Round(100 * time.Millisecond)
		}
	}
	return left, more
}
