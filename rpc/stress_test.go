package rpc

import (
	"fmt"
	"testing"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// everyFour makes servers take a snapshot after every four entries and keep one before it: whoever was away
// for a moment needs a leader's.
var everyFour = compacting(4, 1)

// What clients see fits the log also when that begins anew all the time. Nobody has all of it in the
// end, so it is put together from what each server has applied.
func TestWhatClientsSeeFitsTheLogWithASnapshotEveryFourEntries(t *testing.T) {
	seeds, all := uint64(6), happened{}
	if long() {
		seeds = 200
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			f := &file{}
			var r *trace.Recorder
			record := func(c *Config) {
				everyFour(c)
				r = trace.NewRecorder(f, func(err error) { t.Error(err) })
				c.Trace = r
			}
			inBubbleWith(t, slowSync, record, func(t *testing.T, c *cluster, _ raft.ServerID) {
				h := c.play(t, seed)
				for id := range c.nodes {
					c.stop(id)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				all.add(t, h, all.appliedBy(t, f.read(t)))
			})
		})
	}
	t.Logf("%+v", all)
	few := int(seeds)
	if all.granted < 40*few || all.unknown < 3*few || all.expired < 3*few || all.leaders < 4*few ||
		all.taken < 50*few || all.installed < 3*few {
		t.Errorf("too little has happened: %+v", all)
	}
}

// appliedBy puts the log together. Whatever two servers apply at one index, or one server before and
// after a crash, must be the same, and come to the same table.
func (a *happened) appliedBy(t *testing.T, run *trace.Trace) (log []raft.Entry) {
	t.Helper()
	var seen []trace.EntryRecord
	for _, e := range run.Events {
		switch e.Kind {
		case trace.KindKept:
			a.taken++
		case trace.KindTable:
			a.installed++
		}
		if e.Kind != trace.KindApply {
			continue
		}
		x := *e.Entry
		if at := int(x.Index); at > len(seen) {
			seen = append(seen, make([]trace.EntryRecord, at-len(seen))...)
		}
		first := &seen[x.Index-1]
		if first.Index == 0 {
			*first = x
		}
		if x.Term != first.Term || x.Command != first.Command || x.Hash != first.Hash {
			t.Errorf("at one index %s has applied %+v, and somebody %+v", e.Node, x, *first)
		}
	}
	for i, x := range seen {
		if x.Index == 0 {
			t.Fatalf("nobody has applied entry %d of %d", i+1, len(seen))
		}
		log = append(log, raft.Entry{Index: x.Index, Term: x.Term, Command: []byte(x.Command)})
	}
	return log
}
