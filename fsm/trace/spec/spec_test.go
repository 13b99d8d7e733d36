package spec_test

import (
	"errors"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ticketing/fsm/trace"
	"ticketing/fsm/trace/spec"
	"ticketing/sim"
)

func long() bool { return os.Getenv("TICKETING_LONG") != "" }

// Every step of every run is one that the specification allows, and each of its actions was taken.
func TestRunsAreBehavioursOfTheSpecification(t *testing.T) {
	seeds := uint64(60)
	if long() {
		seeds = 1000
	}
	actions, additions := map[string]int{}, map[string]int{}
	for seed := uint64(1); seed <= seeds; seed++ {
		faults := sim.FaultNames()[seed%2]
		r, err := sim.Search{Faults: faults}.Run(seed, sim.Options{Record: true})
		if err != nil {
			t.Fatal(err)
		}
		report, err := spec.Check(r.Trace)
		if err != nil {
			t.Errorf("%s, seed %d: %v", faults, seed, err)
		}
		for name, n := range report.Actions {
			actions[name] += n
		}
		for name, n := range report.Additions {
			additions[name] += n
		}
	}
	for _, name := range []string{
		"Restart", "Timeout", "RequestVote", "BecomeLeader", "ClientRequest", "AppendEntries", "AdvanceCommitIndex",
		"HandleRequestVoteRequest", "HandleRequestVoteResponse", "HandleAppendEntriesRequest",
		"HandleAppendEntriesResponse", "UpdateTerm", "DropStaleResponse",
	} {
		if actions[name] == 0 {
			t.Errorf("%s was never taken", name)
		}
	}
	for _, name := range []string{
		"PreVote", "CheckQuorum.StepDown", "CheckQuorum.Sticky", "InstallSnapshot", "read", "transfer",
	} {
		if additions[name] == 0 {
			t.Errorf("%s never happened", name)
		}
	}
	t.Log(actions, additions)
}

// The scenarios are, too; in those that say so the lock table is wrong, and Raft is right.
func TestScenariosAreBehavioursOfTheSpecification(t *testing.T) {
	for _, s := range sim.Library() {
		r, err := sim.Run(s, sim.Options{Record: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = spec.Check(r.Trace)
		if s.Name == "snapshot-conflict" { // its first server has one from before the trace
			if err == nil || !strings.Contains(err.Error(), "starts from a snapshot") {
				t.Errorf("%s: %v", s.Name, err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

// An outside judge that calls what it judges would be none.
func TestTheJudgeCallsNothingOfRaft(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		looked++
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if path := strings.Trim(i.Path.Value, `"`); path == "ticketing/raft" || path == "ticketing/fsm" {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
	if looked < 5 {
		t.Errorf("only %d files", looked)
	}
}

// A trace with one line changed is refused where it was changed: nothing in it is believed.
func TestATraceThatWasChangedIsRefused(t *testing.T) {
	r, err := sim.Run(scenario(t, "election"), sim.Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(e *trace.Event) bool{
		"Receive": func(e *trace.Event) bool {
			if e.Kind == trace.KindReceive && e.Message != nil {
				e.Cause = 0
				return true
			}
			return false
		},
		"is finished, which was not begun": func(e *trace.Event) bool {
			if e.Kind == trace.KindSaved {
				w := *e.Write
				w.Seq += 100
				e.Write = &w
				return true
			}
			return false
		},
		"a log of": func(e *trace.Event) bool {
			if e.Kind == trace.KindAppend {
				entry := *e.Entry
				entry.Index += 7
				e.Entry = &entry
				return true
			}
			return false
		},
		"Send: a vote": func(e *trace.Event) bool {
			if e.Kind == trace.KindSend && e.Message.Kind == trace.Vote {
				m := *e.Message
				m.Term += 3
				e.Message = &m
				return true
			}
			return false
		},
	} {
		changed := *r.Trace
		changed.Events = slices.Clone(r.Trace.Events)
		at := slices.IndexFunc(changed.Events, func(e trace.Event) bool { return change(&e) })
		if at < 0 {
			t.Fatalf("%s: there is nothing to change", name)
		}
		change(&changed.Events[at])
		var refusal *spec.Refusal
		if _, err := spec.Check(&changed); !errors.As(err, &refusal) || refusal.Event != int64(at+1) ||
			!strings.Contains(refusal.Why, name) {
			t.Errorf("%s at event %d: %v", name, at+1, err)
		}
	}
}

func TestTracesOfRealNodesAreNotJudged(t *testing.T) {
	if _, err := spec.Check(&trace.Trace{Header: trace.Header{Real: true}}); err == nil {
		t.Error("it was")
	}
}

func scenario(t *testing.T, name string) *sim.Scenario {
	t.Helper()
	for _, s := range sim.Library() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no scenario %s", name)
	return nil
}
