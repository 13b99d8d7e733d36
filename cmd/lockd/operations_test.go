package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ticketing/rpc"
)

// shown finds the shell commands below a heading of docs/operations.md.
func shown(t *testing.T, heading string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[1])
	}
	if !ok || len(blocks) == 0 {
		t.Fatalf("docs/operations.md shows no commands under %q", heading)
	}
	return blocks
}

// clone makes a directory that looks like the project's root, where commands may leave what they
// like.
func clone(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "cmd", "fsm", "raft", "rpc"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A shell runs commands as the page shows them, in a directory and with ports of the test's own.
type shell struct {
	dir   string
	env   string // one more variable
	ports *strings.Replacer
}

// command does not outlive the test, nor does the test wait for what outlives the command.
func (s shell) command(t *testing.T, line string) (*exec.Cmd, *output) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(stop)
	cmd, out := exec.CommandContext(ctx, "sh", "-c", s.ports.Replace(line)), newOutput()
	cmd.WaitDelay = time.Second
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	cmd.Env = append(os.Environ(), s.env)
	return cmd, out
}

// run runs one command, which must exit with a code.
func (s shell) run(t *testing.T, line string, code int) string {
	t.Helper()
	cmd, out := s.command(t, line)
	if _ = cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("%s\nends with %v and says\n%s", line, cmd.ProcessState, out)
	}
	return out.String()
}

// background starts a command that has & at its end, and ends it with the test.
func (s shell) background(t *testing.T, line string) (*exec.Cmd, *output) {
	t.Helper()
	cmd, out := s.command(t, "exec "+strings.TrimSuffix(line, "&"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, out
}

// The page's commands, one after the other; and while its last one runs the leader is killed.
// (etcd#2660.)
func TestTheShownClusterSurvivesTheLossOfItsLeader(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 3)
	sh := shell{dir: clone(t), ports: strings.NewReplacer(
		"127.0.0.1:7001", addrs[0], "127.0.0.1:7002", addrs[1], "127.0.0.1:7003", addrs[2])}
	sh.env = "LOCKCTL_ADDRS=" + strings.Join(addrs, ",") // else it looks at those that are shown
	servers := map[string]*exec.Cmd{}
	blocks := shown(t, "Three servers on one machine")
	var said []string
	for line := range strings.Lines(blocks[0]) {
		line = strings.TrimSpace(line)
		if !strings.HasSuffix(line, "&") {
			said = append(said, sh.run(t, line, 0))
			continue
		}
		server, out := sh.background(t, line)
		out.await(t, "msg=listening")
		servers[addrs[len(servers)]] = server
	}
	if len(servers) != 3 || len(said) < 4 || said[2] != "token 1\n" {
		t.Fatalf("%d servers, and the commands say %q", len(servers), said)
	}

	client := dial(t, addrs...)
	first := leaderOf(client, addrs)
	longer, out := sh.command(t, blocks[1])
	if err := longer.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = longer.Process.Kill() }()
	eventually(t, "the lock is held", func() bool { return holder(client) == 2 })
	if err := servers[first].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second := ""
	eventually(t, "another server leads", func() bool {
		second = leaderOf(client, addrs)
		return second != "" && second != first
	})
	if token := holder(client); token != 2 || out.String() != "" {
		t.Errorf("under the new leader token %d holds; the command has said %q", token, out)
	}
	_ = longer.Wait() // its code is looked at
	if code := longer.ProcessState.ExitCode(); code != 7 || out.String() != "still token 2\n" {
		t.Errorf("the command exits with %d and says\n%s", code, out)
	}
	eventually(t, "the lock is free", func() bool { return holder(client) == 0 })
	text := sh.run(t, "bin/lockctl status", 1) // one does not answer
	if !regexp.MustCompile(regexp.QuoteMeta(second) + ` +\d +leader`).MatchString(text) {
		t.Errorf("the leader is at %s, and status says\n%s", second, text)
	}
	for addr, server := range servers {
		if addr != first {
			stopped(t, server)
		}
	}
}

// stopped stops a process as an operator does, and looks at its code.
func stopped(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("%v: stopped, it exits with %d", cmd.Args, code)
	}
}

// leaderOf returns the address of the server that says that it leads, of those the newest.
func leaderOf(client *rpc.Client, addrs []string) string {
	leader, term := "", uint64(0)
	for _, addr := range addrs {
		if s := status(client, addr); s.Role == "leader" && uint64(s.Term) > term {
			leader, term = addr, uint64(s.Term)
		}
	}
	return leader
}

// holder returns the token under which the lock of the page is held, 0 if it is free.
func holder(client *rpc.Client) uint64 {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	info, held, err := client.Get(ctx, "demo")
	if err != nil || !held {
		return 0
	}
	return uint64(info.Token)
}

// The page's script starts a server again that was killed, and no other.
func TestTheShownScriptKeepsAServerRunning(t *testing.T) {
	t.Parallel()
	dir, pids := t.TempDir(), filepath.Join(t.TempDir(), "pid")
	script := ""
	for _, block := range shown(t, "Three machines") {
		if strings.HasPrefix(block, "#!/bin/sh") {
			script = block
		}
	}
	const lockd = "#!/bin/sh\necho $$ >%q\nLOCKD_TEST_AS=lockd exec %q \"$@\"\n"
	for name, text := range map[string]string{
		"keep-running": script, "lockd": fmt.Sprintf(lockd, pids, os.Args[0]),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sh := shell{dir, "PATH=" + dir + ":" + os.Getenv("PATH"), strings.NewReplacer()}
	addrs := freeAddrs(t, 1)
	kept, out := sh.background(t, "keep-running -id 1 -peers 1="+addrs[0]+" -dir log &")
	out.await(t, "msg=listening")
	killed := running(t, pids)
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	out.await(t, "keep-running: lockd has ended with 137")
	eventually(t, "it listens again", func() bool {
		return strings.Count(out.String(), "msg=listening") == 2
	})
	stopped(t, kept)
	if again := running(t, pids); again == killed || syscall.Kill(again, 0) == nil {
		t.Errorf("process %d was killed, and %d is still there", killed, again)
	}
	if !strings.Contains(out.String(), "msg=stopped") {
		t.Errorf("the server was not stopped:\n%s", out)
	}
	sh.run(t, "keep-running -id 1", 2)
}

func running(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
