package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// file is a trace's file in memory.
type file struct {
	mu   sync.Mutex
	text []byte
}

func (f *file) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text = append(f.text, b...)
	return len(b), nil
}

func (f *file) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.text) == 0
}

func (f *file) read(t *testing.T) *trace.Trace {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	run, err := trace.Read(bytes.NewReader(f.text))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// tracedCluster starts three servers on loopback that write down what they do, into so many files.
// The function that it returns stops them, and then the files are whole.
func tracedCluster(t *testing.T, count int, change ...func(*Config)) (*cluster, []*file, func()) {
	t.Helper()
	noGoroutineStays(t)
	c := bareCluster(t)
	c.config.ElectionTimeout, c.config.HeartbeatTimeout = testElection, testHeartbeat
	for _, what := range change {
		what(&c.config)
	}
	var files []*file
	var recorders []*trace.Recorder
	for range count {
		f := &file{}
		r := trace.NewRecorder(f, func(err error) { t.Error(err) })
		files, recorders = append(files, f), append(recorders, r)
	}
	stop := func() {
		for id := range c.nodes {
			c.stop(id)
		}
		for _, r := range recorders {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	listeners := map[raft.ServerID]net.Listener{}
	for id := raft.ServerID(1); id <= 3; id++ {
		listeners[id] = listen(t, "127.0.0.1:0")
		c.addrs[id] = listeners[id].Addr().String()
	}
	for id := raft.ServerID(1); id <= 3; id++ {
		c.config.Trace = recorders[int(id)%count]
		c.start(id, listeners[id])
	}
	return c, files, stop
}

// story takes, hands over, gives back and forgets locks, and starts a follower again.
func story(t *testing.T, c *cluster) {
	t.Helper()
	a, b, d := c.client(t, "A"), c.client(t, "B"), c.client(t, "D")
	first := lock(t, a, "door", 4*c.lease())
	second := make(chan error)
	go func() {
		_, err := b.Lock(within(t), "door", c.lease())
		second <- err // B forgets to give it back
	}()
	leader := c.leader()
	eventually(t, "B waits", func() bool { return grants(c.nodes[leader]) == 1 })
	impatient, leave := context.WithCancel(within(t))
	gone := make(chan error)
	go func() {
		_, err := d.Lock(impatient, "door", c.lease())
		gone <- err
	}()
	eventually(t, "D waits behind B", func() bool { return grants(c.nodes[leader]) == 2 })
	leave()
	if err := <-gone; err == nil {
		t.Fatal("D has what A has")
	}
	eventually(t, "D has left", func() bool { return grants(c.nodes[leader]) == 1 })
	if err := first.Unlock(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	follower := leader%3 + 1
	c.stop(follower)
	c.restart(follower)
	eventually(t, "B's lease is over", func() bool {
		id, ok := c.agreed()
		free, _ := look(c.nodes[max(id, 1)], func(r *fsm.Replica) bool { return r.Table().Len() == 0 })
		return ok && free
	})
}

// heard is a node as its part of a trace has it.
type heard struct {
	State   trace.StateRecord
	Begin   trace.SnapshotRecord // what the log begins behind
	Log     []trace.EntryRecord
	Hash    string
	Stopped bool

	boot    int64
	applied raft.Index
	writes  []recorded
	disk    trace.WriteRecord
}

func (n *heard) end() raft.Index { return n.Begin.Index + raft.Index(len(n.Log)) }

// term is that of an entry, or of the one behind which the log begins.
func (n *heard) term(i raft.Index) raft.Term {
	if i <= n.Begin.Index || i > n.end() {
		return n.Begin.Term
	}
	return n.Log[i-n.Begin.Index-1].Term
}

// begin lets the log begin behind a snapshot. What follows its last entry stays if that is there.
func (n *heard) begin(s trace.SnapshotRecord) {
	if s.Index >= n.Begin.Index && s.Index <= n.end() && n.term(s.Index) == s.Term {
		n.Log = n.Log[s.Index-n.Begin.Index:]
	} else {
		n.Log = nil
	}
	n.Begin = s
}

// rebuild follows a trace as docs/trace.md says, and reports what does not fit.
func rebuild(t *testing.T, run *trace.Trace) map[string]*heard {
	nodes := map[string]*heard{}
	for _, name := range run.Header.Nodes {
		nodes[name] = &heard{}
	}
	hashes := map[raft.Index]string{}
	last := trace.Time(0)
	for i := range run.Events {
		e := &run.Events[i]
		if e.ID != int64(i)+1 || e.At < last || e.Cause >= e.ID {
			t.Errorf("event %d at %s has cause %d; it is the %dth, after %s",
				e.ID, e.At, e.Cause, i+1, last)
		}
		last = e.At
		if problem := nodes[e.Node].follow(e); problem != "" {
			t.Errorf("event %d, %s of %s: %s", e.ID, e.Kind, e.Node, problem)
		}
		if e.Kind == trace.KindApply {
			if hash, known := hashes[e.Entry.Index]; known && hash != e.Entry.Hash {
				t.Errorf("event %d: entry %d has made another table elsewhere", e.ID, e.Entry.Index)
			}
			hashes[e.Entry.Index] = e.Entry.Hash
		}
	}
	return nodes
}

func (n *heard) follow(e *trace.Event) string {
	switch e.Kind {
	case trace.KindStart:
		*n = heard{State: *e.State, boot: e.ID}
		n.disk.Term, n.disk.Vote = e.State.Term, e.State.Vote
		if e.Snapshot != nil {
			n.begin(*e.Snapshot)
			n.applied, n.disk.Last, n.disk.Snapshot = n.Begin.Index, n.Begin.Index, e.Snapshot
		}
	case trace.KindAppend:
		if e.Entry.Index > n.end()+1 || e.Entry.Index <= n.Begin.Index {
			return fmt.Sprintf("the log goes from %d to %d", n.Begin.Index+1, n.end())
		}
		entry := trace.EntryRecord{Index: e.Entry.Index, Term: e.Entry.Term, Command: e.Entry.Command}
		at := e.Entry.Index - n.Begin.Index - 1
		n.Log = append(n.Log[:at:at], entry)
		if e.Cause == n.boot {
			n.disk.Last = e.Entry.Index
		}
	case trace.KindState:
		return n.becomes(e)
	case trace.KindTrim:
		n.begin(*e.Snapshot)
	case trace.KindTable:
		n.applied, n.Hash = e.Snapshot.Index, ""
	case trace.KindWrite:
		n.writes = append(n.writes, recorded{*e.Write, n.end()})
	case trace.KindSaved:
		return n.saved(e.Write)
	case trace.KindApply:
		n.applied++
		n.Hash = e.Entry.Hash
		if i := e.Entry.Index; i != n.applied || i > n.State.Applied || e.Entry.Term != n.term(i) {
			return fmt.Sprintf("entry %d of term %d is applied, %d is due", i, e.Entry.Term, n.applied)
		}
	case trace.KindSend:
		m := e.Message
		if m.Term > n.disk.Term || m.Kind == trace.AppendReply && m.Success && m.Match > n.disk.Last ||
			m.Kind == trace.SnapshotReply && m.Installed && m.LastIndex > n.disk.Last {
			return fmt.Sprintf("it says term %d, match %d; its disk %d, %d",
				m.Term, m.Match, n.disk.Term, n.disk.Last)
		}
	case trace.KindStop:
		n.Stopped = true
	}
	return ""
}

func (n *heard) becomes(e *trace.Event) string {
	if *e.State == n.State {
		return "nothing has changed"
	}
	n.State = *e.State
	if last := n.end(); n.State.Last != last || n.State.LastTerm != n.term(last) {
		return fmt.Sprintf("the log ends at %d, with term %d", last, n.term(last))
	}
	return ""
}

func (n *heard) saved(w *trace.WriteRecord) string {
	if len(n.writes) == 0 || n.writes[0].Seq != w.Seq {
		return fmt.Sprintf("write %d was not the next", w.Seq)
	}
	done := n.writes[0]
	n.writes = n.writes[1:]
	n.disk.Term, n.disk.Vote, n.disk.Last = done.Term, done.Vote, done.end
	if done.Snapshot != nil {
		n.disk.Snapshot = done.Snapshot
	}
	n.disk.Seq = w.Seq
	return cmp.Diff(&n.disk, w)
}

// says is what a node says of itself.
func says(n *Node) (heard, bool) {
	return look(n, func(r *fsm.Replica) heard {
		status := r.Core().Status()
		h := heard{State: *trace.OfStatus(status)}
		if s := r.Core().Snapshot(); s != nil {
			h.Begin = *trace.OfSnapshot(s)
		}
		for _, e := range r.Core().Entries(h.Begin.Index+1, status.LastIndex) {
			h.Log = append(h.Log, trace.OfEntry(e))
		}
		if status.LastApplied > 0 {
			h.Hash = strconv.FormatUint(r.Table().Hash(), 16)
		}
		return h
	})
}

func merged(t *testing.T, files []*file) *trace.Trace {
	t.Helper()
	var runs []*trace.Trace
	for _, f := range files {
		runs = append(runs, f.read(t))
	}
	run, _, err := trace.Merge(runs)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestARealClustersTraceRebuildsEveryNode(t *testing.T) {
	for _, count := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d files", count), func(t *testing.T) {
			c, files, stop := tracedCluster(t, count)
			story(t, c)
			theTraceSaysSo(t, c, files)
			stop()
			whole := merged(t, files)
			rebuild(t, whole)
			checkTold(t, whole)
		})
	}
}

// theTraceSaysSo waits until the trace says of each node what it says itself.
func theTraceSaysSo(t *testing.T, c *cluster, files []*file) {
	t.Helper()
	diff := ""
	defer func() {
		if diff != "" {
			t.Log("(-node +trace):\n", diff)
		}
	}()
	eventually(t, "the trace says of each node what it says itself", func() bool {
		diff = ""
		of := rebuild(t, merged(t, files))
		for id, n := range c.nodes {
			want, ok := says(n)
			got := of[trace.NodeName(id)]
			if !ok || t.Failed() {
				t.Fatal("it has failed")
			}
			told := heard{State: got.State, Begin: got.Begin, Log: got.Log, Hash: got.Hash}
			diff += cmp.Diff(want, told, cmp.AllowUnexported(heard{}), cmpopts.EquateEmpty())
		}
		return diff == ""
	})
}

// Snapshots are in it too: those that servers take, and one that a leader sends.
func TestARealClustersTraceTellsOfSnapshots(t *testing.T) {
	c, files, stop := tracedCluster(t, 1, compacting(20, 1))
	k := c.client(t, "A")
	away := c.leader()%3 + 1
	cycles(t, k, 15)
	c.stop(away)
	cycles(t, k, 60)
	c.restart(away)
	cycles(t, k, 3)
	goal, _ := applied(c.nodes[c.leader()])
	eventually(t, "it has caught up", func() bool {
		now, _ := applied(c.nodes[away])
		return now >= goal
	})
	cycles(t, k, 1)
	theTraceSaysSo(t, c, files)
	stop()
	seen := map[string]int{}
	for _, e := range merged(t, files).Events {
		seen[string(e.Kind)+" "+e.Rule]++
		if e.Message != nil {
			seen[e.Message.Kind]++
		}
		if e.Cause == 0 && slices.Contains([]trace.EventKind{
			trace.KindTrim, trace.KindTable, trace.KindKeep}, e.Kind) {
			t.Errorf("event %d, %s, comes from nothing", e.ID, e.Kind)
		}
	}
	for _, what := range []string{
		"kept ", "keep ", "trim Snapshot.Save", "trim Snapshot.Suffix", "table ", "snapshot", "snapshot-reply",
	} {
		if seen[what] == 0 {
			t.Errorf("there is no %q among %v", what, seen)
		}
	}
}

// On a real clock a lease may run out just as a heartbeat is due, and the trace tells the heartbeat.
func TestALeaseThatRunsOutBetweenTwoHeartbeatsIsAWakeInTheTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := bubbleCluster(t, 0), &file{}
		r := trace.NewRecorder(f, func(err error) { t.Error(err) })
		c.config.Trace = r
		for id := range c.addrs {
			c.start(id, c.net.listen(name(id)))
		}
		c.leader()
		time.Sleep(2 * heartbeat)
		lease := 100*heartbeat + heartbeat/3
		lock(t, c.client(t, "A"), "door", lease)
		time.Sleep(lease + 2*heartbeat)
		for id := range c.nodes {
			c.stop(id)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		wakes := 0
		for _, e := range merged(t, []*file{f}).Events {
			if e.Kind == trace.KindWake {
				wakes++
			}
		}
		if wakes != 1 {
			t.Errorf("%d wakes in the trace", wakes)
		}
	})
}

// checkTold checks that everything of the story is in its trace.
func checkTold(t *testing.T, run *trace.Trace) {
	t.Helper()
	seen := map[string]int{}
	for i := range run.Events {
		e := &run.Events[i]
		seen[string(e.Kind)]++
		switch {
		case e.Kind == trace.KindSend:
			checkNumber(t, run, e)
		case e.Kind == trace.KindReceive && e.Message != nil:
			seen["receive "+e.Message.Kind]++
			checkSent(t, run, e)
		case e.Kind == trace.KindReceive:
			seen[e.Client.Op]++
		case e.Kind == trace.KindReply:
			seen["reply "+e.Client.Status]++
		case e.Kind == trace.KindApply:
			result, _, _ := strings.Cut(e.Entry.Result, "{")
			seen[result]++
		case e.Kind == trace.KindAppend && e.Entry.Cause != "":
			seen["for "+e.Entry.Cause]++
			checkProposed(t, run, e)
		}
		if e.Cause == 0 && slices.Contains([]trace.EventKind{
			trace.KindAppend, trace.KindState, trace.KindWrite, trace.KindApply,
			trace.KindSend, trace.KindReply,
		}, e.Kind) {
			t.Errorf("event %d, %s, comes from nothing", e.ID, e.Kind)
		}
	}
	for _, what := range []string{
		"start", "stop", "election-timeout", "heartbeat-timeout", "saved", "state", "write",
		"receive vote", "receive vote-reply", "receive append", "receive append-reply",
		"grant", "release", "disconnect", "reply answered", "for client", "for lease",
		"Granted", "Released", "Expired",
	} {
		if seen[what] == 0 {
			t.Errorf("there is no %s among %v", what, seen)
		}
	}
}

// checkNumber checks that a request's number begins with the time of the start, so that a restart
// repeats none.
func checkNumber(t *testing.T, run *trace.Trace, e *trace.Event) {
	t.Helper()
	if e.Message.Kind != trace.Append && e.Message.Kind != trace.Vote {
		return
	}
	at := int64(run.Header.Zero + e.At)
	if ago := at - int64(e.Message.Call); ago < 0 || ago > 4*patience.Microseconds() {
		t.Errorf("event %d has number %d, at %d", e.ID, e.Message.Call, at)
	}
}

func checkSent(t *testing.T, run *trace.Trace, e *trace.Event) {
	t.Helper()
	if e.Cause == 0 || run.Events[e.Cause-1].Kind != trace.KindSend {
		t.Errorf("event %d: nobody has sent %+v", e.ID, e.Message)
	} else if diff := cmp.Diff(run.Events[e.Cause-1].Message, e.Message); diff != "" {
		t.Errorf("event %d: it was sent otherwise (-sent +received):\n%s", e.ID, diff)
	}
}

func checkProposed(t *testing.T, run *trace.Trace, e *trace.Event) {
	t.Helper()
	command := e.Entry.Command
	removes := strings.Contains(command, "expire ") || strings.Contains(command, "release ")
	if e.Rule != "Leaders.2" {
		t.Errorf("event %d: a proposal is appended by rule %q", e.ID, e.Rule)
	}
	if removes && e.Entry.Meant == 0 {
		t.Errorf("event %d: %q is meant for no token", e.ID, command)
	}
	cause := run.Events[e.Cause-1].Kind
	clock := cause == trace.KindWake || cause == trace.KindHeartbeatTimeout
	if e.Entry.Cause == "lease" && !clock {
		t.Errorf("event %d: a lease's end is proposed because of a %s", e.ID, cause)
	}
}

func TestInputsThatAreTakenTogetherSayThatThereIsMore(t *testing.T) {
	w := &witness{}
	if a, b := w.input(trace.Event{}), w.input(trace.Event{}); a != 1 || b != 2 {
		t.Errorf("the places are %d and %d", a, b)
	}
	w.follows(trace.Event{}, 1)
	if b := w.batch; !b[0].More || b[1].More || b[2].More || b[2].Cause != 1 {
		t.Errorf("the batch is %+v", b)
	}
}

// One Take may serve several inputs.
func TestAnEntryComesFromTheInputThatBroughtIt(t *testing.T) {
	entry := raft.Entry{Index: 7, Term: 2}
	entries := []trace.EntryRecord{{Index: 6, Term: 2}, {Index: 7, Term: 2}}
	brings := &trace.MessageRecord{Entries: entries}
	inputs := []trace.Event{{}, {}, {Message: brings}, {Message: &trace.MessageRecord{}}, {}}
	w := &witness{clock: 1, wishes: map[wishID]int{{5, 9}: 2}}
	asked := func(cause fsm.Cause, client fsm.ClientID, seq uint64) *fsm.Proposed {
		return &fsm.Proposed{Cause: cause, Envelope: fsm.Envelope{Client: client, Seq: seq}}
	}
	for _, c := range []struct {
		name  string
		entry raft.Entry
		p     *fsm.Proposed
		want  int
	}{
		{"of a lease", entry, asked(fsm.ForLease, 0, 0), 1},
		{"of a request that is here", entry, asked(fsm.ForClient, 5, 9), 2},
		{"of one that has waited", entry, asked(fsm.ForClient, 5, 8), 5},
		{"of a client that has left", entry, asked(fsm.ForCleanup, 0, 0), 5},
		{"of a leader", entry, nil, 3},
		{"of one's own term", raft.Entry{Index: 7, Term: 3}, nil, 5},
	} {
		if got := w.origin(c.entry, c.p, inputs); got != c.want {
			t.Errorf("an entry %s comes from input %d, not %d", c.name, got, c.want)
		}
	}
}

// full is a file that takes some lines and then no more.
type full struct{ room int }

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestANodeWhoseTraceCannotBeWrittenGoesOn(t *testing.T) {
	noGoroutineStays(t)
	c := bareCluster(t)
	c.config.ElectionTimeout, c.config.HeartbeatTimeout = testElection, testHeartbeat
	said := make(chan error, 10)
	c.config.Trace = trace.NewRecorder(&full{2000}, func(err error) { said <- err })
	listeners := map[raft.ServerID]net.Listener{}
	for id := raft.ServerID(1); id <= 3; id++ {
		listeners[id] = listen(t, "127.0.0.1:0")
		c.addrs[id] = listeners[id].Addr().String()
	}
	for id, l := range listeners {
		c.start(id, l)
	}
	c.leader()
	if err := <-said; !errors.Is(err, errFull) {
		t.Errorf("it says %v", err)
	}
	k := c.client(t, "A")
	for range 3 {
		if err := lock(t, k, "door", c.lease()).Unlock(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.config.Trace.Close(); !errors.Is(err, errFull) || len(said) != 0 {
		t.Errorf("closing says %v; said once more: %d", err, len(said))
	}
}
