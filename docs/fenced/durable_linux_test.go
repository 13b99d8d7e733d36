package fenced

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// callerFile names the store for the process whose system calls are looked at.
const callerFile = "FENCED_CALLER"

// No test can take the power away, so this one looks at the order in which the system is asked. The
// new file is synced before it gets the name, and the directory before the call returns; a read that
// changes nothing syncs the directory as well, for what it returns may be somebody's unsynced work.
func TestACallReturnsWhenWhatItDidIsOnTheDisk(t *testing.T) {
	if path := os.Getenv(callerFile); path != "" {
		s := &Store{path: path}
		err := s.Put(1, "report", "new")
		if _, readErr := s.Get(1, "report"); err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		return
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "calls")
	strace := []string{"-f", "-y", "-s", "999", "-e", "trace=/^(f.*sync|rename.*)$", "-o", log}
	cmd := exec.Command("strace", append(strace, os.Args[0], "-test.run=^"+t.Name()+"$")...)
	cmd.Env = append(os.Environ(), callerFile+"="+filepath.Join(dir, "store"))
	if out, err := cmd.CombinedOutput(); err != nil {
		if _, found := exec.LookPath("strace"); found != nil || strings.Contains(string(out), "strace:") {
			t.Skipf("strace cannot look at the calls here: %v: %s", err, out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"fsync store.new", "rename store.new store", "fsync .", "fsync ."}
	if diff := cmp.Diff(want, order(string(text), dir)); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, text)
	}
}

var (
	syncing  = regexp.MustCompile(`\bf(?:data)?sync\(\d+<([^>]+)>`)
	renaming = regexp.MustCompile(`\brename\w*\(.*?"([^"]+)".*?"([^"]+)"`)
)

// order says what was synced and renamed in a directory.
func order(text, dir string) (list []string) {
	short := func(path string) string {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return path
		}
		return name
	}
	for line := range strings.Lines(text) {
		if m := syncing.FindStringSubmatch(line); m != nil {
			list = append(list, "fsync "+short(m[1]))
		}
		if m := renaming.FindStringSubmatch(line); m != nil {
			list = append(list, "rename "+short(m[1])+" "+short(m[2]))
		}
	}
	return list
}
