package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
	"unsafe"
)

// child is a command that runs in a process group of its own, so that signals reach what it has
// started as well.
//
// Such a group is in the background of a terminal: one that reads from there is stopped. When that
// happens and lockctl itself is in the foreground, it hands the terminal over and lets the command
// go on, as a shell does. It is not handed over before it is asked for, since lockctl may be one
// part of a pipeline, whose other parts want the terminal as well: "lockctl lock … | less".
type child struct {
	pid    int
	states chan syscall.WaitStatus // each stop, and then the end
	tty    *os.File                // nil if there is none
	wants  bool                    // it is stopped, since it wants the terminal
	handed bool                    // the terminal was handed over
}

// start starts a command. No shell is involved.
func start(argv, env []string, files []*os.File) (*child, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, cannotRun(err)
	}
	process, err := os.StartProcess(path, argv, &os.ProcAttr{
		Env: env, Files: files, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, cannotRun(err)
	}
	p := &child{pid: process.Pid, states: make(chan syscall.WaitStatus)}
	// From here on it is waited for by its number: that tells of stops, too. What is released is a
	// handle, which cannot fail to any harm.
	_ = process.Release()
	if p.tty, err = os.OpenFile("/dev/tty", os.O_RDWR, 0); err != nil {
		p.tty = nil
	}
	// Only background groups are stopped by this, when they write to some terminals or hand them
	// on. The command does not inherit it, as it runs already.
	signal.Ignore(syscall.SIGTTOU)
	go p.watch()
	return p, nil
}

func cannotRun(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &exitError{exitNotFound, err}
	}
	return &exitError{exitCannotRun, err}
}

// watch tells what the command does until it has ended.
func (p *child) watch() {
	for {
		var state syscall.WaitStatus
		_, err := syscall.Wait4(p.pid, &state, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil { // somebody has set SIGCHLD to be ignored, so that nobody knows how it ended
			state = exitCannotRun << 8
		}
		p.states <- state
		if !state.Stopped() {
			return
		}
	}
}

// signal signals the whole group. It may have ended in this moment.
func (p *child) signal(s syscall.Signal) { _ = syscall.Kill(-p.pid, s) }

// stopped sees to a command that was stopped.
func (p *child) stopped(by syscall.Signal) {
	switch by {
	case syscall.SIGTTIN, syscall.SIGTTOU:
		p.wants = true
		p.resume()
	case syscall.SIGTSTP: // somebody has pressed ctrl-Z, which does not stop the lease
		if front := p.foreground(); front == p.pid || front == syscall.Getpgrp() {
			p.signal(syscall.SIGCONT)
		}
	}
}

// resume hands the terminal to a command that waits for it, if that can be had.
func (p *child) resume() {
	if p.wants && p.foreground() == syscall.Getpgrp() {
		p.hand(p.pid)
		p.wants, p.handed = false, true
		p.signal(syscall.SIGCONT)
	}
}

// retry tells when to try to resume: again and again while lockctl is in the background, since
// nothing tells it when it is brought to the front.
func (p *child) retry() <-chan time.Time {
	if !p.wants {
		return nil
	}
	return time.After(100 * time.Millisecond)
}

// close takes the terminal back if it was handed over.
func (p *child) close() {
	if p.handed {
		p.hand(syscall.Getpgrp())
	}
	if p.tty != nil {
		p.tty.Close()
	}
	signal.Reset(syscall.SIGTTOU)
}

// foreground returns the process group that has the terminal, 0 if there is none.
func (p *child) foreground() int {
	var group int32
	if p.tty == nil || ioctl(p.tty, syscall.TIOCGPGRP, &group) != nil {
		return 0
	}
	return int(group)
}

// hand gives the terminal to a process group, which may have ended in this moment.
func (p *child) hand(group int) {
	number := int32(group)
	_ = ioctl(p.tty, syscall.TIOCSPGRP, &number)
}

func ioctl(tty *os.File, request uintptr, group *int32) error {
	_, _, errno := syscall.Syscall(
		syscall.SYS_IOCTL, tty.Fd(), request, uintptr(unsafe.Pointer(group)))
	if errno != 0 {
		return errno
	}
	return nil
}
