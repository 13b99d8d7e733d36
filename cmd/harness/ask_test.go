package main

import (
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/rpc"
)

// S1 is cut off and believes that it leads. The others have ended A's lease, and S1 has not heard
// of it: what it tells by itself is old. With a snapshot the log is short, and the answer is the
// same.
func TestAReadAtADeposedLeaderWaitsUntilItCanBeTrue(t *testing.T) {
	t.Parallel()
	code, out := conclusive(t, "", file(t, "config election=300ms heartbeat=50ms checkquorum=off",
		"timeout S1", "until leader S1 term=1", "A: acquire door lease=500ms",
		"until A granted token=1 within 1s", "until holder door A at * within 1s",
		"isolate S1", "until count leaders >= 2 within 5s", "until count expire.existed = 1 within 5s",
		"expect holder door A at S1", "read S1", "run 1500ms",
		"expect S1 read=waiting role=leader term=1",
		"heal", "until S1 read=answered within 4s", "expect free door at S1", "expect count reads = 1",
	))
	if code != exitHeld {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func TestATransferIsRefusedOrGivenUpAndTheLeaderGoesOn(t *testing.T) {
	t.Parallel()
	code, out := conclusive(t, "", file(t, "config election=600ms heartbeat=50ms", "timeout S1",
		"until leader S1 term=1", "until converged within 1s", "transfer S1 S1", "transfer S2 S1",
		"until count transfers.refused = 2 within 1s", "crash S3", "propose S1 one", "expect S1 last=2",
		"transfer S1 S3",
		"until count transfers.given-up = 1 within 2s", "propose S1 two", "until S2 commit=3 within 2s",
		"expect leader S1 term=1", "expect count transfers.done = 0",
	))
	if code != exitHeld {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// A server that has joined starts again from a snapshot that names it, though nobody tells it of
// others.
func TestServersComeAndGoWhileLogsAreCut(t *testing.T) {
	t.Parallel()
	code, out := conclusive(t, "", file(t, "nodes 2 learners 1",
		"config election=600ms heartbeat=50ms snapshot=4 keep=1", "timeout S1", "until leader S1 term=2",
		"expect S3 members=S1,S2+S3 log=1,2", "until converged within 1s", "promote S3",
		"until S3 members=S1,S2,S3 within 2s", "propose S1 one", "propose S1 two", "propose S1 three",
		"until count snapshots >= 3 within 2s", "add S4", "until S4 members=S1,S2,S3,S4 within 3s",
		"expect count snapshots.restored = 1", "until S4 applied=8 within 1s", "snapshot S4",
		"expect S4 log=none", "crash S4", "restart S4", "expect S4 members=S1,S2,S3,S4 log=none",
		"remove S2", "until S4 members=S1,S3,S4 within 2s", "until converged within 2s",
		"expect count members.changed = 5", "expect count members.refused = 0",
		"expect S2 members=S1,S3,S4",
	))
	if code != exitHeld {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func TestALogKeepsWhatStandsBehindASnapshotThatItHasTheLastEntryOf(t *testing.T) {
	entries := func(terms ...raft.Term) (all []trace.EntryRecord) {
		for i, term := range terms {
			all = append(all, trace.EntryRecord{Index: raft.Index(i + 1), Term: term})
		}
		return all
	}
	for name, c := range map[string]struct {
		behind, snapshot trace.SnapshotRecord
		want             int
	}{
		"its entry":          {snapshot: trace.SnapshotRecord{Index: 2, Term: 1}, want: 2},
		"its last entry":     {snapshot: trace.SnapshotRecord{Index: 4, Term: 2}},
		"another's entry":    {snapshot: trace.SnapshotRecord{Index: 2, Term: 3}},
		"beyond its end":     {snapshot: trace.SnapshotRecord{Index: 9, Term: 2}},
		"the same once more": {trace.SnapshotRecord{Index: 2, Term: 1}, trace.SnapshotRecord{Index: 2, Term: 1}, 2},
	} {
		l := logged{entries: entries(1, 1, 2, 2)}
		if c.behind.Index > 0 {
			l.trim(c.behind)
		}
		l.trim(c.snapshot)
		if len(l.entries) != c.want || l.behind != c.snapshot {
			t.Errorf("%s: %d entries behind %+v", name, len(l.entries), l.behind)
		}
	}
	l := logged{entries: entries(1, 1, 2, 2)}
	l.trim(trace.SnapshotRecord{Index: 2, Term: 1})
	for index, fits := range map[raft.Index]bool{2: false, 3: true, 5: true, 6: false} {
		m := l
		if err := m.put([]trace.EntryRecord{{Index: index, Term: 3}}); (err == nil) != fits {
			t.Errorf("entry %d behind entry 2 and two more: %v", index, err)
		}
		if d := diff.Diff(entries(1, 1, 2, 2)[2:], l.entries); d != "" {
			t.Errorf("another log has changed with it: %s", d)
		}
	}
}

func TestOnlyWhatWasSoSinceTheQuestionIsAnAnswer(t *testing.T) {
	v := newView(1)
	for i, command := range []string{"- grant 10 a", "- grant 10 b", "- expire 1 a"} {
		v.history = append(v.history, trace.EntryRecord{Index: raft.Index(i + 1), Command: command})
	}
	a, b := rpc.Info{Key: "a", Token: 1}, rpc.Info{Key: "b", Token: 2}
	for name, c := range map[string]struct {
		floor raft.Index
		locks []rpc.Info
		want  bool
	}{
		"as it was then":  {2, []rpc.Info{a, b}, true},
		"as it was later": {2, []rpc.Info{b}, true},
		"too old":         {2, []rpc.Info{a}, false},
		"old by an entry": {3, []rpc.Info{a, b}, false},
		"never so":        {0, []rpc.Info{{Key: "a", Token: 2}}, false},
		"another key":     {0, []rpc.Info{{Key: "c", Token: 1}}, false},
		"nothing yet":     {0, nil, true},
	} {
		if right, err := v.everHeld(c.floor, c.locks); err != nil || right != c.want {
			t.Errorf("%s: %t, %v", name, right, err)
		}
	}
}
