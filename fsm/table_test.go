package fsm

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

// same fails the test if got is not want.
func same[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// parse reads a command in the notation of the log: "grant 10000 door", "expire 7 door".
func parse(t testing.TB, command string) Envelope {
	t.Helper()
	e, err := Decode([]byte("- " + command))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// replay applies commands to a table from index 1 on and returns each with its result.
func replay(t testing.TB, table *Table, commands ...string) []string {
	t.Helper()
	var lines []string
	for i, command := range commands {
		result := table.Apply(raft.Index(i)+1, parse(t, command))
		lines = append(lines, command+" -> "+result.String())
	}
	return lines
}

// holders writes a table down as "door=2 gate=1".
func holders(t *Table) string {
	var words []string
	for _, key := range t.Keys() {
		tenure, _ := t.Holder(key)
		words = append(words, fmt.Sprintf("%s=%d", key, tenure.Token))
	}
	return strings.Join(words, " ")
}

// A row is a history: each line a command and what it must result in, then what is held in the end.
type row struct {
	name    string
	history []string
	held    string
}

func (r row) run(t *testing.T) {
	var commands []string
	for _, line := range r.history {
		command, _, _ := strings.Cut(line, " -> ")
		commands = append(commands, command)
	}
	var table Table
	same(t, "history", r.history, replay(t, &table, commands...))
	same(t, "held", r.held, holders(&table))
}

// docs/locktable.md, row by row and result by result, with no addition in use: every Release is
// the bare one, token 0.
//
//spec:test Grant.Held
//spec:test Expire.Token
func TestTheSpecification(t *testing.T) {
	rows := []row{
		{"Grant: acquire a key. Granted{token}: acquired; the fencing token", []string{
			"grant 10000 door -> Granted{1}",
		}, "door=1"},
		{"Grant: the token is not in the command, each state machine assigns it", []string{
			"grant 10000 door -> Granted{1}",
			"grant 10000 gate -> Granted{2}",
			"grant 10000 lift -> Granted{3}",
		}, "door=1 gate=2 lift=3"},
		{"GrantRejected: a Grant for a key already held", []string{
			"grant 10000 door -> Granted{1}",
			"grant 10000 door -> GrantRejected",
		}, "door=1"},
		{"GrantRejected: takes no token and changes no lease", []string{
			"grant 10000 door -> Granted{1}",
			"grant 99 door -> GrantRejected",
			"grant 10000 gate -> Granted{2}",
			"expire 1 door -> Expired{true}",
		}, "gate=2"},
		{"Release: release a key. Released", []string{
			"grant 10000 door -> Granted{1}",
			"grant 10000 gate -> Granted{2}",
			"release 0 door -> Released",
		}, "gate=2"},
		{"Release: whoever holds it", []string{
			"grant 10000 door -> Granted{1}",
			"release 0 door -> Released",
			"grant 10000 door -> Granted{2}",
			"release 0 door -> Released",
		}, ""},
		{"NotFound: the key to release does not exist", []string{
			"release 0 door -> NotFound",
			"grant 10000 door -> Granted{1}",
			"release 0 gate -> NotFound",
			"release 0 door -> Released",
			"release 0 door -> NotFound",
		}, ""},
		{"Expire: lease expiry. Expired{true}: it was removed", []string{
			"grant 10000 door -> Granted{1}",
			"grant 10000 gate -> Granted{2}",
			"expire 1 door -> Expired{true}",
		}, "gate=2"},
		{"Expire: idempotent. Expired{false}: nothing was removed", []string{
			"grant 10000 door -> Granted{1}",
			"expire 1 door -> Expired{true}",
			"expire 1 door -> Expired{false}",
			"expire 1 gate -> Expired{false}",
			"expire 0 gate -> Expired{false}",
		}, ""},
		{"Expire: a late one cannot delete a lock granted in the meantime", []string{
			"grant 10000 door -> Granted{1}",
			"release 0 door -> Released",
			"grant 10000 door -> Granted{2}",
			"expire 1 door -> Expired{false}",
		}, "door=2"},
		{"Expire: a duplicate cannot delete a lock granted in the meantime", []string{
			"grant 10000 door -> Granted{1}",
			"expire 1 door -> Expired{true}",
			"grant 10000 door -> Granted{2}",
			"expire 1 door -> Expired{false}",
		}, "door=2"},
		{"Expire: removes only if the token matches, nor one that is still to come", []string{
			"grant 10000 door -> Granted{1}",
			"expire 2 door -> Expired{false}",
			"expire 0 door -> Expired{false}",
		}, "door=1"},
		{"Noop: nothing happened", []string{
			"grant 10000 door -> Granted{1}",
			"noop  -> Noop",
			"noop door -> Noop",
		}, "door=1"},
	}
	for _, r := range rows {
		t.Run(r.name, r.run)
	}
	t.Run("Noop: a leader's start-of-term entry", func(t *testing.T) {
		e, err := Decode(nil)
		var table Table
		if result := table.Apply(1, e); err != nil || result.String() != "Noop" {
			t.Errorf("%v, %v", result, err)
		}
	})
}

// The first addition: a Release may name the tenure that it is for. (Hazard 1.)
// (nexspence#223, redis-py#415, ShedLock#74.)
//
//spec:test Release.Token
func TestAReleaseWithATokenReleasesThatTenureOnly(t *testing.T) {
	for _, r := range []row{
		{"its own", []string{
			"grant 10000 door -> Granted{1}",
			"release 1 door -> Released",
		}, ""},
		{"late, the key is another's (etcd#22082)", []string{
			"grant 10000 door -> Granted{1}",
			"expire 1 door -> Expired{true}",
			"grant 10000 door -> Granted{2}",
			"release 1 door -> NotFound",
		}, "door=2"},
		{"twice", []string{
			"grant 10000 door -> Granted{1}",
			"release 1 door -> Released",
			"release 1 door -> NotFound",
		}, ""},
		{"another key's", []string{
			"grant 10000 door -> Granted{1}",
			"grant 10000 gate -> Granted{2}",
			"release 2 door -> NotFound",
		}, "door=1 gate=2"},
		{"of the future", []string{
			"grant 10000 door -> Granted{1}",
			"release 2 door -> NotFound",
		}, "door=1"},
	} {
		t.Run(r.name, r.run)
	}
}

// Across keys and across removals of each kind. (L12: a rejected Grant takes none.)
// (Hazard 14, harper#2591.)
//
//spec:test Token.Grows
func TestTokensGrowStrictlyWithEveryGrantOfAnyKey(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	var table Table
	last, most := Token(0), 0
	for i := raft.Index(1); i <= 10_000; i++ {
		key := string(rune('a' + random.IntN(4)))
		holder, _ := table.Holder(key)
		command := [...]Command{
			{Kind: Grant, Key: key, LeaseMS: 1},
			{Kind: Release, Key: key},
			{Kind: Release, Key: key, Token: holder.Token},
			{Kind: Expire, Key: key, Token: holder.Token},
		}[random.IntN(4)]
		result := table.Apply(i, Envelope{Command: command})
		if result.Kind == Granted {
			if result.Token != last+1 {
				t.Fatalf("seed %d, entry %d: token %d after %d", seed, i, result.Token, last)
			}
			last = result.Token
		}
		if result.Kind != Granted && result.Token != 0 {
			t.Fatalf("seed %d, entry %d: %v with token %d", seed, i, result, result.Token)
		}
		if table.Tokens() != last || uint64(last) > uint64(i) {
			t.Fatalf("seed %d, entry %d: counter %d, last token %d", seed, i, table.Tokens(), last)
		}
		most = max(most, table.Len())
	}
	if most != 4 || last < 1000 {
		t.Errorf("too tame: at most %d keys were held, %d tokens given out", most, last)
	}
}

// A tenure is what the log said, so that it can be shown and counted down elsewhere.
func TestATenureIsStoredAsTheLogGaveIt(t *testing.T) {
	var table Table
	grant := Command{Kind: Grant, Key: "door", LeaseMS: 250}
	table.Apply(7, Envelope{Owner: "A", Command: grant})
	got, held := table.Holder("door")
	same(t, "held", true, held)
	same(t, "tenure", Tenure{Token: 1, LeaseMS: 250, Owner: "A", Since: 7}, got)
	got, held = table.Holder("gate")
	same(t, "held", false, held)
	same(t, "tenure", Tenure{}, got)
}

// Apply is total: a kind that no version knows yet changes nothing. (Decode lets none through.)
func TestAnUnknownCommandChangesNothing(t *testing.T) {
	var table Table
	replay(t, &table, "grant 10000 door")
	before := table.Hash()
	result := table.Apply(2, Envelope{Command: Command{Kind: 200, Key: "door", Token: 1}})
	same(t, "result", Result{}, result)
	same(t, "hash", before, table.Hash())
}

// hashAnew computes a table's hash from what it holds, by another way: put, in the order of the
// keys.
func hashAnew(table *Table) uint64 {
	anew := Table{tokens: table.tokens}
	for key, tenure := range table.Tenures() {
		anew.put(key, tenure)
	}
	for id, s := range table.sessions {
		anew.sum += hashSession(id, s)
	}
	return anew.Hash()
}

func TestEqualTablesHaveEqualHashesWhateverTheirHistory(t *testing.T) {
	tenures := map[string]Tenure{}
	for i := range Token(50) {
		tenure := Tenure{Token: i + 1, LeaseMS: uint32(i) % 3, Owner: "A", Since: raft.Index(i) + 4}
		tenures[fmt.Sprint("key", i)] = tenure
	}
	var first uint64
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		keys := slices.Sorted(maps.Keys(tenures))
		random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		table := Table{tokens: 50}
		for i, key := range keys {
			table.put(key, tenures[key])
			if i%3 == 0 { // there and back
				table.remove(key, tenures[key])
				table.put(key, tenures[key])
			}
		}
		if seed == 0 {
			first = table.Hash()
		}
		if table.Hash() != first {
			t.Errorf("seed %d: hash %x, not %x", seed, table.Hash(), first)
		}
	}
	var a, b, empty Table
	replay(t, &a, "grant 10 door", "noop ", "release 1 door", "grant 10 gate", "release 2 gate")
	replay(t, &b, "grant 10 lift", "grant 10 door", "expire 2 door", "release 0 lift")
	same(t, "two empty tables with two tokens given out", a.Hash(), b.Hash())
	if a.Hash() == empty.Hash() {
		t.Error("the token counter is not in the hash")
	}
}

func TestDifferentTablesHaveDifferentHashes(t *testing.T) {
	base := Tenure{Token: 1, LeaseMS: 1000, Owner: "A", Since: 1}
	with := func(change func(*Tenure)) Tenure {
		tenure := base
		change(&tenure)
		return tenure
	}
	held := []map[string]Tenure{
		{},
		{"door": base},
		{"gate": base},
		{"door": base, "gate": base},
		{"door": with(func(x *Tenure) { x.Token = 2 })},
		{"door": with(func(x *Tenure) { x.LeaseMS = 1001 })},
		{"door": with(func(x *Tenure) { x.Owner = "B" })},
		{"door": with(func(x *Tenure) { x.Owner = "" })},
		{"door": with(func(x *Tenure) { x.Since = 2 })},
		{"doorA": with(func(x *Tenure) { x.Owner = "" })}, // the same bytes, cut elsewhere
		{"doo": with(func(x *Tenure) { x.Owner = "rA" })},
		{"door": with(func(x *Tenure) { x.Token, x.LeaseMS = 1000, 1 })},
		{"door": with(func(x *Tenure) { x.LeaseMS, x.Since = 1, 1000 })},
	}
	for i := range uint64(2000) {
		held = append(held, map[string]Tenure{"k": {Token: Token(i), Since: raft.Index(i / 7)}})
	}
	seen := map[uint64]string{}
	for _, h := range held {
		for tokens := range Token(3) {
			table := Table{tokens: tokens}
			for key, tenure := range h {
				table.put(key, tenure)
			}
			name := fmt.Sprint(h, tokens)
			if other, ok := seen[table.Hash()]; ok {
				t.Errorf("%s and %s have the same hash", other, name)
			}
			seen[table.Hash()] = name
		}
	}
}

func TestACloneOfATableIsIndependent(t *testing.T) {
	var table Table
	replay(t, &table, "grant 10 door", "grant 10 gate")
	clone := table.Clone()
	before := table.Hash()
	same(t, "hash of the clone", before, clone.Hash())
	same(t, "results of the clone", []string{
		"release 1 door -> Released",
		"grant 10 lift -> Granted{3}",
		"expire 2 gate -> Expired{true}",
	}, replay(t, &clone, "release 1 door", "grant 10 lift", "expire 2 gate"))
	same(t, "original", "door=1 gate=2", holders(&table))
	same(t, "tokens of the original", 2, table.Tokens())
	same(t, "hash of the original", before, table.Hash())
	replay(t, &table, "release 0 gate", "release 0 door")
	same(t, "clone", "lift=3", holders(&clone))

	var empty Table
	clone = empty.Clone()
	replay(t, &clone, "grant 10 door")
	same(t, "an empty original", 0, empty.Len())
}

// applyBytes reads pairs of bytes as commands about three keys: any kind, and tokens near those
// that exist.
func applyBytes(data []byte) []Envelope {
	var log []Envelope
	for ; len(data) >= 2; data = data[2:] {
		log = append(log, Envelope{Owner: string(rune('A' + data[0]>>6)), Command: Command{
			Kind:    Kind(data[0] & 7), // two of them unknown
			Key:     string(rune('a' + (data[0]>>3&7)%3)),
			LeaseMS: uint32(data[1]),
			Token:   Token(data[1] & 15),
		}})
	}
	return log
}

// FuzzApply feeds any log to two tables and compares with the specification as a child would
// program it. At most one tenure a key (I1), tokens grow strictly (I2), a removal that names a
// token removes that tenure and no other (I3), and equal logs make equal tables (I5).
func FuzzApply(f *testing.F) {
	f.Add([]byte{1, 1, 2, 0, 1, 1, 3, 1})
	f.Add([]byte{1, 1, 9, 9, 17, 1, 3, 2, 3, 2, 10, 0, 1, 0, 3, 1, 0, 0, 7, 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		var a, b Table
		model, last := map[string]Token{}, Token(0)
		for i, e := range applyBytes(data) {
			want := specified(model, &last, e.Command)
			if e.Kind == Open {
				want = Result{Kind: Opened, Client: ClientID(i) + 1}
			}
			got := a.Apply(raft.Index(i)+1, e)
			if got != want {
				t.Fatalf("entry %d, %s: %v, want %v", i+1, e, got, want)
			}
			again := b.Apply(raft.Index(i)+1, e)
			if got != again || a.Hash() != b.Hash() || a.Hash() != hashAnew(&a) {
				t.Fatalf("entry %d, %s: %v and %v, hashes %x, %x, anew %x",
					i+1, e, got, again, a.Hash(), b.Hash(), hashAnew(&a))
			}
			held := map[string]Token{}
			for _, key := range a.Keys() {
				tenure, _ := a.Holder(key)
				held[key] = tenure.Token
			}
			if !maps.Equal(model, held) || a.Tokens() != last || a.Len() != len(model) {
				t.Fatalf("entry %d, %s: %v and counter %d, want %v and %d",
					i+1, e, held, a.Tokens(), model, last)
			}
		}
	})
}

// specified is the lock table of docs/locktable.md in as few words as possible.
func specified(held map[string]Token, last *Token, c Command) Result {
	token, ok := held[c.Key]
	names := ok && token == c.Token
	switch {
	case c.Kind == Grant && ok:
		return Result{Kind: GrantRejected}
	case c.Kind == Grant:
		*last++
		held[c.Key] = *last
		return Result{Kind: Granted, Token: *last}
	case c.Kind == Release && (names || ok && c.Token == 0):
		delete(held, c.Key)
		return Result{Kind: Released}
	case c.Kind == Release:
		return Result{Kind: NotFound}
	case c.Kind == Expire && names:
		delete(held, c.Key)
		return Result{Kind: Expired, Existed: true}
	case c.Kind == Expire:
		return Result{Kind: Expired}
	case c.Kind == Extend && names:
		return Result{Kind: Extended}
	case c.Kind == Extend:
		return Result{Kind: NotFound}
	}
	return Result{}
}

// A holder that takes a lock and gives it back, in a table with a thousand others: two entries.
func BenchmarkTableApply(b *testing.B) {
	var table Table
	for i := range 1000 {
		table.Apply(raft.Index(i), Envelope{Command: Command{Kind: Grant, Key: fmt.Sprint("key", i)}})
	}
	const key = "jobs/nightly"
	grant := Envelope{Owner: "w-3", Command: Command{Kind: Grant, Key: key, LeaseMS: 10_000}}
	release := Envelope{Owner: "w-3", Command: Command{Kind: Release, Key: key}}
	b.ReportAllocs()
	for i := raft.Index(1000); b.Loop(); i += 2 {
		release.Token = table.Apply(i, grant).Token
		if table.Apply(i+1, release).Kind != Released {
			b.Fatal("not released")
		}
	}
}
