package wal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"ticketing/raft"
)

// Options says whose log it is.
type Options struct {
	Cluster uint64        // which cluster: any number that no other cluster uses; not 0
	Server  raft.ServerID // which server of it; not 0

	// SegmentSize is the size in bytes at which a file is full and the next write begins another
	// one. 0 stands for 64 MiB; the most is 1 GiB. It may differ from one Open to the next.
	SegmentSize int64
}

func (o Options) check() error {
	switch {
	case o.Cluster == 0 || o.Server == 0:
		return fmt.Errorf("options: Cluster (%d) and Server (%d) must not be 0",
			o.Cluster, o.Server)
	case o.SegmentSize < 0 || o.SegmentSize > maxRecord:
		return fmt.Errorf("options: SegmentSize is %d bytes, must be 0 to %d",
			o.SegmentSize, maxRecord)
	}
	return nil
}

// ErrLocked is wrapped by the error of Open when another Log is open in the directory.
var ErrLocked = errors.New("the directory is in use")

// Log is the durable log of one server. It starts with Open.
type Log struct {
	options   Options
	dir       directory
	lock      io.Closer // nil on a disk that is not real
	recovered Recovered

	file   file // the last segment; nil before the first write
	number uint64
	size   int64

	begin uint64 // the first segment that is needed
	kept  kept   // snapshots; all else belongs to the goroutine that saves writes

	seq     uint64         // the last write saved since Open
	outline outline        // the entries stored
	hard    raft.HardState // the last stored
	marked  bool           // the last record is a mark
	err     error          // why the log has stopped
	buf     []byte         // room for the next record
}

// Open opens the log in a directory, which is made if it is not there (its parent must be), and
// returns what has survived. It holds the directory until Close.
func Open(dir string, o Options) (*Log, raft.Durable, error) {
	if err := o.check(); err != nil {
		return nil, raft.Durable{}, fmt.Errorf("wal: %w", err)
	}
	if err := makeDir(dir); err != nil {
		return nil, raft.Durable{}, fmt.Errorf("wal: making the directory: %w", advised(err))
	}
	held, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, raft.Durable{}, fmt.Errorf("wal: %w", advised(err))
	}
	l, durable, err := open(osDir(dir), o)
	if err != nil {
		err = fmt.Errorf("wal: opening %s: %w", dir, advised(err))
		return nil, raft.Durable{}, errors.Join(err, held.Close())
	}
	l.lock = held
	return l, durable, nil
}

// open is Open on any disk, without the lock.
func open(dir directory, o Options) (*Log, raft.Durable, error) {
	if o.SegmentSize == 0 {
		o.SegmentSize = 64 << 20
	}
	s, err := load(dir, o)
	if err != nil {
		return nil, raft.Durable{}, err
	}
	l := &Log{
		options: o, dir: dir, recovered: s.recovered, number: s.number, size: s.end,
		begin: max(s.begin, 1), outline: s.outline, hard: s.durable.HardState, marked: s.marked,
	}
	if s.durable.Snapshot != nil {
		l.kept.add(positionOf(s.durable.Snapshot))
	}
	if err := l.settle(s); err != nil {
		if l.file != nil {
			err = errors.Join(err, l.file.Close())
		}
		return nil, raft.Durable{}, err
	}
	return l, s.durable, nil
}

// settle makes the disk hold what load has found, and nothing else. Until then it is only known
// that it can be read: the process that wrote it may have died, or have seen its fsync fail. A
// second fsync alone would not help, as the kernel may think that the pages are clean; so the last
// record, the only one that can be concerned, is written again.
//
// The order matters. A torn segment's name is gone before anything is added to the segment before
// it, since its presence says that the other is complete. A mark is written when all that it
// vouches for is synced. What a snapshot's marker makes superfluous goes when that is known to be
// on the disk.
func (l *Log) settle(s *survivors) error {
	if s.torn != "" {
		if err := l.remove(s.torn); err != nil {
			return err
		}
	}
	if err := l.dir.Sync(); err != nil {
		return fmt.Errorf("syncing the directory: %w", err)
	}
	if l.number > 0 {
		if err := l.resume(s); err != nil {
			return err
		}
	}
	return l.remove(s.unneeded...)
}

// resume opens the last segment and writes its last record again.
func (l *Log) resume(s *survivors) error {
	name := segmentName(l.number)
	var err error
	if l.file, err = l.dir.Open(name, false); err != nil {
		return err
	}
	if err := l.file.Truncate(s.end); err != nil {
		return fmt.Errorf("cutting %s at offset %d: %w", name, s.end, err)
	}
	if err := l.write(s.tail, s.end-int64(len(s.tail))); err != nil {
		return err
	}
	return l.mark()
}

// Save makes a write durable: when it returns nil, the write survives. A write with sequence number
// 0 is none, as raft says. An error is final: the log has stopped, and every later Save returns the
// same error. It is unknown then whether this write survives; Open will tell.
func (l *Log) Save(w raft.Write) error {
	if l.err != nil {
		return l.err
	}
	if w.Seq == 0 {
		return nil
	}
	if s := w.Snapshot; s != nil && positionOf(s) == l.outline.base() {
		w.Snapshot = nil // the log begins behind it already
	}
	begin := l.check(w)
	err := l.append(w, begin)
	if err == nil && w.Snapshot != nil {
		err = l.forget(begin, positionOf(w.Snapshot))
	}
	if err != nil {
		l.err = fmt.Errorf("wal: the log has stopped: %w", advised(err))
	}
	return l.err
}

// check notes a write in the outline, and panics if no core hands it out, since Open would refuse
// the log because of it. It returns the first segment that is needed after the write.
func (l *Log) check(w raft.Write) (begin uint64) {
	if w.Seq != l.seq+1 {
		panic(fmt.Sprintf("wal: write %d comes after write %d", w.Seq, l.seq))
	}
	begin = l.begin
	if s := w.Snapshot; s != nil {
		if !l.kept.has(positionOf(s)) || s.LastIncludedIndex <= l.outline.base().index {
			panic(fmt.Sprintf("wal: write %d has a snapshot up to entry %d, which is not saved, or not "+
				"any more; the log begins behind %d", w.Seq, s.LastIncludedIndex, l.outline.base().index))
		}
		begin, _ = l.outline.begin(s, l.number+1)
	}
	last := l.outline.last
	for i, e := range w.Entries {
		if e.Index != w.Entries[0].Index+raft.Index(i) {
			panic(fmt.Sprintf("wal: write %d has entry %d in place %d of %d",
				w.Seq, e.Index, i+1, len(w.Entries)))
		}
	}
	number := l.number
	if l.full(w) {
		number++
	}
	if !l.outline.put(w.Entries, number) {
		panic(fmt.Sprintf("wal: write %d begins with entry %d; the log has entries %d to %d",
			w.Seq, w.Entries[0].Index, l.outline.base().index+1, last))
	}
	return begin
}

// full reports whether a write begins a segment.
func (l *Log) full(w raft.Write) bool {
	return l.file == nil || l.size >= l.options.SegmentSize || w.Snapshot != nil
}

func (l *Log) append(w raft.Write, begin uint64) error {
	if size := recordSize(w); size > maxRecord {
		return fmt.Errorf("write %d takes a record of %d bytes, the most is %d",
			w.Seq, size, maxRecord)
	}
	if next := l.number + 1; l.full(w) {
		if err := l.beginSegment(w, begin); err != nil {
			return fmt.Errorf("beginning segment %d: %w", next, err)
		}
	} else {
		l.buf = appendRecord(l.buf[:0], l.number, l.size, l.size, w)
		if err := l.write(l.buf, l.size); err != nil {
			return err
		}
	}
	l.seq, l.hard, l.marked = w.Seq, w.HardState, false
	return nil
}

// beginSegment starts the next segment with a write. Header and record are written and synced
// together, so a segment has a record or does not count. The record vouches for nothing, not even
// the header.
func (l *Log) beginSegment(w raft.Write, begin uint64) error {
	if l.file != nil {
		if err := l.file.Close(); err != nil {
			return err
		}
	}
	h := header{version, l.options.Cluster, l.options.Server, l.number + 1, uint64(l.size)}
	var err error
	if l.file, err = l.dir.Open(segmentName(h.number), true); err != nil {
		return err
	}
	l.buf = appendHeader(l.buf[:0], h)
	if w.Snapshot != nil {
		l.buf = appendMarker(l.buf, h.number, begin, w)
	} else {
		l.buf = appendRecord(l.buf, h.number, headerSize, 0, w)
	}
	l.number = h.number
	if err := l.write(l.buf, 0); err != nil {
		return err
	}
	if err := l.dir.Sync(); err != nil {
		return fmt.Errorf("syncing the directory: %w", err)
	}
	return nil
}

// write writes at the end of the last segment, or over it, and waits for the disk.
func (l *Log) write(b []byte, at int64) error {
	if _, err := l.file.WriteAt(b, at); err != nil {
		return fmt.Errorf("writing %s at offset %d: %w", segmentName(l.number), at, err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", segmentName(l.number), err)
	}
	l.size = at + int64(len(b))
	return nil
}

// mark vouches for the last record, unless that is a mark itself.
func (l *Log) mark() error {
	if l.marked {
		return nil
	}
	l.buf = appendRecord(l.buf[:0], l.number, l.size, l.size, raft.Write{HardState: l.hard})
	if err := l.write(l.buf, l.size); err != nil {
		return err
	}
	l.marked = true
	return nil
}

// Recovered returns what Open has dropped.
func (l *Log) Recovered() Recovered { return l.recovered }

// Close marks the end, unless the log has stopped, and lets go of the directory. The log cannot be
// used any more.
func (l *Log) Close() error {
	var errs []error
	if l.err == nil && l.file != nil {
		errs = append(errs, l.mark())
	}
	if l.file != nil {
		errs = append(errs, l.file.Close())
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	l.file, l.lock, l.err = nil, nil, errors.New("wal: the log is closed")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("wal: closing: %w", err)
	}
	return nil
}
