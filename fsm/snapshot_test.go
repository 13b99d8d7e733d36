package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ticketing/raft"
)

// busyTable is a table that random commands have made, with n keys at most, and the index of the
// last of them.
type busyTable struct {
	Table
	random *rand.Rand
	index  raft.Index
	keys   int
	opened []ClientID
}

func newBusyTable(seed uint64, keys, commands int) *busyTable {
	b := &busyTable{random: rand.New(rand.NewPCG(seed, 7)), keys: keys}
	for range commands {
		b.step()
	}
	return b
}

// step applies one more command: most are about a key, some open a session or come in one.
func (b *busyTable) step() {
	b.index++
	e := Envelope{Owner: []string{"", "worker-3", "ø"}[b.random.IntN(3)]}
	e.Key = fmt.Sprintf("k/%d", b.random.IntN(b.keys))
	e.LeaseMS = uint32(1 + b.random.IntN(100_000))
	tenure, held := b.Holder(e.Key)
	switch n := b.random.IntN(10); {
	case n == 0:
		e.Kind, e.Key, e.LeaseMS = Open, "", 0
		b.opened = append(b.opened, ClientID(b.index))
	case n < 6:
		e.Kind = Grant
	case n < 8 && held:
		e.Kind, e.Token = Extend, tenure.Token
	case n < 9:
		e.Kind, e.LeaseMS = Release, 0
	default:
		e.Kind, e.LeaseMS, e.Token = Expire, 0, tenure.Token
	}
	if len(b.opened) > 0 && e.Kind != Open && e.Kind != Expire && b.random.IntN(2) == 0 {
		late := b.opened[max(0, len(b.opened)-20):]
		e.Client = late[b.random.IntN(len(late))]
		e.Seq = uint64(b.random.IntN(20))
		e.Lowest = e.Seq - min(e.Seq, uint64(b.random.IntN(20)))
	}
	b.Apply(b.index, e)
}

// A table that was written and read is the same: it has the same bytes and the same hash, and from
// then on it does the same, token for token and session for session (L13).
//
//spec:test Snapshot.Table
func TestATableThatIsReadDoesTheSame(t *testing.T) {
	locks, sessions, again := 0, 0, 0
	for seed := range uint64(200) {
		b := newBusyTable(seed, 1+int(seed)%40, int(seed)*3)
		data := b.Encode()
		read, err := DecodeTable(data, b.index)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, data)
		}
		locks, sessions = locks+read.Len(), sessions+len(read.sessions)
		if !bytes.Equal(read.Encode(), data) || read.Hash() != b.Hash() {
			t.Fatalf("seed %d: it was\n%s\nand is\n%s", seed, data, read.Encode())
		}
		other := *b
		other.Table, other.random = read, rand.New(rand.NewPCG(seed, 8))
		b.random = rand.New(rand.NewPCG(seed, 8))
		for range 100 {
			b.step()
			other.step()
			if b.Hash() != other.Hash() || b.Tokens() != other.Tokens() {
				t.Fatalf("seed %d: after entry %d it is\n%s\nnot\n%s", seed, b.index, other.Encode(), b.Encode())
			}
		}
		for _, s := range read.sessions {
			again += len(s.done)
		}
	}
	if locks < 1000 || sessions < 1000 || again < 1000 {
		t.Errorf("too tame: %d locks, %d sessions, %d results", locks, sessions, again)
	}
}

// The table goes on while it is written, and what is written is the table as it was.
//
//spec:test Snapshot.Table
func TestATableThatChangesIsWrittenAsItWas(t *testing.T) {
	b := newBusyTable(1, 40_000, 120_000)
	for range 3 {
		before, clone := b.Encode(), b.Clone()
		e, steps := newEncoding(&b.Table, b.index), 1
		for !e.step() {
			steps++
			for range 2000 {
				b.step()
			}
		}
		if !bytes.Equal(e.whole, before) || !bytes.Equal(clone.Encode(), before) {
			t.Fatal("what was written is another table")
		}
		if bytes.Equal(b.Encode(), before) || steps < 3 {
			t.Errorf("too tame: %d steps", steps)
		}
	}
}

// Whatever is damaged is refused, with the line; nothing panics. A digit in the hash's own line, or
// anywhere else, makes another table.
func TestBytesThatAreNoTableAreRefused(t *testing.T) {
	b := newBusyTable(3, 10, 60)
	data := b.Encode()
	for i := range data {
		for _, c := range []byte("0 9\"\nxü") {
			damaged := slices.Clone(data)
			if damaged[i] == c {
				continue
			}
			damaged[i] = c
			if _, err := DecodeTable(damaged, b.index); !errors.Is(err, ErrSnapshot) {
				t.Fatalf("byte %d as %q: error %v of\n%s", i, c, err, damaged)
			}
		}
		if _, err := DecodeTable(data[:i], b.index); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("the first %d bytes: %v", i, err)
		}
	}
	if _, err := DecodeTable(append(slices.Clone(data), "x\n"...), b.index); !errors.Is(err, ErrSnapshot) {
		t.Errorf("something behind: %v", err)
	}
	for reason, text := range map[string]string{
		"line 1":           "table 2 0 0 0\nhash 0\n",
		"are too many":     "table 1 0 99999999999 0\nhash 0\n",
		"it is cut off":    "table 1 5 3 0\n1 10 1 \"\" a\n",
		"comes after":      "table 1 5 2 0\n1 10 1 \"\" b\n2 10 2 \"\" a\nhash 0\n",
		"token 6 of 5":     "table 1 5 1 0\n6 10 1 \"\" b\nhash 0\n",
		"have token 1":     "table 1 5 2 0\n1 10 1 \"\" a\n1 10 2 \"\" b\nhash 0\n",
		"a snapshot up to": "table 1 5 1 0\n1 10 99 \"\" b\nhash 0\n",

		`"a" comes after "a"`:      "table 1 5 2 0\n1 10 1 \"\" a\n2 10 2 \"\" a\nhash 0\n",
		"token 0 of 5":             "table 1 5 1 0\n0 10 1 \"\" b\nhash 0\n",
		"is not a lock":            "table 1 5 1 0\n1 4294967296 1 \"\" b\nhash 0\n",
		"0 locks and 4097":         "table 1 5 0 4097\nhash 0\n",
		"session 1 after 0":        "table 1 5 0 1\n1 99 0\nhash 0\n",
		"session 1 after 1":        "table 1 5 0 2\n1 1 0\n1 1 0\nhash 0\n",
		"request 5 of session 1":   "table 1 5 0 1\n1 1 0 5 7 3 0 5 7 3 0\nhash 0\n",
		"request 260 of session 1": "table 1 5 0 1\n1 1 4 260 7 3 0\nhash 0\n",
		"came to 259, token 0":     "table 1 5 0 1\n1 1 0 5 7 259 0\nhash 0\n",
		"came to 1, token 0":       "table 1 5 0 1\n1 1 0 5 7 1 0\nhash 0\n",
		"came to 3, token 1":       "table 1 5 0 1\n1 1 0 5 7 3 1\nhash 0\n",
		"came to 2, token 0":       "table 1 5 0 1\n1 1 0 5 7 2 0\nhash 0\n",
		"is not a session":         "table 1 5 0 1\n1 1 0 5 7 1\nhash 0\n",
	} {
		if _, err := DecodeTable([]byte(text), 9); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("error %v, want %q", err, reason)
		}
	}
}

// FuzzDecodeTable: of any bytes, those that are taken for a table are one that commands can make, and
// what it would be written as.
//
//spec:test Snapshot.Table
func FuzzDecodeTable(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(newBusyTable(seed, 5, 30).Encode())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := reader{rest: data, index: 1 << 40}
		table, hash := r.table()
		if r.err == nil { // then only the hash may be wrong: put the right one there
			data = bytes.TrimSuffix(data, fmt.Appendf(nil, "hash %d\n", hash))
			data = fmt.Appendf(slices.Clip(data), "hash %d\n", table.Hash())
		}
		table, err := DecodeTable(data, 1<<40)
		if (err == nil) != (r.err == nil) {
			t.Fatalf("%v, and with the right hash %v", r.err, err)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(table.Encode(), data) {
			t.Fatalf("two ways to write one table:\n%s\n%s", data, table.Encode())
		}
		if err := errors.Join(checkTable(&table, 1<<40), table.held.top.check()); err != nil {
			t.Fatalf("%v:\n%s", err, data)
		}
	})
}

// compacted brings a crowd's snapshot to the disk, and returns what is there then.
func (c *crowd) compacted() raft.Durable {
	c.t.Helper()
	if err := c.Compact(); err != nil {
		c.t.Fatal(err)
	}
	var durable raft.Durable
	for durable.Snapshot == nil {
		out, err := c.Take()
		if err != nil {
			c.t.Fatal(err)
		}
		durable.Snapshot = out.Save
	}
	c.SnapshotSaved(durable.Snapshot.LastIncludedIndex)
	out, err := c.Take()
	if err != nil || out.Write.Snapshot != durable.Snapshot {
		c.t.Fatalf("the write is %+v, %v", out.Write, err)
	}
	durable.HardState = out.Write.HardState
	c.Saved(out.Write.Seq)
	return durable
}

// A server starts from its snapshot: with the same locks, sessions and next token, and each lease
// counted from the beginning, as nobody can say how long it has run.
//
//spec:test Snapshot.Lease
func TestAServerThatStartsFromASnapshotGoesOn(t *testing.T) {
	c := newCrowd(t, testConfig(1, 1))
	c.hold(1000, func(i int) int64 { return int64(10_000 + i) })
	durable := c.compacted()
	if err := c.Compact(); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("there is nothing new: %v", err)
	}
	const start = 99 * second
	r, err := New(testConfig(1, 1), durable, start)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "table", string(c.Table().Encode()), string(r.Table().Encode()))
	next, _ := r.leases.Next()
	same(t, "the end of the first lease", start+10*second, next)
	d := &crowd{Replica: r, t: t, clock: start}
	d.ElectionTimeout()
	d.settle()
	d.Request(Request{Call: 1, Kind: Grant, Key: "new", LeaseMS: 1000})
	d.settle()
	tenure, _ := d.Table().Holder("new")
	same(t, "the next token", 1001, tenure.Token)

	config := testConfig(1, 1)
	config.TokenFloor = 2000
	_, err = New(config, durable, 0)
	if err == nil || !strings.Contains(err.Error(), "1000") || !strings.Contains(err.Error(), "2000") {
		t.Errorf("a snapshot from below the floor: %v", err)
	}
	damaged := *durable.Snapshot
	damaged.Data = damaged.Data[:len(damaged.Data)/2]
	durable.Snapshot = &damaged
	if _, err := New(testConfig(1, 1), durable, 0); !errors.Is(err, ErrSnapshot) {
		t.Errorf("half a snapshot: %v", err)
	}
}

// A snapshot is taken after so many entries, and not while one is on its way.
func TestSnapshotsAreTakenByThemselves(t *testing.T) {
	config := testConfig(1, 1)
	config.SnapshotEvery = 10
	c := newCrowd(t, config)
	var saves []raft.Index
	for i := range uint64(100) {
		c.Request(Request{Call: i + 1, Kind: Noop, Text: "x"})
		out, err := c.Take()
		if err != nil {
			t.Fatal(err)
		}
		if out.Save != nil {
			saves = append(saves, out.Save.LastIncludedIndex)
		}
		c.Saved(out.Write.Seq)
		if i%40 == 39 && len(saves) > 0 { // a slow disk
			c.SnapshotSaved(saves[len(saves)-1])
		}
	}
	same(t, "snapshots", 3, len(saves))
	for i := range saves[1:] {
		if saves[i+1] < saves[i]+10 {
			t.Errorf("snapshots of entries %v", saves)
		}
	}
}

// An Extend among the entries that a leader's snapshot stands for gives the same tenure a new lease.
// All other leases that are being counted go on.
//
//spec:test Snapshot.Lease
func TestALeaseThatASnapshotHasExtendedStartsAnew(t *testing.T) {
	before, leases := Table{}, Leases{}
	replay(t, &before, "grant 10000 a", "grant 10000 b", "grant 10000 c")
	for key, tenure := range before.Tenures() {
		leases.Start(key, tenure, 0)
	}
	after := before.Clone()
	for i, command := range []string{"extend 1 10000 a", "release 3 c", "grant 10000 c", "grant 10000 d"} {
		after.Apply(raft.Index(10+i), parse(t, command))
	}
	leases.Restore(&before, &after)
	leases.Recount(&after, 4*second)
	left, _ := leases.Left(4*second, 10)
	ends := map[string]raft.Time{}
	for _, l := range left {
		ends[l.Key] = l.Left
	}
	same(t, "left", map[string]raft.Time{"a": 10 * second, "b": 6 * second, "c": 10 * second, "d": 10 * second}, ends)
}

// The longest time that a million locks keep everything else waiting while they are written.
func BenchmarkSnapshotOfAMillionLocks(b *testing.B) {
	c := newCrowd(b, testConfig(1, 1))
	c.hold(1_000_000, func(int) int64 { return 3_600_000 })
	for b.Loop() {
		c.Request(Request{Call: 1, Kind: Noop}) // or there would be nothing new
		c.settle()
		if err := c.Compact(); err != nil {
			b.Fatal(err)
		}
		longest, steps := time.Duration(0), 0
		var save *raft.Snapshot
		for save == nil {
			for range 20 {
				c.calls++
				k := key(steps % 1_000_000)
				c.Request(Request{Call: c.calls, Kind: Release, Key: k})
				c.calls++
				c.Request(Request{Call: c.calls, Kind: Grant, Key: k, LeaseMS: 3_600_000})
				steps++
			}
			begin := time.Now()
			out, err := c.Take()
			longest = max(longest, time.Since(begin))
			if err != nil {
				b.Fatal(err)
			}
			save = out.Save
			if out.Write.Seq > 0 {
				c.Saved(out.Write.Seq)
			}
		}
		c.SnapshotSaved(save.LastIncludedIndex)
		b.ReportMetric(float64(longest.Microseconds())/1000, "ms/longest")
		b.ReportMetric(float64(len(save.Data))/1e6, "MB")
	}
}
