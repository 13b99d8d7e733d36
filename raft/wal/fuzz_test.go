package wal

import (
	"encoding/binary"
	"math"
	"runtime"
	"testing"

	"ticketing/raft"
)

// framed wraps a body in a record whose checksums are right, which a fuzzer would not find.
func framed(body []byte) []byte {
	for len(body)%unit != 0 || len(body) < bodySize {
		body = append(body, 0)
	}
	head := make([]byte, headSize)
	binary.LittleEndian.PutUint64(head[8:], uint64(len(body)))
	binary.LittleEndian.PutUint32(head[16:], checksum(body))
	binary.LittleEndian.PutUint32(head[20:], headChecksum(1, headerSize, head))
	return append(append(appendHeader(nil, first()), head...), body...)
}

// FuzzLoad takes any bytes for a segment, or for the body of a record in one. It loads or is
// refused, without a panic and without memory beyond what the bytes can hold; and a log that loads
// is a log: it goes on.
func FuzzLoad(f *testing.F) {
	whole := segmentOf(first(), writeOf(1, 1, 1, 2), writeOf(2, 2, 2), raft.Write{})
	f.Add(whole, false)
	f.Add(whole[:len(whole)-9], false)
	f.Add(append(whole, make([]byte, 600)...), false)
	f.Add(make([]byte, 600), false)
	f.Add([]byte{}, false)
	for _, w := range []raft.Write{writeOf(1, 1, 1, 2), writeOf(1, 1, 9), {}} {
		f.Add(appendRecord(nil, 1, 0, 0, w)[headSize:], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, body bool) {
		if body {
			data = framed(data)
		}
		d := onDisk(data)
		s, err := load(d, mine)
		if err != nil {
			return
		}
		entries := len(s.durable.Entries)
		if cap(s.durable.Entries) > 4*(len(data)/entrySize+1) {
			t.Errorf("room for %d entries from %d bytes", cap(s.durable.Entries), len(data))
		}
		l, _, err := open(d, mine)
		if err != nil {
			t.Fatalf("it loads and does not open: %v", err)
		}
		if err := l.Save(writeOf(1, 1, s.last()+1)); err != nil {
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
	binary.LittleEndian.PutUint64(long[headerSize+8:], maxRecord)
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
