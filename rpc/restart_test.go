package rpc

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
	"ticketing/raft/wal"
)

// grown is a server's directory, and what its table was in the end.
type grown struct {
	hash     uint64
	tokens   fsm.Token
	held     int
	last     raft.Index
	snapshot raft.Index
}

// grow lets a server that is alone in its cluster work until its log has so many entries, and then
// stop. It holds some locks all the time and takes and gives back others.
func grow(t testing.TB, dir string, config Config, entries raft.Index) (g grown) {
	t.Helper()
	log, durable, err := wal.Open(dir, wal.Options{Cluster: config.Cluster, Server: config.ID})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r, err := fsm.New(fsm.Config{Raft: config.raft(), SnapshotEvery: config.SnapshotEvery}, durable, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.ElectionTimeout()
	for call := uint64(0); r.Core().Status().CommitIndex < entries; {
		out, err := r.Take()
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Save(out.Write); err != nil {
			t.Fatal(err)
		}
		if s := out.Save; s != nil {
			if err := log.SaveSnapshot(s); err != nil {
				t.Fatal(err)
			}
			r.SnapshotSaved(s.LastIncludedIndex)
		}
		r.Saved(out.Write.Seq)
		if r.Core().Status().Role != raft.Leader {
			continue
		}
		for range 500 {
			call++
			key := fmt.Sprintf("jobs/%07d", call%1000)
			ask := fsm.Request{Call: 2 * call, Kind: fsm.Release, Key: key}
			if call%1000 < 10 { // these are held for good
				ask = fsm.Request{Call: 2 * call, Kind: fsm.Open}
			}
			r.Request(ask)
			r.Request(fsm.Request{
				Call: 2*call + 1, Kind: fsm.Grant, Key: key, LeaseMS: time.Hour.Milliseconds(), Try: true,
			})
		}
	}
	for range 3 { // what is committed is applied, and what is written saved
		out, err := r.Take()
		if err == nil {
			err = log.Save(out.Write)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Saved(out.Write.Seq)
	}
	g = grown{hash: r.Table().Hash(), tokens: r.Table().Tokens(), held: r.Table().Len()}
	g.last = r.Core().Status().LastApplied
	if s := r.Core().Snapshot(); s != nil {
		g.snapshot = s.LastIncludedIndex
	}
	return g
}

// A server of many entries starts from its snapshot and what follows: only that is read and carried
// out. TICKETING_LONG makes it a million.
func TestAServerOfManyEntriesStartsFromItsSnapshot(t *testing.T) {
	config := Config{
		ID: 1, Cluster: 1, Log: slog.New(slog.DiscardHandler), SnapshotEvery: 5_000,
		Addrs: map[raft.ServerID]string{1: "127.0.0.1:1"},
	}.withDefaults()
	entries := raft.Index(23_000)
	if long() {
		config.SnapshotEvery, entries = 100_000, 1_030_000
	}
	dir := filepath.Join(t.TempDir(), "1")
	g := grow(t, dir, config, entries)
	if g.held == 0 || g.snapshot < entries-2*config.SnapshotEvery || g.snapshot >= g.last {
		t.Fatalf("it has grown to %+v", g)
	}
	var dump bytes.Buffer
	if err := wal.Dump(dir, &dump); err != nil || !strings.Contains(dump.String(), fmt.Sprintf("%020d-", g.snapshot)) {
		t.Errorf("the dump does not show the snapshot up to %d: %v", g.snapshot, err)
	}
	begun := time.Now()
	log, durable, err := wal.Open(dir, wal.Options{Cluster: 1, Server: 1})
	if err != nil {
		t.Fatal(err)
	}
	kept := len(durable.Entries)
	if s := durable.Snapshot; s == nil || s.LastIncludedIndex != g.snapshot || raft.Index(kept) >= entries/2 {
		t.Fatalf("%d entries are read, and the snapshot %v", kept, s != nil)
	}
	n, err := Start(config, log, durable, listen(t, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has applied all", func() bool {
		index, _ := applied(n)
		return index > g.last
	})
	t.Logf("of %d entries %d are read, and the snapshot; it serves after %v", g.last, kept, time.Since(begun))
	now, _ := look(n, func(r *fsm.Replica) grown {
		return grown{hash: r.Table().Hash(), tokens: r.Table().Tokens(), held: r.Table().Len()}
	})
	if now.hash != g.hash || now.tokens != g.tokens || now.held != g.held {
		t.Errorf("its table is %+v, it was %+v", now, g)
	}
	if err := n.Stop(); err != nil {
		t.Error(err)
	}
}
