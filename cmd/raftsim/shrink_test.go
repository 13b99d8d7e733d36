package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const failingSeed = "18"

// Three commands, from a search to a file that shows the bug: each is printed by the one before it.
func TestASearchLeadsToAShortScenarioThatFailsInTheSameWay(t *testing.T) {
	code, out, errs := try("explore", "-seeds", failingSeed+"-100", "-without", "expire-token")
	_, shorter, found := strings.Cut(out, "shorter: raftsim ")
	if code != exitBroken || !found {
		t.Fatalf("exit %d, %s\n%s", code, errs, out)
	}
	file := filepath.Join(t.TempDir(), "short.txt")
	args := append(strings.Fields(shorter), "-o", file)
	code, out, errs = try(args...)
	_, again, found := strings.Cut(errs, "again: raftsim ")
	if code != exitHeld || out != "" || !found || !strings.HasPrefix(errs, "removal-meant: ") {
		t.Fatalf("exit %d, %s\n%s", code, errs, out)
	}
	code, out, errs = try(strings.Fields(again)...)
	if code != exitBroken || !strings.Contains(out, "BROKEN  removal-meant") || errs != "" {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") > 12 {
		t.Errorf("%v, a long file:\n%s", err, text)
	}
	if _, out, _ := try(strings.Fields(shorter)...); out != string(text) {
		t.Errorf("standard output gets something else:\n%s\n%s", out, text)
	}
	_, out, _ = try("explore", "-seeds", failingSeed, "-without", "expire-token", "-json")
	var report struct{ Shrink string }
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Shrink != "raftsim "+strings.TrimSpace(shorter) {
		t.Errorf("%v, %q", err, report.Shrink)
	}
}

func TestAScenarioIsShrunkByItsNameOrFile(t *testing.T) {
	code, out, errs := try("run", "-without", "expire-token", "late-expire")
	_, shorter, found := strings.Cut(out, "shorter: raftsim ")
	if code != exitBroken || !found {
		t.Fatalf("exit %d, %s\n%s", code, errs, out)
	}
	code, out, errs = try(strings.Fields(shorter)...)
	if code != exitHeld || !strings.Contains(out, "without expire-token\n") || strings.Contains(out, "until leader S1") {
		t.Fatalf("exit %d, %s\n%s", code, errs, out)
	}
	file := filepath.Join(t.TempDir(), "short.txt")
	if err := os.WriteFile(file, []byte(out+"expect removal-meant violated\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// What is as short as it gets stays as it is, and a scenario that passes because it fails passes.
	if code, same, _ := try("shrink", file); code != exitHeld || !strings.HasSuffix(same, "expect removal-meant violated\n") {
		t.Errorf("exit %d\n%s", code, same)
	}
}

func TestWhatCannotBeShrunkSaysWhy(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.txt")
	if err := os.WriteFile(bad, []byte("# A title\ntimeuot S1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{}, "-seed N"},
		{[]string{"late-expire"}, "late-expire does not fail"},
		{[]string{"-seed", "1", "-faults", "mild"}, "seed 1 does not fail"},
		{[]string{"-seed", "x"}, "expected the number"},
		{[]string{"-faults", "mild", "late-expire"}, "a scenario says so itself"},
		{[]string{"-faults", "hrash", "-seed", "1"}, `"harsh"`},
		{[]string{"-without", "gtae", "-seed", "1"}, `"gate"`},
		{[]string{"late-expire", "once"}, "one scenario"},
		{[]string{bad}, "bad.txt:2: "},
		{[]string{filepath.Join(dir, "none.txt")}, "none.txt"},
		{[]string{"-seed", failingSeed, "-without", "expire-token", "-o", filepath.Join(dir, "no", "such.txt")},
			"writing the scenario"},
	} {
		code, out, errs := try(append([]string{"shrink"}, tt.args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("raftsim shrink %s: exit %d, %q, %q; want exit %d and %q",
				strings.Join(tt.args, " "), code, out, errs, exitUsage, tt.want)
		}
	}
}

func TestAnInterruptedShrinkPrintsItsBest(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"shrink", "-seed", failingSeed, "-without", "expire-token"}, &out, &errs)
	if code != exitCut || !strings.Contains(errs.String(), "INTERRUPTED") || !strings.Contains(out.String(), "without expire-token\n") {
		t.Errorf("exit %d, %s\n%s", code, errs.String(), out.String())
	}
}
