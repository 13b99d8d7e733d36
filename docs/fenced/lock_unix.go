//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package fenced

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock waits until no other call is in the store, of this process or of another. What it locks is a
// file that stays: the store's own is replaced, and a lock on what was replaced keeps nobody out.
func (s *Store) lock() (unlock func(), err error) {
	s.mu.Lock()
	f, err := os.OpenFile(s.path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("locking the store: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		s.mu.Unlock()
		return nil, fmt.Errorf("locking the store: %w", err)
	}
	return func() {
		f.Close() // which gives the lock back
		s.mu.Unlock()
	}, nil
}
