package wal

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

// framed wraps a body in a record whose checksums are right, which a fuzzer would not find.
func framed(body []byte) []byte {
	for len(body)%unit != 0 || len(body) < bodySize {
		body = append(body, 0)
	}
	head := make([]byte, headSize)
	binary.LittleEndian.PutUint32(head[8:], uint32(len(body)))
	binary.LittleEndian.PutUint32(head[16:], checksum(body))
	binary.LittleEndian.PutUint32(head[20:], headChecksum(1, headerSize, head))
	return append(append(appendHeader(nil, first()), head...), body...)
}

// ofKind returns a segment of one record with another kind in the record's head.
func ofKind(k kind, segment []byte) []byte {
	data := slices.Clone(segment)
	head := data[headerSize : headerSize+headSize]
	binary.LittleEndian.PutUint32(head[12:], uint32(k))
	binary.LittleEndian.PutUint32(head[20:], headChecksum(1, headerSize, head))
	return data
}

// withFile returns a disk on paper with a segment, and a snapshot up to entry 2 of term 1.
func withFile(segment []byte) *fakeDisk {
	d, f := onDisk(segment), &fakeFile{}
	h := &fakeHandle{newFakeDisk(), f, false}
	if err := writeBlocks(h, mine, snapshotOf(2, 1, 50)); err != nil {
		panic(err)
	}
	put(d, snapshotName(position{2, 1}), f.seen)
	return d
}

// seeds are segments of each kind of record and of damage, by what load makes of them.
func seeds() (loaded, refused map[string][]byte) {
	whole := segmentOf(first(), writeOf(1, 1, 1, 2), writeOf(2, 2, 2), raft.Write{})
	one := segmentOf(first(), writeOf(1, 1, 1, 2))
	vote := raft.Write{HardState: raft.HardState{Term: 3, VotedFor: 1}}
	noop := raft.Write{Entries: []raft.Entry{{Index: 1, Term: 1}}}
	old, next := first(), first()
	old.version, next.version = 0, version+1
	long := slices.Clone(one)
	binary.LittleEndian.PutUint32(long[headerSize+8:], math.MaxUint32)
	longer := slices.Clone(one)
	head := longer[headerSize : headerSize+headSize]
	binary.LittleEndian.PutUint32(head[8:], maxRecord)
	binary.LittleEndian.PutUint32(head[20:], headChecksum(1, headerSize, head))
	gap := slices.Clone(whole)
	gap[headerSize+headSize+8] ^= 1
	short := binary.LittleEndian.AppendUint64(appendHeader(nil, first()), 0)
	short = binary.LittleEndian.AppendUint64(short, unit)
	short = binary.LittleEndian.AppendUint32(short, checksum(make([]byte, unit)))
	sum := headChecksum(1, headerSize, short[headerSize:])
	short = append(binary.LittleEndian.AppendUint32(short, sum), make([]byte, unit)...)
	empty := binary.LittleEndian.AppendUint64(appendHeader(nil, first()), 0)
	empty = append(empty, make([]byte, headSize-unit)...) // a head of zeros, and its checksum
	none := headChecksum(1, headerSize, empty[headerSize:])
	binary.LittleEndian.PutUint32(empty[headerSize+20:], none)
	change := writeOf(1, 1, 1, 2, 3)
	change.Entries[1].Members = snapshotOf(2, 1, 0).Members
	cutMembers := appendWrite(nil, change)
	cutMembers = cutMembers[:len(cutMembers)-8]
	lost := markerOf(1, snapshotOf(3, 1, 50))
	marker := func(begin uint64, indexes ...raft.Index) []byte {
		w := markerOf(1, snapshotOf(2, 1, 50), indexes...)
		return appendMarker(appendHeader(nil, first()), 1, begin, w)
	}
	late, at := append(slices.Clone(one), make([]byte, headSize)...), len(one)
	late = append(late, marker(1)[headerSize+headSize:]...)
	late = seal(late, at, kindMarker, 1, int64(at), int64(at))
	count := appendRecord(nil, 1, 0, 0, writeOf(1, 1, 1))[headSize:]
	binary.LittleEndian.PutUint64(count[24:], 1<<60)
	return map[string][]byte{
			"nothing":                      {},
			"zeros":                        make([]byte, 600),
			"entries":                      one,
			"entries that replace others":  whole,
			"a vote":                       segmentOf(first(), vote),
			"a vote and a mark":            segmentOf(first(), vote, vote),
			"a no-op":                      segmentOf(first(), noop),
			"a change of the servers":      segmentOf(first(), change),
			"a snapshot's marker":          marker(1),
			"a marker with entries":        marker(1, 3, 4),
			"a header alone":               one[:headerSize],
			"half of a header":             one[:headerSize/2],
			"a torn head":                  whole[:len(one)+headSize/2],
			"a torn body":                  whole[:len(one)+headSize+9],
			"a record of length 0":         empty,
			"zeros behind":                 append(slices.Clone(whole), make([]byte, 600)...),
			"a length of 2^32-1, unproven": long,
			"a length of 1 GiB, proven":    longer,
		}, map[string][]byte{
			"a marker too short for one":  ofKind(kindMarker, segmentOf(first(), raft.Write{})),
			"a marker, then a gap":        marker(1, 4),
			"a marker of what comes":      marker(2),
			"a marker behind a record":    late,
			"a marker without its file":   appendMarker(appendHeader(nil, first()), 1, 1, lost),
			"members cut":                 ofKind(kindMembers, framed(cutMembers)),
			"the next kind":               ofKind(kindMembers+1, one),
			"a kind from the far future":  ofKind(math.MaxUint32, one),
			"the version before":          segmentOf(old, writeOf(1, 1, 1)),
			"the version after":           segmentOf(next, writeOf(1, 1, 1)),
			"damage below what is synced": gap,
			"a count of 2^60 entries":     framed(count),
			"bytes behind the last entry": framed(make([]byte, bodySize+unit)),
			"a body that is too short":    short,
			"a gap between entries":       segmentOf(first(), writeOf(1, 1, 2)),
			"another program's file":      []byte("<!DOCTYPE html><title>It works!</title>"),
			"text behind half a header":   append(slices.Clone(one[:20]), "and then something else"...),
			"a damaged header":            append(make([]byte, 1), one[1:]...),
		}
}

func TestTheSeedsOfTheFuzzerMeetEachBranch(t *testing.T) {
	loaded, refused := seeds()
	for name, data := range loaded {
		if _, err := load(withFile(data), mine); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, data := range refused {
		if _, err := load(withFile(data), mine); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}

// FuzzLoad takes any bytes for a segment, or for the body of a record in one. It loads or is
// refused, without a panic and without memory beyond what the bytes can hold; and a log that loads
// is a log: it goes on. In any case it can be looked at.
func FuzzLoad(f *testing.F) {
	loaded, refused := seeds()
	for _, name := range slices.Sorted(maps.Keys(loaded)) {
		f.Add(loaded[name], false)
	}
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		f.Add(refused[name], false)
	}
	for _, w := range []raft.Write{writeOf(1, 1, 1, 2), writeOf(1, 1, 9), {}} { // of kind 0
		f.Add(appendRecord(nil, 1, 0, 0, w)[headSize:], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, body bool) {
		if body {
			data = framed(data)
		}
		d := withFile(data)
		if err := dump(d, io.Discard); err != nil || d.operations > 0 {
			t.Fatalf("dump: %v, %d operations", err, d.operations)
		}
		s, err := load(d, mine)
		if err != nil {
			return
		}
		entries := len(s.durable.Entries)
		if cap(s.durable.Entries) > 4*(len(data)/entrySize+1) {
			t.Errorf("room for %d entries from %d bytes", cap(s.durable.Entries), len(data))
		}
		for _, e := range s.durable.Entries { // they share their bytes with their neighbours
			if len(e.Command) != cap(e.Command) || (len(e.Command) == 0) != (e.Command == nil) {
				t.Errorf("a command of %d bytes has room for %d", len(e.Command), cap(e.Command))
			}
		}
		l, _, err := open(d, mine)
		if err != nil {
			t.Fatalf("it loads and does not open: %v", err)
		}
		if err := l.Save(writeOf(1, 1, s.outline.last+1)); err != nil {
			t.Fatal(err)
		}
		l, durable, err := open(d, mine)
		if err != nil || len(durable.Entries) != entries+1 || l.Recovered() != (Recovered{}) {
			t.Errorf("%d entries and one more are %d, %v", entries, len(durable.Entries), err)
		}
	})
}

// B10: a torn head read as a huge length.
func TestNoMemoryIsAskedForByALengthThatIsNotChecked(t *testing.T) {
	body := appendRecord(nil, 1, 0, 0, writeOf(1, 1, 1))[headSize:]
	long := framed(body)
	binary.LittleEndian.PutUint32(long[headerSize+8:], maxRecord)
	head := long[headerSize : headerSize+headSize]
	binary.LittleEndian.PutUint32(head[20:], headChecksum(1, headerSize, head))

	many := append([]byte{}, body...)
	binary.LittleEndian.PutUint64(many[24:], 1<<40)
	large := append([]byte{}, body...)
	binary.LittleEndian.PutUint32(large[bodySize+8:], math.MaxUint32)

	for name, data := range map[string][]byte{
		"the body":    long,
		"the entries": framed(many),
		"the command": framed(large),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s, err := load(onDisk(data), mine)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("%d bytes were allocated", n)
			}
			if err == nil && s.recovered.Bytes == 0 {
				t.Error("the length was believed")
			}
		})
	}
}

// FuzzReadSnapshot takes any bytes for a snapshot's file, as they are or with checksums that fit.
// It is read or refused, and what is read is written and read again as the same.
func FuzzReadSnapshot(f *testing.F) {
	at := position{2, 1}
	for _, size := range []int{0, 1, 50, 3000} {
		file := &fakeFile{}
		h := &fakeHandle{newFakeDisk(), file, false}
		if err := writeBlocks(h, mine, snapshotOf(2, 1, size)); err != nil {
			f.Fatal(err)
		}
		for _, fits := range []bool{false, true} {
			f.Add(file.seen, fits)
			f.Add(file.seen[:len(file.seen)/2], fits)
		}
		leaking := slices.Clone(file.seen)
		leaking[40]--
		f.Add(leaking, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, fits bool) {
		data = slices.Clone(data)
		if n := len(data); fits && n > snapshotHeaderSize+sumSize && n < blockSize {
			copy(data, appendOwn(nil, mine, at))
			resealed(data)
			sum := blockSum(at, 0, data[snapshotHeaderSize:n-sumSize])
			binary.LittleEndian.PutUint32(data[n-sumSize:], sum)
		}
		s, err := readSnapshot("name", data, mine, at)
		if err != nil {
			return
		}
		file := &fakeFile{}
		if err := writeBlocks(&fakeHandle{newFakeDisk(), file, false}, mine, s); err != nil {
			t.Fatal(err)
		}
		again, err := readSnapshot("name", file.seen, mine, at)
		if diff := cmp.Diff(s, again, cmp.Comparer(bytes.Equal)); err != nil || diff != "" {
			t.Errorf("%v (-read +again):\n%s", err, diff)
		}
	})
}
