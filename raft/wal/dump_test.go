package wal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

const heading = `FILE      OFFSET     SYNCED  CRC  KIND         INDEX    TERM  TEXT
`

func TestDumpPrintsEveryRecordAndWhatIsDamaged(t *testing.T) {
	dir := t.TempDir()
	vote := raft.Write{Seq: 3, HardState: raft.HardState{Term: 5, VotedFor: 1}}
	odd := raft.Write{Seq: 4, HardState: vote.HardState, Entries: []raft.Entry{
		{Index: 3, Term: 5},
		{Index: 4, Term: 5, Command: []byte("two\nlines")},
		{Index: 5, Term: 5, Command: bytes.Repeat([]byte("x"), 201)},
		{Index: 6, Term: 5, Command: []byte(`"quoted"`)},
		{Index: 7, Term: 5, Command: []byte("a space ")},
		{Index: 8, Term: 5, Command: []byte("\xff\xfe")},
	}}
	closed(t, filled(t, dir, writeOf(1, 3, 1, 2), writeOf(2, 4, 2), vote, odd))
	const whole = heading + `1              0             ok   header                      00000000000000000001.wal, 704 bytes, version 1, cluster 7, server 1
1             48          0  ok   state                    3  vote 2
1             48          0  ok   entry            1       3  command 1
1             48          0  ok   entry            2       3  command 2
1            152        152  ok   state                    4  vote 2
1            152        152  ok   entry            2       4  command 2
1            232        232  ok   state                    5  vote 1
1            288        288  ok   entry            3       5  ""
1            288        288  ok   entry            4       5  "two\nlines"
1            288        288  ok   entry            5       5  xLONG … (201 bytes)
1            288        288  ok   entry            6       5  "\"quoted\""
1            288        288  ok   entry            7       5  "a space "
1            288        288  ok   entry            8       5  "\xff\xfe"
1            648        648  ok   mark                     5  vote 1
Open would return 8 entries, term 5, vote 1.
`
	dumped(t, dir, strings.Replace(whole, "xLONG", strings.Repeat("x", 200), 1))

	name := filepath.Join(dir, segmentName(1))
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[170] ^= 1
	if err := os.WriteFile(name, append(data[:288], "torn"...), 0o600); err != nil {
		t.Fatal(err)
	}
	dumped(t, dir, heading+`1              0             ok   header                      00000000000000000001.wal, 292 bytes, version 1, cluster 7, server 1
1             48          0  ok   state                    3  vote 2
1             48          0  ok   entry            1       3  command 1
1             48          0  ok   entry            2       3  command 2
1            152             BAD  damaged                     80 bytes: there is no record, and the record at offset 232 says that it was synced
1            232        232  ok   state                    5  vote 1
1            288             BAD  damaged                     4 bytes: there is no record, and nothing says that it was synced
Open would refuse: `+(&DamageError{segmentName(1), 152,
		"there is no record, and the record at offset 232 says that it was synced"}).Error()+"\n")
}

func TestDumpPrintsALogThatOpenWouldRefuseForOtherReasons(t *testing.T) {
	whole := segmentOf(first(), writeOf(1, 1, 1))
	strange := ofKind(9, whole)
	senseless := framed(appendRecord(nil, 1, 0, 0, writeOf(1, 1, 1))[headSize : headSize+bodySize+8])
	third := segmentOf(header{version, 7, 1, 3, 0}, writeOf(1, 1, 2))
	hole := segmentOf(first(), writeOf(1, 1, 1), writeOf(2, 1, 2), writeOf(3, 1, 3))
	hole[128] ^= 1
	foreign := onDisk(whole)
	foreign.seen["notes.wal"] = &fakeFile{name: "notes.wal"}
	gap := onDisk(whole, nil, third)
	delete(gap.seen, segmentName(2))
	for name, c := range map[string]struct {
		disk *fakeDisk
		want []string
	}{
		"a kind of record from the future": {onDisk(strange), []string{
			"1             48          0  ok   unknown                  0  56 bytes of kind 9",
			"Open would refuse: " + segmentName(1) + ", offset 48: this program does not know"}},
		"a record without sense": {onDisk(senseless), []string{
			"  ok   odd                      0  the record cannot hold the 1 entries", "Open would refuse: "}},
		"the same term and vote behind a damaged place": {onDisk(hole), []string{
			"1            128             BAD  damaged                     80 bytes: ",
			"1            208        208  ok   state                    1  vote 2"}},
		"another's file": {foreign, []string{
			"?              0                  foreign                     notes.wal is not",
			"entry            1       1  command 1", "Open would refuse: notes.wal is not"}},
		"a file is missing": {gap, []string{
			"3             48          0  ok   entry            2       1  command 2",
			"Open would refuse: " + segmentName(2) + ", offset 0: the file is missing"}},
		"no header": {onDisk(make([]byte, 60)), []string{
			"1              0             BAD  damaged                     60 bytes: there is no header",
			"No segment has a header"}},
		"no header, then a segment": {onDisk(make([]byte, 60), third), []string{
			"60 bytes: there is no header, and a later segment says", "Open would refuse: "}},
		"a torn tail": {onDisk(whole, make([]byte, 60)), []string{
			"entry            1       1  command 1",
			"2              0             BAD  damaged                     60 bytes: there is no header",
			"Open would return 1 entries, term 1, vote 2, and drop 60 bytes of " + segmentName(2)}},
		"nothing": {newFakeDisk(), []string{"No segment has a header"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			if err := dump(c.disk, &got); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(got.String(), want) {
					t.Errorf("no %q in\n%s", want, got.String())
				}
			}
			if c.disk.operations > 0 {
				t.Error("the disk was changed")
			}
		})
	}
}

// Whoever looks must not disturb the server, nor need to stop it.
func TestDumpReadsADirectoryInUseAndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	l := filled(t, dir, writeOf(1, 1, 1))
	before := listing(t, dir)
	dumped(t, dir, heading+`1              0             ok   header                      00000000000000000001.wal, 128 bytes, version 1, cluster 7, server 1
1             48          0  ok   state                    1  vote 2
1             48          0  ok   entry            1       1  command 1
Open would return 1 entries, term 1, vote 2.
`)
	if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
		t.Errorf("the directory was changed (-before +after):\n%s", diff)
	}
	if err := l.Save(writeOf(2, 1, 2)); err != nil {
		t.Error(err)
	}
	closed(t, l)
}

// listing is what stands in a directory.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := osDir(dir).Names()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range names {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = fmt.Sprintf("%v %v %x", info.Mode(), info.ModTime(), data)
	}
	return all
}

func dumped(t *testing.T, dir, want string) {
	t.Helper()
	var got strings.Builder
	if err := Dump(dir, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type fullPipe struct{}

func (fullPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestDumpSaysWhenItCannot(t *testing.T) {
	dir := t.TempDir()
	closed(t, filled(t, dir, writeOf(1, 1, 1)))
	if err := Dump(dir, fullPipe{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
	nowhere := filepath.Join(dir, "nowhere")
	if err := Dump(nowhere, &strings.Builder{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

func TestDumpPrintsSnapshotsTheirMarkersAndTheServers(t *testing.T) {
	dir := t.TempDir()
	s := snapshotOf(2, 1, 300)
	change := writeOf(3, 1, 4, 5)
	change.Entries[0].Members, change.Entries[0].Command = s.Members, nil
	change.Entries[1].Members = raft.Configuration{{ID: 1, Voter: true}}
	l := filled(t, dir, writeOf(1, 1, 1, 2, 3))
	saved(t, l, s, markerOf(2, s), change)
	saved(t, l, snapshotOf(3, 1, 300))
	closed(t, l)
	part := filepath.Join(dir, snapshotName(position{4, 1})+partSuffix)
	if err := os.WriteFile(part, make([]byte, 70), 0o600); err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(dir, snapshotName(position{3, 1}))
	data, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	data[100] ^= 1
	if err := os.WriteFile(second, data, 0o600); err != nil {
		t.Fatal(err)
	}
	dumped(t, dir, heading+`1              0             ok   header                      00000000000000000001.wal, 168 bytes, version 1, cluster 7, server 1
1             48          0  ok   state                    1  vote 2
1             48          0  ok   entry            1       1  command 1
1             48          0  ok   entry            2       1  command 2
1             48          0  ok   entry            3       1  command 3
2              0             ok   header                      00000000000000000002.wal, 352 bytes, version 1, cluster 7, server 1
2             48          0  ok   marker           2       1  snapshot; needed from file 1 on
2            128        128  ok   entry            4       1  members: 1 one:7001, 2, 3 three:7001 (learner)
2            128        128  ok   entry            5       1  members: 1; command 5
2            296        296  ok   mark                     1  vote 2
snap           0             ok   file             2       1  00000000000000000002-00000000000000000001.snapshot, 429 bytes, 3 members, 300 bytes of data
snap          64             BAD  damaged          3       1  00000000000000000003-00000000000000000001.snapshot: the block's checksum is wrong
snap           0                  part             4       1  00000000000000000004-00000000000000000001.snapshot.part, 70 bytes, being written or left by a crash
Open would return a snapshot up to entry 2 and 3 entries, term 1, vote 2.
`)
}
