package docs_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/sim"
)

// rebuilt is a node as trace.md says how to rebuild it, from a trace and nothing else.
type rebuilt struct {
	boot    int64 // the event that started it
	log     logFrom
	state   trace.StateRecord
	applied raft.Index
	writes  []pendingWrite // in the order of seq

	diskTerm raft.Term
	diskVote raft.ServerID
	disk     logFrom
}

// logFrom is a log that begins behind an entry: 0, or the end of a snapshot.
type logFrom struct {
	begin   trace.SnapshotRecord
	entries []trace.EntryRecord
}

func (l *logFrom) end() raft.Index { return l.begin.Index + raft.Index(len(l.entries)) }

// term is that of an entry, 0 if there is none.
func (l *logFrom) term(i raft.Index) raft.Term {
	switch {
	case i == l.begin.Index:
		return l.begin.Term
	case i < l.begin.Index || i > l.end():
		return 0
	}
	return l.entries[i-l.begin.Index-1].Term
}

// span returns a copy of some entries.
func (l *logFrom) span(first, last raft.Index) []trace.EntryRecord {
	return slices.Clone(l.entries[first-l.begin.Index-1 : last-l.begin.Index])
}

// put cuts the log before the first of some entries and adds them.
func (l *logFrom) put(entries ...trace.EntryRecord) {
	l.entries = append(l.span(l.begin.Index+1, entries[0].Index-1), entries...)
}

// beginBehind lets the log begin behind a snapshot whose last entry it does not have.
func (l *logFrom) beginBehind(s *trace.SnapshotRecord) {
	if s.Index < l.begin.Index || l.term(s.Index) != s.Term {
		l.begin, l.entries = *s, nil
	}
}

type pendingWrite struct {
	trace.WriteRecord
	entries  []trace.EntryRecord
	finished bool
}

// outsider goes through a trace and says what in it does not fit.
type outsider struct {
	nodes    map[string]*rebuilt
	hashes   map[raft.Index]string
	leaders  map[raft.Term]string
	problems []string
}

func readTrace(run *trace.Trace) []string {
	o := &outsider{
		nodes:  map[string]*rebuilt{},
		hashes: map[raft.Index]string{}, leaders: map[raft.Term]string{},
	}
	for _, name := range run.Header.Nodes {
		o.nodes[name] = &rebuilt{}
	}
	last := trace.Time(0)
	for i := range run.Events {
		e := &run.Events[i]
		if e.ID != int64(i)+1 || e.Cause >= e.ID || e.At < last {
			o.report(e, "it stands at %d, after time %s", i+1, last)
		}
		last = e.At
		if n := o.nodes[e.Node]; n != nil {
			o.follow(n, e)
		}
	}
	return o.problems
}

func (o *outsider) report(e *trace.Event, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	o.problems = append(o.problems, fmt.Sprintf("event %d, %s at %s: %s", e.ID, e.Kind, e.Node, what))
}

// follow does what trace.md says to do with each kind of event.
func (o *outsider) follow(n *rebuilt, e *trace.Event) {
	switch e.Kind {
	case trace.KindStart, trace.KindRestart:
		if s := e.State; e.Kind == trace.KindRestart && (s.Term != n.diskTerm || s.Vote != n.diskVote || s.Last != n.disk.end()) {
			o.report(e, "the disk had %d, %d, entries to %d", n.diskTerm, n.diskVote, n.disk.end())
		}
		*n = rebuilt{boot: e.ID, state: *e.State, diskTerm: e.State.Term, diskVote: e.State.Vote}
		if e.Snapshot != nil {
			n.log.begin, n.disk.begin, n.applied = *e.Snapshot, *e.Snapshot, e.Snapshot.Index
		}
	case trace.KindTrim:
		n.log.beginBehind(e.Snapshot)
	case trace.KindTable:
		n.applied = e.Snapshot.Index
	case trace.KindAppend:
		o.append(n, e)
	case trace.KindState:
		o.becomes(n, e)
	case trace.KindWrite:
		o.write(n, e)
	case trace.KindSaved, trace.KindSynced:
		o.saved(n, e)
	case trace.KindCrash, trace.KindStop:
		n.log = logFrom{}
	case trace.KindApply:
		o.apply(n, e)
	case trace.KindSend:
		m, end := e.Message, n.disk.end()
		if m.Term > n.diskTerm || m.Kind == "append-reply" && m.Success && m.Match > end ||
			m.Kind == "snapshot-reply" && m.Installed && m.LastIndex > end {
			o.report(e, "says %d, %d; its disk %d, %d", m.Term, m.Match, n.diskTerm, end)
		}
	}
}

func (o *outsider) becomes(n *rebuilt, e *trace.Event) {
	n.state = *e.State
	if e.State.Role == "leader" {
		if other := o.leaders[e.State.Term]; other != "" && other != e.Node {
			o.report(e, "%s leads term %d, too", other, e.State.Term)
		}
		o.leaders[e.State.Term] = e.Node
	}
	if e.State.Last != n.log.end() || e.State.LastTerm != n.log.term(e.State.Last) {
		o.report(e, "the log ends at %d, with term %d", n.log.end(), n.log.term(e.State.Last))
	}
}

func (o *outsider) apply(n *rebuilt, e *trace.Event) {
	n.applied++
	i := e.Entry.Index
	if i != n.applied || i > n.state.Applied || e.Entry.Term != n.log.term(i) {
		o.report(e, "entry %d is applied, %d is due, of %d", i, n.applied, n.state.Applied)
	}
	if hash, known := o.hashes[i]; known && hash != e.Entry.Hash {
		o.report(e, "after entry %d the hash is %s, elsewhere %s", i, e.Entry.Hash, hash)
	}
	o.hashes[i] = e.Entry.Hash
}

func (o *outsider) write(n *rebuilt, e *trace.Event) {
	w := pendingWrite{WriteRecord: *e.Write}
	if w.Last > n.log.end() {
		o.report(e, "entry %d is written, the log ends at %d", w.Last, n.log.end())
	} else if w.First > 0 {
		w.entries = n.log.span(w.First, w.Last)
	}
	n.writes = append(n.writes, w)
}

func (o *outsider) append(n *rebuilt, e *trace.Event) {
	if e.Entry.Index > n.log.end()+1 {
		o.report(e, "entry %d, the log ends at %d", e.Entry.Index, n.log.end())
		return
	}
	n.log.put(*e.Entry)
	if e.Cause == n.boot {
		n.disk = n.log
	}
}

func (o *outsider) saved(n *rebuilt, e *trace.Event) {
	for i := range n.writes {
		n.writes[i].finished = n.writes[i].finished || n.writes[i].Seq == e.Write.Seq
	}
	for len(n.writes) > 0 && n.writes[0].finished {
		w := n.writes[0]
		n.writes = n.writes[1:]
		n.diskTerm, n.diskVote = w.Term, w.Vote
		if w.Snapshot != nil {
			n.disk.beginBehind(w.Snapshot)
		}
		if len(w.entries) > 0 && w.First <= n.disk.end()+1 {
			n.disk.put(w.entries...)
		}
	}
	end := n.disk.end()
	if w := e.Write; w.Term != n.diskTerm || w.Vote != n.diskVote || w.Last != end {
		o.report(e, "the disk has %d, %d, %d, not %+v", n.diskTerm, n.diskVote, end, *w)
	}
}

// reread writes a trace to a file's form and reads it again.
func reread(t *testing.T, run *trace.Trace) *trace.Trace {
	t.Helper()
	var file bytes.Buffer
	if _, err := run.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	again, err := trace.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func record(t *testing.T, seed uint64) *trace.Trace {
	t.Helper()
	r, err := sim.Search{Faults: "harsh"}.Run(seed, sim.Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	return reread(t, r.Trace)
}

func TestATraceRebuildsEveryNode(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		for _, problem := range readTrace(record(t, seed)) {
			t.Errorf("raftsim replay -seed %d -faults harsh: %s", seed, problem)
		}
	}
}

func TestATraceFromWhichAnEventIsMissingDoesNot(t *testing.T) {
	kinds := []trace.EventKind{trace.KindAppend, trace.KindWrite, trace.KindSaved, trace.KindApply}
	for _, kind := range kinds {
		run := record(t, 1)
		i := slices.IndexFunc(run.Events, func(e trace.Event) bool {
			return e.Kind == kind && (e.Entry == nil || e.Entry.Command != "")
		})
		run.Events = slices.Delete(run.Events, i, i+1)
		for j := i; j < len(run.Events); j++ {
			e := &run.Events[j]
			e.ID--
			if e.Cause > int64(i) {
				e.Cause--
			}
		}
		if len(readTrace(run)) == 0 {
			t.Errorf("nothing is missed when the first %s is gone", kind)
		}
	}
}
