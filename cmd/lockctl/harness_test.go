package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ticketing/raft"
	"ticketing/rpc"
)

// asLockctl makes the test's own program run as lockctl, so that tests can signal a real process
// and give it a terminal.
const asLockctl = "RUN_AS_LOCKCTL"

func TestMain(m *testing.M) {
	if os.Getenv(asLockctl) != "" {
		main() // it does not return
	}
	os.Exit(m.Run())
}

// nowhere is a disk for a test that restarts nothing.
type nowhere struct{}

func (nowhere) Save(raft.Write) error             { return nil }
func (nowhere) SaveSnapshot(*raft.Snapshot) error { return nil }
func (nowhere) Close() error                      { return nil }

func testConfig() rpc.Config {
	return rpc.Config{
		Cluster:         1,
		ElectionTimeout: 200 * time.Millisecond, HeartbeatTimeout: 20 * time.Millisecond,
		LeastLease: 400 * time.Millisecond,
		Log:        slog.New(slog.DiscardHandler),
	}
}

// service starts servers and points lockctl at them. It returns their addresses.
func service(t *testing.T, servers int, change ...func(*rpc.Config)) []string {
	t.Helper()
	config := testConfig()
	config.Addrs = map[raft.ServerID]string{}
	for _, c := range change {
		c(&config)
	}
	var listeners []net.Listener
	var addrs []string
	for i := range servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		listeners, addrs = append(listeners, l), append(addrs, addr)
		config.Addrs[raft.ServerID(i+1)] = addr
	}
	for i, l := range listeners {
		c := config
		c.ID = raft.ServerID(i + 1)
		n, err := rpc.Start(c, nowhere{}, raft.Durable{}, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Stop() })
	}
	t.Setenv("LOCKCTL_ADDRS", strings.Join(addrs, ","))
	return addrs
}

// client returns a client of the service, to take what lockctl is to meet.
func client(t *testing.T) *rpc.Client {
	t.Helper()
	addrs := strings.Split(os.Getenv("LOCKCTL_ADDRS"), ",")
	k, err := rpc.Dial(t.Context(), addrs, rpc.Options{Owner: "me"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

func take(t *testing.T, k *rpc.Client, key string) *rpc.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l, err := k.Lock(ctx, key, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// isFree fails the test if somebody holds the key.
func isFree(t *testing.T, k *rpc.Client, key string) {
	t.Helper()
	if info, held, err := k.Get(t.Context(), key); held || err != nil {
		t.Errorf("%q is held: %+v, %v", key, info, err)
	}
}

// lockctl runs a command line in this process, words separated by single spaces.
func lockctl(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	return run1(t, t.Context(), strings.Split(line, " "))
}

func run1(t *testing.T, ctx context.Context, args []string) (code int, stdout, stderr string) {
	t.Helper()
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	dir := t.TempDir()
	out, errs := create(t, dir, "out"), create(t, dir, "err")
	code = run(ctx, args, stdin, out, errs)
	return code, content(t, out), content(t, errs)
}

func create(t *testing.T, dir, name string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// content closes a file and returns what was written into it.
func content(t *testing.T, f *os.File) string {
	t.Helper()
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	return string(text)
}

// process is a program that runs, with what it has printed until now.
type process struct {
	t *testing.T
	*exec.Cmd
	out, errs *os.File
}

// begin starts lockctl as a process of its own.
func begin(t *testing.T, args ...string) *process {
	t.Helper()
	return beginAs(t, os.Args[0], args...)
}

func beginAs(t *testing.T, name string, args ...string) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{t, exec.Command(name, args...), create(t, dir, "out"), create(t, dir, "err")}
	p.Stdout, p.Stderr, p.Env = p.out, p.errs, append(os.Environ(), asLockctl+"=1")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

func (p *process) printed() string {
	text, err := os.ReadFile(p.out.Name())
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// until waits for something to be printed.
func (p *process) until(what string) {
	p.t.Helper()
	eventually(p.t, func() bool { return strings.Contains(p.printed(), what) }, func() string {
		errs, _ := os.ReadFile(p.errs.Name())
		return "it prints " + p.printed() + " and says " + string(errs)
	})
}

// end waits for the process.
func (p *process) end() (code int, stdout, stderr string) {
	p.t.Helper()
	_ = p.Wait() // the code says it
	return p.ProcessState.ExitCode(), content(p.t, p.out), content(p.t, p.errs)
}

// eventually polls, since there are real processes to wait for.
func eventually(t *testing.T, holds func() bool, otherwise func() string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(end) {
			t.Fatal(otherwise())
		}
		<-time.After(5 * time.Millisecond)
	}
}
