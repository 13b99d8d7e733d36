package faults

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alone runs a test in a program of its own, in namespaces of its own for mounts, network and
// processes. It returns true there, and false where the test has nothing more to do. Whatever the
// test mounts, configures and starts vanishes when that program ends, however it does: there is no
// cleaning up that could be forgotten. It skips the test if that, or a tool, is not to be had.
func alone(t *testing.T, tools ...string) bool {
	t.Helper()
	if os.Getenv(aloneEnv) == t.Name() {
		command(t, "ip", "link", "set", "lo", "up")
		command(t, "mount", "-t", "tmpfs", "tmpfs", "/run") // where network namespaces have names
		return true
	}
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("this needs root, for mounts and network namespaces")
	}
	for _, tool := range append([]string{"unshare", "ip", "mount"}, tools...) {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("this needs %s, which is not on this machine", tool)
		}
	}
	own := []string{"--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if out, err := exec.Command("unshare", append(own, "true")...).CombinedOutput(); err != nil {
		t.Skipf("this needs namespaces of its own, which this system refuses: %v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A process dies with the thread that has started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("unshare", append(own, self,
		"-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=15m")...)
	cmd.Env = append(os.Environ(), aloneEnv+"="+t.Name(), "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	switch said := strings.TrimSpace(string(out)); {
	case err != nil:
		t.Errorf("%v:\n%s", err, said)
	case strings.Contains(said, "--- SKIP: "+t.Name()):
		t.Skip(said)
	case !strings.Contains(said, "--- PASS: "+t.Name()):
		t.Errorf("no such test has run:\n%s", said)
	default:
		t.Log(said)
	}
	return false
}

// command runs a command that must succeed.
func command(t *testing.T, words ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return string(out)
}

// disk is a file system of its own, on a file that stands for the hardware.
type disk struct {
	t          *testing.T
	image, dir string
}

// newDisk makes a file system and mounts it.
func newDisk(t *testing.T, dir string) *disk {
	t.Helper()
	d := &disk{t, dir + ".img", dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, "truncate", "-s", "64M", d.image)
	command(t, "mkfs.ext4", "-q", "-F", d.image)
	loop, err := exec.Command("mount", "-o", mountOptions, d.image, dir).CombinedOutput()
	if err != nil {
		t.Skipf("this needs loop devices with ext4, which this system refuses: %v\n%s", err, loop)
	}
	// Before its directory is removed.
	t.Cleanup(func() { unmount(t, dir) })
	return d
}

// What nobody has synced stays in memory for as long as that can be arranged.
const mountOptions = "loop,commit=600"

// cut cuts the power: from now on nothing reaches the hardware, not even the file system's journal.
func (d *disk) cut() {
	d.t.Helper()
	dir, err := os.Open(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer dir.Close()
	const shutdown, noLogFlush = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH
	if errno := ioctl(dir, shutdown, noLogFlush); errno != 0 {
		d.t.Skipf("this needs an ext4 that can be shut down: %v", errno)
	}
}

// back mounts what has reached the hardware. Nobody may use the directory.
func (d *disk) back() {
	d.t.Helper()
	unmount(d.t, d.dir)
	command(d.t, "mount", "-o", mountOptions, d.image, d.dir)
}

func unmount(t *testing.T, dir string) {
	t.Helper()
	eventually(t, dir+" is not in use", func() bool {
		return exec.Command("umount", dir).Run() == nil
	})
}

// segments returns the files of a server's log, in order.
func segments(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// strace returns the words that run a server so that its fsync does something else.
func strace(fault string) []string {
	return []string{"strace", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null",
		"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:" + fault}
}

// traces skips the test if strace may not trace.
func traces(t *testing.T) {
	t.Helper()
	words := append(strace("retval=0"), "true")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Skipf("this needs a strace that can inject faults: %v\n%s", err, out)
	}
}
