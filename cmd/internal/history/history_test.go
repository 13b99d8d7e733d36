package history

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm"
)

func granted(key string, token fsm.Token, call, ret int64) Operation {
	return Operation{
		Client: "a", Kind: Acquire, Key: key, Token: token, Lease: 1000,
		Call: call, Return: ret, Outcome: OK,
	}
}

func TestAHistoryIsReadAsItWasWritten(t *testing.T) {
	want := []Operation{
		granted("k", 1<<63+1, 0, 5),
		{Client: "b", Kind: Acquire, Key: "k", Lease: 7, Call: 1, Return: 2, Outcome: Held},
		{Client: "b", Kind: Acquire, Key: "k", Lease: 7, Call: 1, Outcome: Unknown},
		{Client: "a", Kind: Release, Key: "k", Token: 1, Call: 6, Return: 8, Outcome: NotHeld},
	}
	var file bytes.Buffer
	if err := Write(&file, want); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&file)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestWhatCannotBeAHistoryIsRefused(t *testing.T) {
	const good = `{"client":"a","kind":"acquire","key":"k","token":"1","lease":9,` +
		`"call":0,"return":1,"outcome":"ok"}`
	for _, c := range []struct{ old, new, want string }{
		{`"token":"1"`, `"token":"x"`, "line 2"},
		{`"token":"1"`, `"tokens":"1"`, "unknown field"},
		{`"token":"1",`, ``, "have a token"},
		{`"ok"`, `"held"`, "have a token"},
		{`"ok"`, `"fine"`, `no "acquire" with outcome "fine"`},
		{`"ok"`, `"not-held"`, `no "acquire" with outcome "not-held"`},
		{`"acquire"`, `"get"`, `no "get"`},
		{`"acquire"`, `"release"`, "has a lease"},
		{`"key":"k"`, `"key":""`, "key and client"},
		{`"lease":9`, `"lease":0`, "has a lease"},
		{`"call":0`, `"call":2`, "called at 2 and returns at 1"},
		{`}`, ``, "line 2"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		_, err := Read(strings.NewReader(good + "\n" + bad + "\n"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nis answered by %v, not by %q", bad, err, c.want)
		}
	}
	if _, err := Read(strings.NewReader(good)); err != nil {
		t.Error(err)
	}
}

func TestTokensDifferAndRiseOverAllKeys(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []Operation
		want string // "" if all is well
	}{
		{"in order", []Operation{granted("a", 1, 0, 5), granted("b", 2, 6, 9)}, ""},
		{"at the same time", []Operation{granted("a", 2, 0, 5), granted("b", 1, 5, 9)}, ""},
		{"back", []Operation{granted("a", 2, 0, 5), granted("b", 1, 6, 9)}, "goes back"},
		{"back behind one that is late", []Operation{
			granted("a", 3, 0, 4), granted("b", 2, 0, 5), granted("c", 1, 6, 9),
		}, "goes back"},
		{"twice", []Operation{granted("a", 1, 0, 5), granted("b", 1, 0, 5)}, "one token for two"},
	} {
		err := CheckTokens(c.all)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", c.name, err, c.want)
		}
	}
}
