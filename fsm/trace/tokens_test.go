package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"ticketing/fsm"
	"ticketing/raft"
)

// bare finds the tokens in a JSON text that stand there as numbers: many programs read those as
// floating-point ones, which do not hold all tokens.
func bare(t *testing.T, text []byte) (tokens int, found []string) {
	t.Helper()
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, part := range v {
				if slices.Contains([]string{"token", "high", "meant"}, name) {
					tokens++
					if _, ok := part.(string); !ok {
						found = append(found, path+"."+name)
					}
				}
				walk(path+"."+name, part)
			}
		case []any:
			for _, part := range v {
				walk(path, part)
			}
		case json.Number:
			if f, err := v.Float64(); err != nil || f > 1<<53 {
				found = append(found, fmt.Sprint(path, "=", v))
			}
		}
	}
	lines := json.NewDecoder(bytes.NewReader(text))
	for lines.UseNumber(); lines.More(); {
		var value any
		if err := lines.Decode(&value); err != nil {
			t.Fatal(err)
		}
		walk("", value)
	}
	return tokens, found
}

// Whatever makes the records, the simulator or a server, and however large a token is.
func TestTokensInATraceAreStrings(t *testing.T) {
	const most = math.MaxUint64
	entry := OfEntry(raft.Entry{Index: 1, Term: 1, Command: fsm.Envelope{
		Command: fsm.Command{Kind: fsm.Release, Token: most, Key: "door"},
	}.Append(nil)})
	entry.Meant = most
	want := &Trace{Header: NewHeader(), Events: []Event{
		{ID: 1, Kind: KindAppend, Entry: &entry},
		{ID: 2, Kind: KindSend, Message: &MessageRecord{Kind: Append, Entries: []EntryRecord{entry}}},
		{ID: 3, Kind: KindReceive, Client: OfRequest(&fsm.Request{Kind: fsm.Extend, Token: most})},
		{ID: 4, Kind: KindResource, Client: &ClientRecord{Op: "write", Token: most, High: most - 1}},
	}}
	var text bytes.Buffer
	if _, err := want.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	if tokens, found := bare(t, text.Bytes()); tokens != 5 || len(found) > 0 {
		t.Errorf("of %d tokens these are no strings: %q", tokens, found)
	}
	got, err := Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	e := got.Events
	if e[0].Entry.Meant != most || e[2].Client.Token != most || e[3].Client.High != most-1 {
		t.Errorf("it is read as %+v", e)
	}
	if _, found := bare(t, []byte(`{"client":{"token":7}}`)); len(found) != 1 {
		t.Errorf("in a trace of version 1 there is no bare number: %q", found)
	}
}
