package wal

import (
	"fmt"
	"io"

	"ticketing/raft"
)

// Dump prints the log in a directory, one line for each segment, record and entry, and marks what
// is damaged. It changes nothing and takes no lock: it is for looking, also at a log that Open
// refuses or that is in use.
//
// All records are printed, those whose entries a later one has replaced as well. A mark is a record
// that changes nothing and vouches for what is before it.
func Dump(dir string, w io.Writer) error {
	if err := dump(osDir(dir), w); err != nil {
		return fmt.Errorf("wal: dumping %s: %w", dir, err)
	}
	return nil
}

func dump(dir directory, w io.Writer) error {
	count, err := segments(dir)
	if err != nil {
		return err
	}
	out := &printer{w: w}
	for number := uint64(1); number <= count; number++ {
		data, err := dir.Read(segmentName(number))
		if err != nil {
			return err
		}
		out.segment(number, data)
	}
	return out.err
}

// A printer prints lines until one fails.
type printer struct {
	w    io.Writer
	hard raft.HardState
	err  error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) segment(number uint64, data []byte) {
	p.line("%s: %d bytes", segmentName(number), len(data))
	if h, ok := readHeader(data); ok {
		p.line("%8d  header: version %d, cluster %d, server %d, segment %d, %d bytes before it",
			0, h.version, h.cluster, h.server, h.number, h.previous)
	} else {
		p.line("%8d  DAMAGED: there is no header", 0)
	}
	for at := int64(headerSize); at < int64(len(data)); {
		body, end, problem := readRecord(number, data, at)
		if problem == "" {
			p.record(at, body)
			at = end
			continue
		}
		next := nextRecord(number, data, at+unit)
		p.line("%8d  DAMAGED: %s in these %d bytes", at, problem, next-at)
		at = next
	}
}

// nextRecord is where the next whole record begins, or the end.
func nextRecord(number uint64, data []byte, at int64) int64 {
	for ; at < int64(len(data)); at += unit {
		if _, _, problem := readRecord(number, data, at); problem == "" {
			return at
		}
	}
	return int64(len(data))
}

func (p *printer) record(at int64, body []byte) {
	w, err := decode(body)
	if err != nil {
		p.line("%8d  SENSELESS: %v", at, err)
		return
	}
	what := "no entries"
	switch n := len(w.Entries); {
	case n > 0:
		what = fmt.Sprintf("entries %d to %d", w.Entries[0].Index, w.Entries[n-1].Index)
	case w.HardState == p.hard:
		what = "a mark"
	}
	p.hard = w.HardState
	p.line("%8d  term %d, vote %d, %s", at, w.Term, w.VotedFor, what)
	for _, e := range w.Entries {
		p.line("%8s  entry %d, term %d: %q", "", e.Index, e.Term, e.Command)
	}
}
