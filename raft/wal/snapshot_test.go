package wal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
	"ticketing/raft/wal/storetest"
)

// snapshotOf makes a snapshot with so many bytes, no two blocks of which are alike.
func snapshotOf(index raft.Index, term raft.Term, size int) *raft.Snapshot {
	s := &raft.Snapshot{LastIncludedIndex: index, LastIncludedTerm: term, Members: raft.Configuration{
		{ID: 1, Voter: true, Address: "one:7001"}, {ID: 2, Voter: true}, {ID: 3, Address: "three:7001"},
	}}
	for i := 0; len(s.Data) < size; i++ {
		s.Data = fmt.Appendf(s.Data, "%d at %d. ", i, index)
	}
	s.Data = s.Data[:size:size]
	return s
}

// markerOf makes a write with a snapshot and one entry of its term at each index.
func markerOf(seq uint64, s *raft.Snapshot, indexes ...raft.Index) raft.Write {
	w := writeOf(seq, s.LastIncludedTerm, indexes...)
	w.Snapshot = s
	return w
}

// saved saves snapshots and then writes.
func saved(t *testing.T, l *Log, s *raft.Snapshot, writes ...raft.Write) {
	t.Helper()
	if err := l.SaveSnapshot(s); err != nil {
		t.Fatal(err)
	}
	for _, w := range writes {
		if err := l.Save(w); err != nil {
			t.Fatal(err)
		}
	}
}

// Blocks of every length, among them none, and several of them.
func TestARealDirectoryKeepsSnapshotsOfAnySize(t *testing.T) {
	dir := t.TempDir()
	members := int(membersSize(snapshotOf(1, 1, 0).Members))
	sizes := []int{0, 1, blockSize - members - 1, blockSize - members, blockSize - members + 1,
		9*blockSize + 5, 3}
	for i, size := range sizes {
		l, before, err := Open(dir, mine)
		if err != nil {
			t.Fatal(err)
		}
		index := raft.Index(2*i + 1)
		s := snapshotOf(index, 1, size)
		want := before
		writes := []raft.Write{writeOf(1, 1, index, index+1), markerOf(2, s)}
		if err := l.Save(writes[0]); err != nil {
			t.Fatal(err)
		}
		saved(t, l, s, writes[1])
		closed(t, l)
		for _, w := range writes {
			storetest.Apply(&want, w)
		}
		l, got, err := Open(dir, mine)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Fatalf("a snapshot of %d bytes (-want +got):\n%.2000s", size, diff)
		}
		closed(t, l)
	}
	if got := listed(t, dir); len(got) != 4 { // lock, snapshot, the marker's segment, the one before
		t.Errorf("in the end there are %v", got)
	}
}

// listed is the names in a directory.
func listed(t *testing.T, dir string) []string {
	t.Helper()
	names, err := osDir(dir).Names()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// withSnapshot is a disk with a snapshot up to 2, its marker, and an entry of before and after.
func withSnapshot(t *testing.T) (d *fakeDisk, s *raft.Snapshot) {
	t.Helper()
	d, s = newFakeDisk(), snapshotOf(2, 1, 700)
	l, _, err := open(d, mine)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Save(writeOf(1, 1, 1, 2, 3)); err != nil {
		t.Fatal(err)
	}
	saved(t, l, s, markerOf(2, s), writeOf(3, 1, 4))
	closed(t, l)
	return d, s
}

func put(d *fakeDisk, name string, data []byte) {
	d.seen[name] = &fakeFile{name, data, data}
	d.synced = maps.Clone(d.seen)
}

// Bad input: truncated, with a bad checksum, of another, from the future. The log begins behind the
// snapshot, so a server without it has forgotten what it promised.
func TestASnapshotThatIsNotWhatWasSavedIsRefused(t *testing.T) {
	name := snapshotName(position{2, 1})
	header := func(o Options, s *raft.Snapshot) func([]byte) []byte {
		return func(b []byte) []byte {
			return append(appendSnapshotHeader(nil, o, s), b[snapshotHeaderSize:]...)
		}
	}
	other := func(o Options) func([]byte) []byte { return header(o, snapshotOf(2, 1, 700)) }
	for title, c := range map[string]struct {
		change func([]byte) []byte
		damage bool
		want   string
	}{
		"missing": {nil, true,
			"offset 0: the file is missing, and " + segmentName(2) + " begins behind it"},
		"empty": {func(b []byte) []byte { return nil }, true,
			"offset 0: the file ends within its header"},
		"half a header": {func(b []byte) []byte { return b[:30] }, true,
			"offset 30: the file ends within"},
		"cut by a byte": {func(b []byte) []byte { return b[:len(b)-1] }, true,
			"the file ends here and should have"},
		"longer by a byte": {func(b []byte) []byte { return append(b, 0) }, true,
			"the file should end here"},
		"another cluster's": {other(Options{Cluster: 8, Server: 1}), false,
			"belongs to server 1 of cluster 8, this is server 1 of cluster 7; put back"},
		"another server's": {other(Options{Cluster: 7, Server: 2}), false,
			"belongs to server 2 of cluster 7, this is server 1"},
		"a newer version": {versioned, false,
			"has version 2 of the format, this program knows version 1; start the program"},
		"of another index": {header(mine, snapshotOf(3, 1, 700)), true,
			"this is the snapshot up to entry 3 of term 1 under another name"},
		"of another term": {header(mine, snapshotOf(2, 2, 700)), true,
			"up to entry 2 of term 2 under another name"},
		"of another length": {header(mine, snapshotOf(2, 1, 701)), true,
			"the file ends here and should have"},
		"of absurd length": {huge, true,
			"the most is 1073741824"},
		"members that leak": {leak, true,
			"the members do not fill their"},
		"a block of another": {func([]byte) []byte { return swapped() }, true,
			fmt.Sprintf("offset %d: the block's checksum", snapshotHeaderSize)},
	} {
		t.Run(title, func(t *testing.T) {
			d, _ := withSnapshot(t)
			if data := slices.Clone(d.seen[name].seen); c.change == nil {
				delete(d.seen, name)
			} else {
				put(d, name, c.change(data))
			}
			before := d.operations
			_, _, err := open(d, mine)
			var damage *DamageError
			if !says(err, name, c.want) || errors.As(err, &damage) != c.damage {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if d.operations != before {
				t.Error("the disk was changed")
			}
		})
	}
}

// says reports whether there is an error that has all this in it.
func says(err error, all ...string) bool {
	for _, s := range all {
		if err == nil || !strings.Contains(err.Error(), s) {
			return false
		}
	}
	return true
}

func versioned(b []byte) []byte {
	b[7] = 2
	return resealed(b)
}

// resealed gives a header the checksum that fits.
func resealed(b []byte) []byte {
	sum := checksum(b[:snapshotHeaderSize-8])
	copy(b[snapshotHeaderSize-8:], []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)})
	return b
}

func huge(b []byte) []byte {
	copy(b[48:], bytes.Repeat([]byte{255}, 8))
	return resealed(b)
}

// leak lets the data begin within the last member.
func leak(b []byte) []byte {
	b[40]--
	b[48]++
	return resealed(b)
}

// swapped is the file with the data of the snapshot before, whose length is the same.
func swapped() []byte {
	f := &fakeFile{}
	h := &fakeHandle{newFakeDisk(), f, false}
	if err := writeBlocks(h, mine, snapshotOf(1, 1, 700)); err != nil {
		panic(err)
	}
	mine := appendSnapshotHeader(nil, mine, snapshotOf(2, 1, 700))
	return append(mine, f.seen[snapshotHeaderSize:]...)
}

// Every byte counts, and where it is damaged is said to a block.
func TestAnyDamageInASnapshotIsRefusedWithItsPlace(t *testing.T) {
	d, _ := withSnapshot(t)
	name := snapshotName(position{2, 1})
	whole := slices.Clone(d.seen[name].seen)
	for i := range whole {
		data := slices.Clone(whole)
		data[i] ^= 1 << (i % 8)
		put(d, name, data)
		_, _, err := open(d, mine)
		var damage *DamageError
		want := int64(0)
		if i >= snapshotHeaderSize {
			want = snapshotHeaderSize
		}
		if !errors.As(err, &damage) || damage.File != name || damage.Offset != want {
			t.Fatalf("byte %d is damaged, the error is %v", i, err)
		}
	}
	put(d, name, whole)
	if _, _, err := open(d, mine); err != nil {
		t.Error(err)
	}
}

func TestADamagedBlockOfManyIsNamed(t *testing.T) {
	s, f := snapshotOf(2, 1, 3*blockSize), &fakeFile{}
	if err := writeBlocks(&fakeHandle{newFakeDisk(), f, false}, mine, s); err != nil {
		t.Fatal(err)
	}
	at := snapshotHeaderSize + blockSize + sumSize
	f.seen[at+77] ^= 1
	_, err := readSnapshot("name", f.seen, mine, positionOf(s))
	var damage *DamageError
	if !errors.As(err, &damage) || damage.Offset != int64(at) {
		t.Errorf("the block at %d is damaged, the error is %v", at, err)
	}
}

// What a crash has left of this server's files goes, and of whatever is in the way nothing does.
func TestOpenRemovesWhatACrashLeftAndNothingElse(t *testing.T) {
	d, s := withSnapshot(t)
	needed, second := snapshotName(positionOf(s)), snapshotOf(9, 3, 300)
	f := &fakeFile{}
	if err := writeBlocks(&fakeHandle{newFakeDisk(), f, false}, mine, second); err != nil {
		t.Fatal(err)
	}
	marker := slices.Clone(d.seen[segmentName(2)].seen)
	for name, data := range map[string][]byte{
		snapshotName(position{9, 3}):             f.seen,
		snapshotName(position{10, 3}) + ".part":  nil,
		snapshotName(position{11, 3}) + ".part":  make([]byte, 700),
		snapshotName(position{9, 3}) + ".part":   f.seen[:snapshotHeaderSize-3],
		needed + ".part":                         appendOwn(nil, mine, positionOf(s))[:20],
		snapshotName(position{1, 1}):             appendOwn(nil, mine, position{1, 1}),
		"2-1.snapshot":                           []byte("a name that no snapshot has"),
		"notes.snapshot":                         []byte("dear diary"),
		snapshotName(position{9, 3}) + ".backup": f.seen,
		"identity":                               []byte("cluster a"),
	} {
		put(d, name, data)
	}
	if _, _, err := open(d, mine); err != nil {
		t.Fatal(err)
	}
	want := []string{
		segmentName(1), segmentName(2), needed, snapshotName(position{9, 3}) + ".backup",
		"2-1.snapshot", "identity", "notes.snapshot",
	}
	got := slices.Sorted(maps.Keys(d.seen))
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if !bytes.HasPrefix(d.seen[segmentName(2)].seen, marker) {
		t.Error("the marker's segment was changed")
	}
}

func TestAnothersFileInPlaceOfAnUnneededOneIsRefused(t *testing.T) {
	for title, c := range map[string]struct {
		name string
		data []byte
		want string
	}{
		"text as a snapshot": {snapshotName(position{9, 3}), []byte("dear diary"),
			`begins with "dear diary"; move it away`},
		"text as one being written": {snapshotName(position{9, 3}) + ".part", []byte("dear diary"),
			`begins with "dear diary"; move it away`},
		"another cluster's": {snapshotName(position{9, 3}),
			appendSnapshotHeader(nil, Options{Cluster: 8, Server: 1}, snapshotOf(9, 3, 0)), "of cluster 8"},
		"another version's": {snapshotName(position{9, 3}),
			versioned(appendSnapshotHeader(nil, mine, snapshotOf(9, 3, 0))), "has version 2"},
		"text as a segment": {segmentName(1), []byte("dear diary"), "move it away"},
		"another cluster's segment": {segmentName(1),
			segmentOf(header{version, 8, 1, 1, 0}, writeOf(1, 1, 1)), "of cluster 8"},
		"another segment": {segmentName(1),
			segmentOf(header{version, 7, 1, 4, 0}, writeOf(1, 1, 1)), "this is segment 4"},
	} {
		t.Run(title, func(t *testing.T) {
			d, _ := withSnapshot(t)
			l, _, err := open(d, mine)
			if err != nil {
				t.Fatal(err)
			}
			s := snapshotOf(4, 1, 10)
			saved(t, l, s, markerOf(1, s)) // the entry stands in segment 2, so 1 is gone
			closed(t, l)
			if d.seen[segmentName(1)] != nil || d.seen[segmentName(2)] == nil {
				t.Fatalf("there are %v", slices.Sorted(maps.Keys(d.seen)))
			}
			put(d, c.name, c.data)
			before := d.operations
			_, _, err = open(d, mine)
			if !says(err, c.name, c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if d.operations != before {
				t.Error("the disk was changed")
			}
		})
	}
}

// A segment that is gone although no marker says that it may is a loss.
func TestARowOfSegmentsWithAGapIsRefused(t *testing.T) {
	ready := func(t *testing.T) *fakeDisk {
		d, _ := withSnapshot(t) // segments 1 and 2; the marker on 2 needs 1
		l, _, err := open(d, mine)
		if err != nil {
			t.Fatal(err)
		}
		s := snapshotOf(9, 2, 10)
		saved(t, l, s, markerOf(1, s, 10)) // of another history: segment 3 alone is needed
		if err := l.beginSegment(writeOf(2, 2, 11), 3); err != nil {
			t.Fatal(err)
		}
		closed(t, l)
		return d
	}
	if _, durable, err := open(ready(t), mine); err != nil || len(durable.Entries) != 2 {
		t.Fatalf("the row without a gap: %d entries, %v", len(durable.Entries), err)
	}
	for title, c := range map[string]struct {
		change func(d *fakeDisk)
		want   string
	}{
		"the marker's is gone": {func(d *fakeDisk) { delete(d.seen, segmentName(3)) },
			segmentName(1) + ", offset 0: the file is missing, though " + segmentName(4)},
		"the marker is damaged": {func(d *fakeDisk) {
			b := slices.Clone(d.seen[segmentName(3)].seen)
			b[headerSize+headSize] ^= 1
			put(d, segmentName(3), b)
		}, segmentName(1) + ", offset 0: the file is missing, though " + segmentName(3)},
	} {
		t.Run(title, func(t *testing.T) {
			d := ready(t)
			c.change(d)
			_, _, err := open(d, mine)
			var damage *DamageError
			if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
	d, _ := withSnapshot(t)
	delete(d.seen, segmentName(1))
	if _, _, err := open(d, mine); err == nil ||
		!strings.Contains(err.Error(), segmentName(1)+", offset 0: the file is missing") {
		t.Errorf("without the segment that the marker needs: %v", err)
	}
}

// A crash between a marker and the end of the removing leaves any of the files.
func TestSegmentsThatAMarkerMadeSuperfluousGoAtTheNextOpen(t *testing.T) {
	d := newFakeDisk()
	l, _, err := open(d, Options{Cluster: 7, Server: 1, SegmentSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range raft.Index(5) {
		if err := l.Save(writeOf(uint64(i)+1, 1, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	all := maps.Clone(d.seen)
	s := snapshotOf(4, 1, 10)
	saved(t, l, s, markerOf(6, s))
	for keep := range 8 { // any of the first three segments has come back
		crashed := newFakeDisk()
		for name, f := range d.seen {
			put(crashed, name, f.seen)
		}
		for i := range uint64(3) {
			if name := segmentName(i + 1); keep>>i&1 == 1 {
				put(crashed, name, all[name].seen)
			}
		}
		_, durable, err := open(crashed, mine)
		if err != nil || len(durable.Entries) != 1 || durable.Entries[0].Index != 5 {
			t.Fatalf("with %b: %v, %v", keep, durable.Entries, err)
		}
		if names, err := segments(crashed); err != nil || names[0] != 4 {
			t.Errorf("with %b there are segments %v, %v", keep, names, err)
		}
	}
}

func TestTheLogKeepsTheLastSnapshotAndWhatIsBehindIt(t *testing.T) {
	const rounds, perRound, size = 100, 10, 5000
	dir := t.TempDir()
	l := filled(t, dir)
	seq, next, most := uint64(0), raft.Index(1), int64(0)
	write := raft.Write{}
	for round := range raft.Term(rounds) {
		for range perRound {
			seq++
			write = writeOf(seq, round+1, next, next+1)
			if err := l.Save(write); err != nil {
				t.Fatal(err)
			}
			next += 2
		}
		seq++
		s := snapshotOf(next-5, round+1, size) // with a margin of four entries
		saved(t, l, s, markerOf(seq, s))
		most = max(most, bytesIn(t, dir))
	}
	// The snapshot, and the entries since the segment with its last one began: of two rounds at most.
	record := recordSize(write)
	if bound := size + 500 + 2*(perRound+2)*record + mine.SegmentSize; most > bound || most < size {
		t.Errorf("the directory had %d bytes, want at most %d", most, bound)
	}
	closed(t, l)
	l, durable, err := Open(dir, mine)
	if err != nil || len(durable.Entries) != 4 || durable.Snapshot.LastIncludedIndex != next-5 {
		t.Errorf("%d entries, %v", len(durable.Entries), err)
	}
	closed(t, l)
}

func bytesIn(t *testing.T, dir string) (sum int64) {
	t.Helper()
	for _, name := range listed(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}

// Between any two operations of SaveSnapshot, the log saves a write, or a marker of the snapshot
// before.
func TestSaveGoesOnBetweenAnyTwoStepsOfSaveSnapshot(t *testing.T) {
	for nth := 1; ; nth++ {
		d := newFakeDisk()
		l, want, err := open(d, Options{Cluster: 7, Server: 1, SegmentSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		save := func(w raft.Write) {
			t.Helper()
			if err := l.Save(w); err != nil {
				t.Fatal(err)
			}
			storetest.Apply(&want, w)
		}
		one, two := snapshotOf(2, 1, 20), snapshotOf(4, 1, 700)
		save(writeOf(1, 1, 1, 2, 3, 4, 5))
		saved(t, l, one)
		met := false
		d.between = func() {
			if nth--; nth == 0 {
				met, d.between = true, nil
				save(markerOf(2, one, 6))
				save(writeOf(3, 1, 7))
			}
		}
		n := nth
		if err := l.SaveSnapshot(two); err != nil {
			t.Fatal(err)
		}
		if nth = n; !met {
			if nth < 6 {
				t.Errorf("SaveSnapshot has %d operations", nth-1)
			}
			return
		}
		d.Crash(func(storetest.Unsynced) storetest.Survivors { return storetest.Survivors{} })
		if _, got, err := open(d, mine); err != nil || cmp.Diff(want, got) != "" {
			t.Fatalf("before operation %d: %v\n%s", nth, err, cmp.Diff(want, got))
		}
	}
}

// The race detector looks on.
func TestSaveAndSaveSnapshotRunAtTheSameTime(t *testing.T) {
	l, entries := filled(t, t.TempDir(), writeOf(1, 1, 1)), raft.Index(60)
	ready := make(chan *raft.Snapshot, entries)
	var group sync.WaitGroup
	group.Go(func() {
		defer close(ready)
		for i := range entries {
			s := snapshotOf(i+1, 1, 3000)
			if err := l.SaveSnapshot(s); err != nil {
				t.Error(err)
				return
			}
			ready <- s
		}
	})
	markers, plain, seq := 0, 0, uint64(1)
	for i := raft.Index(2); i <= entries+1; i++ {
		seq++
		w := writeOf(seq, 1, i)
		select {
		case s, ok := <-ready:
			if ok && s.LastIncludedIndex < i {
				w.Snapshot = s
				markers++
			}
		default:
			plain++
		}
		if err := l.Save(w); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
	if markers == 0 || plain == 0 {
		t.Errorf("%d writes had a snapshot and %d met none", markers, plain)
	}
	closed(t, l)
}

func TestASnapshotThatNoCoreHandsOutPanics(t *testing.T) {
	l, _, err := open(newFakeDisk(), mine)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Save(writeOf(1, 1, 1, 2, 3)); err != nil {
		t.Fatal(err)
	}
	s := snapshotOf(2, 1, 10)
	saved(t, l, s, markerOf(2, s))
	saved(t, l, snapshotOf(1, 1, 10))
	for name, do := range map[string]func(){
		"one that is not saved":       func() { _ = l.Save(markerOf(3, snapshotOf(3, 1, 10))) },
		"one before the last":         func() { _ = l.Save(markerOf(3, snapshotOf(1, 1, 10))) },
		"an entry that it covers":     func() { _ = l.Save(writeOf(3, 1, 2)) },
		"of index 0":                  func() { _ = l.SaveSnapshot(snapshotOf(0, 1, 10)) },
		"of term 0":                   func() { _ = l.SaveSnapshot(snapshotOf(9, 0, 10)) },
		"a gap behind its last entry": func() { _ = l.Save(writeOf(3, 1, 5)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			do()
		})
	}
}

// Memory is shared here, or this would take what it is about.
func TestASnapshotLargerThanAFileMayBeIsRefusedAndTheLogGoesOn(t *testing.T) {
	d := newFakeDisk()
	l, _, err := open(d, mine)
	if err != nil {
		t.Fatal(err)
	}
	s := &raft.Snapshot{LastIncludedIndex: 1, LastIncludedTerm: 1}
	address := strings.Repeat("a", 1<<20)
	for i := range raft.ServerID(1 << 10) {
		s.Members = append(s.Members, raft.Member{ID: i + 1, Address: address})
	}
	before := d.operations
	if err := l.SaveSnapshot(s); !says(err, "the most is 1073741824") {
		t.Errorf("the error is %v", err)
	}
	if d.operations != before {
		t.Error("the disk was changed")
	}
	if err := l.Save(writeOf(1, 1, 1)); err != nil {
		t.Error(err)
	}
}

// The numbers are those of what is documented: whoever changes the format changes the version.
func TestTheFormatOfSnapshotsAndTheirMarkersStays(t *testing.T) {
	d, s := withSnapshot(t)
	change := writeOf(1, 1, 1)
	change.Entries[0].Members = s.Members
	for title, c := range map[string]struct {
		data []byte
		want uint32
	}{
		"the snapshot":            {d.seen[snapshotName(positionOf(s))].seen, 0x64022c46},
		"the marker's segment":    {d.seen[segmentName(2)].seen, 0x5849fa06},
		"a change of the servers": {segmentOf(first(), change), 0x421a666c},
	} {
		if sum := checksum(c.data); sum != c.want {
			t.Errorf("%s: the checksum is %#x, want %#x", title, sum, c.want)
		}
	}
	if k := kind(segmentOf(first(), change)[headerSize+12]); k != kindMembers {
		t.Errorf("a change of the servers has kind %d", k)
	}
}

// A log without snapshots and changes of the servers is what an older program can read.
func TestAWriteWithoutMembersHasTheKindThatOlderProgramsKnow(t *testing.T) {
	if k := kind(segmentOf(first(), writeOf(1, 1, 1))[headerSize+12]); k != kindWrite {
		t.Errorf("the kind is %d", k)
	}
	if _, err := decode(kindWrite, appendWrite(nil, raft.Write{Entries: []raft.Entry{
		{Index: 1, Term: 1, Members: raft.Configuration{{ID: 1}}}}})); err == nil {
		t.Error("members in a record that has none are decoded")
	}
}

// A server that goes on without a snapshot takes another one later, perhaps of the same entry.
func TestASnapshotThatFailedLeavesNothingInTheWayOfTheNext(t *testing.T) {
	failed := 0
	for nth := 2; ; nth++ { // the first operation makes the file
		d := newFakeDisk()
		l, _, err := open(d, mine)
		if err != nil {
			t.Fatal(err)
		}
		s := snapshotOf(2, 1, 700)
		d.Fail(nth, storetest.Short)
		if l.SaveSnapshot(s) == nil {
			break
		}
		failed++
		if d.seen[snapshotName(positionOf(s))+partSuffix] != nil {
			t.Errorf("operation %d failed, and the part is still there", nth)
		}
		saved(t, l, s, markerOf(1, s))
	}
	if failed != 5 { // two writes, sync, rename, the directory's sync
		t.Errorf("%d operations failed", failed)
	}
}
