package raft_test

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

// Server 1 of three follows 2 in term 3 with log [1 2 2], of which entry 2 is committed, or leads
// term 4 with a no-op at 4.
func receiver(t *testing.T, leads bool) *cluster {
	t.Helper()
	c := alone(t, 3, state(3, 0, 1, 2, 2))
	c.receive(appendEntries(3, 3, 2, 2))
	if leads {
		c.leads()
	}
	c.outbox(1)
	c.newWrites(1)
	return c
}

// Each row is a message that no correct peer can send, and the reason that the error gives.
func TestAMalformedMessageIsRefusedAndChangesNothing(t *testing.T) {
	entry := func(index raft.Index, term raft.Term) raft.Entry {
		return raft.Entry{Index: index, Term: term, Command: []byte("evil")}
	}
	behind := func(index raft.Index, term raft.Term, es ...raft.Entry) raft.Body {
		return raft.AppendEntries{PrevLogIndex: index, PrevLogTerm: term, Entries: es}
	}
	ask := func(index raft.Index, term raft.Term) raft.Body {
		return raft.RequestVote{LastLogIndex: index, LastLogTerm: term}
	}
	from2 := func(term raft.Term, body raft.Body) raft.Message { return message(2, 1, term, body) }
	position, order, committed := "no log can hold", "after", "is committed with"
	for name, row := range map[string]struct {
		leads   bool
		message raft.Message
		reason  string
	}{
		"for another":    {false, message(2, 3, 9, ask(0, 0)), "for server 3"},
		"for nobody":     {false, message(2, 0, 9, ask(0, 0)), "for server 0"},
		"from nobody":    {false, message(0, 1, 9, ask(0, 0)), "server 0 is not"},
		"from itself":    {false, message(1, 1, 9, ask(0, 0)), "server 1 is not"},
		"term 0":         {false, from2(0, ask(0, 0)), "term 0"},
		"a term made up": {false, from2(1<<62+1, ask(0, 0)), "2^62"},
		"the last term":  {false, from2(math.MaxUint64, ask(0, 0)), "2^62"},
		"no body":        {false, from2(9, nil), "unknown body"},

		"candidate's log: term without index": {false, from2(9, ask(0, 1)), position},
		"candidate's log: index without term": {false, from2(9, ask(1, 0)), position},
		"candidate's log: of its own term":    {false, from2(9, ask(1, 9)), position},
		"candidate's log: of a later term":    {false, from2(9, ask(1, 10)), position},
		"even in an old term":                 {false, from2(1, ask(1, 1)), position},

		"prev: term without index": {false, from2(9, behind(0, 1)), position},
		"prev: index without term": {false, from2(9, behind(1, 0)), position},
		"prev: later term":         {false, from2(9, behind(1, 10)), position},
		"prev: committed otherwise": {
			false, from2(9, behind(2, 1)), committed,
		},
		"entries: not behind prev": {false, from2(9, behind(3, 2, entry(5, 9))), "stands where"},
		"entries: before prev":     {false, from2(9, behind(3, 2, entry(3, 9))), "stands where"},
		"entries: a gap": {
			false, from2(9, behind(3, 2, entry(4, 9), entry(6, 9))), "stands where",
		},
		"entries: behind the last index": {
			false, from2(9, behind(math.MaxUint64, 2, entry(0, 9))), "stands where",
		},
		"entries: term falls": {false, from2(9, behind(3, 2, entry(4, 1))), order},
		"entries: term falls late": {
			false, from2(9, behind(3, 2, entry(4, 9), entry(5, 8))), order,
		},
		"entries: later term": {false, from2(9, behind(3, 2, entry(4, 10))), order},
		"entries: servers that cannot be": {
			false, from2(9, behind(3, 2, raft.Entry{Index: 4, Term: 9, Members: raft.Configuration{}})),
			"no server votes",
		},
		"entries: a command and servers": {
			false, from2(9, behind(3, 2, raft.Entry{
				Index: 4, Term: 9, Command: []byte("evil"), Members: servers(1, 2, 3)})), "at once",
		},
		"entries: term 0":            {false, from2(9, behind(0, 0, entry(1, 0))), order},
		"entries: committed others":  {false, from2(9, behind(1, 1, entry(2, 3))), committed},
		"entries: the first of all":  {false, from2(9, behind(0, 0, entry(1, 9))), committed},
		"a second leader, here":      {true, from2(4, behind(4, 4)), "leads"},
		"a second leader, elsewhere": {false, message(3, 1, 3, behind(3, 2)), "leads"},
		"vote: for no term":          {false, from2(3, raft.RequestVoteReply{}), "never sent"},
		"vote: for a later term":     {false, vote(2, 4, false), "never sent"},
		"vote: granted in an earlier term": {
			false, from2(2, raft.RequestVoteReply{RequestTerm: 3, VoteGranted: true}), "cannot give",
		},
		"vote: granted in a later one": {
			true, from2(9, raft.RequestVoteReply{RequestTerm: 4, VoteGranted: true}), "cannot give",
		},
		"answer: for no term": {false, from2(3, raft.AppendEntriesReply{}), "never sent"},
		"answer: for a later term": {
			true, from2(9, raft.AppendEntriesReply{RequestTerm: 5}), "never sent",
		},
		"answer: from an earlier term": {
			true, from2(3, raft.AppendEntriesReply{RequestTerm: 4}), "cannot give",
		},
		"answer: success in a later term": {
			true, from2(5, raft.AppendEntriesReply{RequestTerm: 4, Success: true}), "cannot give",
		},
		"answer: to a round that was not begun": {
			true, from2(4, raft.AppendEntriesReply{RequestTerm: 4, Round: 1}), "the last was 0",
		},
		"answer: behind the log's end":   {true, success(2, 4, 5, 4), "ends at 4"},
		"answer: match behind the end":   {true, success(2, 4, 4, 5), "ends at 4"},
		"answer: refusal behind the end": {true, refusal(2, 4, 5, 0, 1), "ends at 4"},
		"answer: the last index":         {true, success(2, 4, 0, math.MaxUint64), "ends at 4"},
	} {
		t.Run(name, func(t *testing.T) {
			c := receiver(t, row.leads)
			core := c.core(1)
			before, deadline := core.Clone(), core.Deadline()
			err := core.Receive(row.message)
			if !errors.Is(err, raft.ErrMalformed) || !strings.Contains(err.Error(), row.reason) {
				t.Fatalf("error %v, want %q and %q", err, raft.ErrMalformed, row.reason)
			}
			same(t, "state", before.Status(), core.Status())
			same(t, "log", logOf(before), logOf(core))
			same(t, "deadline", deadline, core.Deadline())
			if err := raft.Delta(before, core); err != nil {
				t.Error(err)
			}
			if err := raft.Delta(core, before); err != nil {
				t.Error(err)
			}
			same(t, "output", raft.Output{Messages: []raft.Message{}}, nonNil(core.Take()))
		})
	}
}

// The same in a log that has nothing yet to contradict it.
func TestAnEntryOfTermZeroIsMalformed(t *testing.T) {
	c := alone(t, 3, state(3, 0))
	err := c.core(1).Receive(appendEntries(3, 0, 0, 1, 0))
	if !errors.Is(err, raft.ErrMalformed) {
		t.Fatalf("error %v", err)
	}
	same(t, "last index", 0, c.status(1).LastIndex)
}

// nonNil makes two ways to say "no messages" one.
func nonNil(out raft.Output) raft.Output {
	out.Messages = append([]raft.Message{}, out.Messages...)
	return out
}

// What is refused because of the term is answered whatever it holds: its sender may have been
// deposed before it could know better.
//
//spec:test AE.1
func TestAnOldLeadersMessageIsNotMalformedForContradictingCommits(t *testing.T) {
	c := receiver(t, false)
	c.receive(appendEntries(2, 1, 1, 0, 1, 1))
	want := raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 1}
	same(t, "answer", raft.Body(want), c.answer())
	same(t, "log", entries(1, 1, 2, 2), c.log(1))
}

// FuzzReceive feeds one core whatever bytes can spell: messages, timeouts, completed writes, in any
// order. It never panics, and what raft.Check and raft.Delta say of a core among correct peers
// holds among hostile ones too. The seeds, which run as tests, make a follower, a candidate and a
// leader.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{})
	lead := []byte{opTimeout, opTake, opSaveAll, opTake, opVoteReply, 2, 1, 1, 1, opTake}
	follow := []byte{opAppend, 2, 3, 0, 0, 1, 3, 1, 2, 3, opTake, opSaveAll, opTake}
	for _, start := range [][]byte{nil, lead, follow, lead[:4]} {
		for op := range byte(opCount) {
			for arg := range byte(8) {
				seed := append([]byte{}, start...)
				seed = append(seed, op, 2, arg, arg/2, arg%3, 1, 2, arg, 1, 5, opTake)
				f.Add(append(seed, seed...))
			}
		}
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		core, err := raft.New(setup{}.filled().config(1), state(1, 0, 1, 1), 0)
		if err != nil {
			t.Fatal(err)
		}
		in := &reader{bytes: script}
		for seq := uint64(0); len(in.bytes) > 0; {
			before := core.Clone()
			act(core, in, &seq)
			if err := raft.Check(core); err != nil {
				t.Fatal(err)
			}
			if err := raft.Delta(before, core); err != nil {
				t.Fatal(err)
			}
		}
	})
}

const (
	opTimeout = iota
	opHeartbeat
	opTick
	opPropose
	opTake
	opSaveAll
	opSave
	opVote
	opVoteReply
	opAppend
	opAppendReply
	opCount
)

// act gives a core the next input of a script. Seq is the last write that it has begun.
func act(core *raft.Core, in *reader, seq *uint64) {
	op := in.byte() % opCount
	switch op {
	case opTimeout:
		core.ElectionTimeout()
	case opHeartbeat:
		core.HeartbeatTimeout()
	case opTick:
		core.Tick(raft.Time(in.number()))
	case opPropose:
		_, _, _ = core.Propose([]byte{in.byte()})
	case opTake:
		*seq = max(*seq, core.Take().Write.Seq)
	case opSaveAll:
		for n := range *seq {
			core.Saved(n + 1)
		}
	case opSave:
		core.Saved(min(in.number(), *seq))
	default:
		m := raft.Message{
			From: raft.ServerID(in.byte() % 4), To: 1,
			Term: raft.Term(in.number()), Body: in.body(op),
		}
		before := core.Status()
		if core.Receive(m) != nil && !cmp.Equal(before, core.Status()) {
			panic("a refused message changed the state")
		}
	}
}

// reader takes a script apart. Behind its end all is 0.
type reader struct{ bytes []byte }

func (r *reader) byte() byte {
	if len(r.bytes) == 0 {
		return 0
	}
	b := r.bytes[0]
	r.bytes = r.bytes[1:]
	return b
}

// number is mostly small, since only small terms and indexes get past the first comparison. It
// stays short of the largest: nobody can count on from there, and terms that high take longer than
// the world.
func (r *reader) number() uint64 {
	switch b := r.byte(); b {
	case 255:
		var eight [8]byte
		for i := range eight {
			eight[i] = r.byte()
		}
		return binary.LittleEndian.Uint64(eight[:]) >> 1
	case 254:
		return math.MaxUint64 >> 1
	default:
		return uint64(b % 16)
	}
}

func (r *reader) body(op byte) raft.Body {
	switch op {
	case opVote:
		return raft.RequestVote{
			LastLogIndex: raft.Index(r.number()), LastLogTerm: raft.Term(r.number()),
		}
	case opVoteReply:
		return raft.RequestVoteReply{
			RequestTerm: raft.Term(r.number()), VoteGranted: r.byte()%2 == 1,
		}
	case opAppend:
		a := raft.AppendEntries{
			PrevLogIndex: raft.Index(r.number()), PrevLogTerm: raft.Term(r.number()),
			LeaderCommit: raft.Index(r.number()),
		}
		for i := range r.byte() % 4 { // mostly in their places
			index := a.PrevLogIndex + 1 + raft.Index(i) + raft.Index(r.byte()/250)
			a.Entries = append(a.Entries, raft.Entry{Index: index, Term: raft.Term(r.number())})
		}
		return a
	case opAppendReply:
		return raft.AppendEntriesReply{
			RequestTerm: raft.Term(r.number()), PrevLogIndex: raft.Index(r.number()),
			Success: r.byte()%2 == 1, MatchIndex: raft.Index(r.number()),
			ConflictTerm: raft.Term(r.number()), ConflictIndex: raft.Index(r.number()),
		}
	}
	return nil
}
