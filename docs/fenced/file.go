package fenced

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrCorrupt is a file that is not as write left it: damaged, cut off, or not a store at all.
var ErrCorrupt = errors.New("the store is damaged; nothing was changed, put a good copy there")

// document is all that the file holds. The mark and the values are never apart.
type document struct {
	High   uint64            `json:"high,string"` // some readers of JSON lose digits beyond 2^53
	Values map[string]string `json:"values"`
}

// The file is a line with a checksum, and a line of JSON of which it is the sum.
const header = "fenced 1 crc32=%08x\n"

// read returns what is in the file. A file that is not there is an empty store; an empty file is
// none, for write leaves none behind.
func read(path string) (document, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return document{Values: map[string]string{}}, nil
	}
	if err != nil {
		return document{}, fmt.Errorf("reading the store: %w", err)
	}
	first, body, _ := bytes.Cut(text, []byte("\n"))
	if string(first)+"\n" != fmt.Sprintf(header, crc32.ChecksumIEEE(body)) {
		return document{}, fmt.Errorf("%s: the checksum is wrong: %w", path, ErrCorrupt)
	}
	var d document
	if err := json.Unmarshal(body, &d); err != nil || d.Values == nil {
		return document{}, fmt.Errorf("%s: this is no store (%v): %w", path, err, ErrCorrupt)
	}
	return d, nil
}

// write replaces the file. The order matters: the new file is on the disk before it gets the name,
// and the name is on the disk before the caller is told. So a crash leaves the old file or the new.
func write(path string, d document) error {
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("writing the store: %w", err)
	}
	body = append(body, '\n')
	text := append(fmt.Appendf(nil, header, crc32.ChecksumIEEE(body)), body...)
	next := path + ".new" // one is enough: whoever writes has the lock
	if err := writeSynced(next, text); err != nil {
		return fmt.Errorf("writing the store: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("writing the store: %w", err)
	}
	return syncDirectory(path)
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDirectory makes the name of a file durable.
func syncDirectory(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("syncing the name of the store: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("syncing the name of the store: %w", err)
	}
	return nil
}
