package fsm

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

var (
	longKey = strings.Repeat("k", 255)
	wideKey = strings.Repeat("é", 127) // 254 bytes
)

// client-go#448.
func TestAnEnvelopeIsOneReadableLineAndReadsBackAsItself(t *testing.T) {
	for line, e := range map[string]Envelope{
		"- noop ":                    {},
		"- noop x = 1":               {Command: Command{Text: "x = 1"}},
		"- noop  two  spaces ":       {Command: Command{Text: " two  spaces "}},
		`3.12 "A" grant 9 door`:      {3, 12, 12, "A", Command{Kind: Grant, LeaseMS: 9, Key: "door"}},
		`3.13 "A" release 7 door`:    {3, 13, 13, "A", Command{Kind: Release, Token: 7, Key: "door"}},
		`3.9-13 "A" extend 7 9 door`: {3, 13, 9, "A", Command{Kind: Extend, Token: 7, LeaseMS: 9, Key: "door"}},
		`3.0-1 "" noop `:             {3, 1, 0, "", Command{}},
		`3.2-1 "" noop `:             {3, 1, 2, "", Command{}},
		"- open ":                    {Command: Command{Kind: Open}},
		`0.0 "A" open `:              {Owner: "A", Command: Command{Kind: Open}},
		`3.14 "" release 0 door`:     {3, 14, 14, "", Command{Kind: Release, Key: "door"}},
		`0.0 "A" noop x`:             {0, 0, 0, "A", Command{Text: "x"}},
		`0.1 "" noop `:               {0, 1, 1, "", Command{}},
		`1.0 "" noop `:               {1, 0, 0, "", Command{}},
		`1.1 "two words, - '" noop `: {1, 1, 1, "two words, - '", Command{}},
		"- expire 7 door":            {Command: Command{Kind: Expire, Token: 7, Key: "door"}},
		"- expire 7 the back door, 2nd ": {
			Command: Command{Kind: Expire, Token: 7, Key: "the back door, 2nd "}},
		"- expire 7  ":      {Command: Command{Kind: Expire, Token: 7, Key: " "}},
		"- grant 0 Tür/门/🚪": {Command: Command{Kind: Grant, Key: "Tür/门/🚪"}},
		"- grant 4294967295 k": {
			Command: Command{Kind: Grant, LeaseMS: math.MaxUint32, Key: "k"}},
		"- release 18446744073709551615 k": {
			Command: Command{Kind: Release, Token: math.MaxUint64, Key: "k"}},
		`18446744073709551615.18446744073709551615 "" noop `: {
			math.MaxUint64, math.MaxUint64, math.MaxUint64, "", Command{}},
		"- grant 1 " + longKey: {
			Command: Command{Kind: Grant, LeaseMS: 1, Key: longKey}},
		`0.0 "` + wideKey + `" noop `: {0, 0, 0, wideKey, Command{}},
		"- noop " + longKey:           {Command: Command{Text: longKey}},
	} {
		same(t, "written", line, e.String())
		same(t, "appended", "before "+line, string(e.Append([]byte("before "))))
		got, err := Decode([]byte(line))
		if err != nil {
			t.Error(err)
		}
		same(t, "read", e, got)
	}
}

// A leader's start-of-term entry is empty, as raft writes it.
func TestAnEmptyEntryIsANoop(t *testing.T) {
	for _, b := range [][]byte{nil, {}} {
		e, err := Decode(b)
		if err != nil {
			t.Error(err)
		}
		same(t, "envelope", Envelope{}, e)
	}
}

// What a replica cannot read must stop it, and two replicas that read different things into one
// entry would split the table. So there is one way to write each command.
func TestDecodeAcceptsNothingThatAppendDoesNotWrite(t *testing.T) {
	for _, line := range []string{
		" ", "-", "- ", "noop", "- noop", "-  noop ", " - noop ", "-noop ", "+ noop ",
		"- nope ", "- Noop ", "- noop\tx", "- noop a\nb",
		"- noop \x00", "- noop \x7f", "- noop \xff",
		"- noop " + longKey + "k",
		"- grant 1", "- grant 1 ", "- grant  1 k", "- grant k", "- grant k k", "- grant  k",
		"- grant 01 k", "- grant 00 k", "- grant +1 k",
		"- grant -1 k", "- grant 1_0 k", "- grant 0x1 k",
		"- grant 1.0 k", "- grant 1e3 k", "- grant ١ k", "- grant 4294967296 k",
		"- grant 18446744073709551617 k", // 1, if it wrapped
		"- expire 18446744073709551616 k",
		"- expire 1\tk", "- expire 1 k\n", "- expire 1 a\tb",
		"- expire 1 a\x00b", "- expire 1 a\x1fb",
		"- expire 1 a\x7fb", "- expire 1 a\u0080b", "- expire 1 a\u009fb",
		"- expire 1 \xff", "- expire 1 a\xc3", "- expire 1 \xc0\x80", "- expire 1 \xed\xa0\x80",
		"- expire 1 " + longKey + "k", "- expire 1 " + wideKey + "é",
		"- extend 1 k", "- extend 1 1", "- extend 1 1 ", "- extend 1 01 k", "- extend 1 4294967296 k", "- extend k 1 k",
		"- open", "- open x", "- open  ", `1.1-1 "A" noop `, `1.01-2 "A" noop `, `1.1-02 "A" noop `, `1.-2 "A" noop `, `1.1- "A" noop `,
		`1.1-2-3 "A" noop `, "- Kind(9) 1 k", "- Kind(9)  k", "- GRANT 1 k", "- grantx 1 k", "- 1 k",
		`0.0 "" noop `, // that is "-"
		`1 "A" noop `, `1. "A" noop `, `.1 "A" noop `,
		`01.1 "A" noop `, `1.01 "A" noop `, `1.1.1 "A" noop `,
		`1.1  "A" noop `, `1.1 A noop `, `1.1 "A noop `,
		`1.1 A" noop `, `1.1 "A"noop `, `1.1 "A"  noop `,
		`1.1 "A""B" noop `, `1.1 "A"B" noop `, "1.1 \"\n\" noop ",
		"1.1 \"\xff\" noop ", `1.1 "A"`, `1.1 "A" `,
		`1.1"A" noop `, `-1.1 "A" noop `,
		`18446744073709551616.1 "A" noop `, `1.18446744073709551616 "A" noop `,
		`1.1 "` + longKey + `k" noop `, `- "A" noop `, `1.1 "A" - noop `,
		"\x00", "\xff", "\n", "{}", "garbage",
	} {
		e, err := Decode([]byte(line))
		if err == nil {
			t.Errorf("%q was read as %q", line, e)
			continue
		}
		if !errors.Is(err, ErrCommand) {
			t.Errorf("%q: %v", line, err)
		}
		same(t, "what comes with the error", Envelope{}, e)
	}
}

func TestTheErrorOfDecodeQuotesWhatItCannotRead(t *testing.T) {
	_, err := Decode([]byte("- open \x00door"))
	same(t, "error", `not a command: "- open \x00door"`, err.Error())
}

// ask gives a request to a follower, where a good one is answered too: it does not lead.
func ask(t *testing.T, q Request) (Status, error) {
	t.Helper()
	r, err := New(testConfig(1, 3), raft.Durable{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	q.Call = 5
	r.Request(q)
	out, err := r.Take()
	if err != nil || len(out.Replies) != 1 || out.Replies[0].Call != 5 || len(out.Proposed) > 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	return out.Replies[0].Status, out.Replies[0].Err
}

// Nothing that cannot be read back, or that no lock could have, gets into a log.
func TestABadRequestIsRefusedAtOnceAndSaysWhatIsWrong(t *testing.T) {
	grant := func(key string, lease int64) Request {
		return Request{Kind: Grant, Key: key, LeaseMS: lease}
	}
	release := func(key string) Request { return Request{Kind: Release, Key: key} }
	owned := func(owner string) Request {
		return Request{Owner: owner, Kind: Grant, Key: "k", LeaseMS: 1}
	}
	const day = 24 * 60 * 60 * 1000
	for _, row := range []struct {
		name string
		q    Request
		want error
	}{
		{"no lease", grant("k", 0), ErrLeaseRange}, // never "for ever" (etcd#12381)
		{"a negative lease", grant("k", -1), ErrLeaseRange},
		{"the least lease", grant("k", 1), nil},
		{"the greatest lease", grant("k", day), nil},
		{"1 ms too much", grant("k", day+1), ErrLeaseRange},
		{"nanoseconds for milliseconds (etcd#9374)", grant("k", 86_400_000_000_000), ErrLeaseRange},
		{"a lease that is 1 in 32 bits", grant("k", 1<<32+1), ErrLeaseRange},
		{"the greatest number", grant("k", math.MaxInt64), ErrLeaseRange},
		{"the least number", grant("k", math.MinInt64), ErrLeaseRange},
		{"no key", grant("", 1), ErrKey},
		{"no key to release", release(""), ErrKey},
		{"a key of one byte", release("k"), nil},
		{"a key of 255 bytes", release(longKey), nil},
		{"a key of 256 bytes", release(longKey + "k"), ErrKey},
		{"a key of 254 bytes in 127 letters", grant(wideKey, 1), nil},
		{"a key of 256 bytes in 128 letters", grant(wideKey+"é", 1), ErrKey},
		{"a key with spaces", grant(" a b ", 1), nil},
		{"a key with a quote", grant(`"`, 1), nil},
		{"a key with a newline", grant("a\nb", 1), ErrKey},
		{"a key with a NUL", grant("a\x00", 1), ErrKey},
		{"a key with a DEL", grant("\x7f", 1), ErrKey},
		{"a key with a C1 control", grant("\u0085", 1), ErrKey},
		{"a key with the first letter after those", grant("\u00a0", 1), nil},
		{"a key that is not UTF-8", grant("\xff", 1), ErrKey},
		{"a key with the replacement character itself", grant("\ufffd", 1), nil},
		{"no owner", owned(""), nil},
		{"an owner of 255 bytes", owned(longKey), nil},
		{"an owner of 256 bytes", owned(longKey + "k"), ErrOwner},
		{"an owner with a quote", owned(`a"b`), ErrOwner},
		{"an owner with a newline", owned("a\n"), ErrOwner},
		{"an owner that is not UTF-8", owned("\xc3"), ErrOwner},
		{"the owner of a Noop", Request{Owner: `"`}, ErrOwner},
		{"a text", Request{Text: "x = 1"}, nil},
		{"no text", Request{}, nil},
		{"a text of 256 bytes", Request{Text: longKey + "k"}, ErrCommand},
		{"a text with a newline", Request{Text: "\n"}, ErrCommand},
		{"an Expire, for leaders only", Request{Kind: Expire, Key: "k", Token: 1}, ErrCommand},
		{"a kind that does not exist", Request{Kind: 9, Key: "k"}, ErrCommand},
	} {
		status, err := ask(t, row.q)
		if !errors.Is(err, row.want) || (status == Invalid) != (row.want != nil) {
			t.Errorf("%s: %s, %v; want %v", row.name, status, err, row.want)
		}
		if row.want != nil {
			continue
		}
		e := row.q.envelope()
		if got, err := Decode(e.Append(nil)); err != nil || !cmp.Equal(got, e) {
			t.Errorf("%s: %q is read as %q, %v", row.name, e, got, err)
		}
	}
}

func TestResultsAreWrittenAsInTheSpecification(t *testing.T) {
	var got []string
	for _, r := range []Result{
		{}, {Kind: Granted, Token: 7}, {Kind: GrantRejected}, {Kind: Released}, {Kind: NotFound},
		{Kind: Expired, Existed: true}, {Kind: Expired}, {Kind: 99},
	} {
		got = append(got, r.String())
	}
	same(t, "results", []string{"Noop", "Granted{7}", "GrantRejected", "Released", "NotFound",
		"Expired{true}", "Expired{false}", "Result(99)"}, got)
}

func TestEveryNameIsItsOwn(t *testing.T) {
	seen := map[string]bool{}
	once := func(name string) {
		if name == "" || seen[name] {
			t.Errorf("%q stands for two things", name)
		}
		seen[name] = true
	}
	for k := range Expire + 2 {
		once(k.String())
	}
	for s := range Invalid + 2 {
		once(s.String())
	}
	for c := range ForCleanup + 2 {
		once(c.String() + ".")
	}
}

// FuzzDecode: whatever is read is written back the same, byte for byte.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`3.12 "A" grant 10000 door`))
	f.Add([]byte(`0.1 "" release 18446744073709551615 the back door`))
	f.Add([]byte("- expire 7 Tür"))
	f.Add([]byte("- noop x = 1"))
	f.Add([]byte("- grant 01 k"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrCommand) || !cmp.Equal(e, Envelope{}) {
				t.Fatalf("%+v, %v", e, err)
			}
			return
		}
		if len(b) > 0 && string(e.Append(nil)) != string(b) {
			t.Fatalf("%q was read as %q", b, e)
		}
	})
}

// FuzzEnvelope: whatever a request may hold is read back the same.
func FuzzEnvelope(f *testing.F) {
	f.Add(uint64(3), uint64(12), "A", uint8(1), "door", int64(10_000), uint64(0), "")
	f.Add(uint64(0), uint64(0), "", uint8(2), " ", int64(0), uint64(1<<63), "x")
	f.Add(uint64(0), uint64(0), "- ", uint8(0), "", int64(0), uint64(0), `" `)
	f.Fuzz(func(t *testing.T, client, seq uint64, owner string, kind uint8,
		key string, lease int64, token uint64, text string) {
		q := Request{Client: ClientID(client), Seq: seq, Owner: owner, Kind: Kind(kind % 5),
			Key: key, LeaseMS: lease, Token: Token(token), Text: text}
		if q.check() != nil {
			return
		}
		e := q.envelope()
		if got, err := Decode(e.Append(nil)); err != nil || !cmp.Equal(got, e) {
			t.Fatalf("%q is read as %q, %v", e, got, err)
		}
	})
}
