package sim

import (
	"context"
	"testing"

	"ticketing/fsm/trace"
)

// The law about leases and elections (demonstration 7 of those that a lock service owes; public
// reports 7 and 12).
//
//spec:test Clock.OwnApply
func TestElectionsDoNotChangeHowLongALeaseLasts(t *testing.T) {
	const seeds = 10
	all, err := RunLifetime(context.Background(), Seeds{From: 1, To: seeds})
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Check(); err != nil {
		t.Error(err)
	}
	for _, r := range all.Rows {
		t.Logf("%+v", r)
	}
	last := all.Rows[len(all.Rows)-1]
	if last.Held < 50*seeds {
		t.Errorf("%d elections in %d leases, there were to be 50 in each", last.Held, seeds)
	}
	if last.Own.Shortest == last.Own.Longest {
		t.Error("all leases lasted the same: no clock was wrong")
	}

	denies := func(want string, change func(r *LifetimeRow)) {
		bad := *all
		bad.Rows = append([]LifetimeRow(nil), all.Rows...)
		change(&bad.Rows[len(bad.Rows)-1])
		denied(t, bad.Check(), want)
	}
	denies("more than clocks explain", func(r *LifetimeRow) { r.Own = r.Restart })
	denies("own remaining time, 50 elections: 10 leases ended early", func(r *LifetimeRow) { r.Own = r.Stale })
	denies("restart at full, 50 elections: 10 leases", func(r *LifetimeRow) { r.Restart.Early = seeds })
	denies("leases lasted only", func(r *LifetimeRow) { r.Restart.Shortest = trueRate })
	denies("only 9 of 10", func(r *LifetimeRow) { r.Stale.Early = 9 })
	denies("499 elections in 10 runs", func(r *LifetimeRow) { r.Held = 499 })
}

// The two policies that are reckoned, on a life that can be checked by hand: true clocks, leaders at
// 0, 10 and 20 s.
func TestThePoliciesOfOthersAreReckonedFromWhoLed(t *testing.T) {
	l := &life{leaders: []reign{{0, trueRate}, {10 * trace.Second, trueRate}, {20 * trace.Second, trueRate}}}
	if got, want := l.restartAtFull(), 80*trace.Second; got != want {
		t.Errorf("restarted at full it ends at %s, want %s", got, want)
	}
	// Checkpoints at 3, 6 and 9 s of each of the first two; 12 s of 10 are taken off.
	if got, want := l.staleCheckpoint(), (20+60-24)*trace.Second; got != want {
		t.Errorf("from stale checkpoints it ends at %s, want %s", got, want)
	}
	slow := &life{leaders: []reign{{0, trueRate / 2}, {130 * trace.Second, trueRate}}}
	if got, want := slow.restartAtFull(), 120*trace.Second; got != want {
		t.Errorf("on a slow clock it ends at %s, want %s", got, want)
	}
}
