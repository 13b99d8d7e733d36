package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"ticketing/raft"
	"ticketing/rpc"
)

func TestDevIsAClusterThatGivesLocks(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithTimeout(context.Background(), 60*time.Second)
	defer stop()
	r, w := io.Pipe()
	ended := make(chan int)
	go func() { ended <- run(ctx, []string{"-dev"}, w, io.Discard) }()
	text := make([]byte, 4096)
	n, err := r.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	paste := regexp.MustCompile(`lockctl lock -addrs (\S+) demo`).FindSubmatch(text[:n])
	if paste == nil {
		t.Fatalf("no line to paste in %q", text[:n])
	}
	client, err := rpc.Dial(ctx, strings.Split(string(paste[1]), ","), rpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := client.Lock(ctx, "door", time.Minute)
	if err != nil || l.Token() == 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	client.Close()
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("it exits with %d", code)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v behind, %v", left, err)
	}
}

func TestWrongUsageSaysWhatToDo(t *testing.T) {
	const peers = "-peers=1=127.0.0.1:1,2=127.0.0.1:2"
	for _, c := range []struct{ args, want string }{
		{"", "-id, -peers and -dir are needed"},
		{"-dev -id 1", "-dev chooses"},
		{"-dev x", "unexpected argument"},
		{"-id 3 -dir d " + peers, "not among -peers"},
		{"-id 1 -dir d -peers x", "not ID=HOST:PORT"},
		{"-id 1 -dir d -peers 0=a:1", "an ID from 1"},
		{"-id 1 -dir d -peers 1=a:1,1=b:1", "twice"},
		{"-id 1 -dir d -peers 1=a", "missing port"},
		{"-id 1 -dir d -listen 0.0.0.0:0 " + peers, "-insecure"},
		{"-id 1 -dir d -listen :0 " + peers, "-insecure"},
	} {
		var stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(c.args), io.Discard, &stderr)
		if code != 2 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("lockd %s exits with %d and says %q", c.args, code, stderr.String())
		}
	}
}

func TestADirectoryOfAnotherServerIsRefused(t *testing.T) {
	dir, addrs := t.TempDir(), map[raft.ServerID]string{1: "127.0.0.1:1", 2: "127.0.0.1:2"}
	o := options{cluster: "a", election: 50 * time.Millisecond, heartbeat: 10 * time.Millisecond}
	start := func(o options, id raft.ServerID, addrs map[raft.ServerID]string) (*rpc.Node, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return o.start(id, addrs, dir, l, slog.New(slog.DiscardHandler))
	}
	n, err := start(o, 1, map[raft.ServerID]string{1: addrs[1]}) // alone: it elects itself
	if err != nil {
		t.Fatal(err)
	}
	client, err := rpc.Dial(t.Context(), []string{n.Addr()}, rpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Lock(t.Context(), "door", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := start(o, 1, addrs); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second process in the directory: %v", err)
	}
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	_, err = start(o, 2, addrs)
	if err == nil || !strings.Contains(err.Error(), "belongs to server 1") {
		t.Errorf("another server: %v", err)
	}
	o.cluster = "b"
	if _, err := start(o, 1, addrs); err == nil || !strings.Contains(err.Error(), "belongs to") {
		t.Errorf("another cluster: %v", err)
	}
}
