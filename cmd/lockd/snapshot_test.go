package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// snapshots are the files of them in a directory.
func snapshots(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.snapshot"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the directory has %q, %v", files, err)
	}
	return files
}

// A server's log begins behind its snapshot, and the next start is from that; the dump shows it.
func TestAServerIsStartedFromItsSnapshot(t *testing.T) {
	t.Parallel()
	addrs, dir := freeAddrs(t, 1), t.TempDir()
	args := []string{"-id", "1", "-peers", peersOf(addrs), "-dir", dir, "-snapshot-every", "50",
		"-election", "100ms", "-heartbeat", "20ms"}
	server := start(t, args...)
	server.stderr.await(t, "role=leader")
	client := dial(t, addrs...)
	last := lock(t, client, "held")
	for i := range 100 {
		last = lock(t, client, fmt.Sprint("key ", i))
	}
	server.stderr.await(t, "a snapshot is on the disk")
	eventually(t, "its log begins behind it", func() bool { return status(client, addrs[0]).Snapshot.Index > 0 })
	server.stop(t)
	dump := start(t, "wal", "dump", dir)
	if code := dump.end(t); code != 0 || !strings.Contains(dump.stdout.String(), filepath.Base(snapshots(t, dir)[0])) ||
		!strings.Contains(dump.stdout.String(), "marker") {
		t.Errorf("the dump exits with %d, says %s and prints\n%s", code, dump.stderr, dump.stdout)
	}
	again := start(t, args...)
	again.stderr.await(t, "starts from a snapshot")
	if next := lock(t, client, "another"); next <= last {
		t.Errorf("token %d after %d", next, last)
	}
	again.stop(t)
	// A file that is cut off is not what it was: the server says which, and does not start. There may be
	// two, one of which was not done with when the server was told to stop.
	for _, name := range snapshots(t, dir) {
		if err := os.Truncate(name, 70); err != nil {
			t.Fatal(err)
		}
	}
	bad := start(t, args...)
	if code := bad.end(t); code != 1 || !strings.Contains(bad.stderr.String(), ".snapshot, offset 70: ") {
		t.Errorf("with half a snapshot it exits with %d and says\n%s", code, bad.stderr)
	}
}
