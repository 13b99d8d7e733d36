package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// A scenario that holds by the luck of its seed shows nothing.
func TestScenariosAboutSnapshotsHoldOnManySeeds(t *testing.T) {
	ran := 0
	for _, s := range Library() {
		if !strings.HasPrefix(s.Name, "snapshot-") {
			continue
		}
		ran++
		for seed := uint64(1); seed <= 40; seed++ {
			r, err := Run(s, Options{Seed: &seed, Deep: seed <= 4})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Held() || r.Count("snapshots")+r.Count("snapshots.installed") == 0 {
				t.Errorf("%s, seed %d: %v, %v", s.Name, seed, r.Failure, r.Unexpected())
			}
		}
	}
	if ran < 11 {
		t.Errorf("there are only %d", ran)
	}
}

// Whoever comes back while the others go on is sent one snapshot, or two if it was too late for what
// followed on the first. Here the leader takes another one several times before the first is through: a
// leader that went over to the latest each time would never be done.
func TestAServerThatWasAwayCatchesUpWithAtMostTwoSnapshots(t *testing.T) {
	var all, most int64
	for seed := uint64(1); seed <= 40; seed++ {
		sent, behind := catchesUp(t, seed, "keep=40")
		if sent > 2 || behind > 3 {
			t.Errorf("seed %d: S3 was sent %d snapshots, and is %d entries behind", seed, sent, behind)
		}
		all, most = all+sent, max(most, sent)
	}
	t.Logf("%d snapshots in 40 runs, at most %d in one", all, most)
	if all < 40 {
		t.Errorf("%d snapshots were sent in 40 runs: too few to show anything", all)
	}
}

// What is appended while a snapshot is on its way must still be there when it has come. A leader that
// keeps no entries before its snapshot's end sends one after another, and each comes too late.
func TestWithoutEntriesBeforeItsEndASnapshotComesTooLate(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		if sent, behind := catchesUp(t, seed, ""); sent <= 2 || behind <= 3 {
			t.Errorf("seed %d: S3 was sent %d snapshots, and is %d entries behind", seed, sent, behind)
		}
	}
}

// catchesUp returns how many snapshots a server was sent before it had caught up, or in five seconds,
// and how far behind it is then.
func catchesUp(t *testing.T, seed uint64, config string) (sent int64, behind raft.Index) {
	t.Helper()
	w := newAway(t, seed, config)
	leader, s3 := w.nodes[0], w.nodes[2]
	before := w.counters[countSnapshotsSent]
	for limit := w.now + 5*trace.Second; s3.status.CommitIndex+3 < leader.status.CommitIndex && w.next(limit); {
	}
	return w.counters[countSnapshotsSent] - before, leader.status.CommitIndex - min(s3.status.CommitIndex, leader.status.CommitIndex)
}

// newAway is a world in which S3 has just come back, while entries are proposed all the time.
func newAway(t *testing.T, seed uint64, config string) *World {
	t.Helper()
	var lines strings.Builder
	fmt.Fprintf(&lines, "seed %d\nconfig election=300ms snapshot=10 chunk=2 %s\nnetwork delay=1ms..20ms\n", seed, config)
	lines.WriteString("timeout S1\nuntil leader S1\nuntil converged\nisolate S3\n")
	for ms := 300; ms < 10_000; ms += 25 {
		fmt.Fprintf(&lines, "at %dms propose S1 x%d\n", ms, ms)
	}
	lines.WriteString("run 4s\nheal\n")
	w := prepared(t, scenario(t, lines.String()))
	for _, line := range scenario(t, lines.String()).Lines {
		if line.Command == nil {
			continue
		}
		if w.nodes[0].boots == 0 && endsSetUp(line.Command) {
			if err := w.start(); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.do(line.Command); err != nil || w.halted {
			t.Fatal(err, w.broken)
		}
	}
	if w.leader() != w.nodes[0] || w.nodes[2].status.LastIndex+20 > w.nodes[0].replica.Core().FirstIndex() {
		t.Fatalf("seed %d: S3 does not need a snapshot", seed)
	}
	return w
}

// A share of the runs has servers that take snapshots by themselves, of each kind.
func TestTheSearchDrawsWhenServersTakeSnapshots(t *testing.T) {
	var by, kept, cut, commanded int
	const runs = 400
	for seed := uint64(1); seed <= runs; seed++ {
		s, err := Plan(seed, "harsh", 0)
		if err != nil {
			t.Fatal(err)
		}
		told := false
		for _, line := range s.Lines {
			switch c := line.Command.(type) {
			case SetConfig:
				by, kept, cut = by+count01(c.SnapshotEvery != nil), kept+count01(c.Keep > 0), cut+count01(c.Chunk > 0)
			case At:
				_, snapshot := c.Command.(Compact)
				told = told || snapshot
			}
		}
		commanded += count01(told)
	}
	if by < runs/2 || by > 3*runs/4 || kept < runs/8 || cut < runs/8 || commanded < runs/3 || commanded > 2*runs/3 {
		t.Errorf("of %d runs %d take snapshots by themselves, %d keep entries, %d send parts, in %d a line asks for some",
			runs, by, kept, cut, commanded)
	}
}

func count01(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// logOnDisk is a disk with a log of some terms, all of it durable.
func logOnDisk(terms ...raft.Term) *disk {
	d := &disk{}
	d.store(&unsynced{Write: raft.Write{HardState: raft.HardState{Term: 9}, Entries: log("", terms...)}})
	return d
}

func marker(index raft.Index, term raft.Term) *unsynced {
	return &unsynced{
		Write:   raft.Write{HardState: raft.HardState{Term: 9}, Snapshot: &raft.Snapshot{LastIncludedIndex: index, LastIncludedTerm: term}},
		history: []uint64{1, 2, 3, 4, 5, 6}[:index],
	}
}

func TestADisksLogBeginsBehindASnapshotAndKeepsWhatFollowsOnIt(t *testing.T) {
	for name, c := range map[string]struct {
		index raft.Index
		term  raft.Term
		want  string
	}{
		"the last entry is there":       {2, 1, "2,2"},
		"it is the last of all":         {4, 2, "none"},
		"another entry stands there":    {2, 2, "none"},
		"the log does not reach so far": {6, 2, "none"},
	} {
		d := logOnDisk(1, 1, 2, 2)
		hashes := d.chains
		d.store(marker(c.index, c.term))
		if got := termsText(d.durable.Entries); got != c.want || d.base() != c.index {
			t.Errorf("%s: behind %d stands %s, want %s behind %d", name, d.base(), got, c.want, c.index)
		}
		if d.last() != raft.Index(len(d.chains)) {
			t.Errorf("%s: it ends at %d and has %d chain hashes", name, d.last(), len(d.chains))
		}
		if c.want == "2,2" && last(d.chains) != last(hashes) {
			t.Errorf("%s: its history is another one now", name)
		}
	}
}

func TestAWriteBehindASnapshotKeepsTheEntriesBetween(t *testing.T) {
	d := logOnDisk(1, 1, 2, 2)
	d.store(marker(2, 1))
	entries := log("", 1, 1, 2, 3, 3)[1:] // the first of them is in the snapshot
	d.store(&unsynced{Write: raft.Write{Entries: entries}})
	if got := termsText(d.durable.Entries); got != "2,3,3" || d.last() != 5 || len(d.chains) != 5 {
		t.Errorf("it has %s, ends at %d, with %d chain hashes", got, d.last(), len(d.chains))
	}
}

// Each crash leaves the old snapshot with the whole log, or the new one.
func TestACrashWhileASnapshotIsSavedLeavesTheOldOneOrTheNew(t *testing.T) {
	for name, c := range map[string]struct{ lines, snapshot, log string }{
		"before the file is whole": {"crash S2", "none", "1,1,1"},
		"before the log names it":  {"disk S2 finish snapshot\ncrash S2", "none", "1,1,1"},
		"torn, while it names it":  {"disk S2 finish snapshot\ncrash S2 torn", "none", "1,1,1"},
		"after it":                 {"disk S2 ok\ncrash S2", "3@1", "none"},
	} {
		w := played(t, `
			manual
			timeout S1
			deliver all
			propose S1 one
			propose S1 two
			deliver all
			beat S1
			deliver all
			expect S2 applied=3
			disk S2 stall
			snapshot S2
			`+c.lines+`
			restart S2`)
		n := w.nodes[1]
		if n.field("snapshot", 0) != c.snapshot || n.field("log", 0) != c.log || n.field("durable.snapshot", 0) != c.snapshot {
			t.Errorf("%s: it starts with snapshot %s and log %s, want %s and %s",
				name, n.field("snapshot", 0), n.field("log", 0), c.snapshot, c.log)
		}
	}
}

func TestADiskThatFailsWhileASnapshotIsSavedStopsItsServer(t *testing.T) {
	w := played(t, `
		timeout S1
		until leader S1
		until converged
		disk S1 fail
		snapshot S1`)
	if w.nodes[0].alive || w.counters[countStopped] != 1 || w.counters[countSnapshotsLost] != 1 {
		t.Errorf("alive %v, %d stopped, %d snapshots lost", w.nodes[0].alive, w.counters[countStopped], w.counters[countSnapshotsLost])
	}
}

// While a snapshot's file is written, the log's writes go on, and so do the clients.
func TestASnapshotThatTakesLongDelaysNoWrite(t *testing.T) {
	w := played(t, `
		nodes 1
		disk * sync=1s..1s
		config election=10s
		timeout S1
		until leader S1 within 1m
		until converged within 1m
		snapshot S1
		propose S1 while
		until S1 commit=2 within 1s
		expect S1 snapshot=none`)
	if w.nodes[0].disk.files.saving == nil {
		t.Error("the file is finished already")
	}
}

func TestAStalledDiskFinishesNoSnapshotUntilItGoesOn(t *testing.T) {
	played(t, `
		timeout S1
		until leader S1
		until converged
		snapshot S1
		disk S1 stall
		run 1s
		expect S1 snapshot=none
		disk S1 ok
		expect S1 snapshot=1@1
		snapshot S2
		pause S2
		run 1s
		expect S2 snapshot=none
		resume S2
		until S2 durable.snapshot=1@1 within 100ms`)
}

func TestAServerThatStartsFromASnapshotHasTheHistoryOfTheOthers(t *testing.T) {
	w := played(t, `
		node S1 term=2 log=1,1,2,2
		node S2 term=2 snapshot=3@2 log=2
		node S3 term=2 snapshot=2@1 log=2
		config election=500ms
		timeout S1
		until converged
		expect S1 log=1,1,2,2,3
		expect S2 log=2,3
		expect S3 log=2,2,3
		expect count snapshots.sent = 0`)
	if last(w.nodes[0].chains) != last(w.nodes[1].chains) || last(w.nodes[0].chains) != last(w.nodes[2].chains) {
		t.Error("their histories differ")
	}
}

// Short cuts that somebody could take, and which invariant finds them.
//
//spec:test Snapshot.Suffix
//spec:test Snapshot.Save
//spec:test Snapshot.Offset
//spec:test Snapshot.Installed
func TestTheSearchFindsSnapshotsThatAreTakenLightly(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ is, instead, finds string }{
		"a log that conflicts is kept": {
			"if !c.log.matches(index, s.LastIncludedTerm) {", "if c.log.lastIndex() < index {", "log-matching",
		},
		"a log that matches is dropped": {
			"if !c.log.matches(index, s.LastIncludedTerm) {", "if true {", "log-matching state-machine-safety",
		},
		"the log begins behind what is not durable": {
			"	c.snapshots.saving, c.snapshots.asked = &Snapshot{index, term, c.membersAt(index), data}, false\n",
			"	c.snapshots.saving, c.snapshots.asked = &Snapshot{index, term, c.membersAt(index), data}, false\n	c.adopt(c.snapshots.saving)\n",
			"snapshot-durable snapshot-committed", // whichever the first seed shows
		},
		"the term is the server's, and not the entry's": {
			"&Snapshot{index, term, c.", "&Snapshot{index, max(term, c.currentTerm), c.", "snapshot-committed",
		},
		"a part is taken wherever it stands": {
			"s.Offset == uint64(len(in.Data))", "true", "snapshot-agrees",
		},
		"it is acknowledged before it is durable": {
			"	if installed {\n		c.hold(reply)", "	if false {\n		c.hold(reply)", "persist-before-send",
		},
	}
	for name, c := range some(t, cases, "a log that conflicts is kept", "the log begins behind what is not durable") {
		found := plantedInRaft(t, "snapshot.go", c.is, c.instead)
		t.Logf("%s: %s", name, found)
		if first, _, _ := strings.Cut(found, " "); !slices.Contains(strings.Fields(c.finds), first) {
			t.Errorf("%s: the search finds %s", name, found)
		}
	}
}
