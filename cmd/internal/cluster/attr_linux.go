package cluster

import (
	"syscall"
	"unsafe"
)

// attr puts a process into a group of its own, so that a signal reaches what it has started too,
// and has the kernel kill it when this one dies, however that happens.
func attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// standsStill waits until all threads of a child that was sent SIGSTOP have stopped, or it has
// ended. One that is in a system call comes to its end first, and stops before it can tell anyone.
func standsStill(pid int) {
	const byPID, stopped, leave = 1, 2, 0x01000000 // P_PID, WSTOPPED, WNOWAIT
	var info [128]byte                             // a siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), stopped|leave, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
