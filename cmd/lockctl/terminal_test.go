//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// screen is a terminal with a program in its foreground.
type screen struct {
	t     *testing.T
	keys  *os.File
	shell *exec.Cmd

	mu    sync.Mutex
	shown string
}

// terminal runs a shell script in a terminal of its own; in it, $lockctl is lockctl.
func terminal(t *testing.T, script string) *screen {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("this needs terminals:", err)
	}
	var number, unlock int32
	control := func(request uintptr, value *int32) {
		if err := ioctl(keys, request, value); err != nil {
			t.Skip("this needs terminals:", err)
		}
	}
	control(syscall.TIOCSPTLCK, &unlock)
	control(syscall.TIOCGPTN, &number)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("this needs terminals:", err)
	}
	defer tty.Close()
	s := &screen{t: t, keys: keys, shell: exec.Command("bash", "-c", script)}
	s.shell.Stdin, s.shell.Stdout, s.shell.Stderr = tty, tty, tty
	s.shell.Env = append(os.Environ(), asLockctl+"=1", "lockctl="+os.Args[0])
	s.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.shell.Start(); err != nil {
		t.Fatal(err)
	}
	go s.watch()
	t.Cleanup(func() {
		_ = s.shell.Process.Kill()
		keys.Close()
	})
	return s
}

func (s *screen) watch() {
	b := make([]byte, 1000)
	for {
		n, err := s.keys.Read(b)
		s.mu.Lock()
		s.shown += string(b[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// types waits until something is shown and then presses keys.
func (s *screen) types(when, keys string) {
	s.t.Helper()
	eventually(s.t, func() bool { return strings.Contains(s.text(), when) }, func() string {
		return fmt.Sprintf("it does not show %q but %q", when, s.text())
	})
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// ends waits for the shell's end, before which something was shown.
func (s *screen) ends(code int, shown string) {
	s.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- s.shell.Wait() }()
	eventually(s.t, func() bool { return len(ended) > 0 }, func() string {
		return fmt.Sprintf("it does not end, and shows %q", s.text())
	})
	err := <-ended
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	eventually(s.t, func() bool { return strings.Contains(s.text(), shown) }, func() string {
		return fmt.Sprintf("it does not show %q but %q", shown, s.text())
	})
	if got := s.shell.ProcessState.ExitCode(); got != code {
		s.t.Errorf("it exits with %d, want %d, and shows %q", got, code, s.text())
	}
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// A group of its own is in the background, where a program that reads from the terminal is stopped.
func TestACommandCanReadFromTheTerminal(t *testing.T) {
	service(t, 1)
	s := terminal(t, `$lockctl lock door -lease 1m -- sh -c 'echo ask; read x; echo "got $x"; exit 6'`)
	s.types("ask", "hello\n")
	s.ends(6, "got hello")
}

func TestTheTerminalIsTakenBack(t *testing.T) {
	service(t, 1)
	s := terminal(t, `$lockctl lock door -lease 1m -- sh -c 'echo ask; read x'
		echo next; read y; echo "then $y"`)
	s.types("ask", "hello\n")
	s.types("next", "again\n")
	s.ends(0, "then again")
}

// A pager, say, which reads keys while the command fills it.
func TestTheTerminalIsLeftToTheRestOfAPipeline(t *testing.T) {
	service(t, 1)
	s := terminal(t, `set -m; $lockctl lock door -lease 1m -- sh -c 'echo line; exec sleep 0.5' |
		sh -c 'read l; echo ask; read k </dev/tty; echo "got $l $k"'`)
	s.types("ask", "key\n")
	s.ends(0, "got line key")
}

func TestCtrlCReachesTheCommand(t *testing.T) {
	service(t, 1)
	for name, work := range map[string]string{"it reads": "read x", "it does not": "sleep 50"} {
		s := terminal(t, `trap : INT; $lockctl lock door -lease 1m -- sh -c '
			trap "echo caught; exit 8" INT; echo ask; `+work+`'`)
		s.types("ask", "")
		if name == "it reads" {
			foreground(s, "sh")
		}
		s.types("ask", ctrlC)
		s.ends(8, "caught")
	}
}

// foreground waits until the terminal is a program's, and the program sleeps: a shell that is on its
// way into a read would heed a signal only after it.
func foreground(s *screen, program string) {
	s.t.Helper()
	s.waitFor(func() bool {
		var group int32
		if ioctl(s.keys, syscall.TIOCGPGRP, &group) != nil || group == int32(s.shell.Process.Pid) {
			return false
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", group))
		return err == nil && strings.Contains(string(stat), "("+program+") S ")
	})
}

func (s *screen) waitFor(holds func() bool) {
	s.t.Helper()
	eventually(s.t, holds, func() string { return fmt.Sprintf("it shows %q", s.text()) })
}

// Whoever is suspended cannot heed a deadline.
func TestCtrlZSuspendsNothing(t *testing.T) {
	service(t, 1)
	s := terminal(t, `set -m; $lockctl lock door -lease 1m -- sh -c 'echo ask; read x; echo "got $x"'
		exit $?`)
	s.types("ask", "")
	foreground(s, "sh")
	s.types("ask", ctrlZ)
	s.types("^Z", "hello\n")
	s.ends(0, "got hello")
	s = terminal(t, `set -m; $lockctl lock door -lease 1m -- sh -c 'echo ask; sleep 0.5; echo "done"'
		exit $?`)
	s.types("ask", ctrlZ)
	s.ends(0, "done")
}

// In the background the command waits for the terminal until lockctl is brought to the front.
func TestABackgroundJobGetsTheTerminalWhenItComesToTheFront(t *testing.T) {
	service(t, 1)
	s := terminal(t, `set -m
		$lockctl lock door -lease 1m -- sh -c 'echo ask; read x; echo "got $x"' &
		read a; echo "mine $a"; fg; exit 5`)
	s.types("ask", "first\n")
	s.types("mine first", "second\n")
	s.ends(5, "got second")
}
