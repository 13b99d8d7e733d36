package rpc

import (
	"fmt"
	"testing"
	"time"

	"ticketing/fsm"
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
		seeds = 100
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

// A leader is cut off with entries of its own, while the others go on and forget what its log would
// need. After the heal it has to take their snapshot in place of those entries; what it has sent before
// arrives then, or never.
func TestALeaderThatWasCutOffTakesASnapshotInPlaceOfItsLog(t *testing.T) {
	for kind, cut := range map[string]func(*wire){
		"lost": func(w *wire) { w.cut = true },
		"held": func(w *wire) { w.held = true },
	} {
		t.Run(kind, func(t *testing.T) {
			inBubbleWith(t, slowSync, everyFour, func(t *testing.T, c *cluster, old raft.ServerID) {
				k := c.client(t, "A")
				kept := lock(t, k, "kept", time.Minute)
				c.net.set(cut, both(name(old), others(old)...)...)
				for i := range 10 {
					args := &AcquireArgs{Key: fmt.Sprint("vain ", i), LeaseMS: 60_000}
					c.raw("B", old).Go("Lock.Acquire", args, new(AcquireReply), nil)
					time.Sleep(slowSync)
				}
				last := coreStatus(c.nodes[old]).LastIndex
				cycles(t, k, 10)
				first, _ := look(c.nodes[c.leads(old)], func(r *fsm.Replica) raft.Index {
					return r.Core().FirstIndex()
				})
				if first <= last {
					t.Fatalf("its log ends at %d, and the others' begins at %d", last, first)
				}
				c.net.set(func(w *wire) { w.cut, w.held = false, false }, both(name(old), others(old)...)...)
				eventually(t, "all agree", c.agree)
				time.Sleep(longest)
				c.sameTables(t)
				if n := scrape(t, c.nodes[old])[`lockd_snapshots_total{from="leader"}`]; n < 1 {
					t.Errorf("it has taken %v snapshots of a leader", n)
				}
				locks, err := k.List(within(t))
				if err != nil || len(locks) != 1 || locks[0].Token != kept.Token() {
					t.Errorf("the locks are %+v, %v", locks, err)
				}
				unlock(t, kept)
			})
		})
	}
}
