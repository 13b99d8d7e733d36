package main

import (
	"strings"
	"testing"
)

// A failure of the reader's package is compared with the same run of ours, and has its own moment.
func TestAServerThatVotesTwiceIsComparedWithOursAndAskedWhen(t *testing.T) {
	t.Parallel()
	dir := twoVotes(t)
	code, out, errs := try("diff", "-raft", dir, "-seed", "3")
	for _, want := range []string{"\nB  harsh-3, raft " + dir + " . seed 3", "\nA  [ok] all held", "\nB  [x] vote-once broke at"} {
		if code != exitBroken || !strings.Contains(out, want) {
			t.Fatalf("diff: exit %d, no %q\n%s%s", code, want, out, errs)
		}
	}
	_, whole, _ := try("diff", "-lines", "0", "-raft", dir, "-seed", "3")
	if _, later, broke := strings.Cut(whole, "vote-once is broken"); strings.Count(later, "\nB ") < 10 || !broke {
		t.Errorf("the second run ends where something breaks:\n%s", later)
	}
	if code, out, errs := try("diff", "-raft", dir, "vacuous"); code != exitHeld || !strings.Contains(out, "They are the same") {
		t.Errorf("diff where nobody votes twice: exit %d\n%s%s", code, out, errs)
	}
	code, out, errs = try("when", "-raft", dir, "-futures", "2", "3")
	if code != exitHeld || !strings.Contains(out, "vote-once breaks at") || !strings.Contains(out, "The point of no return: from ") {
		t.Fatalf("when: exit %d\n%s%s", code, out, errs)
	}
	if _, again, _ := try("when", "-raft", dir, "-futures", "2", "-j", "1", "-seed", "3"); again != out {
		t.Errorf("%s\nis not\n%s", again, out)
	}
	if code, _, errs := try("when", "-raft", dir, "vacuous"); code != exitUsage || !strings.Contains(errs, "vacuous does not fail") {
		t.Errorf("when nothing breaks: exit %d, %s", code, errs)
	}
}

// Only of a run that is told is it known in which event it was.
func TestComparingAndAskingWhenOutliveAPanic(t *testing.T) {
	t.Parallel()
	dir := planted(t, "election.go", answering, answering+"\tpanic(\"this far\")\n")
	for _, args := range [][]string{{"diff", "-raft", dir, "-seed", "3"}, {"when", "-raft", dir, "3"}, {"shrink", "-raft", dir, "-seed", "3"}} {
		code, out, errs := try(args...)
		if code != exitBroken || strings.Contains(out, "in event ") != (args[0] == "diff") || strings.Contains(out, "before the first") || !strings.Contains(out, "PANIC   the") && !strings.Contains(out, "PANIC   one of the") ||
			!strings.Contains(out, "/election.go:73") || !strings.Contains(out, "again: raftsim "+args[0]) {
			t.Errorf("raftsim %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
		}
	}
	for _, args := range [][]string{{"diff", "-raft", dir + "/none", "-seed", "3"}, {"when", "-raft", dir + "/none", "3"}} {
		if code, _, errs := try(args...); code != exitUsage || !strings.Contains(errs, "there is no such directory") {
			t.Errorf("raftsim %s: exit %d, %s", strings.Join(args, " "), code, errs)
		}
	}
}
