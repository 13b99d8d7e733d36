package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"ticketing/raft"
	"ticketing/raft/wal/storetest"
)

const sector = 512

var errFault = errors.New("the disk failed, as it was told to")

// fakeDisk is a directory on paper, with what a power failure may do to it. For every file it keeps
// the bytes that programs see and those that are on the disk; for every name the same.
type fakeDisk struct {
	seen, synced map[string]*fakeFile
	pending      []change // to files, not synced, oldest first
	failing      int      // the operation, counted from now on, that fails; 0 for none
	how          storetest.Failure
	dead         bool     // since that failed, all do
	between      func()   // what happens before an operation, if not nil
	operations   int      // that changed something, since the beginning
	written      []change // everything that was written
}

type fakeFile struct {
	name         string
	seen, synced []byte
}

// A change is a write, or a truncation if data is nil.
type change struct {
	file *fakeFile
	at   int
	data []byte
	// clean: a sync has failed, and the kernel takes this for written. It may be or not, and the
	// next sync will not write it.
	clean bool
}

func newFakeDisk() *fakeDisk {
	return &fakeDisk{seen: map[string]*fakeFile{}, synced: map[string]*fakeFile{}}
}

// operation counts one, and says whether to do it and what to return. With storetest.After, both.
func (d *fakeDisk) operation() (do bool, err error) {
	if d.between != nil {
		d.between()
	}
	d.operations++
	d.failing--
	d.dead = d.dead || d.failing == 0 && d.how == storetest.Dead
	switch {
	case d.failing != 0 && !d.dead:
		return true, nil
	case d.how == storetest.Full:
		return false, fmt.Errorf("%w: %w", errFault, syscall.ENOSPC)
	}
	return d.how == storetest.After, errFault
}

func (d *fakeDisk) Names() ([]string, error) { return slices.Collect(maps.Keys(d.seen)), nil }

func (d *fakeDisk) Read(name string) ([]byte, error) {
	if f, ok := d.seen[name]; ok {
		return slices.Clone(f.seen), nil
	}
	return nil, fs.ErrNotExist
}

func (d *fakeDisk) Open(name string, create bool) (file, error) {
	f, ok := d.seen[name]
	if ok == create {
		return nil, fmt.Errorf("open %s, create %v: there is one: %v", name, create, ok)
	}
	if create {
		do, err := d.operation()
		if do {
			f = &fakeFile{name: name}
			d.seen[name] = f
		}
		if err != nil {
			return nil, err
		}
	}
	return &fakeHandle{d, f, false}, nil
}

func (d *fakeDisk) Rename(from, to string) error {
	if d.seen[from] == nil {
		return fs.ErrNotExist
	}
	do, err := d.operation()
	if do {
		d.seen[to] = d.seen[from]
		delete(d.seen, from)
	}
	return err
}

func (d *fakeDisk) Remove(name string) error {
	do, err := d.operation()
	if do {
		delete(d.seen, name)
	}
	return err
}

func (d *fakeDisk) Sync() error {
	do, err := d.operation()
	if do {
		d.synced = maps.Clone(d.seen)
	}
	return err
}

// fakeHandle is an open file.
type fakeHandle struct {
	disk   *fakeDisk
	file   *fakeFile
	closed bool
}

func (h *fakeHandle) Close() error {
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	return nil
}

func (h *fakeHandle) WriteAt(b []byte, at int64) (int, error) {
	if h.closed {
		return 0, fs.ErrClosed
	}
	do, err := h.disk.operation()
	switch {
	case !do && (h.disk.how == storetest.Before || h.disk.dead && h.disk.failing < 0):
		b = nil
	case !do:
		b = b[:len(b)/2]
	}
	c := change{file: h.file, at: int(at), data: append([]byte{}, b...)}
	if len(b) > 0 {
		h.file.seen = c.on(h.file.seen)
		h.disk.pending = append(h.disk.pending, c)
		h.disk.written = append(h.disk.written, c)
	}
	return len(b), err
}

func (h *fakeHandle) Truncate(size int64) error {
	do, err := h.disk.operation()
	if do {
		c := change{file: h.file, at: int(size)}
		h.file.seen = c.on(h.file.seen)
		h.disk.pending = append(h.disk.pending, c)
	}
	return err
}

func (h *fakeHandle) Sync() error {
	do, err := h.disk.operation()
	var kept []change
	for _, c := range h.disk.pending {
		switch {
		case c.file != h.file:
			kept = append(kept, c)
		case !do:
			c.clean = true
			kept = append(kept, c)
		case c.clean:
			kept = append(kept, c)
		default:
			h.file.synced = c.on(h.file.synced)
			kept = slices.DeleteFunc(kept, c.covers)
		}
	}
	h.disk.pending = kept
	return err
}

// on returns what becomes of a file's bytes.
func (c change) on(b []byte) []byte {
	b = slices.Clone(b)
	end := c.at + len(c.data)
	if len(b) < end {
		b = append(b, make([]byte, end-len(b))...)
	}
	if c.data == nil {
		return b[:c.at]
	}
	copy(b[c.at:], c.data)
	return b
}

// covers reports whether an earlier change to the same file makes no difference after this one.
func (c change) covers(before change) bool {
	if c.file != before.file || before.data == nil {
		return false
	}
	if c.data == nil {
		return before.at >= c.at
	}
	return c.at <= before.at && before.at+len(before.data) <= c.at+len(c.data)
}

// A place is a sector of a file, or with file nil, a name in the directory.
type place struct {
	file *fakeFile
	name string
	at   int
}

// places lists what is not synced.
func (d *fakeDisk) places() (list []place, bytes int) {
	for _, name := range slices.Sorted(maps.Keys(d.seen)) {
		if d.seen[name] != d.synced[name] {
			list = append(list, place{name: name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.synced)) {
		if d.seen[name] == nil {
			list = append(list, place{name: name})
		}
	}
	for _, c := range d.pending {
		bytes += len(c.data)
		for at := c.at / sector * sector; at < c.at+max(len(c.data), 1); at += sector {
			if p := (place{file: c.file, at: at}); !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list, bytes
}

// Crash cuts the power.
func (d *fakeDisk) Crash(choose func(storetest.Unsynced) storetest.Survivors) {
	list, bytes := d.places()
	s := choose(storetest.Unsynced{Bytes: bytes, Sectors: len(list)})
	if s.Sectors == nil {
		d.keepPrefix(s)
	} else {
		d.keepSectors(list, s)
	}
	for name, f := range d.synced {
		d.synced[name] = &fakeFile{name: name, seen: f.synced, synced: f.synced}
	}
	d.seen, d.pending, d.failing, d.dead = maps.Clone(d.synced), nil, 0, false
}

// keepPrefix keeps the first bytes written, and the names that were there by then.
func (d *fakeDisk) keepPrefix(s storetest.Survivors) {
	if s.Prefix > 0 {
		d.synced = maps.Clone(d.seen)
	}
	left := s.Prefix
	for _, c := range d.pending {
		if left == 0 && s.Short {
			return
		}
		n := min(left, len(c.data))
		left -= n
		if c.data != nil {
			kept := change{file: c.file, at: c.at, data: c.data[:n:n]}
			size := c.at + len(c.data)
			c.file.synced = kept.on(c.file.synced)
			if !s.Short && len(c.file.synced) < size { // the length alone has reached the disk
				c.file.synced = append(c.file.synced, make([]byte, size-len(c.file.synced))...)
			}
			continue
		}
		c.file.synced = c.on(c.file.synced)
	}
}

// keepSectors keeps those that are chosen, as programs have seen them.
func (d *fakeDisk) keepSectors(list []place, s storetest.Survivors) {
	for i, p := range list {
		f := p.file
		switch {
		case f == nil && !s.Sectors[i]:
		case f == nil && d.seen[p.name] == nil:
			delete(d.synced, p.name)
		case f == nil:
			d.synced[p.name] = d.seen[p.name]
		case s.Sectors[i] && p.at < len(f.seen):
			kept := change{file: f, at: p.at, data: f.seen[p.at:min(p.at+sector, len(f.seen))]}
			f.synced = kept.on(f.synced)
		case s.Sectors[i] && len(f.seen) < len(f.synced):
			f.synced = f.synced[:len(f.seen)]
		}
		if f != nil && !s.Short && len(f.synced) < len(f.seen) {
			f.synced = append(slices.Clip(f.synced), make([]byte, len(f.seen)-len(f.synced))...)
		}
	}
}

func (d *fakeDisk) Fail(nth int, how storetest.Failure) {
	d.failing, d.how, d.dead = nth, how, false
}

// logDisk is a fakeDisk with a Log on it, as storetest wants it.
type logDisk struct {
	*fakeDisk
	options Options
	records []change // what each successful Save has written
}

func newLogDisk(segmentSize int64) *logDisk {
	return &logDisk{newFakeDisk(), Options{Cluster: 7, Server: 1, SegmentSize: segmentSize}, nil}
}

func (d *logDisk) Open() (storetest.Store, raft.Durable, error) {
	before := d.operations
	l, durable, err := open(d.fakeDisk, d.options)
	if damage := (*DamageError)(nil); errors.As(err, &damage) && d.operations != before {
		return nil, durable, errors.New("a log that was refused was changed")
	}
	if err != nil {
		return nil, durable, err
	}
	return &logStore{l, d}, durable, nil
}

type logStore struct {
	*Log
	disk *logDisk
}

func (s *logStore) Save(w raft.Write) error {
	before := len(s.disk.written)
	err := s.Log.Save(w)
	if err == nil {
		s.disk.records = append(s.disk.records, s.disk.written[before:]...)
	}
	return err
}

// Damage flips a bit. An error about the first record of a segment may be about the header, which
// was written together with it.
func (d *logDisk) Damage(m, nth int) (names []string, ok bool) {
	if m >= len(d.records) || nth >= len(d.records[m].data) {
		return nil, false
	}
	c := d.records[m]
	offset := c.at
	if c.at == 0 && nth >= headerSize {
		offset = headerSize
	}
	b := slices.Clone(d.seen[c.file.name].seen)
	b[c.at+nth] ^= 1 << (nth % 8)
	d.seen[c.file.name].seen, d.seen[c.file.name].synced = b, b
	return []string{c.file.name, fmt.Sprintf("offset %d:", offset)}, true
}
