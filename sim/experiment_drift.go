package sim

import (
	"context"
	"fmt"

	"ticketing/fsm/trace"
)

// Drift is the outcome of the experiment about clocks, a row for each rate error.
type Drift struct {
	From uint64     `json:"from"`
	To   uint64     `json:"to"`
	Rows []DriftRow `json:"rows"`
}

// DriftRow is about clocks that are wrong by up to Error. Shares are in parts per million, and
// margins go in steps of MarginStep.
type DriftRow struct {
	Error int64 `json:"rate_error_ppm"`
	// Law is the least margin of the grid that the law, 2ρ/(1+ρ), allows.
	Law int64 `json:"law_ppm"`
	// Tight is the least margin without overlap at zero delay, with the fastest server and the slowest
	// client. Before and From are the overlaps one step below the law and from there on.
	Tight  int64      `json:"tight_ppm"`
	Before trace.Time `json:"overlap_before_law_us"`
	At     trace.Time `json:"overlap_from_law_us"`
	// Delayed is the same with messages that take their time, in the worst of the seeds.
	Delayed int64 `json:"delayed_ppm"`
	// Drawn is how many seeds overlap without a margin when all clocks and the leader are drawn, and
	// DrawnAtLaw how many do with the law's.
	Drawn      int64        `json:"drawn_seeds_overlap"`
	DrawnAtLaw int64        `json:"drawn_seeds_overlap_at_law"`
	Curve      []DriftPoint `json:"curve"`  // without pauses, for margins up to one and a half of the law's
	Paused     []PausePoint `json:"paused"` // with them, for margins up to 95 %
}

// DriftPoint is the overlap for a margin.
type DriftPoint struct {
	Margin  int64      `json:"margin_ppm"`
	Tight   trace.Time `json:"zero_delay_us"`
	Delayed trace.Time `json:"delayed_worst_us"`
}

// PausePoint is what overlap there is for a margin when the holder is stopped at a drawn moment.
type PausePoint struct {
	Margin int64      `json:"margin_ppm"`
	Worst  trace.Time `json:"worst_us"`
	Seeds  int64      `json:"seeds_overlap"`
}

// MarginStep is the grid of margins, in parts per million: 100 µs of the lease.
const MarginStep = 10

// curvePoints is how many margins a curve has, besides none.
const curvePoints = 30

// RateErrors are those that the experiment tries, in parts per million: a good quartz, and worse.
func RateErrors() []int64 { return []int64{200, 10_000, 50_000, 100_000} }

// lawMargin is the least margin that is enough for clocks with a rate error: 2ρ/(1+ρ), rounded up to
// the grid.
func lawMargin(ppm int64) int64 {
	law := (2*ppm*trueRate + trueRate + ppm - 1) / (trueRate + ppm)
	return (law + MarginStep - 1) / MarginStep * MarginStep
}

// RunDrift measures how much of its lease a client must do without, so that it stops before any
// server ends the lease, if no clock's rate is wrong by more than ρ.
func RunDrift(ctx context.Context, s Seeds) (*Drift, error) {
	all := &Drift{From: s.From, To: s.To}
	for _, ppm := range RateErrors() {
		row, err := measureDrift(ctx, s, ppm)
		if err != nil {
			return nil, fmt.Errorf("clocks wrong by %d ppm: %w", ppm, err)
		}
		all.Rows = append(all.Rows, *row)
	}
	return all, nil
}

// meter measures for one rate error.
type meter struct {
	ctx   context.Context
	seeds Seeds
	ppm   int64
}

func measureDrift(ctx context.Context, s Seeds, ppm int64) (*DriftRow, error) {
	m := meter{ctx, s, ppm}
	row := &DriftRow{Error: ppm, Law: lawMargin(ppm)}
	for _, measure := range []func(*DriftRow) error{m.boundaries, m.curve, m.drawn, m.paused} {
		if err := measure(row); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// boundaries finds where overlap ends. It gets no longer when the margin grows, so halving finds
// the place; and both sides of the law are looked at in any case.
func (m *meter) boundaries(row *DriftRow) (err error) {
	if row.Tight, err = least(2*row.Law, m.tight); err != nil {
		return err
	}
	if row.Delayed, err = least(2*row.Law, m.delayed); err != nil {
		return err
	}
	if row.Before, err = m.tight(row.Law - MarginStep); err != nil {
		return err
	}
	for i := range int64(10) {
		from, err := m.tight(row.Law + i*MarginStep)
		if err != nil {
			return err
		}
		row.At = max(row.At, from)
	}
	return nil
}

// least returns the least margin of the grid, up to most, without overlap.
func least(most int64, overlap func(int64) (trace.Time, error)) (int64, error) {
	lo, hi := int64(0), most/MarginStep
	for lo < hi {
		mid := (lo + hi) / 2
		o, err := overlap(mid * MarginStep)
		if err != nil {
			return 0, err
		}
		if o > 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo * MarginStep, nil
}

// tight is the overlap at zero delay, where seeds make no difference.
func (m *meter) tight(margin int64) (trace.Time, error) {
	d := drifting{seed: m.seeds.From, margin: margin, clocks: worstClocks(m.ppm), leader: "S1"}
	return d.overlap()
}

// delayed is the worst overlap with messages that take their time.
func (m *meter) delayed(margin int64) (trace.Time, error) {
	worst, _, err := m.over(margin, func(d *drifting) { d.delayed = true })
	return worst, err
}

// over runs all seeds with a margin, and returns the worst overlap, and how many seeds have any.
func (m *meter) over(margin int64, change func(*drifting)) (worst trace.Time, seeds int64, err error) {
	all, err := overSeeds(m.ctx, m.seeds, func(seed uint64) (trace.Time, error) {
		d := drifting{seed: seed, margin: margin, clocks: worstClocks(m.ppm), leader: "S1"}
		change(&d)
		return d.overlap()
	})
	for _, o := range all {
		worst = max(worst, o)
		if o > 0 {
			seeds++
		}
	}
	return worst, seeds, err
}

func (m *meter) curve(row *DriftRow) (err error) {
	for i := range int64(curvePoints + 1) {
		p := DriftPoint{Margin: row.Law * 3 / 2 * i / curvePoints}
		if p.Tight, err = m.tight(p.Margin); err != nil {
			return err
		}
		if p.Delayed, err = m.delayed(p.Margin); err != nil {
			return err
		}
		row.Curve = append(row.Curve, p)
	}
	return nil
}

// drawn draws all clocks, and who leads. At zero delay, where the law is tight.
func (m *meter) drawn(row *DriftRow) (err error) {
	actors := []Actor{"S1", "S2", "S3", "A", "B"}
	any := func(d *drifting) {
		d.clocks = drawnClocks(d.seed, m.ppm, actors)
		d.leader = actors[below(draw(d.seed, streamProgram, 3, 0, 0), 3)]
	}
	if _, row.Drawn, err = m.over(0, any); err != nil {
		return err
	}
	_, row.DrawnAtLaw, err = m.over(row.Law, any)
	return err
}

func (m *meter) paused(row *DriftRow) (err error) {
	for margin := int64(0); margin < trueRate; margin += trueRate / 20 {
		p := PausePoint{Margin: margin}
		p.Worst, p.Seeds, err = m.over(margin, func(d *drifting) { d.delayed, d.paused = true, true })
		if err != nil {
			return err
		}
		row.Paused = append(row.Paused, p)
	}
	return nil
}

// Check returns nil if the outcome is what the law says, and what is wrong with it otherwise.
func (d *Drift) Check() error {
	var o objections
	for _, row := range d.Rows {
		o.about = "clocks wrong by " + percent(row.Error) + ": "
		o.deny(row.Before == 0, "no overlap just below the law's margin: it asks for too much")
		o.deny(row.At != 0, "%s of overlap at the law's margin or above", row.At)
		o.deny(row.Tight != row.Law,
			"overlap ends at a margin of %s, the law says %s", percent(row.Tight), percent(row.Law))
		o.deny(row.Delayed > row.Law,
			"with delays overlap ends at %s, behind the law's %s", percent(row.Delayed), percent(row.Law))
		o.deny(row.Drawn == 0, "no seed with drawn clocks overlaps without a margin")
		o.deny(row.DrawnAtLaw != 0,
			"%d seeds with drawn clocks overlap at the law's margin", row.DrawnAtLaw)
		for _, p := range row.Paused {
			o.deny(p.Seeds == 0, "no overlap with pauses at a margin of %s", percent(p.Margin))
		}
	}
	return o.err()
}

// percent writes parts per million.
func percent(ppm int64) string {
	return fmt.Sprintf("%d.%04d %%", ppm/10_000, ppm%10_000)
}
