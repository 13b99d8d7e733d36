//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// lock takes the directory for this Log. The operating system gives it back when the file is closed
// or the process ends, however it ends; so a file that lies about is no lock.
func lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		problem := fmt.Errorf("locking %s: %w", path, err)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			problem = fmt.Errorf("%s: %w; stop the other server first", path, ErrLocked)
		}
		return nil, errors.Join(problem, f.Close())
	}
	return f, nil
}
