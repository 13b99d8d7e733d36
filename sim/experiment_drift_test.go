package sim

import (
	"context"
	"testing"

	"ticketing/fsm/trace"
)

// The drift law (demonstration 6 of those that a lock service owes).
//
//spec:test Clock.OwnApply
func TestOverlapEndsExactlyAtTheLawsMargin(t *testing.T) {
	all, err := RunDrift(context.Background(), Seeds{From: 1, To: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Check(); err != nil {
		t.Error(err)
	}
	for _, row := range all.Rows {
		t.Logf("%+v", row)
		if row.Error >= 10_000 && row.Delayed == 0 {
			t.Errorf("%d ppm: with delays nothing ever overlapped", row.Error)
		}
		paused := int64(0)
		for _, p := range row.Paused {
			paused += p.Seeds
		}
		if n := int64(len(row.Paused)); paused < 2*n || paused == 8*n {
			t.Errorf("%d ppm: %d of %d runs with pauses overlapped; what is drawn decides nothing", row.Error, paused, 8*n)
		}
	}
}

// At zero delay the overlap is what a sum on paper says: the slowest client's share of the lease
// less the fastest server's lease. Each of them is rounded once.
func TestOverlapAtZeroDelayIsTheSumOnPaper(t *testing.T) {
	for _, ppm := range RateErrors() {
		m := meter{context.Background(), Seeds{From: 1, To: 1}, ppm}
		for _, margin := range []int64{0, lawMargin(ppm) / 2, lawMargin(ppm) - 10*MarginStep} {
			got, err := m.tight(margin)
			if err != nil {
				t.Fatal(err)
			}
			client := (driftLease - share(driftLease, margin)) * trueRate / trace.Time(trueRate-ppm)
			server := driftLease * trueRate / trace.Time(trueRate+ppm)
			if want := client - server; got < want-2 || got > want+2 || got == 0 {
				t.Errorf("%d ppm, a margin of %d ppm: %s of overlap, on paper %s", ppm, margin, got, want)
			}
		}
	}
}

func TestALawThatIsNotMetIsDenied(t *testing.T) {
	good := DriftRow{
		Error: 10_000, Law: 19_810, Tight: 19_810, Before: 20, Delayed: 12_980, Drawn: 8,
		Paused: []PausePoint{{Margin: 950_000, Worst: 1, Seeds: 1}},
	}
	if err := (&Drift{Rows: []DriftRow{good}}).Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(r *DriftRow){
		"it asks for too much":              func(r *DriftRow) { r.Before = 0 },
		"of overlap at the law's margin":    func(r *DriftRow) { r.At = 1 },
		"overlap ends at a margin of":       func(r *DriftRow) { r.Tight -= MarginStep },
		"with delays overlap ends":          func(r *DriftRow) { r.Delayed = r.Law + MarginStep },
		"overlaps without a margin":         func(r *DriftRow) { r.Drawn = 0 },
		"1 seeds with drawn clocks overlap": func(r *DriftRow) { r.DrawnAtLaw = 1 },
		"no overlap with pauses":            func(r *DriftRow) { r.Paused = []PausePoint{{Margin: 950_000}} },
	} {
		bad := good
		change(&bad)
		denied(t, (&Drift{Rows: []DriftRow{bad}}).Check(), "clocks wrong by 1.0000 %", want)
	}
}

func TestTheLawsMarginIsRoundedUpToTheGrid(t *testing.T) {
	for ppm, want := range map[int64]int64{200: 400, 10_000: 19_810, 50_000: 95_240, 100_000: 181_820, 0: 0} {
		if got := lawMargin(ppm); got != want {
			t.Errorf("%d ppm: a margin of %d ppm, want %d", ppm, got, want)
		}
	}
}
