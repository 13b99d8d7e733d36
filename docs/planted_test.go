package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ticketing/internal/planted"
)

// runner is a program that runs a scenario file and prints which invariants broke, where and how, and which
// expectation failed.
const runner = `package main

import (
	"fmt"
	"os"

	"ticketing/sim"
)

func main() {
	s, err := sim.Load(os.Args[1])
	if err != nil {
		panic(err)
	}
	r, err := sim.Run(s, sim.Options{})
	if err != nil {
		panic(err)
	}
	for _, v := range r.Violations {
		fmt.Println(v.Invariant, "on", v.Node, v.Detail)
	}
	fmt.Println("held", r.Held())
	if r.Failure != nil {
		fmt.Println(r.Failure)
	}
}
`

// inFSM runs a scenario over package fsm with mistakes planted, and returns the lines of runner.
func inFSM(t *testing.T, scenario string, mistakes ...planted.Mistake) []string {
	t.Helper()
	return strings.Split(planted.Run(t, runner, []string{scenario}, mistakes...), "\n")
}

// mistake is one in a file of package fsm.
func mistake(file, is, instead string) planted.Mistake {
	return planted.Mistake{File: "fsm/" + file, Is: is, Instead: instead}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// oneGrant is a scenario of three entries: the leader's first, a session, and one Grant.
const oneGrant = `# One command
nodes 3
timeout S1
until leader S1
connect A
A: acquire door lease=10s
until A granted token=1
until S2 applied=3
until S3 applied=3
`

// A table that looks at a clock differs from all others after one command, and the comparison of
// their hashes says so at that very entry (hazard 34, nomad#13725, L10, invariant I7). Without the
// mistake nothing is said.
func TestAClockInApplyIsCaughtWithinOneCommand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "one-grant.txt")
	writeFile(t, file, oneGrant)
	if got := inFSM(t, file); len(got) != 1 || got[0] != "held true" {
		t.Errorf("without any mistake: %q", got)
	}
	got := inFSM(t, file,
		mistake("table.go", "LeaseMS: e.LeaseMS, Owner", "LeaseMS: uint32(time.Now().UnixNano()), Owner"),
		mistake("table.go", "import (\n", "import (\n\t\"time\"\n"))
	if !strings.HasPrefix(got[0], "state-machine-safety on S") ||
		!strings.Contains(got[0], "after entry 3 its table has hash") {
		t.Errorf("with a clock in Apply: %q", got)
	}
}

// L6 keeps an Expire from being proposed behind an Extend. Without it, the invariant that names what
// was not measured is the one that breaks (hazard 25, etcd#14758).
func TestWithoutL6AnExpireIsNotEarned(t *testing.T) {
	t.Parallel()
	got := inFSM(t, "extend-race", mistake("leader.go",
		"\tif r.leader.extending[tenureOf{o.key, o.token}] > 0 {\n\t\treturn\n\t}\n", ""))
	if !strings.HasPrefix(got[0], "expire-earned on S1") || !strings.Contains(got[0], "behind the Extend") {
		t.Errorf("without L6: %q", got)
	}
}

// A countdown that an Extend does not start anew ends the tenure early: the same invariant, the other
// half of it (hazard 25, hazelcast#5853).
func TestACountdownThatMissesAnExtendIsNotEarned(t *testing.T) {
	t.Parallel()
	got := inFSM(t, "extend", mistake("replica.go",
		"case result.Kind == Granted || result.Kind == Extended:", "case result.Kind == Granted:"))
	if !strings.HasPrefix(got[0], "expire-earned on S1") {
		t.Errorf("with a countdown that misses an Extend: %q", got)
	}
}
