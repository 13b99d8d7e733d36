package fsm

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"ticketing/raft"
)

// This file is the table as bytes, and back. They are text, as the log's entries are:
//
//	table 1 17 2 1
//	12 10000 31 "A" door
//	17 60000 58 "" gate
//	3 58 4 4 10235423523423 1 12 5 8823523523 6 0
//	hash 1234567890
//
// First the form's version, the last token given out, and how many locks and sessions there are. A
// lock is its tenure's token, its lease in milliseconds, the entry that last set it, owner and key.
// A session is its id, the entry in which it was last heard, the lowest open request, and of each
// request that was carried out its number, the digest of its command, the kind of its result and
// the token. Locks come in the order of keys, sessions in that of ids, and the hash is Table.Hash.
// So equal tables have equal bytes, and a table that is read has the hash of the one that was
// written or is refused.
//
// Of the order in which sessions are forgotten nothing is written, since it is the order of when
// they were last heard.

// ErrSnapshot is wrapped by errors about bytes that are no table.
var ErrSnapshot = errors.New("not a snapshot of a lock table")

// partBytes is how much of a table is written at once. It takes about a millisecond, which is what
// everything else in the server has to wait.
const partBytes = 1 << 18

// An encoding writes a table as it was when it began, in parts: between them the table may change.
//
//spec:rule Snapshot.Table
type encoding struct {
	index    raft.Index // the last entry that was applied to it
	most     int        // bytes in a part, or a little more
	locks    walk
	sessions []numbered
	hash     uint64
	parts    [][]byte // the first is written when it begins, the last ends with the hash
	size     int      // of all parts
	complete bool     // all are written, and are being put together in whole
	whole    []byte
}

type numbered struct {
	id ClientID
	session
}

func newEncoding(t *Table, index raft.Index) *encoding {
	head := []byte("table 1")
	for _, n := range [...]uint64{uint64(t.tokens), uint64(t.Len()), uint64(len(t.sessions))} {
		head = appendField(head, n)
	}
	e := &encoding{index: index, most: partBytes, locks: t.held.walk(), hash: t.Hash()}
	e.add(append(head, '\n'))
	for _, id := range slices.Sorted(maps.Keys(t.sessions)) {
		e.sessions = append(e.sessions, numbered{id, t.sessions[id]})
	}
	return e
}

func (e *encoding) add(part []byte) {
	e.parts = append(e.parts, part)
	e.size += len(part)
}

// step does a part of the work and reports whether that was the last. The parts are put together in
// steps too: to grow one slice would now and then copy all that there is at once.
func (e *encoding) step() bool {
	if !e.complete {
		e.add(e.write())
	}
	if !e.complete {
		return false
	}
	if e.whole == nil {
		e.whole = make([]byte, 0, e.size)
	}
	n := min(16, len(e.parts))
	for _, part := range e.parts[:n] {
		e.whole = append(e.whole, part...)
	}
	e.parts = e.parts[n:]
	return len(e.parts) == 0
}

func (e *encoding) write() []byte {
	var part []byte
	for len(part) < e.most {
		if b := e.locks.next(); b != nil {
			part = appendLock(part, b.key, b.tenure)
			continue
		}
		if len(e.sessions) > 0 {
			part = appendSession(part, e.sessions[0])
			e.sessions = e.sessions[1:]
			continue
		}
		e.complete = true
		return append(appendField(append(part, "hash"...), e.hash), '\n')
	}
	return part
}

func appendLock(b []byte, key string, tenure Tenure) []byte {
	b = strconv.AppendUint(b, uint64(tenure.Token), 10)
	b = appendField(b, uint64(tenure.LeaseMS))
	b = appendField(b, uint64(tenure.Since))
	b = append(append(append(b, ` "`...), tenure.Owner...), `" `...)
	return append(append(b, key...), '\n')
}

func appendSession(b []byte, s numbered) []byte {
	b = strconv.AppendUint(b, uint64(s.id), 10)
	b = appendField(appendField(b, uint64(s.last)), s.lowest)
	for _, o := range s.done {
		b = appendField(appendField(b, o.seq), o.command)
		b = appendField(appendField(b, uint64(o.kind)), uint64(o.token))
	}
	return append(b, '\n')
}

func appendField(b []byte, n uint64) []byte {
	return strconv.AppendUint(append(b, ' '), n, 10)
}

func (e *encoding) clone() *encoding {
	if e == nil {
		return nil
	}
	c := *e
	c.locks.to, c.sessions = slices.Clone(e.locks.to), slices.Clone(e.sessions)
	c.parts, c.whole = slices.Clone(e.parts), slices.Clone(e.whole)
	return &c
}

// Encode returns the table as bytes at once, the same as a snapshot that took its time.
func (t *Table) Encode() []byte {
	e := newEncoding(t, 0)
	for !e.step() {
	}
	return e.whole
}
