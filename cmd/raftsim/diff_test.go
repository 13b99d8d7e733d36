package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// As with the program that everybody knows: 0 is the same, 1 is not.
func TestDiffSaysWhetherTwoRunsAreTheSame(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"late-expire", "late-expire"}, exitHeld, "They are the same"},
		{[]string{"-without", "gate", "figure-8"}, exitHeld, "They are the same"},
		{[]string{"-without", "expire-token", "late-expire"}, exitBroken, "expire 1 door"},
		{[]string{"-without", "expire-token", "-seed", failingSeed}, exitBroken, "removal-meant broke"},
		{[]string{"-seed", "2", "late-expire", "late-expire-no-gate"}, exitBroken, "The same for"},
	} {
		code, out, errs := try(append([]string{"diff"}, tt.args...)...)
		if code != tt.code || !strings.Contains(out, tt.want) || errs != "" {
			t.Errorf("raftsim diff %s: exit %d, %s\n%s", strings.Join(tt.args, " "), code, errs, out)
		}
		if lines := strings.Count(out, "\n"); lines > 90 {
			t.Errorf("raftsim diff %s: %d lines", strings.Join(tt.args, " "), lines)
		}
	}
}

func TestWhatCannotBeComparedSaysWhy(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.txt")
	if err := os.WriteFile(bad, []byte("# A title\ntimeuot S1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "two scenarios"},
		{[]string{"late-expire"}, "Give -without RULE"},
		{[]string{"-seed", "1"}, "Give -without RULE"},
		{[]string{"-seed", "x", "-without", "gate"}, "expected a number"},
		{[]string{"-without", "gtae", "late-expire"}, `"gate"`},
		{[]string{"-faults", "mild", "late-expire", "figure-8"}, "a scenario says so itself"},
		{[]string{"a", "b", "c"}, "two scenarios"},
		{[]string{"late-expire", "late-expir"}, `"late-expire"`},
		{[]string{"-lines", "-1", "late-expire", "figure-8"}, "from 0 up"},
		{[]string{"late-expire", bad}, "bad.txt:2: "},
	} {
		code, out, errs := try(append([]string{"diff"}, tt.args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("raftsim diff %s: exit %d, %q, %q; want exit %d and %q",
				strings.Join(tt.args, " "), code, out, errs, exitUsage, tt.want)
		}
	}
}
