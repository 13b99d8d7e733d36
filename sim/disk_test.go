package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// written is a disk to which writes were handed: the nth has sequence number and term n, and the
// entry at index n.
func written(n int) *disk {
	d := &disk{}
	for i := 1; i <= n; i++ {
		d.unsynced = append(d.unsynced, unsynced{Write: raft.Write{
			Seq: uint64(i), HardState: raft.HardState{Term: raft.Term(i)},
			Entries: []raft.Entry{{Index: raft.Index(i), Term: raft.Term(i)}},
		}})
	}
	return d
}

func (d *disk) is(t *testing.T, term raft.Term, unsynced int) {
	t.Helper()
	if d.durable.Term != term || len(d.durable.Entries) != int(term) || len(d.chains) != int(term) || len(d.unsynced) != unsynced {
		t.Errorf("term %d, %d entries, %d chain hashes, %d unsynced; want term %d and as many entries, %d unsynced",
			d.durable.Term, len(d.durable.Entries), len(d.chains), len(d.unsynced), term, unsynced)
	}
}

func TestAWriteReportedBeforeAnEarlierOneIsNotDurable(t *testing.T) {
	d := written(3)
	if seq := d.finish(1); seq != 2 {
		t.Errorf("write %d was reported, want 2", seq)
	}
	d.is(t, 0, 3)
	d.finish(0)
	d.is(t, 2, 1) // both at once
	d.finish(0)
	d.is(t, 3, 0)
}

func TestACrashLosesWhatIsNotFinished(t *testing.T) {
	d := written(3)
	d.finish(0)
	d.finish(1) // the third, out of order
	d.stalled = true
	d.crash(false)
	d.is(t, 1, 0)
	if d.torn || d.stalled {
		t.Error("nothing was torn, and a disk that comes back does not stall")
	}
}

func TestATornCrashKeepsAllButTheLast(t *testing.T) {
	d := written(3)
	d.crash(true)
	d.is(t, 2, 0)
	if !d.torn {
		t.Error("it must be marked as torn")
	}
	d.crash(true)
	if d.torn {
		t.Error("with nothing on its way, nothing can be torn")
	}
}

func TestAWriteReplacesWhatFollowsItsFirstEntry(t *testing.T) {
	d := written(3)
	for range 3 {
		d.finish(0)
	}
	d.store(&unsynced{Write: raft.Write{HardState: raft.HardState{Term: 9}, Entries: []raft.Entry{{Index: 2, Term: 9}}}})
	want := []raft.Entry{{Index: 1, Term: 1}, {Index: 2, Term: 9}}
	if diff := cmp.Diff(want, d.durable.Entries); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	d.store(&unsynced{Write: raft.Write{HardState: raft.HardState{Term: 10}}})
	if d.durable.Term != 10 || len(d.durable.Entries) != 2 {
		t.Errorf("a write without entries leaves term %d, %d entries", d.durable.Term, len(d.durable.Entries))
	}
}

func TestChainHashesTellPrefixesApart(t *testing.T) {
	entry := func(i raft.Index, term raft.Term, command string) raft.Entry {
		return raft.Entry{Index: i, Term: term, Command: []byte(command)}
	}
	base := chain(chain(0, entry(1, 1, "a")), entry(2, 2, "b"))
	for what, other := range map[string]uint64{
		"first command":  chain(chain(0, entry(1, 1, "x")), entry(2, 2, "b")),
		"first term":     chain(chain(0, entry(1, 2, "a")), entry(2, 2, "b")),
		"second command": chain(chain(0, entry(1, 1, "a")), entry(2, 2, "x")),
		"second term":    chain(chain(0, entry(1, 1, "a")), entry(2, 1, "b")),
		"length":         chain(0, entry(1, 1, "a")),
	} {
		if other == base {
			t.Errorf("another %s has the same hash", what)
		}
	}
}

// Only a run of finished writes from the first is durable, and what was replied meanwhile waits.
func TestADiskThatStallsHoldsItsServersAnswersBack(t *testing.T) {
	w := played(t, `
		config election=1s
		timeout S1
		until leader S1
		until S2 durable.log=1
		run 500ms
		disk S2 stall
		propose S1 one
		run 300ms
		expect S2 log=1,1 durable.log=1
		expect count commits = 2
		propose S1 two
		run 300ms
		expect S2 log=1,1,1 durable.log=1
		disk S2 finish #2
		run 300ms
		expect S2 durable.log=1
		disk S2 finish
		expect S2 durable.log=1,1,1
		propose S1 three
		run 100ms
		propose S1 four
		run 100ms
		expect S2 durable.log=1,1,1
		disk S2 ok
		expect S2 durable.log=1,1,1,1,1
		disk S2 stall
		propose S1 five
		run 100ms
		crash S2
		restart S2
		expect S2 durable.log=1,1,1,1,1 log=1,1,1,1,1
		until S2 durable.log=1,1,1,1,1,1`)
	if n := w.counters[countCrashes]; n != 1 {
		t.Errorf("%d crashes", n)
	}
}

func TestWritesOfAServerFinishInOrderEachSomeTimeAfterTheOneBefore(t *testing.T) {
	w := played(t, `
		disk * sync=20ms..60ms
		network delay=1ms..1ms
		config election=1s
		timeout S1
		until leader S1
		run 200ms
		at 500ms propose S1 a
		at 501ms propose S1 b
		at 502ms propose S1 c
		run 1s`)
	var requested, saved []*trace.Event
	for i := range w.trace.Events {
		switch e := &w.trace.Events[i]; {
		case e.Node != "S1":
		case e.Kind == trace.KindWrite:
			requested = append(requested, e)
		case e.Kind == trace.KindSaved:
			saved = append(saved, e)
		}
	}
	if len(requested) != 5 || len(saved) != 5 {
		t.Fatalf("%d writes, %d of them finished, want 5", len(requested), len(saved))
	}
	for i := range saved {
		from := requested[i].At
		if i > 0 {
			from = max(from, saved[i-1].At)
		}
		if took := saved[i].At - from; saved[i].Write.Seq != uint64(i)+1 || took < 20*trace.Millisecond || took > 60*trace.Millisecond {
			t.Errorf("write %d took %s", saved[i].Write.Seq, took)
		}
	}
}

func TestADiskThatFailsStopsItsServerAndNothingMoreLeavesIt(t *testing.T) {
	w := played(t, `
		config election=1s
		timeout S1
		until leader S1
		run 500ms
		disk S1 fail
		propose S1 one
		run 100ms`)
	n := w.nodes[0]
	if n.alive || w.counters[countStopped] != 1 {
		t.Fatalf("alive: %v, %d stopped", n.alive, w.counters[countStopped])
	}
	stopped := false
	for _, e := range w.trace.Events {
		if stopped && e.Node == "S1" && e.Kind != trace.KindLost {
			t.Errorf("event %d: a %s of a server that has stopped", e.ID, e.Kind)
		}
		stopped = stopped || e.Kind == trace.KindStop
	}
	if len(w.nodes[1].disk.durable.Entries) != 1 {
		t.Error("the entry whose write failed has reached S2")
	}
}
