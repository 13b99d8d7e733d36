package wal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

func TestDumpPrintsEveryRecordAndWhatIsDamaged(t *testing.T) {
	dir := t.TempDir()
	vote := raft.Write{Seq: 3, HardState: raft.HardState{Term: 5, VotedFor: 1}}
	closed(t, filled(t, dir, writeOf(1, 3, 1, 2), writeOf(2, 4, 2), vote))
	const whole = `00000000000000000001.wal: 344 bytes
       0  header: version 1, cluster 7, server 1, segment 1, 0 bytes before it
      48  term 3, vote 2, entries 1 to 2
          entry 1, term 3: "command 1"
          entry 2, term 3: "command 2"
     152  term 4, vote 2, entries 2 to 2
          entry 2, term 4: "command 2"
     232  term 5, vote 1, no entries
     288  term 5, vote 1, a mark
`
	dumped(t, dir, whole)

	name := filepath.Join(dir, segmentName(1))
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[170] ^= 1
	if err := os.WriteFile(name, append(data, "torn"...), 0o600); err != nil {
		t.Fatal(err)
	}
	dumped(t, dir, `00000000000000000001.wal: 348 bytes
       0  header: version 1, cluster 7, server 1, segment 1, 0 bytes before it
      48  term 3, vote 2, entries 1 to 2
          entry 1, term 3: "command 1"
          entry 2, term 3: "command 2"
     152  DAMAGED: there is no record in these 80 bytes
     232  term 5, vote 1, no entries
     288  term 5, vote 1, a mark
     344  DAMAGED: there is no record in these 4 bytes
`)
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
