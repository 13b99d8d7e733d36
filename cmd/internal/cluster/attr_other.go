//go:build unix && !linux

package cluster

import "syscall"

// attr puts a process into a group of its own, so that a signal reaches what it has started too.
// Nothing here kills it when this one dies without Stop: a program that reads its standard input
// can end at the end of it.
func attr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// standsStill does not wait here: a child that was sent SIGSTOP may go on for a moment.
func standsStill(pid int) {}
