package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"ticketing/raft"
	"ticketing/rpc"
)

// lockd builds the server once for all tests.
func lockd(t *testing.T) string {
	t.Helper()
	binary, err := BuildBinary(t.TempDir(), "./cmd/lockd", "")
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func dial(t *testing.T, c *Cluster) *rpc.Client {
	t.Helper()
	k, err := rpc.Dial(within(t), c.Addrs(), rpc.Options{Dial: c.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// leader waits until a server says that it leads.
func leader(t *testing.T, c *Cluster, k *rpc.Client, not raft.ServerID) raft.ServerID {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		for _, id := range c.IDs() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			s, err := k.Status(ctx, c.Addr(id))
			cancel()
			if err == nil && s.Role == raft.Leader.String() && id != not {
				return id
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("nobody leads")
	return 0
}

func TestServersAreKilledPausedRestartedAndStopped(t *testing.T) {
	binary := lockd(t)
	c, err := Start(within(t), Config{Binary: binary, Dir: t.TempDir(), Election: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}()
	k := dial(t, c)
	first := leader(t, c, k, 0)
	held, err := k.Lock(within(t), "door", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(within(t), first); err == nil {
		t.Error("a server that runs is started once more")
	}
	if err := c.Kill(first); err != nil {
		t.Fatal(err)
	}
	<-c.Exited(first)
	second := leader(t, c, k, first)
	info, _, err := k.Get(within(t), "door")
	if err != nil || info.Token != held.Token() {
		t.Errorf("after the leader was killed the door is held with %+v, %v", info, err)
	}
	if err := c.Restart(within(t), first); err != nil {
		t.Fatal(err)
	}
	if err := c.Pause(second); err != nil {
		t.Fatal(err)
	}
	third := leader(t, c, k, second)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if s, err := k.Status(ctx, c.Addr(second)); err == nil {
		t.Errorf("a paused server answers %+v", s)
	}
	if err := c.Resume(second); err != nil {
		t.Fatal(err)
	}
	if s, err := k.Status(within(t), c.Addr(second)); err != nil {
		t.Errorf("a resumed server answers %+v, %v", s, err)
	}
	if n := strings.Count(c.Log(first), "msg=listening"); n != 2 || third == second {
		t.Errorf("the log of server %d has %d starts; server %d leads", first, n, third)
	}
}

func TestStopTellsOfAServerThatEndedByItself(t *testing.T) {
	binary := lockd(t)
	c, err := Start(within(t), Config{Binary: binary, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	c.process(2).signal(syscall.SIGKILL) // nobody was told
	<-c.Exited(2)
	if err := c.Stop(); !errors.Is(err, ErrUnexpectedEnd) || !strings.Contains(err.Error(), "server 2") {
		t.Errorf("Stop returns %v", err)
	}
	for _, id := range c.IDs() {
		select {
		case <-c.Exited(id):
		default:
			t.Errorf("server %d still runs", id)
		}
	}
	broken := Config{Binary: binary, Dir: t.TempDir(), Args: func(raft.ServerID) []string {
		return []string{"-no-such-flag"}
	}}
	if _, err := Start(within(t), broken); err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("a server that cannot start: %v", err)
	}
}

// A test that is killed cannot clean up.
func TestNoServerOutlivesItsParent(t *testing.T) {
	if dir := os.Getenv("CLUSTER_TEST_PARENT"); dir != "" {
		c, err := Start(t.Context(), Config{Binary: os.Getenv("CLUSTER_TEST_BINARY"), Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range c.IDs() {
			fmt.Println("group", c.process(id).group)
		}
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if runtime.GOOS != "linux" {
		t.Skip("this system cannot have a process killed with its parent")
	}
	parent := exec.Command(os.Args[0], "-test.run", t.Name())
	parent.Env = append(os.Environ(),
		"CLUSTER_TEST_PARENT="+t.TempDir(), "CLUSTER_TEST_BINARY="+lockd(t))
	out, err := parent.CombinedOutput()
	if err == nil {
		t.Fatalf("the parent was not killed\n%s", out)
	}
	found := 0
	for line := range strings.Lines(string(out)) {
		var group int
		if n, _ := fmt.Sscanf(line, "group %d", &group); n == 0 {
			continue
		}
		found++
		for end := time.Now().Add(10 * time.Second); alive(group); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("process %d lives on", group)
				syscall.Kill(-group, syscall.SIGKILL)
				break
			}
		}
	}
	if found != 3 {
		t.Errorf("%d servers were started\n%s", found, out)
	}
}

// alive reports whether a process runs. One that has ended and that nobody has waited for does not.
func alive(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

func TestAnOverlayChangesWhatIsBuilt(t *testing.T) {
	dir := t.TempDir()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	changed, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	replace := fmt.Sprintf(`{"Replace": {%q: %q}}`, filepath.Join(root, "cmd/lockd/main.go"), changed)
	for name, text := range map[string]string{changed: "package main; broken", overlay: replace} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := BuildBinary(dir, "./cmd/lockd", overlay); err == nil ||
		!strings.Contains(err.Error(), "building ./cmd/lockd") {
		t.Errorf("the overlay is not built: %v", err)
	}
}
