//go:build unix

package wal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// This file has the tests in which another process uses the log: this program once more, which
// finds a directory in its environment.
const helper = "WAL_TEST_DIRECTORY"

// A superuser may write anywhere; so a helper without rights tries.
func TestADirectoryThatMayNotBeWrittenIsRefusedWithAdvice(t *testing.T) {
	if dir := os.Getenv(helper); dir != "" {
		_, _, err := Open(dir, mine)
		fmt.Printf("[%v]", err)
		return
	}
	dir, program := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "helper")
	closed(t, filled(t, dir, writeOf(1, 1, 1)))
	data, err := os.ReadFile(os.Args[0]) // it may stand where nobody else can run it
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	chmod := func(mode os.FileMode) {
		above := filepath.Dir(dir)
		for _, at := range []string{dir, above, filepath.Dir(program), filepath.Dir(above)} {
			if err := os.Chmod(at, mode); err != nil {
				t.Error(err)
			}
		}
	}
	chmod(0o555)
	defer chmod(0o755)
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), helper+"="+dir)
	if os.Geteuid() == 0 {
		nobody := syscall.Credential{Uid: 65534, Gid: 65534}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &nobody}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{dir, "permission denied", "or name another directory"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the helper says %s; want %q in it", out, want)
		}
	}
}

// A lock that a process has not given back when it was killed must not keep the next one out.
func TestASecondProcessIsKeptOutUntilTheFirstOneDies(t *testing.T) {
	if dir := os.Getenv(helper); dir != "" {
		_, _, err := Open(dir, mine)
		fmt.Printf("[%v]\n", err)
		_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed
		return
	}
	dir := t.TempDir()
	l := filled(t, dir, writeOf(1, 1, 1))
	first := startHelper(t, dir)
	if said := first.line(t); !strings.Contains(said, filepath.Join(dir, "lock")) ||
		!strings.Contains(said, ErrLocked.Error()) {
		t.Errorf("the helper says %q while the directory is in use", said)
	}
	closed(t, l)
	second := startHelper(t, dir)
	if said := second.line(t); said != "[<nil>]" {
		t.Errorf("the helper says %q", said)
	}
	if err := refused(t, dir, mine); !errors.Is(err, ErrLocked) {
		t.Errorf("the error is %v", err)
	}
	second.kill(t)
	closed(t, filled(t, dir))
}

type process struct {
	cmd *exec.Cmd
	out *os.File
}

func startHelper(t *testing.T, dir string) process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), helper+"="+dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = write
	if err := errors.Join(cmd.Start(), write.Close()); err != nil {
		t.Fatal(err)
	}
	p := process{cmd, read}
	t.Cleanup(func() { p.kill(t) })
	return p
}

// line reads what the helper prints.
func (p process) line(t *testing.T) string {
	t.Helper()
	b := make([]byte, 4096)
	n, err := p.out.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b[:n]))
}

// kill ends the helper as kill -9 does.
func (p process) kill(t *testing.T) {
	if p.cmd.ProcessState != nil {
		return
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = p.cmd.Wait() // it was killed
	if err := p.out.Close(); err != nil {
		t.Error(err)
	}
}

// A disk on paper believes that Sync syncs. This asks the system what it was asked to do.
func TestTheSystemIsAskedForOneWriteAndOneSyncPerSave(t *testing.T) {
	if dir := os.Getenv(helper); dir != "" {
		l := filled(t, dir, writeOf(1, 1, 1), writeOf(2, 1, 2), writeOf(3, 1, 3), writeOf(4, 1, 4))
		if err := l.lock.Close(); err != nil { // no mark: the process dies
			t.Fatal(err)
		}
		return
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: what the system is asked for is not looked at")
	}
	dir, trace := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-qq", "-y", "-o", trace,
		"-e", "trace=write,pwrite64,fsync,fdatasync,sync_file_range,ftruncate,renameat",
		os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), helper+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "ptrace") {
			t.Skipf("strace may not be used here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"fsync " + filepath.Dir(dir), "fsync " + dir, // Open
		"pwrite64 1.wal", "fsync 1.wal", "fsync " + dir, // the first Save begins a segment
	}
	for range 3 {
		want = append(want, "pwrite64 1.wal", "fsync 1.wal")
	}
	if diff := cmp.Diff(want, calls(string(data), dir)); diff != "" {
		t.Errorf("system calls (-want +got):\n%s\n%s", diff, data)
	}
}

var call = regexp.MustCompile(`(?m)^\d+ +(\w+)\(\d+<([^>]*)>`)

// calls lists the system calls in a trace that concern a directory, in order.
func calls(trace, dir string) (list []string) {
	for _, m := range call.FindAllStringSubmatch(trace, -1) {
		path, within := strings.CutPrefix(m[2], dir+"/")
		switch {
		case within:
			list = append(list, m[1]+" "+strings.TrimLeft(path, "0"))
		case path == dir || path == filepath.Dir(dir):
			list = append(list, m[1]+" "+path)
		}
	}
	return list
}
