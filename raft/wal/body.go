package wal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ticketing/raft"
)

const (
	markSize   = 24 // of what a marker has before its write
	bodySize   = 32 // of a write without entries
	entrySize  = 12 // of an entry without its command
	memberSize = 13 // of a member without its address

	// withMembers is set in the length of a command behind which the entry's members stand. No
	// command is that long.
	withMembers = 1 << 31
)

func changesMembers(e raft.Entry) bool { return e.Members != nil }

func appendWrite(buf []byte, w raft.Write) []byte {
	var first raft.Index
	if len(w.Entries) > 0 {
		first = w.Entries[0].Index
	}
	buf = binary.LittleEndian.AppendUint64(buf, uint64(w.Term))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(w.VotedFor))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(first))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(len(w.Entries)))
	for _, e := range w.Entries {
		length := uint32(len(e.Command))
		if changesMembers(e) {
			length |= withMembers
		}
		buf = binary.LittleEndian.AppendUint64(buf, uint64(e.Term))
		buf = binary.LittleEndian.AppendUint32(buf, length)
		buf = append(buf, e.Command...)
		if changesMembers(e) {
			buf = appendMembers(buf, e.Members)
		}
	}
	return buf
}

func appendMembers(buf []byte, members raft.Configuration) []byte {
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(members)))
	for _, m := range members {
		voter := byte(0)
		if m.Voter {
			voter = 1
		}
		buf = append(binary.LittleEndian.AppendUint64(buf, uint64(m.ID)), voter)
		buf = binary.LittleEndian.AppendUint32(buf, uint32(len(m.Address)))
		buf = append(buf, m.Address...)
	}
	return buf
}

// recordSize is the length of a write's record.
func recordSize(w raft.Write) int64 {
	n := int64(headSize + bodySize)
	if w.Snapshot != nil {
		n += markSize
	}
	for _, e := range w.Entries {
		n += entrySize + int64(len(e.Command))
		if changesMembers(e) {
			n += membersSize(e.Members)
		}
	}
	return (n + unit - 1) / unit * unit
}

func membersSize(members raft.Configuration) int64 {
	n := int64(4)
	for _, m := range members {
		n += memberSize + int64(len(m.Address))
	}
	return n
}

// A body is what a record says: a write, and with a snapshot, of which only the index and the term
// are here, the first segment that is still needed.
type body struct {
	raft.Write
	begin uint64
}

// decode turns a record's bytes into what it says. As the checksum was right, an error means that
// whoever wrote it was wrong. The commands are parts of the bytes.
func decode(k kind, data []byte) (b body, err error) {
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(data[at:]) }
	if k == kindMarker {
		if len(data) < markSize {
			return b, errors.New("the record is too short for a marker")
		}
		b.Snapshot = &raft.Snapshot{
			LastIncludedIndex: raft.Index(number(0)), LastIncludedTerm: raft.Term(number(8)),
		}
		b.begin, data = number(16), data[markSize:]
		if b.Snapshot.LastIncludedIndex == 0 || b.begin == 0 {
			return b, errors.New("a marker of no snapshot, or one that needs segment 0")
		}
	}
	if len(data) < bodySize {
		return b, errors.New("the record is too short")
	}
	b.Term, b.VotedFor = raft.Term(number(0)), raft.ServerID(number(8))
	b.Entries, err = decodeEntries(data[bodySize:], raft.Index(number(16)), number(24), k != kindWrite)
	return b, err
}

// decodeEntries decodes entries, which may have members only if wide, as the record's kind says.
func decodeEntries(rest []byte, first raft.Index, count uint64, wide bool) ([]raft.Entry, error) {
	if count > uint64(len(rest)/entrySize) {
		return nil, fmt.Errorf("the record cannot hold the %d entries that it names", count)
	}
	if count == 0 && len(rest) < unit {
		return nil, nil
	}
	entries := make([]raft.Entry, count)
	for i := range entries {
		if len(rest) < entrySize {
			return nil, fmt.Errorf("entry %d of %d goes on behind the record's end", i+1, count)
		}
		e := &entries[i]
		e.Index, e.Term = first+raft.Index(i), raft.Term(binary.LittleEndian.Uint64(rest))
		size := uint64(binary.LittleEndian.Uint32(rest[8:]))
		changes := wide && size&withMembers != 0
		if changes {
			size -= withMembers
		}
		rest = rest[entrySize:]
		if size > uint64(len(rest)) {
			return nil, fmt.Errorf("entry %d of %d goes on behind the record's end", i+1, count)
		}
		if size > 0 { // a no-op's command is nil, not empty
			e.Command = rest[:size:size]
		}
		rest = rest[size:]
		if changes {
			var err error
			if e.Members, rest, err = decodeMembers(rest); err != nil {
				return nil, fmt.Errorf("entry %d of %d: %w", i+1, count, err)
			}
		}
	}
	if len(rest) >= unit {
		return nil, fmt.Errorf("%d bytes stand behind the last entry", len(rest))
	}
	return entries, nil
}

var errMembers = errors.New("its members go on behind the end")

// decodeMembers returns a configuration, never nil, and what is behind it.
func decodeMembers(rest []byte) (raft.Configuration, []byte, error) {
	if len(rest) < 4 {
		return nil, nil, errMembers
	}
	count := uint64(binary.LittleEndian.Uint32(rest))
	rest = rest[4:]
	if count > uint64(len(rest)/memberSize) {
		return nil, nil, errMembers
	}
	members := make(raft.Configuration, count)
	for i := range members {
		if len(rest) < memberSize {
			return nil, nil, errMembers
		}
		size := uint64(binary.LittleEndian.Uint32(rest[9:]))
		if size > uint64(len(rest)-memberSize) {
			return nil, nil, errMembers
		}
		members[i] = raft.Member{
			ID: raft.ServerID(binary.LittleEndian.Uint64(rest)), Voter: rest[8] == 1,
			Address: string(rest[memberSize : memberSize+size]),
		}
		rest = rest[memberSize+size:]
	}
	return members, rest, nil
}
