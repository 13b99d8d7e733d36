package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A command under a lock knows its own lock, even where it runs under another. env prints what it
// has got, what is there twice included. (etcdctl lock.)
func TestACommandKnowsItsInnermostLock(t *testing.T) {
	service(t, 1)
	t.Setenv("LOCK_TOKEN", "of somebody else")
	t.Setenv(asLockctl, "1") // for the inner one
	for _, c := range []struct {
		args, want []string
	}{
		{[]string{"lock", "door", "-lease", "1m", "--", "env"},
			[]string{"LOCK_KEY=door", "LOCK_TOKEN=1", "LOCK_LEASE_MS=60000"}},
		{[]string{"lock", "outer", "--",
			os.Args[0], "lock", "inner", "-lease", "20000.5ms", "--", "env"},
			[]string{"LOCK_KEY=inner", "LOCK_TOKEN=3", "LOCK_LEASE_MS=20001"}},
	} {
		code, stdout, stderr := run1(t, t.Context(), c.args)
		var got []string
		for line := range strings.Lines(stdout) {
			if strings.HasPrefix(line, "LOCK_") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if !slices.Equal(got, c.want) || code != 0 {
			t.Errorf("%q: exit code %d, the environment has %q; %s", c.args, code, got, stderr)
		}
		if !strings.HasSuffix(stdout, strings.Join(c.want, "\n")+"\n") {
			t.Errorf("%q: they do not come last:\n%s", c.args, stdout)
		}
	}
}

func TestACommandGetsStandardInputAndNoShell(t *testing.T) {
	service(t, 1)
	cmd := exec.Command(os.Args[0], "lock", "door", "--", "cat", "-", "/dev/null")
	cmd.Env = append(os.Environ(), asLockctl+"=1")
	cmd.Stdin = strings.NewReader("through\n")
	if out, err := cmd.Output(); err != nil || string(out) != "through\n" {
		t.Errorf("cat prints %q, %v", out, err)
	}
	if _, stdout, _ := lockctl(t, "lock door -- echo $HOME;*"); stdout != "$HOME;*\n" {
		t.Errorf("a shell was here: %q", stdout)
	}
}

// etcd#12829.
func TestTheExitCodeIsPassedOn(t *testing.T) {
	service(t, 1)
	k := client(t)
	for script, want := range map[string]int{
		"true": 0, "exit 7": 7, "exit 75": 75, "kill -9 $$": 137, "kill -TERM $$": 143,
	} {
		code, _, stderr := run1(t, t.Context(), []string{"lock", "door", "--", "sh", "-c", script})
		if code != want || stderr != "" {
			t.Errorf("%s: it exits with %d and says %q", script, code, stderr)
		}
		isFree(t, k, "door")
	}
	for name, want := range map[string]int{
		"no-such-command": 127, "/no/such/file": 127, "/dev/null": 126,
	} {
		code, _, stderr := lockctl(t, "lock door -- "+name)
		if code != want || !strings.Contains(stderr, name) {
			t.Errorf("%s: it exits with %d and says %q", name, code, stderr)
		}
		isFree(t, k, "door")
	}
	l := take(t, k, "door")
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := lockctl(t, "lock door -json -owner it -- expr 1 = 0")
	want := fmt.Sprintf(`{"key":"door","token":"%d","owner":"it","lease_ms":10000,`, l.Token()+1) +
		`"exit":1,"lost":false}` + "\n"
	if code != 1 || stdout != "0\n" || stderr != want {
		t.Errorf("-json: it exits with %d, prints %q and says %q", code, stdout, stderr)
	}
}

// loop is a script that goes on for too long, though not for ever.
const loop = `for i in $(seq 1000); do sleep 0.02; done`

// SIGTERM comes before the deadline, SIGKILL at the deadline, and both to the whole group: the
// standard output is at its end only when nobody is left to write there.
// With -keep the command may take longer than the lease, and the lock is its all the time.
func TestALockThatIsKeptOutlivesItsLease(t *testing.T) {
	service(t, 1)
	k := client(t)
	code, stdout, stderr := run1(t, t.Context(), []string{
		"lock", "door", "-lease", "2s", "-keep", "--", "sh", "-c", `echo "$LOCK_TOKEN"; sleep 5; exit 3`,
	})
	if code != 3 || stdout != "1\n" || stderr != "" {
		t.Errorf("it exits with %d, prints %q and says %q", code, stdout, stderr)
	}
	if l := take(t, k, "door"); l.Token() != 2 {
		t.Errorf("the next lock has token %d", l.Token())
	}
}

// consul#1843.
func TestACommandIsEndedByTheDeadline(t *testing.T) {
	service(t, 1)
	k := client(t)
	var all sync.WaitGroup
	for _, c := range []struct{ key, script, stdout, stderr string }{
		{"it heeds SIGTERM", "echo begin; exec sleep 60", "begin\n", "was stopped in time"},
		{"it then exits with 0", `trap "exit 0" TERM; echo begin; ` + loop,
			"begin\n", "was stopped in time"},
		{"it is stopped", "echo begin; kill -STOP $$; sleep 60", "begin\n", "was stopped in time"},
		{"it does not heed SIGTERM", `trap "echo term" TERM; echo begin; ` + loop,
			"begin\nterm\n", "is killed"},
		{"nor does its child", `trap "" TERM; sh -c "$0" & wait; wait`, "begin\n", "is killed"},
	} {
		all.Go(func() {
			code, stdout, stderr, took := outlive(t,
				"lock", c.key, "-lease", "2s", "--", "sh", "-c", c.script, "echo begin; "+loop)
			if stdout != c.stdout {
				t.Errorf("%s: it prints %q, want %q", c.key, stdout, c.stdout)
			}
			if code != 70 || !strings.Contains(stderr, c.stderr) || !strings.Contains(stderr, c.key) {
				t.Errorf("%s: it exits with %d and says %q", c.key, code, stderr)
			}
			if took < 800*time.Millisecond || took > 10*time.Second {
				t.Errorf("%s: it has run for %v", c.key, took)
			}
			if err := take(t, k, c.key).Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// outlive runs lockctl until all who may write to its standard output have ended. It tells how long
// they have lived after their first word.
func outlive(t *testing.T, args ...string) (
	code int, stdout, stderr string, took time.Duration,
) {
	cmd := exec.Command(os.Args[0], args...)
	var errs strings.Builder
	cmd.Stderr, cmd.Env = &errs, append(os.Environ(), asLockctl+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	head := make([]byte, len("begin\n"))
	if err == nil {
		_, err = io.ReadFull(out, head)
	}
	begun := time.Now() // the lease has begun somewhat earlier
	rest, err2 := io.ReadAll(out)
	if err := errors.Join(err, err2); err != nil {
		t.Error(err)
	}
	took = time.Since(begun)
	_ = cmd.Wait() // the code says it
	return cmd.ProcessState.ExitCode(), string(head) + string(rest), errs.String(), took
}

// Its own exit code would hide that another may have worked at the same time.
func TestACommandWhoseLockWasTakenAwayDoesNotSucceed(t *testing.T) {
	service(t, 1)
	k, file := client(t), filepath.Join(t.TempDir(), "go")
	p := begin(t, "lock", "door", "-lease", "1m", "-json", "--", "sh", "-c",
		`echo begin; until test -e "$0"; do sleep 0.02; done; exit 0`, file)
	p.until("begin")
	if _, err := k.ForceRelease(t.Context(), "door"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := p.end()
	if code != 70 || !strings.Contains(stderr, "has exited with 0") ||
		!strings.Contains(stderr, `"exit":70,"lost":true`) {
		t.Errorf("it exits with %d and says %q", code, stderr)
	}
}

// Signals reach what the command has started, too.
func TestSignalsArePassedOnToTheGroup(t *testing.T) {
	service(t, 1)
	k := client(t)
	for s, name := range map[syscall.Signal]string{
		syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT",
	} {
		inner := `trap "echo inner; exit" ` + name + `; echo ready; ` + loop
		outer := `trap "echo outer" ` + name + `; sh -c "$0"; exit 4`
		p := begin(t, "lock", "door", "-lease", "1m", "--", "sh", "-c", outer, inner)
		p.until("ready")
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := p.end()
		if code != 4 || !strings.Contains(stdout, "inner") || !strings.Contains(stdout, "outer") {
			t.Errorf("%s: it exits with %d, prints %q and says %q", name, code, stdout, stderr)
		}
		isFree(t, k, "door")
	}
}

func TestASignalBeforeTheLockMeansNoCommand(t *testing.T) {
	service(t, 1)
	k := client(t)
	for _, s := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	} {
		l := take(t, k, "door")
		p := begin(t, "lock", "door", "-lease", "1m", "--", "echo", "started")
		eventually(t, func() bool { return waits(t, p) }, func() string { return "it does not wait" })
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := p.end()
		if code != 75 || stdout != "" || !strings.Contains(stderr, "a signal came before") {
			t.Errorf("%v: it exits with %d, prints %q and says %q", s, code, stdout, stderr)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		isFree(t, k, "door")
	}
}

// waits tells whether a process has a connection to the service.
func waits(t *testing.T, p *process) bool {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", p.Process.Pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Skip("this needs /proc:", err)
	}
	return slices.ContainsFunc(files, func(e os.DirEntry) bool {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		return err == nil && strings.HasPrefix(to, "socket:")
	})
}

// The signal may come between the Grant and the command.
func TestASignalAfterTheLockMayStillMeanNoCommand(t *testing.T) {
	service(t, 1)
	k := client(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := command{
		key: "door", argv: []string{"echo", "started"}, lease: time.Minute, conflict: 75,
		stdout: create(t, t.TempDir(), "out"),
	}
	l := take(t, k, "door")
	cancel()
	_, _, err := c.runHolding(ctx, l)
	if err == nil || !strings.Contains(err.Error(), "before the command was started") {
		t.Errorf("it says %v", err)
	}
	if out := content(t, c.stdout); out != "" {
		t.Errorf("the command has printed %q", out)
	}
}
