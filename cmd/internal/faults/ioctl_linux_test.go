package faults

import (
	"os"
	"syscall"
	"unsafe"
)

// ioctl makes a request of a file that has one number as its argument.
func ioctl(file *os.File, request uintptr, argument uint32) syscall.Errno {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request,
		uintptr(unsafe.Pointer(&argument)))
	return errno
}
