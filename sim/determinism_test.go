package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hashOf is the hash of a run's trace as it would be written to a file.
func hashOf(t *testing.T, s *Scenario, seed uint64) string {
	t.Helper()
	r, err := Run(s, Options{Seed: &seed, Record: true})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Held() {
		t.Fatalf("seed %d: %v, %v", seed, r.Violations, r.Failure)
	}
	hash, err := r.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// busy has some of everything that draws and everything that is kept in a map.
const busy = `
	nodes 5
	config batch=2 window=4
	network delay=1ms..30ms tail=2%:300ms loss=2% duplicate=2%
	disk * sync=1ms..20ms
	clock S2 rate=1.1
	clock S3 rate=0.9
	at 500ms A: acquire door lease=700ms
	at 510ms B: acquire door lease=700ms
	at 520ms C: acquire gate lease=400ms
	at 530ms D: acquire vault lease=400ms
	at 900ms crash S1 torn
	at 1100ms A: release door
	at 1300ms restart S1
	at 1350ms disk S2 stall
	at 1400ms C: disconnect
	at 1450ms cut S1 S2 | S3 S4 S5
	at 1500ms D: pause
	at 1800ms disk S2 ok
	at 1900ms heal
	at 2s B: write door
	at 2100ms pause S3
	at 2200ms D: resume
	at 2500ms resume S3
	at 2600ms hold S4->*
	at 2900ms release S4->*
	at 3s crash *
	at 3200ms restart *
	at 3500ms A: acquire door lease=300ms
	at 3510ms B: acquire door lease=300ms
	at 3520ms C: acquire door lease=300ms
	at 3530ms D: acquire gate lease=300ms
	run 6s
	until converged
`

func TestTheSameSeedGivesTheSameTraceByteForByte(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	hash := func(seed uint64) string {
		s, err := Plan(seed, []string{"harsh", "swarm"}[seed%2], 0)
		if err != nil {
			t.Fatal(err)
		}
		return hashOf(t, s, seed)
	}
	for seed := uint64(1); seed <= wide(30, 200); seed++ {
		runtime.GOMAXPROCS(1)
		one := hash(seed)
		runtime.GOMAXPROCS(2)
		if two := hash(seed); one != two {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}

// A change here is a change of every run of every seed that anyone has written down. It may be
// meant: a new event, another draw. Then say so in the commit.
func TestTracesAreFrozen(t *testing.T) {
	s := scenario(t, busy)
	var lines strings.Builder
	for seed := uint64(1); seed <= 20; seed++ {
		fmt.Fprintf(&lines, "%2d %s\n", seed, hashOf(t, s, seed))
	}
	golden(t, "hashes.txt", lines.String())
}

// TICKETING_HASHES names a file that several machines share: the first writes it, and each of the
// others must come to the same. Without it the file is this test's own, and it comes to it twice.
func TestTheSameSeedGivesTheSameTraceOnEveryMachine(t *testing.T) {
	file := os.Getenv("TICKETING_HASHES")
	if file == "" {
		file = filepath.Join(t.TempDir(), "hashes.txt")
		shareHashes(t, file)
	}
	shareHashes(t, file)
}

func shareHashes(t *testing.T, file string) {
	t.Helper()
	var lines strings.Builder
	for seed := uint64(1); seed <= 10; seed++ {
		for _, faults := range FaultNames() {
			s, err := Plan(seed, faults, 0)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&lines, "%s %s\n", s.Name, hashOf(t, s, seed))
		}
	}
	before, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		before, err = []byte(lines.String()), os.WriteFile(file, []byte(lines.String()), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), lines.String()); diff != "" {
		t.Errorf("on %s %s the traces are others (-before +here):\n%s", runtime.GOOS, runtime.GOARCH, diff)
	}
	t.Logf("%s %s: %d traces", runtime.GOOS, runtime.GOARCH, strings.Count(lines.String(), "\n"))
}

// What stands in a trace does not depend on who looks, or how closely.
func TestLookingChangesNothing(t *testing.T) {
	s := scenario(t, busy)
	for seed := uint64(1); seed <= 10; seed++ {
		plain, err := Run(s, Options{Seed: &seed})
		if err != nil {
			t.Fatal(err)
		}
		watched, err := Run(s, Options{Seed: &seed, Record: true, Deep: true})
		if err != nil {
			t.Fatal(err)
		}
		if plain.End != watched.End || plain.Steps != watched.Steps || plain.counters != watched.counters {
			t.Errorf("seed %d: unwatched it ends at %s after %d steps, watched at %s after %d",
				seed, plain.End, plain.Steps, watched.End, watched.Steps)
		}
	}
}
