//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package wal

import (
	"fmt"
	"io"
	"runtime"
)

// lock refuses where the operating system cannot keep a second process out.
func lock(path string) (io.Closer, error) {
	return nil, fmt.Errorf("%s: a directory cannot be locked on %s", path, runtime.GOOS)
}
