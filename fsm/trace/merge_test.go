package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// part makes a node's trace. A line is an event: its At, and a kind, for sends and receipts with
// the message's number and the other server. A line that begins with "+" follows from the one
// before, with "&" it was taken together with it.
func part(node string, lines ...string) *Trace {
	t := &Trace{Header: NewHeader()}
	t.Header.Real, t.Header.Cluster, t.Header.Nodes = true, 7, []string{"S1", "S2"}
	for i, line := range lines {
		e := Event{ID: int64(i) + 1, Node: node}
		switch line[0] {
		case '+':
			e.Cause = int64(i)
			e.At = t.Events[i-1].At
		case '&':
			t.Events[i-1].More = true
			e.At = t.Events[i-1].At
		}
		var kind, other string
		var call uint64
		if e.At == 0 {
			fmt.Sscan(line, &e.At, &kind, &call, &other)
		} else {
			fmt.Sscan(line[1:], &kind, &call, &other)
		}
		e.Kind = EventKind(kind)
		switch e.Kind {
		case KindSend:
			e.Message = &MessageRecord{From: node, To: other, Kind: Append, Call: call}
		case KindReceive:
			e.Message = &MessageRecord{From: other, To: node, Kind: Append, Call: call}
		}
		t.Events = append(t.Events, e)
	}
	return t
}

// told writes a merged trace in short.
func told(t *Trace) string {
	var words []string
	for _, e := range t.Events {
		word := fmt.Sprintf("%d %s %s", e.At, e.Node, e.Kind)
		if e.Cause != 0 {
			word += fmt.Sprintf("<%d", e.Cause)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func TestTracesAreMergedByTimeAndSendingsComeFirst(t *testing.T) {
	for _, c := range []struct {
		name   string
		traces []*Trace
		want   string
		skews  []Skew
	}{
		{
			"clocks that agree",
			[]*Trace{
				part("S1", "1000 wake", "+ send 1 S2", "1030 wake"),
				part("S2", "1010 receive 1 S1", "+ state", "1020 wake"),
			},
			"0 S1 wake, 0 S1 send<1, 10 S2 receive<2, 10 S2 state<3, 20 S2 wake, 30 S1 wake", nil,
		},
		{
			"S2's clock is behind by more than 90",
			[]*Trace{
				part("S1", "1000 wake", "+ send 1 S2", "1005 wake", "1010 receive 8 S2", "+ send 2 S2"),
				part("S2", "910 receive 1 S1", "+ send 8 S1", "930 receive 2 S1"),
			},
			"0 S1 wake, 0 S1 send<1, 0 S2 receive<2, 0 S2 send<3, " +
				"5 S1 wake, 10 S1 receive<4, 10 S1 send<6, 10 S2 receive<7",
			[]Skew{{"S2", "S1", 90}},
		},
		{
			"a batch of several inputs stays in one piece",
			[]*Trace{
				part("S1", "1000 wake", "& receive 9 S2", "+ send 1 S2"),
				part("S2", "1000 wake", "+ send 9 S1", "1001 receive 1 S1"),
			},
			"0 S2 wake, 0 S2 send<1, 0 S1 wake, 0 S1 receive<2, 0 S1 send<4, 1 S2 receive<5", nil,
		},
		{
			"what comes from a node without a trace has no cause",
			[]*Trace{part("S1", "1000 receive 5 S2", "+ state")},
			"0 S1 receive, 0 S1 state<1", nil,
		},
		{
			"a node that was started twice",
			[]*Trace{part("S1", "2000 start"), part("S1", "1000 start", "1001 stop")},
			"0 S1 start, 1 S1 stop, 1000 S1 start", nil,
		},
	} {
		for range 2 { // in either order
			run, skews, err := Merge(c.traces)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if diff := cmp.Diff(c.want, told(run)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, diff)
			}
			if diff := cmp.Diff(c.skews, skews); diff != "" {
				t.Errorf("%s: the clocks (-want +got):\n%s", c.name, diff)
			}
			slices.Reverse(c.traces)
		}
	}
}

func TestTracesThatDoNotBelongTogetherAreNotMerged(t *testing.T) {
	foreign, simulated := part("S2", "1000 wake"), part("S2", "1000 wake")
	foreign.Header.Cluster++
	simulated.Header.Real = false
	one := part("S1", "1000 wake", "1500 wake", "2000 wake")
	for name, traces := range map[string][]*Trace{
		"none": nil, "another cluster": {one, foreign}, "a simulation": {one, simulated},
		"a copy": {one, one},
	} {
		if _, _, err := Merge(traces); err == nil {
			t.Errorf("%s was merged", name)
		}
	}
}
