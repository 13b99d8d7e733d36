package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ticketing/sim"
)

// brokenRows searches the combinations in which one thing is off and something breaks, which is quick.
func brokenRows(t *testing.T) []sim.Verdict {
	t.Helper()
	var rows []sim.Verdict
	all := sim.Defences{
		Pipelining: true, Gate: true, NoopWait: true, ExpireToken: true, ReleaseToken: true, RequestIDs: true,
	}
	expire, release, ids := all, all, all
	expire.ExpireToken, release.ReleaseToken, ids.RequestIDs = false, false, false
	for _, d := range []sim.Defences{ids, release, expire} {
		v, err := d.Search(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, v)
	}
	return rows
}

func TestTheTableIsPrintedAndDrawn(t *testing.T) {
	var out bytes.Buffer
	c := &call{out: &out}
	if err := c.printTable(brokenRows(t), sim.Style{ASCII: true, Width: width}, ""); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, part := range []string{
		"pipeline  gate  noop-wait", "granted-once broken in 5 steps", "Scope: three servers",
		"  1. A asks S1 for the lock.", "bare Release for A #1 REMOVES B #2", "-write DIR", "0 of 3 are safe",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q", part)
		}
	}
	if c.broken {
		t.Error("a scenario that is drawn does not hold")
	}
	table, _, _ := strings.Cut(text, "\nWithout ")
	for line := range strings.Lines(table) {
		if len(line) > 111 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

func TestEachWayIsWrittenAsAScenarioThatRunTakes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ways")
	rows := brokenRows(t)
	if err := writeScenarios(dir, rows); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(rows) {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, f := range files {
		code, out, errs := try("run", filepath.Join(dir, f.Name()))
		if code != exitHeld || !strings.Contains(out, "BROKEN") {
			t.Errorf("%s: exit %d, %s%s", f.Name(), code, out, errs)
		}
		// Whoever mends the rule by hand sees that the way is closed.
		if code, _, _ := try("run", "-seed", "7", filepath.Join(dir, f.Name())); code != exitHeld {
			t.Errorf("%s: another seed makes a difference", f.Name())
		}
	}
	if err := writeScenarios(filepath.Join(dir, files[0].Name(), "below-a-file"), rows); err == nil {
		t.Error("a directory below a file is made")
	}
}

func TestTheTableAsJSON(t *testing.T) {
	var out bytes.Buffer
	if err := printVerdicts(&call{out: &out}, brokenRows(t)); err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Defences map[string]bool
		Safe     bool
		States   int
		Broken   string
		Steps    []string
		Scenario string
	}
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	r := rows[2]
	if r.Safe || r.Broken != "removal-meant" || len(r.Steps) != 6 || r.States == 0 || r.Scenario != "no-expire-token.txt" ||
		r.Defences["expire-token"] || !r.Defences["gate"] || len(r.Defences) != 6 {
		t.Errorf("%+v", r)
	}
}

func TestTheTableFailsIfSomethingBreaksBehindAllGuards(t *testing.T) {
	rows := brokenRows(t)
	if guardsFail(rows) {
		t.Error("it fails though a guard is off in each row")
	}
	rows[0].RequestIDs = true
	if !guardsFail(rows) {
		t.Error("a row with everything on is broken, and it passes")
	}
}

func TestTheTableTakesItsFlagsOnly(t *testing.T) {
	for _, args := range [][]string{{"table", "gate"}, {"table", "-j", "-1"}, {"table", "-wirte", "x"}} {
		if code, _, errs := try(args...); code != exitUsage || errs == "" {
			t.Errorf("%q: exit %d, %q", args, code, errs)
		}
	}
	if code, out, _ := try("table", "-h"); code != exitHeld || !strings.Contains(out, "-write") {
		t.Errorf("exit %d, %s", code, out)
	}
	if _, out, _ := try("help"); !strings.Contains(out, "raftsim table") {
		t.Error("help does not name it")
	}
}

// The whole of it takes a minute of two cores, or less.
func TestTheWholeTable(t *testing.T) {
	if os.Getenv("TICKETING_LONG") == "" {
		t.Skip("set TICKETING_LONG=1 to search all combinations")
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"table"}, &out, &errs); code != exitHeld || errs.Len() > 0 {
		t.Fatalf("exit %d, %s", code, errs.String())
	}
	if !strings.Contains(out.String(), "10 of 64 are safe") {
		t.Error("another number is safe")
	}
}
