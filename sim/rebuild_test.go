package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file rebuilds every node from a trace's lines alone and compares it with the world that
// wrote them. That docs/trace.md tells outsiders how to do the same is tested in docs.

// rebuilt is a node as the trace has it.
type rebuilt struct {
	up      bool
	boot    int64 // the event that started it
	state   trace.StateRecord
	log     rebuiltLog
	applied raft.Index
	hash    string
	writes  []rebuiltWrite // handed out and not yet on the disk, oldest first
	disk    rebuiltDisk
	torn    bool // the last crash was, so the disk may hold more than was reported
}

type rebuiltDisk struct {
	term raft.Term
	vote raft.ServerID
	log  rebuiltLog
}

type rebuiltWrite struct {
	trace.WriteRecord
	entries []trace.EntryRecord
	done    bool
}

// rebuiltLog is what a log has behind a snapshot.
type rebuiltLog struct {
	base     raft.Index
	baseTerm raft.Term
	entries  []trace.EntryRecord
}

func (l rebuiltLog) last() raft.Index { return l.base + raft.Index(len(l.entries)) }

func (l rebuiltLog) at(i raft.Index) trace.EntryRecord { return l.entries[i-l.base-1] }

func (l rebuiltLog) term(i raft.Index) raft.Term {
	switch {
	case i == l.base:
		return l.baseTerm
	case i < l.base || i > l.last():
		return 0
	}
	return l.at(i).Term
}

func (l rebuiltLog) terms() (terms []raft.Term) {
	for _, e := range l.entries {
		terms = append(terms, e.Term)
	}
	return terms
}

// store is what a write's entries do to a log.
func (l rebuiltLog) store(entries []trace.EntryRecord) rebuiltLog {
	for len(entries) > 0 && entries[0].Index <= l.base {
		entries = entries[1:]
	}
	if len(entries) > 0 {
		l.entries = append(slices.Clone(l.entries[:entries[0].Index-l.base-1]), entries...)
	}
	return l
}

// behind is what a snapshot does to a log: if its last entry is not there, all of it goes.
func (l rebuiltLog) behind(s *trace.SnapshotRecord) rebuiltLog {
	if s.Index >= l.base && l.term(s.Index) == s.Term {
		return l
	}
	return rebuiltLog{base: s.Index, baseTerm: s.Term}
}

// from returns the entries from an index on.
func (l rebuiltLog) from(first raft.Index) []trace.EntryRecord {
	return l.entries[max(first, l.base+1)-l.base-1:]
}

// follow takes an event of the node. It returns what does not fit.
func (n *rebuilt) follow(e *trace.Event) string {
	switch e.Kind {
	case trace.KindStart, trace.KindRestart:
		problem := ""
		if last := n.disk.log.last(); e.Kind == trace.KindRestart && (e.State.Term != n.disk.term || e.State.Vote != n.disk.vote ||
			e.State.Last != last || e.State.LastTerm != n.disk.log.term(last)) {
			problem = fmt.Sprintf("the disk had term %d, vote %d and entries to %d", n.disk.term, n.disk.vote, last)
		}
		*n = rebuilt{up: true, boot: e.ID, state: *e.State, disk: rebuiltDisk{term: e.State.Term, vote: e.State.Vote}}
		if e.Snapshot != nil {
			n.log = n.log.behind(e.Snapshot)
			n.disk.log, n.applied = n.log, e.Snapshot.Index
		}
		return problem
	case trace.KindCrash, trace.KindStop: // what a torn crash keeps of the writes follows as synced
		n.up, n.torn = false, e.Text == "torn" || e.Text == "some"
		if e.Text == "lost" {
			n.disk = rebuiltDisk{}
		}
	case trace.KindAppend:
		if e.Entry.Index > n.log.last()+1 {
			return fmt.Sprintf("entry %d behind a log that ends at %d", e.Entry.Index, n.log.last())
		}
		n.log = n.log.store([]trace.EntryRecord{*e.Entry})
		if e.Cause == n.boot {
			n.disk.log = n.log
		}
	case trace.KindState:
		n.state = *e.State
		if last := n.log.last(); e.State.Last != last || e.State.LastTerm != n.log.term(last) {
			return fmt.Sprintf("the log ends at %d, with term %d", last, n.log.term(last))
		}
	case trace.KindTrim:
		n.log = n.log.behind(e.Snapshot)
	case trace.KindTable:
		n.applied, n.hash = e.Snapshot.Index, ""
	case trace.KindWrite:
		w := rebuiltWrite{WriteRecord: *e.Write}
		if w.First > 0 {
			w.entries = n.log.entries[w.First-n.log.base-1 : w.Last-n.log.base]
		}
		n.writes = append(n.writes, w)
	case trace.KindSaved, trace.KindSynced:
		return n.saved(e.Write)
	case trace.KindApply:
		n.applied++
		n.hash = e.Entry.Hash
		if was := n.log.at(n.applied); e.Entry.Index != n.applied || e.Entry.Term != was.Term {
			return fmt.Sprintf("entry %d of term %d is applied where %d of term %d stands", e.Entry.Index, e.Entry.Term, n.applied, was.Term)
		}
	}
	return ""
}

func (n *rebuilt) saved(w *trace.WriteRecord) string {
	for i := range n.writes {
		n.writes[i].done = n.writes[i].done || n.writes[i].Seq == w.Seq
	}
	for len(n.writes) > 0 && n.writes[0].done {
		first := n.writes[0]
		n.writes = n.writes[1:]
		if first.Snapshot != nil {
			n.disk.log = n.disk.log.behind(first.Snapshot)
		}
		n.disk = rebuiltDisk{first.Term, first.Vote, n.disk.log.store(first.entries)}
	}
	if w.Term != n.disk.term || w.Vote != n.disk.vote || w.Last != n.disk.log.last() {
		return fmt.Sprintf("the disk has term %d, vote %d, entries to %d", n.disk.term, n.disk.vote, n.disk.log.last())
	}
	return ""
}

// rebuild goes through a trace. It returns the nodes as they are at the end, and what does not fit.
func rebuild(run *trace.Trace) (nodes map[string]*rebuilt, problems []string) {
	nodes = map[string]*rebuilt{}
	for _, name := range run.Header.Nodes {
		nodes[name] = &rebuilt{}
	}
	last := trace.Time(0)
	for i := range run.Events {
		e := &run.Events[i]
		report := func(problem string) {
			if problem != "" {
				problems = append(problems, fmt.Sprintf("event %d, %s of %s: %s", e.ID, e.Kind, e.Node, problem))
			}
		}
		if e.ID != int64(i)+1 || e.Cause >= e.ID || e.Cause < 0 || e.At < last {
			report(fmt.Sprintf("it stands at %d, its cause is %d, it is after %s", i+1, e.Cause, last))
			continue
		}
		last = e.At
		report(arrival(run, e))
		if n := nodes[e.Node]; n != nil {
			report(n.follow(e))
		}
	}
	return nodes, problems
}

// arrival checks that what arrives, or is lost, is what was sent.
func arrival(run *trace.Trace, e *trace.Event) string {
	switch e.Kind {
	case trace.KindReceive, trace.KindLost, trace.KindResource:
	case trace.KindAnswer:
		if e.Client.Status == stateNothing {
			return "" // nothing came: it has no token to use
		}
	default:
		return ""
	}
	if e.Cause == 0 {
		return "nobody sent it"
	}
	sent := &run.Events[e.Cause-1]
	if linkOf(sent) == "" {
		return fmt.Sprintf("its cause is a %s", sent.Kind)
	}
	if e.Message != nil && !cmp.Equal(e.Message, sent.Message) {
		return "another message was sent: " + cmp.Diff(sent.Message, e.Message)
	}
	if c := e.Client; c != nil && (c.Op != sent.Client.Op || c.Key != sent.Client.Key || c.Seq != sent.Client.Seq ||
		c.Attempt != sent.Client.Attempt || c.Token != sent.Client.Token) {
		return "something else was sent: " + cmp.Diff(sent.Client, c)
	}
	return ""
}

// compare looks for differences between a node and what was rebuilt of it.
func (n *rebuilt) compare(is *node) string {
	want := rebuiltDisk{is.disk.durable.Term, is.disk.durable.VotedFor, rebuiltLog{}}
	got := rebuiltDisk{n.disk.term, n.disk.vote, rebuiltLog{}}
	switch {
	case n.up != is.alive:
		return fmt.Sprintf("it is alive: %v", is.alive)
	case !n.torn && (got.term != want.term || got.vote != want.vote ||
		!sameLog(n.disk.log.from(is.disk.base()+1), is.disk.durable.Entries)):
		return fmt.Sprintf("its disk has term %d, vote %d, log %v, rebuilt %d, %d, %v",
			want.term, want.vote, is.disk.durable.Entries, got.term, got.vote, n.disk.log.terms())
	case !n.up:
		return ""
	case n.state != *trace.OfStatus(is.status):
		return cmp.Diff(*trace.OfStatus(is.status), n.state)
	case !sameLog(n.log.from(is.replica.Core().FirstIndex()), is.entries()):
		return fmt.Sprintf("its log is not %v", n.log.terms())
	case n.hash != "" && n.hash != strconv.FormatUint(is.replica.Table().Hash(), 16):
		return "its table has another hash"
	}
	return ""
}

func sameLog(log []trace.EntryRecord, entries []raft.Entry) bool {
	return slices.EqualFunc(log, entries, func(a trace.EntryRecord, b raft.Entry) bool {
		return a.Index == b.Index && a.Term == b.Term && a.Command == string(b.Command) &&
			a.Members == trace.MembersText(b.Members)
	})
}

// throughAFile writes a trace and reads it again.
func throughAFile(t *testing.T, run *trace.Trace) *trace.Trace {
	t.Helper()
	var file bytes.Buffer
	n, err := run.WriteTo(&file)
	if err != nil || n != int64(file.Len()) {
		t.Fatalf("%d bytes counted, %d written, %v", n, file.Len(), err)
	}
	again, err := trace.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// checkRebuild compares a world with what its trace says.
func checkRebuild(t *testing.T, w *World) {
	t.Helper()
	nodes, problems := rebuild(throughAFile(t, w.trace))
	for _, n := range w.nodes {
		if problem := nodes[string(n.name)].compare(n); problem != "" {
			problems = append(problems, fmt.Sprintf("at the end, %s: %s", n.name, problem))
		}
	}
	for _, problem := range problems {
		t.Errorf("%s, seed %d: %s", w.trace.Header.Scenario, w.seed, problem)
	}
}

func prepared(t *testing.T, s *Scenario) *World {
	t.Helper()
	w, err := prepareRun(s, Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestEveryScenariosTraceRebuildsItsWorld(t *testing.T) {
	t.Parallel()
	for _, s := range Library() {
		w := prepared(t, s)
		if err := w.play(s, false); err != nil {
			t.Fatalf("%s: %v %v", s.Name, err, w.broken)
		}
		checkRebuild(t, w)
	}
}

// Half way through and at the end: half way, nodes are down and writes under way.
func TestARandomRunsTraceRebuildsItsWorld(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= wide(12, 60); seed++ {
		s, err := Plan(seed, "harsh", 0)
		if err != nil {
			t.Fatal(err)
		}
		w := prepared(t, s)
		if err := w.start(); err != nil {
			t.Fatal(err)
		}
		for _, line := range s.Lines {
			if _, ok := line.Command.(RunFor); ok {
				w.advance(chaosEnd / 2)
				checkRebuild(t, w)
			}
			if err := w.do(line.Command); err != nil || w.halted {
				t.Fatal(err, w.broken)
			}
		}
		checkRebuild(t, w)
	}
}

func TestAWorldThatDiffersFromItsTraceIsNoticed(t *testing.T) {
	for what, change := range map[string]func(n *node){
		"term":  func(n *node) { n.status.Term++ },
		"disk":  func(n *node) { n.disk.durable.VotedFor = 3 },
		"log":   func(n *node) { n.disk.durable.Entries = n.disk.durable.Entries[1:] },
		"alive": func(n *node) { n.alive = false },
	} {
		w := played(t, busy)
		change(w.nodes[1])
		nodes, _ := rebuild(w.trace)
		if nodes["S2"].compare(w.nodes[1]) == "" {
			t.Errorf("another %s was not noticed", what)
		}
	}
}

func TestATraceIsReadAsItWasWritten(t *testing.T) {
	w := played(t, busy)
	if diff := cmp.Diff(w.trace, throughAFile(t, w.trace)); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}
