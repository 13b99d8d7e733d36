package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files instead of comparing with them")

// realTraces are what three servers of lockd have written: A holds a lock, B takes it over and is
// killed, server 3 is killed, the lease runs out, and C has the lock.
func realTraces() []string {
	var names []string
	for _, server := range []string{"S1", "S2", "S3"} {
		names = append(names, filepath.Join("testdata", "real", server+".jsonl"))
	}
	return names
}

func TestRealTracesAreDrawnAndPrintedAsOne(t *testing.T) {
	for name, flags := range map[string][]string{"picture.txt": {"-draw"}, "transcript.txt": nil} {
		code, got, errs := try(append(append([]string{"trace"}, flags...), realTraces()...)...)
		if code != exitHeld || errs != "" {
			t.Fatalf("%s: exit %d, %s", name, code, errs)
		}
		path := filepath.Join("testdata", "real", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v; go test ./cmd/raftsim -update writes it", err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-golden +now); if that is meant, go test ./cmd/raftsim -update:\n%s", name, diff)
		}
		for _, said := range []string{"A", "B", "C", "Expire", "heartbeats and replies"} {
			if !strings.Contains(strings.ToLower(got), strings.ToLower(said)) {
				t.Errorf("%s does not say %q", name, said)
			}
		}
	}
}

func TestTheOrderOfTheFilesDoesNotMatter(t *testing.T) {
	names := realTraces()
	_, one, _ := try("trace", names[0], names[1], names[2])
	_, other, _ := try("trace", names[2], names[0], names[1])
	if diff := cmp.Diff(one, other); diff != "" {
		t.Errorf("(-one +other):\n%s", diff)
	}
}

// rewrite stores a changed copy of a file.
func rewrite(t *testing.T, name string, change func(text string) string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(name))
	if err := os.WriteFile(path, []byte(change(string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestClocksThatDisagreeChangeNoOrderAndAreTold(t *testing.T) {
	names := realTraces()
	f, err := os.Open(names[2])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := trace.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	for i := range run.Events {
		run.Events[i].At -= 5 * trace.Second
	}
	names[2] = filepath.Join(t.TempDir(), "S3.jsonl")
	if err := writeFile(names[2], run); err != nil {
		t.Fatal(err)
	}
	code, out, _ := try(append([]string{"trace", "-draw"}, names...)...)
	if code != exitHeld || !strings.Contains(out, "clocks: that of S3's machine is behind that of S2's by more than 4999") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if i, j := strings.Index(out, "A asks for demo"), strings.Index(out, "committed: A holds #1"); i < 0 || j < i {
		t.Errorf("the order is lost:\n%s", out)
	}
}

func TestAFileThatWasCutIsShownUpToThere(t *testing.T) {
	names := realTraces()
	names[2] = rewrite(t, names[2], func(text string) string { return text[:len(text)-40] })
	code, out, errs := try(append([]string{"trace"}, names...)...)
	if code != exitHeld || !strings.Contains(errs, "cut off") || !strings.Contains(out, "S3") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

func TestASimulationsTraceIsPrintedAsByItsRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "late.jsonl")
	for flag, shown := range map[string][]string{"-trace": {"trace", file}, "": {"trace", "-draw", file}} {
		args := []string{"run", "-json", file, "late-expire"}
		if flag != "" {
			args = []string{"run", "-json", file, flag, "late-expire"}
		}
		_, run, _ := try(args...)
		code, out, errs := try(shown...)
		if code != exitHeld || out == "" || !strings.Contains(run, out) {
			t.Errorf("%q: exit %d, %s\n%s", shown, code, errs, cmp.Diff(run, out))
		}
	}
}

func TestFilesThatAreNoTracesAreRefused(t *testing.T) {
	names := realTraces()
	header := func(text string) string { return text[:strings.Index(text, "\n")+1] }
	simulated := filepath.Join(t.TempDir(), "late.jsonl")
	try("run", "-json", simulated, "late-expire")
	for _, c := range []struct {
		files []string
		want  string
	}{
		{nil, "lockd -trace"},
		{[]string{"none.jsonl"}, "none.jsonl"},
		{[]string{rewrite(t, names[0], func(string) string { return "" })}, "does not begin with a header"},
		{[]string{rewrite(t, names[0], func(string) string { return "id=3 level=INFO\n" })}, "this is no trace"},
		{[]string{rewrite(t, names[0], func(s string) string { return s[:50] })}, "this is no trace"},
		{[]string{rewrite(t, names[0], header)}, "there is no event in it"},
		{[]string{rewrite(t, names[0], func(s string) string {
			return strings.Replace(s, `"version":2`, `"version":9`, 1)
		})}, "version 9"},
		{[]string{rewrite(t, names[0], func(s string) string { return header(s) + "{]\n" + s[len(header(s)):] })}, "line 2"},
		{[]string{names[0], simulated}, "is not merged"},
		{[]string{names[0], names[0]}, "is one a copy"},
	} {
		code, out, errs := try(append([]string{"trace"}, c.files...)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit %d, %q, %q; want exit %d and %q", c.files, code, out, errs, exitUsage, c.want)
		}
	}
}
