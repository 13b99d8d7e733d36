package trace

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goodHeader = `{"schema":"ticketing-trace","version":2,"seed":"1",` +
	`"without":[],"nodes":[],"clients":[]}` + "\n"

func TestATraceThatIsNoneIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "\n", "{", "lockd: no\n",
		`{"schema":"other","version":2}`, `{"schema":"ticketing-trace","version":1}`,
		goodHeader[:40], goodHeader + `{"id":"x"}`, goodHeader + "{\"id\":\n" + `{"id":1}` + "\n",
	} {
		_, err := Read(strings.NewReader(text))
		if err == nil || errors.Is(err, ErrCut) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if run, err := Read(strings.NewReader(goodHeader)); err != nil || len(run.Events) != 0 {
		t.Errorf("a header alone: %v", err)
	}
}

// A process that is killed leaves a file that ends anywhere.
func TestAFileThatIsCutAnywhereIsReadUpToThere(t *testing.T) {
	want := &Trace{Header: NewHeader()}
	want.Events = []Event{
		{ID: 1, At: 5, Node: "S1", Kind: KindWake},
		{ID: 2, Cause: 1, At: 5, Node: "S1", Kind: KindStop, Text: "é {}"},
	}
	var text bytes.Buffer
	if _, err := want.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	header := bytes.IndexByte(text.Bytes(), '\n') + 1
	cuts, whole := 0, 0
	for n := header; n <= text.Len(); n++ {
		part := text.Bytes()[:n]
		run, err := Read(bytes.NewReader(part))
		lines := bytes.Count(part[header:], []byte("\n"))
		switch {
		case errors.Is(err, ErrCut):
			cuts++
		case err != nil:
			t.Fatalf("cut behind byte %d: %v", n, err)
		default:
			whole++
			if part[n-1] != '\n' {
				lines++ // all of the line but its end
			}
		}
		if diff := cmp.Diff(append([]Event(nil), want.Events[:lines]...), run.Events); diff != "" {
			t.Fatalf("cut behind byte %d (-want +got):\n%s", n, diff)
		}
	}
	if cuts < 50 || whole != 5 {
		t.Errorf("%d cuts, %d whole files", cuts, whole)
	}
}
