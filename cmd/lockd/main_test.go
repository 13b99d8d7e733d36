package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"ticketing/rpc"
)

// TestMain lets this program be lockd, for tests that need a process of their own.
func TestMain(m *testing.M) {
	switch os.Getenv("LOCKD_TEST_AS") {
	case "lockd":
		main()
	case "one that does not stop":
		ctx := untilSignal()
		fmt.Println("it runs")
		<-ctx.Done()
		fmt.Println("a signal")
		_, _ = io.Copy(io.Discard, os.Stdin)
	default:
		os.Exit(m.Run())
	}
}

// output is what a program writes while a test waits for it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more *sync.Cond
}

func newOutput() *output {
	o := &output{}
	o.more = sync.NewCond(&o.mu)
	return o
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.more.Broadcast()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits until a text was written.
func (o *output) await(t *testing.T, text string) {
	t.Helper()
	late := false
	timer := time.AfterFunc(20*time.Second, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		late = true
		o.more.Broadcast()
	})
	defer timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !strings.Contains(o.text.String(), text) {
		if late {
			t.Fatalf("nobody has written %q but\n%s", text, o.text.String())
		}
		o.more.Wait()
	}
}

// program is lockd as it runs in this process.
type program struct {
	stdout, stderr *output
	cancel         context.CancelFunc
	ended          chan struct{}
	code           int // valid once ended is closed
}

func start(t *testing.T, args ...string) *program {
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{newOutput(), newOutput(), cancel, make(chan struct{}), -1}
	go func() {
		defer close(p.ended)
		p.code = run(ctx, args, p.stdout, p.stderr)
	}()
	t.Cleanup(func() { p.stop(t) })
	return p
}

// end waits for the exit code.
func (p *program) end(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.code
	case <-time.After(20 * time.Second):
		t.Fatalf("it does not end:\n%s", p.stderr)
		return -1
	}
}

// stop stops it as a signal does.
func (p *program) stop(t *testing.T) int {
	t.Helper()
	p.cancel()
	return p.end(t)
}

// freeAddrs finds free ports on loopback, below those that systems give to outgoing connections.
func freeAddrs(t *testing.T, n int) []string {
	t.Helper()
	var addrs []string
	for tries := 0; len(addrs) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(2000)))
		if err == nil {
			defer l.Close() // all at once, so that no port is found twice
			addrs = append(addrs, l.Addr().String())
		} else if tries > 100 {
			t.Fatal(err)
		}
	}
	return addrs
}

// peersOf lists servers 1, 2, … as -peers does.
func peersOf(addrs []string) string {
	var list []string
	for i, addr := range addrs {
		list = append(list, fmt.Sprintf("%d=%s", i+1, addr))
	}
	return strings.Join(list, ",")
}

// serve starts a server and waits until it listens.
func serve(t *testing.T, id int, peers, dir string, more ...string) *program {
	t.Helper()
	args := []string{"-id", fmt.Sprint(id), "-peers", peers, "-dir", dir,
		"-election", "100ms", "-heartbeat", "20ms"}
	p := start(t, append(args, more...)...)
	p.stderr.await(t, "msg=listening")
	return p
}

func dial(t *testing.T, addrs ...string) *rpc.Client {
	t.Helper()
	client, err := rpc.Dial(t.Context(), addrs, rpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// lock takes a lock and returns its token.
func lock(t *testing.T, client *rpc.Client, key string) uint64 {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	l, err := client.Lock(ctx, key, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(l.Token())
}

// lockAfter takes a lock while leaders come and go, when what became of a request may be unknown.
func lockAfter(t *testing.T, client *rpc.Client, before uint64) (token uint64) {
	t.Helper()
	tries := 0
	eventually(t, "a lock is granted", func() bool {
		tries++
		l, err := client.TryLock(t.Context(), fmt.Sprintf("%d after %d", tries, before), time.Minute)
		if err == nil {
			token = uint64(l.Token())
		}
		return err == nil
	})
	if token <= before {
		t.Errorf("token %d comes after %d", token, before)
	}
	return token
}

// eventually asks again and again, of real processes.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(20 * time.Second); !is(); <-again.C {
		if time.Now().After(deadline) {
			t.Fatalf("it is not so in time: %s", what)
		}
	}
}
