package fsm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ticketing/raft"
)

// asked is an envelope of client 1's request seq, with lowest as its lowest open one.
func asked(seq, lowest uint64, c Command) Envelope {
	return Envelope{Client: 1, Seq: seq, Lowest: lowest, Command: c}
}

var (
	grantDoor   = Command{Kind: Grant, Key: "door", LeaseMS: 1000}
	releaseDoor = Command{Kind: Release, Key: "door", Token: 1}
	extendDoor  = Command{Kind: Extend, Key: "door", Token: 1, LeaseMS: 2000}
	expireDoor  = Envelope{Command: Command{Kind: Expire, Key: "door", Token: 1}}
	openOne     = Envelope{Command: Command{Kind: Open}}
)

// A line is an entry and what it comes to.
type tableLine struct {
	e    Envelope
	want string
}

// applyAll applies lines to an empty table, from index 1 on.
func applyAll(t *testing.T, name string, lines ...tableLine) *Table {
	t.Helper()
	var table Table
	for i, l := range lines {
		got := table.Apply(raft.Index(i)+1, l.e).String()
		same(t, name+": "+l.e.String(), l.want, got)
	}
	return &table
}

//spec:test Once
func TestARequestThatIsSentAgainIsCarriedOutOnce(t *testing.T) {
	opened := tableLine{openOne, "Opened{1}"}
	grant := tableLine{asked(1, 1, grantDoor), "Granted{1}"}
	applyAll(t, "a Grant is told its token again while its tenure lives", opened, grant,
		tableLine{asked(1, 1, grantDoor), "Granted{1} again"})
	table := applyAll(t, "and is Noop for ever when it does not", opened, grant,
		tableLine{expireDoor, "Expired{true}"}, tableLine{asked(1, 1, grantDoor), "Noop"},
		tableLine{asked(1, 1, grantDoor), "Noop"})
	same(t, "held", 0, table.Len())
	same(t, "tokens", Token(1), table.Tokens())
	applyAll(t, "a Release was a Release", opened, grant,
		tableLine{asked(2, 1, releaseDoor), "Released"}, tableLine{asked(2, 1, releaseDoor), "Released again"},
		tableLine{asked(3, 1, releaseDoor), "NotFound"})
	applyAll(t, "a Release without a token leaves the next tenure alone", opened, grant,
		tableLine{asked(2, 1, Command{Kind: Release, Key: "door"}), "Released"},
		tableLine{Envelope{Command: grantDoor}, "Granted{2}"},
		tableLine{asked(2, 1, Command{Kind: Release, Key: "door"}), "Released again"},
		tableLine{Envelope{Command: grantDoor}, "GrantRejected"})
	applyAll(t, "a closed request is Noop", opened, grant,
		tableLine{asked(2, 2, releaseDoor), "Released"}, tableLine{asked(1, 1, grantDoor), "Noop"})
	applyAll(t, "a number that is too far ahead is Noop", opened,
		tableLine{asked(257, 1, grantDoor), "Noop"}, tableLine{asked(256, 1, grantDoor), "Granted{1}"})
	applyAll(t, "a Grant that was rejected may be tried again", opened,
		tableLine{Envelope{Command: grantDoor}, "Granted{1}"}, tableLine{asked(1, 1, grantDoor), "GrantRejected"},
		tableLine{expireDoor, "Expired{true}"}, tableLine{asked(1, 1, grantDoor), "Granted{2}"})
	applyAll(t, "the same number for another key", opened, grant,
		tableLine{asked(1, 1, Command{Kind: Grant, Key: "gate", LeaseMS: 1}), "NumberReused"})
	applyAll(t, "no session", tableLine{asked(1, 1, grantDoor), "SessionUnknown"})
}

//spec:test Extend.Token
func TestAnExtendNamesATenureThatLives(t *testing.T) {
	opened, grant := tableLine{openOne, "Opened{1}"}, tableLine{asked(1, 1, grantDoor), "Granted{1}"}
	table := applyAll(t, "it sets the lease", opened, grant, tableLine{asked(2, 1, extendDoor), "Extended"})
	tenure, _ := table.Holder("door")
	same(t, "tenure", Tenure{Token: 1, LeaseMS: 2000, Since: 3}, tenure)
	applyAll(t, "it never creates one", opened, tableLine{asked(1, 1, extendDoor), "NotFound"})
	table = applyAll(t, "nor takes another's", opened, grant, tableLine{expireDoor, "Expired{true}"},
		tableLine{Envelope{Command: grantDoor}, "Granted{2}"}, tableLine{asked(2, 1, extendDoor), "NotFound"})
	tenure, _ = table.Holder("door")
	same(t, "the other's", Tenure{Token: 2, LeaseMS: 1000, Since: 4}, tenure)
	applyAll(t, "told again only while the tenure lives", opened, grant,
		tableLine{asked(2, 1, extendDoor), "Extended"}, tableLine{asked(2, 1, extendDoor), "Extended again"},
		tableLine{expireDoor, "Expired{true}"}, tableLine{asked(2, 1, extendDoor), "NotFound"},
		tableLine{Envelope{Command: grantDoor}, "Granted{2}"}, tableLine{asked(2, 1, extendDoor), "NotFound"})
	applyAll(t, "without a session", opened, grant, tableLine{Envelope{Command: extendDoor}, "Extended"})
}

// The one that was silent for longest has to go, by the log's count and no clock's.
func TestTheSessionThatWasSilentForLongestIsForgotten(t *testing.T) {
	var table Table
	for i := range raft.Index(maxSessions) {
		table.Apply(i+1, openOne)
	}
	next := raft.Index(maxSessions + 1)
	same(t, "the oldest speaks", "Granted{1}", table.Apply(next, asked(1, 1, grantDoor)).String())
	table.Apply(next+1, openOne)
	same(t, "sessions", maxSessions, table.Sessions())
	same(t, "again", "Granted{1} again", table.Apply(next+2, asked(1, 1, grantDoor)).String())
	second := Envelope{Client: 2, Seq: 1, Lowest: 1, Command: grantDoor}
	same(t, "the second oldest", "SessionUnknown", table.Apply(next+3, second).String())
	same(t, "and for ever", "SessionUnknown", table.Apply(next+4, second).String())
}

func TestASessionKeepsTheResultsOfOpenRequestsOnly(t *testing.T) {
	var table Table
	table.Apply(1, openOne)
	for i := range uint64(10_000) {
		lowest := max(int64(i)-9, 0)
		table.Apply(raft.Index(i)+2, asked(i, uint64(lowest), Command{Kind: Noop}))
		if kept := len(table.sessions[1].done); kept > 10 {
			t.Fatalf("%d results are kept of 10 open requests", kept)
		}
	}
}

// The list of silences is put right when a session has to go, and not before. Compared with a search
// for the least.
func TestWhoHasBeenSilentForLongestIsFoundInAnyOrder(t *testing.T) {
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 0))
		var table Table
		index := raft.Index(0)
		apply := func(e Envelope) Result { index++; return table.Apply(index, e) }
		for range maxSessions {
			apply(openOne)
		}
		for range 300 {
			for range random.IntN(30) {
				apply(Envelope{Client: ClientID(random.IntN(int(index)) + 1), Seq: 1, Lowest: 1})
			}
			oldest, last := ClientID(0), raft.Index(1<<62)
			for id, s := range table.sessions {
				if s.last < last {
					oldest, last = id, s.last
				}
			}
			clone := table.Clone()
			apply(openOne)
			if _, stays := table.sessions[oldest]; stays || table.Sessions() != maxSessions {
				t.Fatalf("seed %d: %d stays of %d", seed, oldest, table.Sessions())
			}
			if len(table.silences) != maxSessions || table.Hash() != hashAnew(&table) {
				t.Fatalf("seed %d: %d silences, hash %x, anew %x",
					seed, len(table.silences), table.Hash(), hashAnew(&table))
			}
			clone.Apply(index, openOne)
			same(t, "hash of a clone that was told the same", table.Hash(), clone.Hash())
		}
	}
}

// What no leader proposes has a result, too: Apply is total. Neither touches a session, least of all
// the one in which it stands.
func TestNeitherASessionNorAnExpiryBeginsInASession(t *testing.T) {
	var table Table
	for i := range raft.Index(maxSessions) {
		table.Apply(i+1, openOne)
	}
	table.Apply(5000, Envelope{Command: grantDoor})
	before := table.Hash()
	for _, c := range []Command{openOne.Command, expireDoor.Command} {
		for seq := range uint64(3) {
			same(t, "result", Result{}, table.Apply(6000, asked(seq, 1, c)))
			same(t, "hash", before, table.Hash())
		}
	}
	same(t, "held", 1, table.Len())
}

// A hostile client harms nobody but itself.
func TestNumbersOfAnySizeArePutInTheirPlace(t *testing.T) {
	const most = 1<<64 - 1
	opened, noop := tableLine{openOne, "Opened{1}"}, Command{Kind: Noop, Text: "x"}
	applyAll(t, "from the end", opened,
		tableLine{asked(most, most, grantDoor), "Granted{1}"}, tableLine{asked(most, most, grantDoor), "Granted{1} again"},
		tableLine{asked(most-1, most-1, noop), "Noop"}, tableLine{asked(0, 0, grantDoor), "Noop"},
		tableLine{asked(most, 0, grantDoor), "Granted{1} again"})
	applyAll(t, "the lowest goes back", opened,
		tableLine{asked(9, 9, grantDoor), "Granted{1}"}, tableLine{asked(8, 1, releaseDoor), "Noop"},
		tableLine{asked(9, 1, grantDoor), "Granted{1} again"})
	applyAll(t, "the lowest is above the number", opened,
		tableLine{asked(3, 4, grantDoor), "Noop"}, tableLine{asked(4, 4, grantDoor), "Granted{1}"})
	applyAll(t, "on both sides of the middle of all numbers", opened,
		tableLine{asked(1<<63+1, 1<<63-1, grantDoor), "Granted{1}"},
		tableLine{asked(1<<63-1, 1<<63-1, releaseDoor), "Released"},
		tableLine{asked(1<<63+1, 1<<63-1, grantDoor), "Noop"},
		tableLine{asked(1<<63-1, 1<<63-1, releaseDoor), "Released again"})
	applyAll(t, "another command under the same number", opened, tableLine{asked(1, 1, grantDoor), "Granted{1}"},
		tableLine{asked(1, 1, releaseDoor), "NumberReused"}, tableLine{asked(1, 1, expireDoor.Command), "Noop"},
		tableLine{asked(1, 1, Command{Kind: Grant, Key: "door", LeaseMS: 1001}), "NumberReused"},
		tableLine{asked(2, 1, noop), "Noop"}, tableLine{asked(2, 1, Command{Text: "y"}), "NumberReused"},
		tableLine{asked(2, 1, noop), "Noop again"},
		tableLine{asked(3, 1, releaseDoor), "Released"},
		tableLine{asked(3, 1, Command{Kind: Release, Key: "door"}), "NumberReused"})
}

func TestAFullTableTakesNoMoreAndGivesBack(t *testing.T) {
	var table Table
	for i := range raft.Index(maxLocks) {
		table.Apply(i+1, Envelope{Command: Command{Kind: Grant, Key: fmt.Sprint(i), LeaseMS: 1}})
	}
	table.Apply(1<<40, openOne)
	e := Envelope{Client: 1 << 40, Seq: 1, Lowest: 1, Command: grantDoor}
	same(t, "full", "TableFull", table.Apply(1<<40+1, e).String())
	same(t, "tokens", Token(maxLocks), table.Tokens())
	same(t, "a held key", "GrantRejected",
		table.Apply(1<<40+2, Envelope{Command: Command{Kind: Grant, Key: "7"}}).String())
	table.Apply(1<<40+3, Envelope{Command: Command{Kind: Release, Key: "7"}})
	same(t, "the same request, when there is room", fmt.Sprintf("Granted{%d}", maxLocks+1),
		table.Apply(1<<40+4, e).String())
}

// Hazard 15: the counter may begin anywhere, and goes on from there. (Where it begins is part of what
// all servers start from, and of the hash.)
func TestACounterThatBeginsHighGoesOnFromThere(t *testing.T) {
	var low Table
	high := Table{tokens: 1_000_000}
	if low.Hash() == high.Hash() {
		t.Error("the same hash")
	}
	same(t, "the first", "Granted{1000001}", high.Apply(1, Envelope{Command: grantDoor}).String())
	same(t, "a late Expire from before", "Expired{false}", high.Apply(2, expireDoor).String())
}

func TestDifferentSessionsHaveDifferentHashes(t *testing.T) {
	base := session{last: 7, lowest: 3, done: []outcome{{4, 5, 6, Granted}}}
	seen := map[uint64]string{}
	add := func(id ClientID, s session) {
		h := hashSession(id, s)
		if other, ok := seen[h]; ok {
			t.Errorf("%d %+v and %s have the same hash", id, s, other)
		}
		seen[h] = fmt.Sprintf("%d %+v", id, s)
	}
	add(1, base)
	add(2, base)
	for _, change := range []func(*session){
		func(s *session) { s.last++ }, func(s *session) { s.lowest++ },
		func(s *session) { s.last, s.lowest = 3, 7 }, func(s *session) { s.done = nil },
		func(s *session) { s.done = []outcome{{5, 5, 6, Granted}} },
		func(s *session) { s.done = []outcome{{4, 6, 6, Granted}} },
		func(s *session) { s.done = []outcome{{4, 5, 7, Granted}} },
		func(s *session) { s.done = []outcome{{4, 5, 6, Released}} },
		func(s *session) { s.done = []outcome{{4, 5, 6, Granted}, {}} },
	} {
		s := base
		change(&s)
		add(1, s)
	}
	with, without := Table{}, Table{}
	with.Apply(1, openOne)
	if with.Hash() == without.Hash() {
		t.Error("a session is not in the hash")
	}
}

func TestACloneOfSessionsIsIndependent(t *testing.T) {
	var a Table
	a.Apply(1, openOne)
	a.Apply(2, asked(1, 1, grantDoor))
	b := a.Clone()
	hash := a.Hash()
	b.Apply(3, asked(2, 1, releaseDoor))
	b.Apply(4, asked(3, 3, grantDoor))
	b.Apply(5, openOne)
	same(t, "the original", hash, a.Hash())
	same(t, "anew", hash, hashAnew(&a))
	a.Apply(3, openOne)
	same(t, "the clone", hashAnew(&b), b.Hash())
	same(t, "told again", "Released", a.Apply(4, asked(2, 1, releaseDoor)).String())
}

// A duplicate of each entry, at each later place of a log: it changes nothing that a client can see,
// then or later.
//
//spec:test Once
func TestADuplicateAnywhereInALogChangesNothing(t *testing.T) {
	gate := Command{Kind: Grant, Key: "gate", LeaseMS: 5}
	log := []Envelope{
		asked(1, 1, grantDoor), asked(2, 1, gate), asked(3, 1, extendDoor), asked(4, 2, Command{Text: "x"}),
		asked(5, 2, Command{Kind: Release, Key: "door"}), {Client: 2, Seq: 1, Lowest: 1, Command: grantDoor},
		asked(6, 4, releaseDoor), {Command: Command{Kind: Expire, Key: "gate", Token: 2}},
		asked(7, 7, gate), {Client: 2, Seq: 2, Lowest: 2, Command: Command{Kind: Release, Key: "door"}},
		asked(8, 8, grantDoor),
	}
	run := func(from, at int) (results []Result, end string) {
		var table Table
		table.Apply(1, openOne)
		table.Apply(2, openOne)
		for i, e := range log {
			results = append(results, table.Apply(10*raft.Index(i)+10, e))
			if i == at && from <= at {
				table.Apply(10*raft.Index(i)+15, log[from])
			}
		}
		return results, reported(&table)
	}
	want, end := run(1, 0)
	same(t, "without any", "[Granted{1} Granted{2} Extended Noop Released Granted{3} NotFound Expired{true} "+
		"Granted{4} Released Granted{5}]", fmt.Sprint(want))
	for from := range log {
		for at := from; at < len(log); at++ {
			got, last := run(from, at)
			same(t, fmt.Sprintf("entry %d again behind %d", from, at), fmt.Sprint(want), fmt.Sprint(got))
			same(t, fmt.Sprintf("entry %d again behind %d", from, at), end, last)
		}
	}
}
