package sim

import (
	"strings"
	"testing"

	"ticketing/fsm/trace"
)

// realTrace is what a node might write that takes two inputs at once, and has run before.
func realTrace() *trace.Trace {
	run := &trace.Trace{Header: trace.NewHeader()}
	run.Header.Real, run.Header.Nodes = true, []string{"S1", "S2"}
	state := trace.StateRecord{Role: "follower", Term: 2, Last: 4, LastTerm: 2}
	entry := trace.EntryRecord{Index: 5, Term: 2, Command: `7.1 "A" grant 9000 door`}
	run.Events = []trace.Event{
		{Kind: trace.KindStart, State: &state},
		{Kind: trace.KindSaved, More: true, Write: &trace.WriteRecord{Seq: 1}},
		{Kind: trace.KindReceive, More: true, Client: &trace.ClientRecord{Client: "A", Op: "grant", Key: "door", Seq: 1}},
		{Kind: trace.KindReceive, Client: &trace.ClientRecord{Client: "B", Op: trace.Disconnect, Key: "door", Seq: 3}},
		{Kind: trace.KindAppend, Cause: 3, Rule: "Leaders.2", Entry: &entry},
		{Kind: trace.KindStop, Text: trace.ToldToStop},
	}
	entry.Cause = "client"
	for i := range run.Events {
		e := &run.Events[i]
		e.ID, e.Node, e.At, e.Local = int64(i)+1, "S1", trace.Time(i/4)*86_400_000*trace.Second, 5
	}
	return run
}

func TestInputsThatWereTakenTogetherAreOneLine(t *testing.T) {
	text := Transcript(realTrace(), Style{ASCII: true, Width: 200})
	for _, want := range []string{
		"starts in term 2, with entries 1-4",
		"the write is on disk; receives A: grant door; receives B: disconnect door",
		"S1 and S2 - cluster 0 - from 1970-01-01",
		"  86400000000.000  S1       0.005  is stopped", // the column fits a thousand days
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestWhatRealClientsWantIsDrawn(t *testing.T) {
	text := strings.Join(Diagram(realTrace(), Style{ASCII: true, Width: 200}), "\n")
	for _, want := range []string{
		"S1 starts with entries 1-4", "B leaves before it is answered", "Grant A", "S1 is stopped",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "own clock") {
		t.Errorf("each row tells that the node's clock is not the wall clock:\n%s", text)
	}
}
