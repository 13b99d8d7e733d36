package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ticketing/raft"
)

// checkTable says what is wrong with a table that has applied entries up to index.
func checkTable(t *Table, index raft.Index) error {
	if t.Len() > maxLocks || len(t.sessions) > maxSessions {
		return fmt.Errorf("%d locks, %d sessions", t.Len(), len(t.sessions))
	}
	keys := map[Token]string{}
	for key, tenure := range t.Tenures() {
		if other, ok := keys[tenure.Token]; ok {
			return fmt.Errorf("%s and %s are held under token %d", other, key, tenure.Token)
		}
		keys[tenure.Token] = key
		if tenure.Token == 0 || tenure.Token > t.tokens || tenure.Since > index {
			return fmt.Errorf("%s is %+v after %d tokens and %d entries", key, tenure, t.tokens, index)
		}
	}
	if err := checkSilences(t); err != nil {
		return err
	}
	for id, s := range t.sessions {
		if err := s.check(t.tokens); err != nil {
			return fmt.Errorf("session %d: %w", id, err)
		}
	}
	if t.Hash() != hashAnew(t) {
		return fmt.Errorf("hash %x, anew %x", t.Hash(), hashAnew(t))
	}
	return nil
}

// checkSilences looks at the list from which a session is taken that has to go: one of each client,
// in order, and none that claims to know of a later entry than the session does.
func checkSilences(t *Table) error {
	if len(t.silences) != len(t.sessions) || !slices.IsSortedFunc(t.silences, silence.compare) {
		return fmt.Errorf("%d silences of %d sessions, or not in order", len(t.silences), len(t.sessions))
	}
	seen := map[ClientID]bool{}
	for _, x := range t.silences {
		s, known := t.sessions[x.client]
		if !known || seen[x.client] || x.last > s.last {
			return fmt.Errorf("a silence %+v, of a session that is known %t, %+v", x, known, s)
		}
		seen[x.client] = true
	}
	return nil
}

// check says what is wrong with a session: it keeps results of its open requests alone, one each.
func (s session) check(tokens Token) error {
	for i, o := range s.done {
		switch {
		case o.seq < s.lowest || o.seq-s.lowest >= maxOpen:
			return fmt.Errorf("a result of request %d with %d as the lowest", o.seq, s.lowest)
		case i > 0 && o.seq <= s.done[i-1].seq:
			return fmt.Errorf("a result of request %d behind %d", o.seq, s.done[i-1].seq)
		case o.kind == GrantRejected || o.kind == TableFull || o.token > tokens:
			return fmt.Errorf("a result %+v", o)
		}
	}
	return nil
}

// sessionBytes reads three bytes each as an entry: of one of three sessions or of none, with numbers
// around each other, some of them further away than a session has open.
func sessionBytes(data []byte) []Envelope {
	var log []Envelope
	for ; len(data) >= 3; data = data[3:] {
		e := Envelope{Command: Command{
			Kind: Kind(data[0] & 7), Key: string(rune('a' + data[0]>>3&1)), Token: Token(data[1] & 7),
			LeaseMS: uint32(data[1] >> 6),
		}}
		if client := data[0] >> 6; client > 0 {
			e.Client, e.Seq, e.Lowest = ClientID(client), uint64(data[2]&31), uint64(data[2]>>5)
			if data[1]&0x38 == 0x38 {
				e.Seq += maxOpen - 16
			}
		}
		log = append(log, e)
	}
	return log
}

// once reports whether an entry may stand in a log a second time and then changes nothing, given what
// it came to the first time, when tokens were given out. It is:
//
//   - what was carried out in a session, of any kind;
//   - an Expire or a Release that names a token which had been given out. That tenure is over after the
//     first time, or was before, and its token is nobody else's.
//
// It is not: a Grant that was rejected, which may come to its turn; a request that was not looked at,
// since its number was too far ahead; and, outside of a session, a Grant, an Open, a Release that
// names no token, and a token of the future. No leader proposes any of these a second time by itself.
// An Extend outside of a session is between the two, see FuzzTable.
func once(e Envelope, first Result, tokens Token) bool {
	if e.Client != 0 {
		tooFar := first.Kind == ResultNoop && e.Kind != Noop
		return first.Kind != GrantRejected && !tooFar
	}
	return (e.Kind == Expire || e.Kind == Release) && e.Token != 0 && e.Token <= tokens
}

// A twin is a table that is applied to together with another one, and must do the same.
type twin struct {
	t      *testing.T
	a, b   Table
	index  raft.Index
	tokens Token
}

func (w *twin) apply(e Envelope) Result {
	w.t.Helper()
	w.index++
	first, again := w.a.Apply(w.index, e), w.b.Apply(w.index, e)
	if again != first || w.a.Hash() != w.b.Hash() {
		w.t.Fatalf("entry %d, %s: %v and %v, hashes %x, %x", w.index, e, first, again, w.a.Hash(), w.b.Hash())
	}
	if err := checkTable(&w.a, w.index); err != nil {
		w.t.Fatalf("entry %d, %s: %v: %v", w.index, e, first, err)
	}
	// Nobody is told of a holding that is over, the first time or again.
	told := map[ResultKind]Token{Granted: first.Token, Extended: e.Token}[first.Kind]
	if tenure, _ := w.a.Holder(e.Key); told != 0 && tenure.Token != told {
		w.t.Fatalf("entry %d, %s: %v, and %s is %+v", w.index, e, first, e.Key, tenure)
	}
	if first.Kind == Granted && !first.Again {
		if first.Token <= w.tokens {
			w.t.Fatalf("entry %d, %s: token %d after %d", w.index, e, first.Token, w.tokens)
		}
		w.tokens = first.Token
	}
	return first
}

// reported is what a client can see of a table.
func reported(t *Table) string {
	s := fmt.Sprint(t.tokens)
	for _, key := range t.Keys() {
		tenure, _ := t.Holder(key)
		s += fmt.Sprintf(" %s=%+v", key, tenure)
	}
	return s
}

// full has as many sessions as there may be: the three of which sessionBytes speaks, the oldest of
// all, and many more. So what opens one ends one.
func full() Table {
	t := Table{sessions: map[ClientID]session{}}
	for i := range ClientID(maxSessions) {
		t.sessions[i+1] = session{}
		t.silences = append(t.silences, silence{client: i + 1})
		t.sum += hashSession(i+1, session{})
	}
	return t
}

// again applies an entry a second time, and says what is wrong with what that does.
func (w *twin) again(e Envelope, first Result) error {
	w.t.Helper()
	before := reported(&w.a)
	tenure, _ := w.a.Holder(e.Key)
	r := w.apply(e)
	if e.Client == 0 && e.Kind == Extend && r.Kind == Extended {
		// Outside of a session it gives the same lease again: only of what it names, and it ends nothing.
		tenure.LeaseMS, tenure.Since = e.LeaseMS, w.index
		if after, _ := w.a.Holder(e.Key); after != tenure || tenure.Token != e.Token {
			return fmt.Errorf("%v, and %s is %s", r, before, reported(&w.a))
		}
		return nil
	}
	if after := reported(&w.a); before != after {
		return fmt.Errorf("%v, and %s is %s", r, before, after)
	}
	removes := r.Kind == Released || r.Existed || r.Kind == Granted || r.Kind == Extended
	if removes && (!r.Again || r.Kind != first.Kind || r.Token != first.Token) {
		return fmt.Errorf("%v, which was %v the first time", r, first)
	}
	return nil
}

// FuzzTable: any log, and then any suffix of it again (I6). What once says of an entry is so, from
// wherever the log is repeated, and whatever else of the suffix was repeated before. Nothing changes
// but when each session was heard.
//
//spec:test Once
func FuzzTable(f *testing.F) {
	f.Add([]byte{0x41, 0, 1, 0x42, 1, 2, 0x41, 0, 3, 0x44, 2, 4}, uint8(1), false)
	f.Add([]byte{0x41, 0, 1, 0x41, 0, 2, 0x42, 1, 3, 0x49, 0, 4, 0x44, 2, 5, 0x42, 2, 6}, uint8(0), true)
	f.Add([]byte{0x81, 0, 1, 0x41, 0, 1, 0x82, 0, 2, 0x41, 0, 1, 3, 1, 0, 0xc1, 0, 0, 5, 0, 0}, uint8(2), true)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 200 {
		data := make([]byte, 3*(1+random.IntN(30)))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data, uint8(random.Uint32()), i%20 == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, from uint8, crowded bool) {
		applyTwice(t, sessionBytes(data), int(from), crowded)
	})
}

// applyTwice is the claim of FuzzTable for one log. It returns how often it was put to the proof, by
// what the entries came to the first time.
func applyTwice(t *testing.T, log []Envelope, from int, crowded bool) map[string]int {
	w := &twin{t: t, index: maxSessions}
	if crowded {
		w.a, w.b = full(), full()
	} else {
		for i := range raft.Index(2) {
			w.a.Apply(i+1, openOne)
			w.b.Apply(i+1, openOne)
		}
	}
	firsts, tokens, proofs := []Result{}, []Token{}, map[string]int{}
	for _, e := range log {
		tokens = append(tokens, w.tokens)
		firsts = append(firsts, w.apply(e))
	}
	for i := min(from, len(log)); i < len(log); i++ {
		e := log[i]
		extends := e.Client == 0 && e.Kind == Extend && e.Token <= tokens[i]
		if !once(e, firsts[i], tokens[i]) && !extends {
			continue
		}
		if err := w.again(e, firsts[i]); err != nil {
			t.Fatalf("entry %d again, %s: %v", i, e, err)
		}
		name := e.Kind.String() + " " + firsts[i].String()
		if e.Client != 0 {
			name = "session: " + name
		}
		proofs[name]++
	}
	return proofs
}

// The fuzz target proves something of every kind of entry.
func TestWhatIsAppliedASecondTimeIsOfEveryKind(t *testing.T) {
	proofs := map[string]int{}
	random := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		data := make([]byte, 3*(1+random.IntN(30)))
		for i := range data {
			data[i] = byte(random.Uint32())
			if i%3 == 1 {
				data[i] &= 0xc3 // tokens that are given out
			}
		}
		for name, n := range applyTwice(t, sessionBytes(data), random.IntN(20), false) {
			proofs[name] += n
		}
	}
	for _, name := range []string{"expire Expired{true}", "expire Expired{false}", "release Released",
		"release NotFound", "extend Extended", "extend NotFound", "session: grant Granted{1}",
		"session: release Released", "session: extend Extended", "session: noop Noop",
		"session: grant SessionUnknown", "session: grant NumberReused"} {
		atLeast(t, proofs, name, 10)
	}
}

// What is said not to hold does not: else once would be too narrow.
func TestWhatMayNotBeRepeated(t *testing.T) {
	bare := Envelope{Command: Command{Kind: Release, Key: "door"}}
	grant := Envelope{Command: grantDoor}
	for name, row := range map[string]struct {
		log  []Envelope
		want string // what the first of them comes to when all are applied a second time
	}{
		"a Grant":                  {[]Envelope{grant, expireDoor}, "Granted{2}"},
		"an Open":                  {[]Envelope{openOne}, "Opened{11}"},
		"a Release of no token":    {[]Envelope{bare, grant}, "Released"},
		"a token of the future":    {[]Envelope{expireDoor, grant}, "Expired{true}"},
		"a rejected Grant":         {[]Envelope{asked(1, 1, grantDoor), bare}, "Granted{2}"},
		"a number too far ahead":   {[]Envelope{asked(300, 1, grantDoor), asked(100, 100, Command{}), bare}, "Granted{2}"},
		"an Extend with a session": {[]Envelope{asked(1, 1, extendDoor)}, "Extended again"},
	} {
		var table Table
		table.Apply(1, openOne)
		if name != "a token of the future" && name != "a Grant" && name != "a Release of no token" {
			table.Apply(2, grant)
		}
		for i, e := range row.log {
			table.Apply(raft.Index(i)+3, e)
		}
		same(t, name, row.want, table.Apply(11, row.log[0]).String())
	}
}

// FuzzLines: whatever bytes stand in a log. What Decode reads, any table applies without a panic, and
// is in order afterwards; what it does not read is an error, and stops a server.
func FuzzLines(f *testing.F) {
	f.Add([]byte("- grant 10000 door\n1.1 \"A\" grant 10000 door\n1.1-2 \"A\" release 1 door\n- expire 1 door"))
	f.Add([]byte("- open \n1.0-18446744073709551615 \"\" extend 18446744073709551615 4294967295 k\n\n1.1 \"\" open "))
	f.Add([]byte("1.18446744073709551615 \"\" noop x\n1.18446744073709551615-0 \"\" grant 0 k\n- release 0 k\ngrant"))
	f.Add([]byte("18446744073709551615.1 \"\" grant 1 \xff\n- grant 4294967296 door\n1.1 \"A\" grant 10000 do or"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := &twin{t: t}
		for _, line := range bytes.Split(data, []byte("\n")) {
			e, err := Decode(line)
			if err != nil {
				if !errors.Is(err, ErrCommand) || e != (Envelope{}) {
					t.Fatalf("%q: %v, %v", line, e, err)
				}
				continue
			}
			w.apply(e)
		}
	})
}
