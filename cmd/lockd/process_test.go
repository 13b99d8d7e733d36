package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"ticketing/rpc"
)

// As a process of its own, since the limit is one of processes. A disk that is full says much the
// same.
func TestAServerWhoseDiskFailsStopsAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 1)
	stderr := newOutput()
	const limited = `ulimit -f 64; exec "$0" "$@"` // blocks
	cmd := exec.Command("sh", "-c", limited, os.Args[0], "-id", "1", "-peers", peersOf(addrs),
		"-dir", t.TempDir(), "-election", "100ms", "-heartbeat", "20ms")
	cmd.Env = append(os.Environ(), "LOCKD_TEST_AS=lockd")
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }() // ProcessState says how
	defer func() { _ = cmd.Process.Kill(); <-ended }()
	stderr.await(t, "role=leader")
	client := dial(t, addrs...)
	granted := 0
	for running := true; running; {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		l, err := client.TryLock(ctx, fmt.Sprintf("key %d", granted), time.Minute)
		cancel()
		if err == nil && l.Token() > 0 {
			granted++
			continue
		}
		select {
		case <-ended:
			running = false
		case <-time.After(20 * time.Second):
			t.Fatalf("it does not end, though a request failed: %v", err)
		}
	}
	said := stderr.String()
	if code := cmd.ProcessState.ExitCode(); code != 1 || granted < 10 {
		t.Errorf("after %d locks it exits with %d and says\n%s", granted, code, said)
	}
	for _, want := range []string{"has stopped by itself", "file too large", "start it again"} {
		if !strings.Contains(said[strings.LastIndex(said, "\nlockd:"):], want) {
			t.Errorf("it does not say %q but\n%s", want, said)
		}
	}
}

// The program says that it has caught a signal, and then hangs. The next must not be caught.
func TestASecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		out := newOutput()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "LOCKD_TEST_AS=one that does not stop")
		cmd.Stdout = out
		if _, err := cmd.StdinPipe(); err != nil { // it stays open
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }() // ProcessState says how
		out.await(t, "it runs")
		// It says what it has caught a moment before it lets the next one through.
		again, late := time.NewTicker(20*time.Millisecond), time.After(20*time.Second)
		for running := true; running; {
			_ = cmd.Process.Signal(sent) // it may have ended
			select {
			case <-ended:
				running = false
			case <-again.C:
			case <-late:
				_ = cmd.Process.Kill()
			}
		}
		again.Stop()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signal() != sent || out.String() != "it runs\na signal\n" {
			t.Errorf("%v: it prints %q and ends with %v", sent, out, cmd.ProcessState)
		}
	}
}

// A server whose disk is lost is replaced by one with another number. The procedure is the one in
// docs/operations.md.
func TestALostDiskIsReplacedByAServerWithANewNumber(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 4)
	before := peersOf(addrs[:3])
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	one := serve(t, 1, before, dirs[0])
	serve(t, 2, before, dirs[1])
	three := serve(t, 3, before, dirs[2])
	client := dial(t, addrs...)
	if token := lock(t, client, "a"); token != 1 {
		t.Fatalf("the first token is %d", token)
	}

	three.stop(t) // it never comes back
	if err := client.Remove(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	second := lockAfter(t, client, 1)
	four := newMember(t, 4, dirs[3], "-join", addrs[0]+","+addrs[1], "-listen", addrs[3])
	four.stderr.await(t, "the log is empty")
	if err := client.Promote(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new one has all", func() bool {
		a, b := status(client, addrs[0]), status(client, addrs[3])
		return b.Applied > 0 && a.Applied == b.Applied && a.Hash == b.Hash && b.Held >= 2
	})
	one.stop(t) // the new one counts
	lockAfter(t, client, second)
}

// status asks a server; of one that does not answer it knows nothing.
func status(client *rpc.Client, addr string) rpc.StatusReply {
	s, err := client.Status(context.Background(), addr)
	if err != nil {
		return rpc.StatusReply{}
	}
	return s
}
