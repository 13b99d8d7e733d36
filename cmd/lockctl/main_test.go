package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"ticketing/raft"
	"ticketing/rpc"
)

// nowhere is a disk for a test that restarts nothing.
type nowhere struct{}

func (nowhere) Save(raft.Write) error { return nil }
func (nowhere) Close() error          { return nil }

// service starts a cluster of one server, and points lockctl at it.
func service(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n, err := rpc.Start(rpc.Config{
		ID: 1, Addrs: map[raft.ServerID]string{1: l.Addr().String()}, Cluster: 1,
		ElectionTimeout: 100 * time.Millisecond, HeartbeatTimeout: 20 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
	}, nowhere{}, raft.Durable{}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop() })
	t.Setenv("LOCKCTL_ADDRS", l.Addr().String())
}

// lockctl runs a command line, words separated by single spaces.
func lockctl(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	code = run(t.Context(), strings.Split(line, " "), &out, &errors)
	return code, out.String(), errors.String()
}

func TestSubcommandsInTurn(t *testing.T) {
	service(t)
	for _, c := range []struct {
		line           string
		code           int
		stdout, stderr string
	}{
		{"list", 0, "no locks\n", ""},
		{"acquire door -lease 1m -owner me", 0, "1\n", ""},
		{"acquire -try door", 75, "", "the lock is held"},
		{"acquire door -wait 50ms", 75, "", "deadline exceeded"},
		{"lock door -try -- false", 75, "", "the lock is held"},
		{"get door -json", 0, `{"key":"door","token":"1","owner":"me","lease_ms":60000}` + "\n", ""},
		{"list -json", 0, `[{"key":"door","token":"1","owner":"me","lease_ms":60000}]` + "\n", ""},
		{"release door -token 2", 1, "", "not held"},
		{"release door -token 1", 0, "released\n", ""},
		{"get door", 1, "not held\n", ""},
		{"acquire door -lease 10ms", 75, "", "at least 400ms"},
		{"acquire door -json -lease 1m", 0, `{"key":"door","token":"2","lease_ms":60000}` + "\n", ""},
	} {
		code, stdout, stderr := lockctl(t, c.line)
		if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) {
			t.Errorf("lockctl %s exits with %d, prints %q and says %q", c.line, code, stdout, stderr)
		}
	}
	code, stdout, _ := lockctl(t, "status")
	if code != 0 || !strings.Contains(stdout, "leader of term") {
		t.Errorf("status exits with %d and prints %q", code, stdout)
	}
}

// A command under a lock knows its own lock, even where it runs under another, and what it exits
// with is passed on.
func TestACommandRunsUnderItsLock(t *testing.T) {
	service(t)
	t.Setenv("LOCK_TOKEN", "of an outer lock")
	var out, stderr bytes.Buffer
	script := `echo "$LOCK_KEY $LOCK_TOKEN $LOCK_LEASE_MS"; exit 7`
	args := []string{"lock", "door", "-lease", "1m", "--", "sh", "-c", script}
	if code := run(t.Context(), args, &out, &stderr); code != 7 || out.String() != "door 1 60000\n" {
		t.Errorf("it exits with %d, prints %q and says %q", code, out.String(), stderr.String())
	}
	if code, _, stderr := lockctl(t, "lock door -try -- true"); code != 0 {
		t.Errorf("the lock was not given back: %d, %s", code, stderr)
	}
}

// locked is a buffer for two who write.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func TestACommandIsEndedByTheDeadline(t *testing.T) {
	service(t)
	var out, stderr locked // the command writes into it as well
	for script, want := range map[string]int{
		"exec sleep 60": 128 + 15,
		"trap '' TERM; while :; do sleep 0.1; done": 128 + 9,
	} {
		args := []string{"lock", "door", "-lease", "1s", "--", "sh", "-c", script}
		if code := run(t.Context(), args, &out, &stderr); code != want {
			t.Errorf("%s: it exits with %d and says %q", script, code, stderr.text.String())
		}
	}
}

func TestASignalBeforeTheLockMeansNoCommand(t *testing.T) {
	service(t)
	if code, _, stderr := lockctl(t, "acquire door -lease 1m"); code != 0 {
		t.Fatal(stderr)
	}
	ctx, cancel := context.WithCancel(t.Context()) // as a signal does it
	time.AfterFunc(50*time.Millisecond, cancel)
	var out, stderr bytes.Buffer
	args := []string{"lock", "door", "--", "echo", "started"}
	if code := run(ctx, args, &out, &stderr); code != 75 || out.Len() > 0 {
		t.Errorf("it exits with %d, prints %q and says %q", code, out.String(), stderr.String())
	}
}

func TestWrongUsage(t *testing.T) {
	for _, line := range []string{
		"", "unlock", "acquire", "acquire a b", "acquire a -try -wait 1s", "acquire a -- b", "list a",
		"release a", "release a -token x", "lock a", "lock a --", "get a -token 1", "status x",
	} {
		if code, _, stderr := lockctl(t, line); code != 2 || !strings.Contains(stderr, "wrong usage") {
			t.Errorf("lockctl %s exits with %d and says %q", line, code, stderr)
		}
	}
	if code, _, stderr := lockctl(t, "-h"); code != 0 || !strings.Contains(stderr, "lockctl acquire") {
		t.Errorf("-h exits with %d and says %q", code, stderr)
	}
}
