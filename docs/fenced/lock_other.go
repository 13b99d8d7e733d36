//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package fenced

import (
	"errors"
	"fmt"
)

// lock refuses to go without a lock between processes. Where there is no flock, put what the system
// has in its place.
func (s *Store) lock() (unlock func(), err error) {
	return nil, fmt.Errorf("locking the store: no flock here: %w", errors.ErrUnsupported)
}
