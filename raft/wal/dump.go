package wal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"ticketing/raft"
)

// Dump prints the log in a directory as a table, one line for each header, record and entry, and
// marks what is damaged. It changes nothing and takes no lock: it is for looking, also at a log
// that Open refuses or that is in use. What a server is writing at that moment looks torn.
//
// Entries that a later record has replaced are printed as well. FILE is the number in a file's
// name, SYNCED what was known to be synced in the file when the record was written. A record is a
// line: the entry that it holds, or a change of term or vote, or the mark that it is, or the marker
// of a snapshot. One that holds more has a line for each. The snapshots' files come last, with snap
// for FILE, and a line says what Open would do.
func Dump(dir string, w io.Writer) error {
	if err := dump(osDir(dir), w); err != nil {
		return fmt.Errorf("wal: dumping %s: %w", dir, err)
	}
	return nil
}

func dump(dir directory, w io.Writer) error {
	names, err := segmentNames(dir)
	if err != nil {
		return err
	}
	p := &printer{w: w}
	for _, name := range names {
		if number, ok := segmentNumber(name); ok {
			p.last = number
		}
	}
	p.line("%-5s %10s %10s  %-3s  %-7s %10s %7s  %s",
		"FILE", "OFFSET", "SYNCED", "CRC", "KIND", "INDEX", "TERM", "TEXT")
	for _, name := range names {
		number, ok := segmentNumber(name)
		p.number = number
		if !ok {
			p.row(0, "", "", "foreign", "", "", name+" is not the name of a file of this log")
			continue
		}
		if data, err := dir.Read(name); err != nil {
			p.row(0, "", "", "unread", "", "", err.Error())
		} else {
			p.segment(name, data)
		}
	}
	if err := p.snapshots(dir); err != nil {
		return err
	}
	p.line("%s", p.verdict(dir))
	return p.err
}

// A printer prints lines until one fails.
type printer struct {
	w      io.Writer
	number uint64         // of the segment at hand
	last   uint64         // the number of the last one
	owner  header         // of the last segment whose header can be read
	hard   raft.HardState // of the record before, if that could be read
	err    error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// row prints a line of the table. What does not apply is "".
func (p *printer) row(at int64, synced, crc, kind, index, term, text string) {
	p.rowOf(p.file(), at, synced, crc, kind, index, term, text)
}

func (p *printer) file() string {
	if p.number == 0 {
		return "?"
	}
	return strconv.FormatUint(p.number, 10)
}

func (p *printer) rowOf(file string, at int64, synced, crc, kind, index, term, text string) {
	p.line("%-5s %10d %10s  %-3s  %-7s %10s %7s  %s",
		file, at, synced, crc, kind, index, term, text)
}

func (p *printer) segment(name string, data []byte) {
	at := int64(0)
	if h, ok := readHeader(data); ok {
		p.owner = h
		p.row(0, "", "ok", "header", "", "",
			fmt.Sprintf("%s, %d bytes, version %d, cluster %d, server %d",
				name, len(data), h.version, h.cluster, h.server))
		at = headerSize
	}
	for at < int64(len(data)) {
		r, problem := readRecord(p.number, data, at)
		if problem == "" {
			p.record(at, r)
			at = r.end
			continue
		}
		if at == 0 {
			problem = "there is no header"
		}
		next := nextRecord(p.number, data, at+unit)
		why := synced(p.number, data, at, p.number == p.last)
		if why == "" {
			why = "nothing says that it was synced"
		}
		p.row(at, "", "BAD", "damaged", "", "",
			fmt.Sprintf("%d bytes: %s, and %s", next-at, problem, why))
		p.hard = raft.HardState{}
		at = next
	}
}

// nextRecord is where the next whole record begins, or the end.
func nextRecord(number uint64, data []byte, at int64) int64 {
	for ; at < int64(len(data)); at += unit {
		if _, problem := readRecord(number, data, at); problem == "" {
			return at
		}
	}
	return int64(len(data))
}

func (p *printer) record(at int64, r record) {
	row := func(kind string, index raft.Index, term raft.Term, text string) {
		number := ""
		if index > 0 {
			number = strconv.FormatUint(uint64(index), 10)
		}
		p.row(at, strconv.FormatInt(r.synced, 10), "ok", kind, number,
			strconv.FormatUint(uint64(term), 10), text)
	}
	w, err := decode(r.kind, r.body)
	switch {
	case r.kind > kindMembers:
		row("unknown", 0, 0, fmt.Sprintf("%d bytes of kind %d, which a newer program wrote",
			r.length, r.kind))
		return
	case err != nil:
		row("odd", 0, 0, err.Error())
		return
	}
	if s := w.Snapshot; s != nil {
		row("marker", s.LastIncludedIndex, s.LastIncludedTerm,
			fmt.Sprintf("snapshot; needed from file %d on", w.begin))
	}
	switch {
	case w.HardState != p.hard:
		row("state", 0, w.Term, fmt.Sprintf("vote %d", w.VotedFor))
	case w.Snapshot == nil && len(w.Entries) == 0:
		row("mark", 0, w.Term, fmt.Sprintf("vote %d", w.VotedFor))
	}
	p.hard = w.HardState
	for _, e := range w.Entries {
		row("entry", e.Index, e.Term, shownEntry(e))
	}
}

// shownEntry is an entry's command, or the servers that it names: number, address, and whether it
// only learns.
func shownEntry(e raft.Entry) string {
	if !changesMembers(e) {
		return shown(e.Command)
	}
	list := make([]string, len(e.Members))
	for i, m := range e.Members {
		list[i] = strings.TrimSpace(fmt.Sprintf("%d %s", m.ID, m.Address))
		if !m.Voter {
			list[i] += " (learner)"
		}
	}
	text := "members: " + strings.Join(list, ", ")
	if len(e.Command) > 0 {
		text += "; " + shown(e.Command)
	}
	return text
}

// shown is a command on one line: as it is, if it is text, and else quoted.
func shown(command []byte) string {
	const most = 200
	text, more := string(command), ""
	if len(text) > most {
		text, more = text[:most], fmt.Sprintf(" … (%d bytes)", len(command))
	}
	plain := text != "" && text == strings.TrimSpace(text) && text[0] != '"' && utf8.ValidString(text)
	for _, r := range text {
		plain = plain && strconv.IsPrint(r)
	}
	if !plain {
		text = strconv.Quote(text)
	}
	return text + more
}

// verdict says what Open would do.
func (p *printer) verdict(dir directory) string {
	if p.owner.number == 0 {
		return "No segment has a header: this is the log of a server that has saved nothing yet, " +
			"or the wrong directory."
	}
	s, err := load(dir, Options{Cluster: p.owner.cluster, Server: p.owner.server})
	if err != nil {
		return "Open would refuse: " + err.Error()
	}
	dropped := ""
	if r := s.recovered; r.File != "" {
		dropped = fmt.Sprintf(", and drop %d bytes of %s from offset %d on", r.Bytes, r.File, r.Offset)
	}
	snapshot := ""
	if s := s.durable.Snapshot; s != nil {
		snapshot = fmt.Sprintf("a snapshot up to entry %d and ", s.LastIncludedIndex)
	}
	return fmt.Sprintf("Open would return %s%d entries, term %d, vote %d%s.", snapshot,
		len(s.durable.Entries), s.durable.Term, s.durable.VotedFor, dropped)
}
