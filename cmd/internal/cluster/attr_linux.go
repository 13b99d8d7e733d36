package cluster

import "syscall"

// attr puts a process into a group of its own, so that a signal reaches what it has started too,
// and has the kernel kill it when this one dies, however that happens.
func attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
