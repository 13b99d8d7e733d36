package wal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"ticketing/raft"
)

// The package comment has a picture of these bytes.
//
// A record's head has a checksum of its own, for two reasons. A length is not believed, and no
// memory allocated by it, before it is known to be one. And a head whose body is torn still vouches
// for what is before it. The checksum covers the place, so that a copy of a record inside a
// command, or one that the disk put in the wrong place, is not taken for a record.
//
// A record's length is a multiple of 8, so that one can be looked for behind a damaged place.
const (
	magic   = "raftwal"
	version = 1

	headerSize = 48
	headSize   = 24
	unit       = 8

	// maxRecord bounds a record and a segment's planned size, and so what Open reads at once.
	maxRecord = 1 << 30
)

// A kind says what a record's body is. A program that does not know one refuses the log and does
// not skip it, so a new kind needs no new version, and a log without it stays readable for all.
type kind uint32

const (
	kindWrite   kind = 0 // a write
	kindMarker  kind = 1 // a write with a snapshot, behind which the log begins
	kindMembers kind = 2 // a write, some entry of which changes the servers
)

// checksum is CRC32C, for which processors have an instruction.
func checksum(parts ...[]byte) (sum uint32) {
	for _, p := range parts {
		sum = crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), p)
	}
	return sum
}

// A header says whose a segment is and where it stands.
type header struct {
	version  byte
	cluster  uint64
	server   raft.ServerID
	number   uint64
	previous uint64 // the size of the segment before
}

func appendHeader(buf []byte, h header) []byte {
	start := len(buf)
	buf = append(append(buf, magic...), h.version)
	for _, n := range []uint64{h.cluster, uint64(h.server), h.number, h.previous} {
		buf = binary.LittleEndian.AppendUint64(buf, n)
	}
	return binary.LittleEndian.AppendUint64(buf, uint64(checksum(buf[start:])))
}

// readHeader reports whether the data begins with a whole header, of whatever version.
func readHeader(data []byte) (header, bool) {
	if len(data) < headerSize || !bytes.HasPrefix(data, []byte(magic)) {
		return header{}, false
	}
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(data[at:]) }
	h := header{data[7], number(8), raft.ServerID(number(16)), number(24), number(32)}
	return h, number(40) == uint64(checksum(data[:40]))
}

// A head is the part of a record before its body.
type head struct {
	synced int64
	length int64
	kind   kind
	sum    uint32 // of the body
}

// A record is a head whose body is whole.
type record struct {
	head
	body []byte
	end  int64 // the offset behind it
}

func headChecksum(segment uint64, at int64, head []byte) uint32 {
	place := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), segment)
	place = binary.LittleEndian.AppendUint64(place, uint64(at))
	return checksum(place, head[:20])
}

// appendRecord appends a write without a snapshot as a record that begins at the given offset of a
// segment.
func appendRecord(buf []byte, segment uint64, at, synced int64, w raft.Write) []byte {
	start, k := len(buf), kindWrite
	if slices.ContainsFunc(w.Entries, changesMembers) {
		k = kindMembers
	}
	buf = appendWrite(append(buf, make([]byte, headSize)...), w)
	return seal(buf, start, k, segment, at, synced)
}

// appendMarker appends a write with a snapshot, as the first record of a segment. Begin is the
// number of the first segment that is still needed.
func appendMarker(buf []byte, segment, begin uint64, w raft.Write) []byte {
	start := len(buf)
	buf = append(buf, make([]byte, headSize)...)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(w.Snapshot.LastIncludedIndex))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(w.Snapshot.LastIncludedTerm))
	buf = binary.LittleEndian.AppendUint64(buf, begin)
	return seal(appendWrite(buf, w), start, kindMarker, segment, headerSize, 0)
}

// seal fills in the head of the record that begins at start and has its body behind.
func seal(buf []byte, start int, k kind, segment uint64, at, synced int64) []byte {
	for (len(buf)-start)%unit != 0 {
		buf = append(buf, 0)
	}
	head, body := buf[start:start+headSize], buf[start+headSize:]
	binary.LittleEndian.PutUint64(head, uint64(synced))
	binary.LittleEndian.PutUint32(head[8:], uint32(len(body)))
	binary.LittleEndian.PutUint32(head[12:], uint32(k))
	binary.LittleEndian.PutUint32(head[16:], checksum(body))
	binary.LittleEndian.PutUint32(head[20:], headChecksum(segment, at, head))
	return buf
}

// readHead reports whether a head stands at this offset of a segment.
func readHead(segment uint64, data []byte, at int64) (head, bool) {
	if at > int64(len(data))-headSize {
		return head{}, false
	}
	b := data[at : at+headSize]
	h := head{
		synced: int64(binary.LittleEndian.Uint64(b)),
		length: int64(binary.LittleEndian.Uint32(b[8:])),
		kind:   kind(binary.LittleEndian.Uint32(b[12:])),
		sum:    binary.LittleEndian.Uint32(b[16:]),
	}
	return h, h.length > 0 && binary.LittleEndian.Uint32(b[20:]) == headChecksum(segment, at, b)
}

// readRecord returns the record at this offset, of whatever kind, or what is wrong.
func readRecord(segment uint64, data []byte, at int64) (r record, problem string) {
	h, ok := readHead(segment, data, at)
	if !ok {
		return r, "there is no record"
	}
	at += headSize
	if h.length > int64(len(data))-at {
		return r, "the record goes on behind the end of the file"
	}
	r = record{h, data[at : at+h.length], at + h.length}
	if checksum(r.body) != h.sum {
		return r, "the record's checksum is wrong"
	}
	return r, ""
}
