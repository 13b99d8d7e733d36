package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ticketing/raft"
)

// An operator meets these. Each error names the path and says what to do.
func TestADirectoryThatCannotHoldTheLogIsRefusedWithAdvice(t *testing.T) {
	parent := t.TempDir()
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, []byte("not a directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ dir, advice string }{
		"a file":              {file, "is a file; name a directory"},
		"below a file":        {filepath.Join(file, "log"), "not a directory"},
		"below what is not":   {filepath.Join(parent, "a", "log"), "make the directory above it first"},
		"a name that is none": {"", "make the directory above it first"},
	} {
		t.Run(name, func(t *testing.T) {
			err := refused(t, c.dir, mine).Error()
			if !strings.Contains(err, c.dir) || !strings.Contains(err, c.advice) {
				t.Errorf("the error is %s; want %q and %q in it", err, c.dir, c.advice)
			}
		})
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "not a directory" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

// In a directory with a log, these files are in the way, cut short or somebody else's.
func TestAFileThatIsNotTheLogsIsRefusedAndLeftAlone(t *testing.T) {
	one, two := segmentName(1), segmentName(2)
	for name, c := range map[string]struct {
		file   string
		change func(data []byte) []byte
		want   []string
	}{
		"text in place of a segment": {one,
			func([]byte) []byte { return []byte("dear diary") },
			[]string{one, `begins with "dear diary"`, "move it away"}},
		"text in place of the next segment": {two,
			func([]byte) []byte { return []byte("dear diary") },
			[]string{two, `begins with "dear diary"`, "move it away"}},
		"another name": {"notes.wal",
			func([]byte) []byte { return []byte("dear diary") },
			[]string{"notes.wal", "move it away"}},
		"a number that is too short": {"1.wal",
			func([]byte) []byte { return nil },
			[]string{"1.wal", "move it away"}},
		"a number that is none": {segmentName(0),
			func([]byte) []byte { return nil },
			[]string{segmentName(0), "move it away"}},
		"one bit of the header": {one,
			func(data []byte) []byte { data[20] ^= 4; return data },
			[]string{one, "offset 0: the header is damaged", "replace it by a server with a new id"}},
		"an older format": {one,
			func(data []byte) []byte {
				old := first()
				old.version = 0
				return append(appendHeader(nil, old), data[headerSize:]...)
			},
			[]string{one, "version 0", "knows version 1", "start the program that wrote it"}},
		"cut short, and there is more": {one,
			func(data []byte) []byte { return data[:len(data)-1] },
			[]string{one, "offset 928", "replace it by a server with a new id"}},
		"empty, and there is more": {one,
			func([]byte) []byte { return nil },
			[]string{one, "offset 0", "replace it by a server with a new id"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var w []raft.Write
			more := strings.Contains(name, "there is more")
			for i := raft.Index(1); i <= 1 || more && i <= 14; i++ {
				w = append(w, writeOf(uint64(i), 1, i))
			}
			closed(t, filled(t, dir, w...))
			path := filepath.Join(dir, c.file)
			data, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.change(data), 0o600); err != nil {
				t.Fatal(err)
			}
			before := listing(t, dir)
			problem := refused(t, dir, mine).Error()
			for _, want := range append(c.want, dir) {
				if !strings.Contains(problem, want) {
					t.Errorf("the error is %s; want %q in it", problem, want)
				}
			}
			if after := listing(t, dir); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("the directory was changed from %v to %v", before, after)
			}
		})
	}
}

func TestAFullDiskAndAReadOnlyOneAreNamedWithAdvice(t *testing.T) {
	for err, want := range map[error]string{
		syscall.ENOSPC: "make room and start the server again",
		syscall.EROFS:  "or name another directory",
		syscall.EACCES: "or name another directory",
	} {
		wrapped := advised(fmt.Errorf("writing: %w", err))
		if !errors.Is(wrapped, err) || !strings.Contains(wrapped.Error(), want) {
			t.Errorf("%v becomes %v", err, wrapped)
		}
	}
	if advised(nil) != nil || advised(errFault) != errFault {
		t.Error("other errors must stay as they are")
	}
}

// A command's bytes are shared here, or this would take the memory that it is about.
func TestAWriteLargerThanARecordMayBeIsRefused(t *testing.T) {
	l, _, err := open(newFakeDisk(), mine)
	if err != nil {
		t.Fatal(err)
	}
	w := writeOf(1, 1, 1)
	command := make([]byte, 64<<20)
	for i := range raft.Index(17) {
		e := raft.Entry{Index: i + 1, Term: 1, Command: command}
		w.Entries = append(w.Entries[:i], e)
	}
	err = l.Save(w)
	if err == nil || !strings.Contains(err.Error(), "the most is 1073741824") {
		t.Errorf("the error is %v", err)
	}
	if l.Save(writeOf(1, 1, 1)) == nil {
		t.Error("the log goes on")
	}
}

func TestAFileLargerThanASegmentMayBeIsRefusedBeforeItIsRead(t *testing.T) {
	dir := t.TempDir()
	closed(t, filled(t, dir, writeOf(1, 1, 1)))
	path := filepath.Join(dir, segmentName(1))
	if err := os.Truncate(path, 3<<30); err != nil { // it has no such bytes on the disk
		t.Skipf("no file of 3 GiB can be made here: %v", err)
	}
	if err := refused(t, dir, mine); !strings.Contains(err.Error(), path) ||
		!strings.Contains(err.Error(), "are more than any file of a log has") {
		t.Errorf("the error is %v", err)
	}
}

// What clients call their locks is nobody else's business.
func TestNobodyElseMayReadTheLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	closed(t, filled(t, dir, writeOf(1, 1, 1)))
	for _, name := range []string{".", "lock", segmentName(1)} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has mode %v", name, mode)
		}
	}
}

// Open with create relies on it that nothing is there to be written over.
func TestAFileIsMadeOnlyWhereThereIsNone(t *testing.T) {
	dir := osDir(t.TempDir())
	f, err := dir.Open("name", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Open("name", true); !errors.Is(err, os.ErrExist) {
		t.Errorf("the error is %v", err)
	}
}
