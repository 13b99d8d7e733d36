//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package fenced

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func opened(t *testing.T) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s, path
}

func TestARefusalNamesBothTokens(t *testing.T) {
	s, _ := opened(t)
	if err := s.Enter(34); err != nil {
		t.Fatal(err)
	}
	for token, why := range map[uint64]error{33: ErrStale, 0: ErrNoToken} {
		_, err := s.Get(token, "report")
		both := fmt.Sprintf("token %d is refused, token 34 has been seen", token)
		if !errors.Is(err, why) || !strings.Contains(err.Error(), both) {
			t.Errorf("%d: %v", token, err)
		}
	}
}

// Whatever happens to one byte of the file, or to its end, is noticed, and nothing is lost.
func TestADamagedFileIsAnErrorAndStaysAsItIs(t *testing.T) {
	s, path := opened(t)
	if err := s.Put(12, "report", "all is well"); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damages := [][]byte{nil, []byte("a letter"), append(bytes.Clone(whole), '\n')}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		damages = append(damages, flipped, whole[:i])
	}
	for _, damaged := range damages {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		_, atOpen := Open(path)
		for _, err := range []error{atOpen, s.Put(13, "report", "new"), s.Enter(13)} {
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), path) {
				t.Fatalf("%q: %v", damaged, err)
			}
		}
		if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, damaged) {
			t.Fatalf("%q became %q, %v", damaged, text, err)
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := s.Get(12, "report"); text != "all is well" || err != nil {
		t.Errorf("put back, it has %q, %v", text, err)
	}
}

// A write that fails leaves the old file, with the old mark. The next file is written beside the
// old one, and here it cannot be.
func TestAWriteThatFailsChangesNothing(t *testing.T) {
	s, path := opened(t)
	if err := s.Put(1, "report", "old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(2, "report", "new"); err == nil || errors.Is(err, ErrStale) {
		t.Errorf("the failed write says %v", err)
	}
	d, err := read(path)
	want := document{High: 1, Values: map[string]string{"report": "old"}}
	if diff := cmp.Diff(want, d); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := os.Remove(path + ".new"); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(2, "report", "new"); err != nil {
		t.Error(err)
	}
}

// counterFile names the store for the processes that the next test starts from its own program.
const counterFile = "FENCED_COUNTER"

const (
	counters   = 4  // processes, each with
	goroutines = 3  // so many callers,
	increments = 10 // which count so often
)

// Two programs that have the same file open must not undo each other's work, whatever they cache.
func TestProcessesWithTheSameFileWaitForOneAnother(t *testing.T) {
	if path := os.Getenv(counterFile); path != "" {
		countUp(t, path)
		return
	}
	_, path := opened(t)
	var running []*exec.Cmd
	for range counters {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), counterFile+"="+path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	d, err := read(path)
	want := strconv.Itoa(counters * goroutines * increments)
	if err != nil || d.Values["count"] != want {
		t.Errorf("counted to %q, want %s; %v", d.Values["count"], want, err)
	}
}

func countUp(t *testing.T, path string) {
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range increments {
				err := s.Update(1, "count", func(value string) string {
					n, _ := strconv.Atoi(value) // "" is 0
					return strconv.Itoa(n + 1)
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
