package wal

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ticketing/raft"
)

// Recovered says what Open has dropped: the tail of the last segment, cut by a crash before it was
// synced. If Bytes is 0, nothing was.
type Recovered struct {
	File   string
	Offset int64  // the first byte dropped; at 0 the file was removed
	Bytes  int64  // how many
	Reason string // what was wrong at Offset
}

// A DamageError says where something is damaged that was synced, or cannot have been written by a
// server in order. Such a server must not start: it has forgotten what it has promised. It can be
// replaced by one with a new id, or get back its directory as it was when it stopped.
type DamageError struct {
	File   string
	Offset int64
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s, offset %d: %s; this server has lost what it promised to keep and must "+
		"not start; give it its directory as it was, or replace it by a server with a new id",
		e.File, e.Offset, e.Reason)
}

const suffix = ".wal"

// segmentName has as many digits as it takes for names to sort as numbers do.
func segmentName(number uint64) string { return fmt.Sprintf("%020d%s", number, suffix) }

// segmentNumber is the reverse.
func segmentNumber(name string) (number uint64, ok bool) {
	number, err := strconv.ParseUint(strings.TrimSuffix(name, suffix), 10, 64)
	if err != nil || number == 0 || segmentName(number) != name {
		return 0, false
	}
	return number, true
}

// segmentNames returns the names of all files that look like segments, in order.
func segmentNames(dir directory) ([]string, error) {
	names, err := dir.Names()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, suffix) })
	slices.Sort(names)
	return names, nil
}

// segments returns how many segments there are. They are numbered from 1 without a gap.
func segments(dir directory) (uint64, error) {
	names, err := segmentNames(dir)
	if err != nil {
		return 0, err
	}
	for i, name := range names {
		if _, ok := segmentNumber(name); !ok {
			return 0, fmt.Errorf("%s is not the name of a file of this log; move it away", name)
		}
		if want := segmentName(uint64(i) + 1); name != want {
			return 0, &DamageError{want, 0, "the file is missing, though there is " + name}
		}
	}
	return uint64(len(names)), nil
}

// survivors is what load finds.
type survivors struct {
	options   Options
	durable   raft.Durable
	recovered Recovered

	number uint64 // the last segment that counts; 0 if none does
	end    int64  // where its last record ends
	tail   []byte // the last write: the last record, with the header if it is the first
	marked bool   // the last record is a mark
	remove string // a segment that does not count
}

func (s *survivors) last() raft.Index { return raft.Index(len(s.durable.Entries)) }

// load plays all records back. It changes nothing on the disk.
func load(dir directory, o Options) (*survivors, error) {
	s := &survivors{options: o}
	count, err := segments(dir)
	if err != nil {
		return nil, err
	}
	for number := uint64(1); number <= count; number++ {
		data, err := dir.Read(segmentName(number))
		if err != nil {
			return nil, err
		}
		if err := s.segment(number, data, number == count); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// segment plays one segment back. Where it is damaged, it ends, if that is allowed.
func (s *survivors) segment(number uint64, data []byte, last bool) error {
	cut := func(at int64, problem string) error { return s.cut(number, data, at, last, problem) }
	h, ok := readHeader(data)
	if !ok {
		if err := s.torn(number, data); err != nil {
			return err
		}
		return cut(0, "there is no header")
	}
	if err := s.belongs(h, number); err != nil {
		return err
	}
	at, start := int64(headerSize), int64(0)
	for at < int64(len(data)) {
		r, problem := readRecord(number, data, at)
		if problem != "" {
			return cut(at, problem)
		}
		if r.kind != kindWrite {
			return fmt.Errorf("%s, offset %d: this program does not know records of kind %d; "+
				"start the newer one that wrote it", segmentName(number), at, r.kind)
		}
		if err := s.play(r.body); err != nil {
			return &DamageError{segmentName(number), at, err.Error()}
		}
		s.number, s.end, s.tail = number, r.end, data[start:r.end]
		at, start = r.end, r.end
	}
	if at == headerSize {
		return cut(at, "there is no record behind the header")
	}
	return nil
}

// torn checks that what stands in place of a header may be what a crash has left of one: a part of
// the very header that this server would have written, and then nothing. Anything else was not
// written by a server that crashed, and a file that this log has not made it must not remove.
func (s *survivors) torn(number uint64, data []byte) error {
	name := segmentName(number)
	want := appendHeader(nil, header{
		version, s.options.Cluster, s.options.Server, number, uint64(s.end),
	})
	got := data[:min(headerSize, len(data))]
	n := 0
	for n < len(got) && got[n] == want[n] {
		n++
	}
	if len(bytes.Trim(got[n:], "\x00")) == 0 {
		return nil
	}
	if n < len(magic) {
		return fmt.Errorf("%s, offset 0: this is no file of a log, it begins with %q; if it is not "+
			"this server's, move it away, else give the server its directory as it was",
			name, got[:min(16, len(got))])
	}
	return &DamageError{name, 0, "the header is damaged"}
}

// belongs checks that a segment is this server's and that the one before it is as long as it was.
func (s *survivors) belongs(h header, number uint64) error {
	name := segmentName(number)
	switch {
	case h.version != version:
		return fmt.Errorf("%s has version %d of the format, this program knows version %d; "+
			"start the program that wrote it", name, h.version, version)
	case h.cluster != s.options.Cluster || h.server != s.options.Server:
		return fmt.Errorf("%s belongs to server %d of cluster %d, this is server %d of cluster %d; "+
			"name this server's own directory", name, h.server, h.cluster,
			s.options.Server, s.options.Cluster)
	case h.number != number:
		return &DamageError{name, 0, fmt.Sprintf("this is segment %d under another name", h.number)}
	case h.previous != uint64(s.end):
		problem := fmt.Sprintf("the segment ends here and had %d bytes when the next began",
			h.previous)
		return &DamageError{segmentName(number - 1), s.end, problem}
	}
	return nil
}

// play applies one record. "Entries, if any, replace everything that is stored at the first one's
// index and after it."
func (s *survivors) play(body []byte) error {
	w, err := decode(body)
	if err != nil {
		return err
	}
	s.marked = len(w.Entries) == 0 && w.HardState == s.durable.HardState
	s.durable.HardState = w.HardState
	if len(w.Entries) == 0 {
		return nil
	}
	first := w.Entries[0].Index
	if first < 1 || first > s.last()+1 {
		return fmt.Errorf("entry %d follows entry %d", first, s.last())
	}
	s.durable.Entries = append(s.durable.Entries[:first-1], w.Entries...)
	return nil
}

// cut ends the log at a damaged place, or refuses because it had been synced.
func (s *survivors) cut(number uint64, data []byte, at int64, last bool, problem string) error {
	name := segmentName(number)
	if why := synced(number, data, at, last); why != "" {
		return &DamageError{name, at, problem + ", and " + why}
	}
	if s.number != number { // not even the first record is whole
		s.remove, at = name, 0
	}
	s.recovered = Recovered{name, at, int64(len(data)) - at, problem}
	return nil
}

// synced says why it is known that a damaged place had been synced, "" if it is not. Only the last
// segment can hold anything that had not: the next one begins when all before it is synced.
func synced(number uint64, data []byte, at int64, last bool) string {
	if !last {
		return "a later segment says that it was synced"
	}
	for i := at + unit; i < int64(len(data)); i += unit {
		if h, ok := readHead(number, data, i); ok && h.synced > at {
			return fmt.Sprintf("the record at offset %d says that it was synced", i)
		}
	}
	return ""
}
