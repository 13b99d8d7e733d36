package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
	"ticketing/raft/wal/storetest"
)

// C07, B10, B13: with one segment, with a few records in each, with one record in each.
func TestTheLogPassesTheStorageSuite(t *testing.T) {
	for _, size := range []int64{0, 400, 1} {
		for _, c := range slices.Concat(storetest.Cases(), storetest.SnapshotCases()) {
			t.Run(fmt.Sprintf("segments of %d/%s", size, c.Name), func(t *testing.T) {
				if err := c.Run(func() storetest.Disk { return newLogDisk(size) }); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

var mine = Options{Cluster: 7, Server: 1, SegmentSize: 1000}

// writeOf makes a write with one entry of a term at each index.
func writeOf(seq uint64, term raft.Term, indexes ...raft.Index) raft.Write {
	w := raft.Write{Seq: seq, HardState: raft.HardState{Term: term, VotedFor: 2}}
	for _, i := range indexes {
		command := fmt.Appendf(nil, "command %d", i)
		w.Entries = append(w.Entries, raft.Entry{Index: i, Term: term, Command: command})
	}
	return w
}

// filled opens a log and saves some writes to it.
func filled(t *testing.T, dir string, writes ...raft.Write) *Log {
	t.Helper()
	l, _, err := Open(dir, mine)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range writes {
		if err := l.Save(w); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func closed(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// refused opens a directory in vain and returns the error.
func refused(t *testing.T, dir string, o Options) error {
	t.Helper()
	l, _, err := Open(dir, o)
	if err == nil {
		closed(t, l)
		t.Fatal("opened")
	}
	return err
}

func TestARealDirectoryKeepsTheLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	var want raft.Durable
	for life := range raft.Term(4) {
		l, got, err := Open(dir, mine)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("life %d (-want +got):\n%s", life, diff)
		}
		for seq := uint64(1); seq <= 20; seq++ {
			i := raft.Index(len(want.Entries))
			w := writeOf(seq, life+1, max(i, 1), max(i, 1)+1, max(i, 1)+2)
			if err := l.Save(w); err != nil {
				t.Fatal(err)
			}
			storetest.Apply(&want, w)
		}
		closed(t, l)
	}
	if n, err := segments(osDir(dir)); len(n) < 3 || err != nil {
		t.Errorf("segments %v, %v; this test wants several", n, err)
	}
}

func TestASecondLogInTheDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	l := filled(t, dir, writeOf(1, 1, 1))
	if err := refused(t, dir, mine); !errors.Is(err, ErrLocked) {
		t.Errorf("the error is %v", err)
	}
	if err := l.Save(writeOf(2, 1, 2)); err != nil {
		t.Error(err)
	}
	closed(t, l)
	closed(t, filled(t, dir))
}

// B10's second half: nothing that was known is dropped. A clean stop, and a restart after one that
// was not, leave nothing unknown.
func TestTheLastWriteIsVouchedForAfterCloseAndOpen(t *testing.T) {
	for name, live := range map[string]func(t *testing.T, dir string){
		"closed": func(t *testing.T, dir string) {
			closed(t, filled(t, dir, writeOf(1, 1, 1), writeOf(2, 1, 2)))
		},
		"closed in a second life": func(t *testing.T, dir string) {
			closed(t, filled(t, dir, writeOf(1, 1, 1)))
			closed(t, filled(t, dir, writeOf(1, 1, 2)))
		},
		"opened after a crash": func(t *testing.T, dir string) {
			for _, w := range [][]raft.Write{{writeOf(1, 1, 1), writeOf(2, 1, 2)}, nil} {
				if err := filled(t, dir, w...).lock.Close(); err != nil { // as by kill -9
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			live(t, dir)
			name := filepath.Join(dir, segmentName(1))
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			at := strings.Index(string(data), "command 2")
			data[at]++
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
			var damage *DamageError
			want := int64(at - headSize - bodySize - entrySize)
			err = refused(t, dir, mine)
			if !errors.As(err, &damage) || damage.File != segmentName(1) || damage.Offset != want {
				t.Errorf("the record at offset %d is damaged, the error says: %v", want, err)
			}
		})
	}
}

func TestADirectoryOfAnotherIsRefused(t *testing.T) {
	dir := t.TempDir()
	closed(t, filled(t, dir, writeOf(1, 1, 1)))
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Cluster: 8, Server: 1}, "server 1 of cluster 7, this is server 1 of cluster 8"},
		{Options{Cluster: 7, Server: 2}, "server 1 of cluster 7, this is server 2 of cluster 7"},
		{Options{Server: 1}, "Cluster (0) and Server (1) must not be 0"},
		{Options{Cluster: 7}, "must not be 0"},
		{Options{Cluster: 7, Server: 1, SegmentSize: 2 << 30}, "SegmentSize"},
	} {
		if err := refused(t, dir, c.options); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: the error is %v", c.options, err)
		}
	}
	closed(t, filled(t, dir))
}

// onDisk returns a disk on paper with these segments, in which each record is a write.
func onDisk(segments ...[]byte) *fakeDisk {
	d := newFakeDisk()
	for i, s := range segments {
		name := segmentName(uint64(i) + 1)
		d.seen[name] = &fakeFile{name, s, s}
		d.synced[name] = d.seen[name]
	}
	return d
}

// segmentOf makes the bytes of a segment.
func segmentOf(h header, writes ...raft.Write) []byte {
	data := appendHeader(nil, h)
	for i, w := range writes {
		synced := int64(len(data))
		if i == 0 {
			synced = 0
		}
		data = appendRecord(data, h.number, int64(len(data)), synced, w)
	}
	return data
}

func first() header { return header{version, 7, 1, 1, 0} }

func TestWhatCannotHaveBeenWrittenIsRefused(t *testing.T) {
	whole := segmentOf(first(), writeOf(1, 1, 1), writeOf(2, 1, 2))
	size := uint64(len(whole))
	second := segmentOf(header{version, 7, 1, 2, size}, writeOf(3, 1, 3))
	short := segmentOf(first(), writeOf(1, 1, 1))
	newer, renamed := first(), first()
	newer.version, renamed.number = 2, 2
	gap := onDisk(whole, second)
	delete(gap.seen, segmentName(1))
	headless := append(make([]byte, headerSize), whole[headerSize:]...)
	for name, c := range map[string]struct {
		disk *fakeDisk
		want string
	}{
		"a newer format": {
			onDisk(segmentOf(newer, writeOf(1, 1, 1))), "has version 2 of the format"},
		"a segment under another name": {
			onDisk(segmentOf(renamed, writeOf(1, 1, 1))), "this is segment 2"},
		"the first segment is gone": {
			gap, segmentName(1) + ", offset 0: the file is missing"},
		"a segment lost its last record": {
			onDisk(short, second),
			fmt.Sprintf("%s, offset %d: the segment ends here and had %d bytes",
				segmentName(1), len(short), size)},
		"a torn record, then a segment": {
			onDisk(whole[:size-8], second), "a later segment says"},
		"an empty file, then a segment": {
			onDisk(nil, second), "a later segment says"},
		"only a header, then a segment": {
			onDisk(whole[:headerSize], second), "a later segment says"},
		"entries that leave a gap": {
			onDisk(segmentOf(first(), writeOf(1, 1, 2))), "entry 2 follows entry 0"},
		"entries before the first": {
			onDisk(segmentOf(first(), writeOf(1, 1, 0))), "entry 0 follows entry 0"},
		"a header damaged, then a record": {
			onDisk(headless), "offset 0: there is no header, and the record at offset"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := open(c.disk, mine)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
			if c.disk.operations > 0 {
				t.Error("the disk was changed")
			}
		})
	}
}

func TestWhatIsDroppedIsReported(t *testing.T) {
	one := segmentOf(first(), writeOf(1, 1, 1))
	two := segmentOf(first(), writeOf(1, 1, 1), writeOf(2, 1, 2))
	second := segmentOf(header{version, 7, 1, 2, uint64(len(one))}, writeOf(2, 1, 2))
	at, whole := int64(len(one)), int64(len(two))
	headless := append(make([]byte, headerSize), one[headerSize:]...)
	from := func(segment uint64, offset, bytes int64, reason string) Recovered {
		return Recovered{segmentName(segment), offset, bytes, reason}
	}
	for name, c := range map[string]struct {
		disk    *fakeDisk
		want    Recovered
		entries int
	}{
		"nothing": {
			onDisk(two), Recovered{}, 2},
		"half of the record": {
			onDisk(two[:at+40]),
			from(1, at, 40, "the record goes on behind the end of the file"), 1},
		"all but the head": {
			onDisk(append(two[:at+24:at+24], make([]byte, 100)...)),
			from(1, at, 124, "the record's checksum is wrong"), 1},
		"a few bytes": {
			onDisk(two[:at+3]), from(1, at, 3, "there is no record"), 1},
		"zeros behind the last record": {
			onDisk(append(two[:whole:whole], make([]byte, 5000)...)),
			from(1, whole, 5000, "there is no record"), 2},
		"a segment without a header": {
			onDisk(one, make([]byte, 900)), from(2, 0, 900, "there is no header"), 1},
		"a segment without a record": {
			onDisk(one, second[:headerSize]),
			from(2, 0, headerSize, "there is no record behind the header"), 1},
		"an empty segment": {
			onDisk(one, nil), from(2, 0, 0, "there is no header"), 1},
		"a record under no header": {
			onDisk(headless), from(1, 0, at, "there is no header"), 0},
		"all there is": {
			onDisk(one[:70]), from(1, 0, 70, "there is no record"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, durable, err := open(c.disk, mine)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, l.Recovered()); diff != "" {
				t.Errorf("recovered (-want +got):\n%s", diff)
			}
			if n := len(durable.Entries); n != c.entries {
				t.Errorf("%d entries, want %d", n, c.entries)
			}
			if err := l.Save(writeOf(1, 2, raft.Index(c.entries)+1)); err != nil {
				t.Error(err)
			}
			l, durable, err = open(c.disk, mine)
			if err != nil || l.Recovered() != (Recovered{}) || len(durable.Entries) != c.entries+1 {
				t.Errorf("then %d entries, %+v, %v", len(durable.Entries), l.Recovered(), err)
			}
		})
	}
}

// The other tests make segments by hand. This is what the log makes, and version 1 stays so.
func TestTheFormatIsVersionOne(t *testing.T) {
	d := newFakeDisk()
	l, _, err := open(d, mine)
	if err != nil {
		t.Fatal(err)
	}
	writes := []raft.Write{writeOf(1, 1, 1), writeOf(2, 1, 2, 3)}
	for _, w := range writes {
		if err := l.Save(w); err != nil {
			t.Fatal(err)
		}
	}
	got := d.seen[segmentName(1)].seen
	if diff := cmp.Diff(segmentOf(first(), writes...), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const want = 0x1bffd2c
	if sum := checksum(got); sum != want {
		t.Errorf("the checksum is %#x, want %#x: is this still version %d?", sum, want, version)
	}
}

// A command may hold a copy of the log's own bytes. That does not vouch for anything.
func TestARecordInsideACommandIsNone(t *testing.T) {
	inner := segmentOf(first(), writeOf(1, 1, 1), writeOf(2, 1, 2), writeOf(3, 1, 3))
	w := writeOf(1, 1, 1)
	w.Entries[0].Command = append(make([]byte, 4), inner...) // 4: at a multiple of 8 in the file
	outer := segmentOf(first(), w)
	outer[len(outer)-1] ^= 1
	l, durable, err := open(onDisk(outer), mine)
	if err != nil || len(durable.Entries) != 0 || l.Recovered().Bytes == 0 {
		t.Errorf("%d entries, %v", len(durable.Entries), err)
	}
}

func TestAWriteThatNoCoreHandsOutPanics(t *testing.T) {
	for name, w := range map[string]raft.Write{
		"the number after next": writeOf(3, 1, 2),
		"the same number":       writeOf(1, 1, 2),
		"a gap before":          writeOf(2, 1, 3),
		"a gap inside":          writeOf(2, 1, 2, 4),
		"index 0":               writeOf(2, 1, 0),
	} {
		t.Run(name, func(t *testing.T) {
			l, _, err := open(newFakeDisk(), mine)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Save(writeOf(1, 1, 1)); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = l.Save(w)
		})
	}
}

func TestNothingIsSavedForNoWriteAndAfterClose(t *testing.T) {
	d := newFakeDisk()
	l, _, err := open(d, mine)
	if err != nil {
		t.Fatal(err)
	}
	before := d.operations
	if err := l.Save(raft.Write{}); err != nil || d.operations != before {
		t.Errorf("%v, %d operations", err, d.operations-before)
	}
	closed(t, l)
	if l.Save(writeOf(1, 1, 1)) == nil || d.operations != before {
		t.Errorf("a closed log saved")
	}
}

// A new segment costs its name and the directory's sync besides.
func TestASaveIsOneWriteAndOneSync(t *testing.T) {
	d := newFakeDisk()
	l, _, err := open(d, Options{Cluster: 7, Server: 1, SegmentSize: 250})
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for i := range raft.Index(6) {
		before := d.operations
		if err := l.Save(writeOf(uint64(i)+1, 1, i+1)); err != nil {
			t.Fatal(err)
		}
		got = append(got, d.operations-before)
	}
	if diff := cmp.Diff([]int{4, 2, 2, 4, 2, 2}, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}
