package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ticketing/fsm/trace"
)

func TestATraceHoldsAllThatTheServersDid(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	name := filepath.Join(t.TempDir(), "trace.jsonl")
	p := start(t, "-dev", "-election", "100ms", "-heartbeat", "20ms", "-trace", name)
	p.stdout.await(t, "Ctrl-C")
	if code := p.stop(t); code != 0 || p.complaints() != "" {
		t.Fatalf("it exits with %d and says\n%s", code, p.stderr)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	run, err := trace.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[trace.EventKind]int{}
	for _, e := range run.Events {
		seen[e.Kind]++
	}
	if seen[trace.KindStart] != 3 || seen[trace.KindStop] != 3 || seen[trace.KindApply] == 0 {
		t.Errorf("there are %v", seen)
	}
}

func TestATraceThatCannotBeWrittenIsRefusedAtTheStart(t *testing.T) {
	p := start(t, "-dev", "-trace", filepath.Join(t.TempDir(), "no", "such", "directory"))
	if code := p.end(t); code != exitUsage || !strings.Contains(p.stderr.String(), "-trace") {
		t.Errorf("it exits with %d and says\n%s", code, p.stderr)
	}
}
