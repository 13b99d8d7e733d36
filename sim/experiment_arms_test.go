package sim

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm"
	"ticketing/fsm/trace"
)

func runArms(t *testing.T, s Seeds) *Arms {
	t.Helper()
	all, err := RunArms(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Kleppmann's argument, measured (demonstration 5 of those that a lock service owes). (Hazard 39.)
//
//spec:test Fence
func TestOnlyFencingKeepsStaleWritesOut(t *testing.T) {
	all := runArms(t, Seeds{From: 1, To: 200})
	if err := all.Check(); err != nil {
		t.Error(err)
	}
	for _, a := range all.Arms {
		t.Logf("%+v", a)
		if a.Expires < 100 || a.Overstays < 100 || a.Late == 0 {
			t.Errorf("%s: too little happened: %+v", a.Name, a)
		}
	}
	if f := all.Arms[2]; f.Refused == 0 || f.Taken+f.Refused != all.Arms[0].Taken {
		t.Errorf("fencing took %d writes and refused %d, without it all %d are taken", f.Taken, f.Refused, all.Arms[0].Taken)
	}
}

func TestTheArmsComeOutTheSameForAnyNumberOfJobs(t *testing.T) {
	one := runArms(t, Seeds{From: 1, To: 40, Jobs: 1})
	many := runArms(t, Seeds{From: 1, To: 40, Jobs: 7})
	if diff := cmp.Diff(one, many); diff != "" {
		t.Error(diff)
	}
	if one.Arms[0].Stale == 0 {
		t.Error("nothing happened that could differ")
	}
}

// The arm of fencing with a resource that does not check.
func TestAFencedArmWithoutTheResourcesCheckIsDenied(t *testing.T) {
	all := runArms(t, Seeds{From: 1, To: 200})
	var unchecked Arm
	for seed := uint64(1); seed <= 200; seed++ {
		b, err := newBench(ArmFencing, seed)
		if err != nil {
			t.Fatal(err)
		}
		b.unfence()
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		unchecked.add(&b.sum)
	}
	all.Arms[2].Stale, all.Arms[2].Refused = unchecked.Stale, unchecked.Refused
	denied(t, all.Check(), "with fencing", "stale writes were taken")
	denied(t, all.Check(), "no write was refused")
}

func denied(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want something about %q", err, part)
		}
	}
}

func TestArmsThatShowNothingAreDenied(t *testing.T) {
	good := runArms(t, Seeds{From: 1, To: 200})
	for want, change := range map[string]func(a []Arm){
		"lock-delay: no two clients":         func(a []Arm) { a[1].Overlap = 0 },
		"nothing: nobody overstayed":         func(a []Arm) { a[0].Overstays = 0 },
		"nobody went wrong":                  func(a []Arm) { a[0].Stale = 0 },
		"with a lock-delay no stale write":   func(a []Arm) { a[1].Stale = 0 },
		"a lock-delay spared nothing":        func(a []Arm) { a[1].Stale = a[0].Stale },
		"with fencing 1 stale writes":        func(a []Arm) { a[2].Stale = 1 },
		"fencing changed what clients belie": func(a []Arm) { a[2].Overlap++ },
	} {
		all := &Arms{Arms: append([]Arm(nil), good.Arms...)}
		change(all.Arms)
		denied(t, all.Check(), want)
	}
}

// After an Expire the door stays shut for the delay, on whatever clock; after a Release it opens at
// once.
func TestALockDelayFollowsAnExpireAndNoRelease(t *testing.T) {
	expires, quick := 0, 0
	for seed := uint64(1); seed <= 50; seed++ {
		b, err := newBench(ArmLockDelay, seed)
		if err != nil {
			t.Fatal(err)
		}
		var ended trace.Time
		var last fsm.ResultKind
		see := func(w *World, _ *node, a *fsm.Applied) string {
			gap := w.now - ended
			switch {
			case a.Result.Kind == fsm.Granted && last == fsm.Expired:
				expires++
				if least := armsDelay * trueRate / (trueRate + armsDrift); gap < least {
					t.Errorf("seed %d: a Grant %s after an Expire, the delay is %s at least", seed, gap, least)
				}
			case a.Result.Kind == fsm.Granted && last == fsm.Released && gap < armsDelay/4:
				quick++
			}
			if removes(a.Result) {
				ended = w.now
				last = a.Result.Kind
			}
			return ""
		}
		b.checks.add(invariant{firstApply: see})
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
	}
	if expires == 0 || quick == 0 {
		t.Errorf("%d Grants followed an Expire, %d a Release at once", expires, quick)
	}
}
