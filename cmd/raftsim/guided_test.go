package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A run that is made of others has no seed to be named by, so it becomes a file, and the commands that a
// failure prints name that.
func TestAGuidedSearchLeadsToAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "found.txt")
	code, out, errs := try("explore", "-guided", "-without", "expire-token", "-save", file)
	if code != exitBroken || !strings.Contains(out, "it is now "+file) {
		t.Fatalf("exit %d, %s\n%s", code, errs, out)
	}
	_, again, _ := strings.Cut(out, "again: raftsim ")
	again, _, _ = strings.Cut(again, "\n")
	if again != "run "+file {
		t.Errorf("again: %q", again)
	}
	if code, out, errs := try(strings.Fields(again)...); code != exitBroken || !strings.Contains(out, "BROKEN  removal-meant") {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
	_, out, _ = try("explore", "-guided", "-without", "expire-token", "-save", file, "-json")
	if !strings.Contains(out, `"raftsim run `+file+`"`) || !strings.Contains(out, `"raftsim shrink `+file+`"`) {
		t.Errorf("as JSON:\n%s", out)
	}
	if code, _, errs := try("shrink", file); code != exitHeld || !strings.Contains(errs, "removal-meant: ") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// What was seen grows with the seeds, and a search that nothing broke says how.
func TestCoverageIsCounted(t *testing.T) {
	number := regexp.MustCompile(`Coverage +(\d+) shapes of states in (\d+) runs: \d+ after 1, \d+ after 2`)
	for _, args := range [][]string{{"-coverage"}, {"-guided"}} {
		args = append([]string{"explore", "-seeds", "1-6"}, args...)
		code, out, errs := try(args...)
		m := number.FindStringSubmatch(out)
		if code != exitHeld || m == nil || m[1] == "0" || m[2] != "6" {
			t.Errorf("%v: exit %d, %s\n%s", args, code, errs, out)
		}
	}
	if _, out, _ := try("explore", "-seeds", "1-6"); strings.Contains(out, "Coverage") {
		t.Errorf("nobody asked for it:\n%s", out)
	}
}

func TestAGuidedSearchThatCannotBeSaysWhy(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "no", "such", "file")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-guided", "-out", "x"}, exitUsage, "not with -shard or -out"},
		{[]string{"-coverage", "-shard", "1/2"}, exitUsage, "not with -shard or -out"},
		{[]string{"-save", "x"}, exitUsage, "-save is for -guided"},
		{[]string{"-guided", "-without", "expire-token", "-save", nowhere}, exitUsage, "give another -save"},
	} {
		code, _, errs := try(append([]string{"explore"}, tt.args...)...)
		if code != tt.code || !strings.Contains(errs, tt.want) {
			t.Errorf("%v: exit %d, %s", tt.args, code, errs)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("it has written a file all the same")
	}
}
