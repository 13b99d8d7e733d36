package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A directory is what the log needs of a disk. Names that appear or go are durable after Sync.
type directory interface {
	Names() ([]string, error)
	Read(name string) ([]byte, error)
	Open(name string, create bool) (file, error) // create: a new file; the name must be free
	Rename(from, to string) error                // in place of a file named to, if there is one
	Remove(name string) error
	Sync() error
}

// A file is written at given places. What was written, and the length, are durable after Sync.
type file interface {
	WriteAt(b []byte, offset int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// osDir is a directory of the operating system.
type osDir string

func (d osDir) Names() ([]string, error) {
	list, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names, nil
}

// Read returns a file's bytes. One that is larger than any that this package writes is refused
// before memory is asked for.
func (d osDir) Read(name string) ([]byte, error) {
	path := filepath.Join(string(d), name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if most := int64(headerSize + 2*maxRecord); info.Size() > most {
		return nil, fmt.Errorf("%s: %d bytes are more than any file of a log has (%d)",
			path, info.Size(), most)
	}
	return os.ReadFile(path)
}

func (d osDir) Open(name string, create bool) (file, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(filepath.Join(string(d), name), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d osDir) Rename(from, to string) error {
	return os.Rename(filepath.Join(string(d), from), filepath.Join(string(d), to))
}

func (d osDir) Remove(name string) error { return os.Remove(filepath.Join(string(d), name)) }

func (d osDir) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	defer f.Close() // it was open for reading alone
	return f.Sync()
}

// makeDir makes the directory if it is not there. Its own name is durable after its parent is
// synced, which may not have happened to a directory that a crashed process has made.
func makeDir(path string) error {
	switch err := os.Mkdir(path, 0o700); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; make the directory above it first", err)
	case err != nil && !errors.Is(err, fs.ErrExist):
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is a file; name a directory", path)
	}
	return osDir(filepath.Dir(filepath.Clean(path))).Sync()
}

// advised says what to do about an error, where the system's words do not.
func advised(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w; let the server's user read and write there, or name another directory",
			err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w; make room and start the server again", err)
	}
	return err
}
