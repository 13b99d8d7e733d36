package wal

import (
	"bytes"
	"errors"
	"fmt"

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

// survivors is what load finds.
type survivors struct {
	options   Options
	durable   raft.Durable
	outline   outline
	recovered Recovered

	marker uint64 // the last segment that begins with a snapshot's marker; 0 if none does
	number uint64 // the last segment that counts; 0 if none does
	end    int64  // where its last record ends
	tail   []byte // the last write: the last record, with the header if it is the first
	marked bool   // the last record is a mark
	torn   string // a segment that does not count

	begin    uint64   // the first segment that is needed
	unneeded []string // files of this log that are not needed any more
}

// load plays all records back. It changes nothing on the disk.
func load(dir directory, o Options) (*survivors, error) {
	s := &survivors{options: o}
	segments, err := s.row(dir)
	if err != nil {
		return nil, err
	}
	s.outline = outline{spans: []span{{}}}
	if s.marker > 0 {
		s.outline = outline{open: true}
	}
	for i, data := range segments {
		if err := s.segment(s.begin+uint64(i), data, i == len(segments)-1); err != nil {
			return nil, err
		}
	}
	return s, s.loadSnapshots(dir)
}

// segment plays one segment back. Where it is damaged, it ends, if that is allowed.
func (s *survivors) segment(number uint64, data []byte, last bool) error {
	cut := func(at int64, problem string) error { return s.cut(number, data, at, last, problem) }
	h, ok := readHeader(data)
	if !ok {
		if err := s.tornHeader(number, data); err != nil {
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
		if r.kind > kindMembers {
			return fmt.Errorf("%s, offset %d: this program does not know records of kind %d; "+
				"start the newer one that wrote it", segmentName(number), at, r.kind)
		}
		if err := s.play(number, at, r); err != nil {
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

// tornHeader checks that what stands in place of a header may be what a crash has left of one: a
// part of the very header that this server would have written, and then nothing. Anything else was
// not written by a server that crashed, and a file that this log has not made it must not remove.
func (s *survivors) tornHeader(number uint64, data []byte) error {
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
	case s.number > 0 && h.previous != uint64(s.end):
		problem := fmt.Sprintf("the segment ends here and had %d bytes when the next began",
			h.previous)
		return &DamageError{segmentName(number - 1), s.end, problem}
	}
	return nil
}

// play applies one record. "Entries, if any, replace everything that is stored at the first one's
// index and after it." Of several markers the last one alone is played: the segments on which the
// others stood are gone, and all that they had kept and is still needed is in those that are left.
func (s *survivors) play(number uint64, at int64, r record) error {
	b, err := decode(r.kind, r.body)
	if err != nil {
		return err
	}
	if b.Snapshot != nil && (at != headerSize || b.begin > number) {
		return errors.New("a snapshot's marker stands behind other records, or needs what comes later")
	}
	s.marked = b.Snapshot == nil && len(b.Entries) == 0 && b.HardState == s.durable.HardState
	s.durable.HardState = b.HardState
	if b.Snapshot != nil && number == s.marker {
		s.durable.Snapshot = b.Snapshot
		if _, stays := s.outline.begin(b.Snapshot, number); stays {
			s.durable.Entries = behind(s.durable.Entries, b.Snapshot.LastIncludedIndex)
		} else {
			s.durable.Entries = nil
		}
	}
	if !s.outline.put(b.Entries, number) {
		return fmt.Errorf("entry %d follows entry %d", b.Entries[0].Index, s.outline.last)
	}
	if len(b.Entries) > 0 {
		s.durable.Entries = append(before(s.durable.Entries, b.Entries[0].Index), b.Entries...)
	}
	return nil
}

// behind returns those entries whose index is greater.
func behind(entries []raft.Entry, index raft.Index) []raft.Entry {
	for len(entries) > 0 && entries[0].Index <= index {
		entries = entries[1:]
	}
	return entries
}

// before returns those entries whose index is smaller.
func before(entries []raft.Entry, index raft.Index) []raft.Entry {
	if len(entries) == 0 || index <= entries[0].Index {
		return entries[:0]
	}
	return entries[:index-entries[0].Index]
}

// cut ends the log at a damaged place, or refuses because it had been synced.
func (s *survivors) cut(number uint64, data []byte, at int64, last bool, problem string) error {
	name := segmentName(number)
	if why := synced(number, data, at, last); why != "" {
		return &DamageError{name, at, problem + ", and " + why}
	}
	if s.number != number { // not even the first record is whole
		s.torn, at = name, 0
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
