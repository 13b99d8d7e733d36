package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ticketing/fsm/trace"
	"ticketing/sim"
)

// try runs raftsim with arguments and returns its exit code and what it printed.
func try(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(context.Background(), args, &o, &e)
	return code, o.String(), e.String()
}

func TestWithoutArgumentsItTellsTheStory(t *testing.T) {
	code, out, errs := try()
	if code != exitHeld || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(lines) > 30 {
		t.Errorf("%d lines; a screen has 30", len(lines))
	}
	for i, line := range lines {
		if len(line) > 118 {
			t.Errorf("line %d has %d columns", i+1, len(line))
		}
	}
	for _, part := range []string{"identical through event", "removal-meant held", "removal-meant broke", "fsm/table.go"} {
		if !strings.Contains(out, part) {
			t.Errorf("it does not say %q:\n%s", part, out)
		}
	}
}

// Into a pipe goes plain ASCII, whatever the environment; colour only if asked for.
func TestAPipeGetsPlainText(t *testing.T) {
	t.Setenv("LANG", "C.UTF-8")
	t.Setenv("TERM", "xterm-256color")
	for _, args := range [][]string{nil, {"run", "late-expire"}, {"run", "-trace", "late-expire"}, {"run", "-ascii", "figure-8"}} {
		_, out, _ := try(args...)
		for i := range len(out) {
			if b := out[i]; b >= 0x80 || b < ' ' && b != '\n' {
				t.Errorf("%q prints byte %#x near %q", args, b, out[max(0, i-20):i])
				break
			}
		}
	}
	if _, out, _ := try("-color"); !strings.Contains(out, "\x1b[") {
		t.Error("-color brings no colour")
	}
}

func TestListNamesEveryScenarioAndInvariant(t *testing.T) {
	_, out, _ := try("list")
	if got, want := strings.Count(out, "\n"), len(sim.Library()); got != want || want < 20 {
		t.Errorf("%d lines for %d scenarios", got, want)
	}
	_, out, _ = try("list", "-invariants")
	for _, i := range sim.Invariants() {
		if !strings.Contains(out, i.Name+" ") || !strings.Contains(out, i.Sentence) {
			t.Errorf("%s is not listed", i.Name)
		}
	}
}

// The exit code is the verdict.
//
//spec:test Expire.Token
func TestTakingTheTokenCheckAwayBreaksWhatItGuardsAndNothingElse(t *testing.T) {
	for name, want := range map[string]int{
		"late-expire": exitBroken, "late-expire-new-leader": exitBroken, "late-expire-no-gate": exitBroken,
		"vacuous": exitHeld, "paused-leader": exitHeld,
	} {
		if code, out, errs := try("run", name); code != exitHeld {
			t.Errorf("%s as it is: exit %d\n%s%s", name, code, out, errs)
		}
		code, out, errs := try("run", "-without", "expire-token", name)
		if code != want || errs != "" {
			t.Errorf("%s without expire-token: exit %d, want %d\n%s", name, code, want, errs)
		}
		if want == exitHeld {
			continue
		}
		for _, part := range []string{
			"BROKEN  removal-meant: a removal removes only the tenure that its issuer meant",
			"again: raftsim run -seed 1 -without expire-token " + name,
			"the steps that led to it:", "meant for token 1",
		} {
			if !strings.Contains(out, part) {
				t.Errorf("%s: the verdict does not say %q", name, part)
			}
		}
	}
}

func TestAFailureOfTheSearchPrintsTheCommandThatRepeatsIt(t *testing.T) {
	code, out, errs := try("explore", "-seeds", "1-100", "-without", "expire-token", "-j", "1")
	if code != exitBroken || errs != "" {
		t.Fatalf("exit %d, %s\n%s", code, errs, out)
	}
	_, again, found := strings.Cut(out, "again: raftsim ")
	again, shorter, both := strings.Cut(again, "\nshorter: raftsim ")
	if !found || !both || shorter != strings.Replace(again, "replay", "shrink", 1)+"\n" {
		t.Fatalf("no command to repeat or to shrink it in:\n%s", out)
	}
	code, replayed, errs := try(strings.Fields(again)...)
	if code != exitBroken || errs != "" {
		t.Fatalf("%s exits %d, %s", again, code, errs)
	}
	broken := func(s string) string { return s[strings.Index(s, "BROKEN"):] }
	if broken(out) != broken(replayed) {
		t.Errorf("the replay ends differently:\n%s\n%s", broken(out), broken(replayed))
	}
}

func TestARunSaysHowManySnapshotsThereWere(t *testing.T) {
	_, with, _ := try("run", "snapshot-catch-up")
	_, without, _ := try("run", "election")
	if !strings.Contains(with, "snapshots: 1 taken, 1 sent, 1 installed") || strings.Contains(without, "snapshots:") {
		t.Errorf("with one:\n%s\nwithout:\n%s", with, without)
	}
}

func TestARunSaysHowOftenTheServersChanged(t *testing.T) {
	_, with, _ := try("run", "member-fallback")
	_, without, _ := try("run", "election")
	if !strings.Contains(with, "servers: 2 changes, 0 refused, 1 taken back") || strings.Contains(without, "servers:") {
		t.Errorf("with changes:\n%s\nwithout:\n%s", with, without)
	}
}

func TestExploreCountsWhatHappened(t *testing.T) {
	code, out, _ := try("explore", "-seeds", "1-100", "-faults", "harsh")
	for _, part := range []string{"met a newer token", "invariants held", "told again", "sessions evicted", "refused behind an Expire",
		"in place of others"} {
		if code != exitHeld || !strings.Contains(out, part) {
			t.Errorf("exit %d, %q\n%s", code, part, out)
		}
	}
	code, out, _ = try("explore", "-seeds", "1-100", "-json", "-nodes", "3")
	var report struct {
		Seeds    int64
		Held     bool
		Counters map[string]int64
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitHeld {
		t.Fatalf("exit %d, %v", code, err)
	}
	if report.Seeds != 100 || !report.Held || report.Counters["expire.newer"] == 0 || report.Counters["elections"] == 0 {
		t.Errorf("%+v", report)
	}
	if code, out, _ := try("explore", "-for", "300ms", "-faults", "mild"); code != exitHeld || !strings.Contains(out, "seeds 1-") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestTheTraceIsWrittenAsJSONLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	if code, _, errs := try("run", "-json", file, "late-expire"); code != exitHeld {
		t.Fatal(errs)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := trace.Read(f)
	if err != nil || run.Header.Scenario != "late-expire" || len(run.Events) < 100 {
		t.Errorf("%v, %d events of %q", err, len(run.Events), run.Header.Scenario)
	}
	_, out, _ := try("run", "-json", "-", "late-expire")
	stored, err := os.ReadFile(file)
	if err != nil || out != string(stored) {
		t.Errorf("-json - prints something else than -json FILE writes (%v)", err)
	}
}

func TestMistakesGetAnErrorThatSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := file("bad.txt", "# A title\nnodes 3\ntimeuot S1\n")
	heart := file("heart.txt", "# A title\nconfig election=50ms heartbeat=50ms\n")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"rnu"}, `did you mean "run"`},
		{[]string{"run"}, "raftsim list"},
		{[]string{"run", "late-exprie"}, `"late-expire"`},
		{[]string{"run", "-sede", "3", "late-expire"}, `did you mean "seed"`},
		{[]string{"run", "-seed", "x", "late-expire"}, "expected a number"},
		{[]string{"run", "-without", "expire-tokne", "late-expire"}, `"expire-token"`},
		{[]string{"run", "-without", "request-id", "late-expire"}, `"request-ids"`},
		{[]string{"run", bad}, "bad.txt:3: "},
		{[]string{"run", heart}, "heart.txt:2: "},
		{[]string{"run", filepath.Join(dir, "none.txt")}, "none.txt"},
		{[]string{"explore", "-faults", "hrash"}, `"harsh"`},
		{[]string{"explore", "-nodes", "99"}, "1 to 9"},
		{[]string{"explore", "-seeds", "9-3"}, "A-B"},
		{[]string{"explore", "-seeds", "5-0"}, "A-B"},
		{[]string{"explore", "-seeds", "5-"}, "A-B"},
		{[]string{"-ascii", "run", "late-expire"}, "before its flags"},
		{[]string{"explore", "-for", "-3s"}, "negative"},
		{[]string{"explore", "extra"}, "flags only"},
		{[]string{"replay"}, "-seed"},
		{[]string{"replay", "-seed", "1", "-json", filepath.Join(dir, "no", "such", "dir")}, "writing the trace"},
		{[]string{"-sede"}, "unknown flag"},
	} {
		code, _, errs := try(tt.args...)
		if code != exitUsage || !strings.Contains(errs, tt.want) {
			t.Errorf("raftsim %s: exit %d, %q; want exit %d and %q", strings.Join(tt.args, " "), code, errs, exitUsage, tt.want)
		}
	}
}

func TestTheLastSeedOfAllEndsASearch(t *testing.T) {
	code, out, _ := try("explore", "-seeds", "18446744073709551614-18446744073709551615", "-faults", "mild")
	if code != exitHeld || !strings.Contains(out, "2 runs") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestAnInterruptedSearchDoesNotClaimThatAllHeld(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"explore", "-seeds", "1-100000"}, &out, &errs)
	if code != exitCut || !strings.Contains(out.String(), "INTERRUPTED") || strings.Contains(out.String(), "invariants held") {
		t.Errorf("exit %d\n%s%s", code, out.String(), errs.String())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestLostOutputIsNoSuccess(t *testing.T) {
	for _, args := range [][]string{nil, {"list"}, {"run", "election"}, {"explore", "-seeds", "1-2"}} {
		var errs bytes.Buffer
		if code := run(context.Background(), args, full{}, &errs); code != exitUsage || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("raftsim %q into a full disk: exit %d, %s", args, code, errs.String())
		}
	}
}

// A run that would fill the memory ends with a sentence; so does a picture with a mark wider than a
// column.
func TestHugeRunsEnd(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]struct {
		text, says string
		code       int
	}{
		"long.txt": {"# t\ntimeout S1\nuntil leader S1\nrun 1000h\n", "stopped after", exitBroken},
		"wide.txt": {"# t\nmanual\nnode S1 term=9999999\ntimeout S1\ndeliver S1->S2\ndeliver S2->S1\n", "10000000", exitHeld},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(want.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := try("run", path); code != want.code || !strings.Contains(out, want.says) {
			t.Errorf("%s: exit %d, %s\n%s", name, code, errs, out[max(0, len(out)-500):])
		}
	}
}

func TestHelpFitsAScreen(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"-h"}, {"run", "-h"}, {"explore", "-h"}, {"replay", "-h"}, {"trace", "-h"}, {"list", "-h"}} {
		code, out, errs := try(args...)
		most := 30
		if slices.Equal(args, []string{"explore", "-h"}) {
			most = 40 // a search has the most to choose from
		}
		if code != exitHeld || errs != "" || out == "" || strings.Count(out, "\n") > most {
			t.Errorf("raftsim %s: exit %d, %d lines, %q", strings.Join(args, " "), code, strings.Count(out, "\n"), errs)
		}
	}
}
