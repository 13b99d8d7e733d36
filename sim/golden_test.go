package sim

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files instead of comparing with them")

// golden compares text with a file under testdata, or writes it there with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./sim -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s has changed (-golden +now); if that is meant, go test ./sim -update:\n%s", path, diff)
	}
}

// Every scenario passes, with the cores' own invariants checked after every input as well, and
// tells the same story as ever.
func TestEveryScenarioPassesAndItsTranscriptIsTheGoldenOne(t *testing.T) {
	for _, s := range Library() {
		t.Run(s.Name, func(t *testing.T) {
			r, err := Run(s, Options{Record: true, Deep: true})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Held() {
				t.Errorf("%v, %v", r.Failure, r.Unexpected())
			}
			golden(t, filepath.Join("transcripts", s.Name+".txt"), Transcript(r.Trace, Style{Width: 118}))
		})
	}
}

// What is drawn depends on the trace alone: one that was written and read again draws the same.
func TestAStoredTraceDrawsTheSame(t *testing.T) {
	for _, name := range []string{"late-expire", "figure-8"} {
		s, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(s, Options{Record: true})
		if err != nil {
			t.Fatal(err)
		}
		again := rewritten(t, r.Trace)
		style := Style{Color: true, Width: 118}
		if diff := cmp.Diff(Diagram(r.Trace, style), Diagram(again, style)); diff != "" {
			t.Errorf("%s: the picture differs:\n%s", name, diff)
		}
		if diff := cmp.Diff(Transcript(r.Trace, style), Transcript(again, style)); diff != "" {
			t.Errorf("%s: the transcript differs:\n%s", name, diff)
		}
	}
}

// rewritten writes a trace to a file and reads it back.
func rewritten(t *testing.T, run *trace.Trace) *trace.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := run.WriteTo(f); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	again, err := trace.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return again
}
