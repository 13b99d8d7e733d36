package sim

import (
	"context"
	"fmt"

	"ticketing/fsm/trace"
)

// The arms of the experiment, each over the same seeds.
const (
	ArmNothing   = "nothing"
	ArmLockDelay = "lock-delay"
	ArmFencing   = "fencing"
)

// An Arm is what came of all seeds in one arm. A write is stale if the resource takes it although
// it has taken one with a greater token before: the work of two holders is mixed. Late is a write
// that it takes after its tenure has ended, before any with a greater token: it harms nobody,
// since whoever comes next finds it done.
type Arm struct {
	Name         string     `json:"arm"`
	Grants       int64      `json:"grants"`
	Expires      int64      `json:"expires"`
	Pauses       int64      `json:"pauses"`    // of clients, between looking at the clock and writing
	Overstays    int64      `json:"overstays"` // of those, the ones from which they came back too late
	Overlap      trace.Time `json:"overlap_us"`
	OverlapSeeds int64      `json:"overlap_seeds"`
	Taken        int64      `json:"writes_taken"`
	Refused      int64      `json:"writes_refused"`
	Late         int64      `json:"late_writes_taken"`
	Stale        int64      `json:"stale_writes_taken"`
	StaleSeeds   int64      `json:"stale_seeds"`
}

// Arms is the experiment's outcome: nothing, lock-delay and fencing, in this order.
type Arms struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Arms []Arm  `json:"arms"`
}

// What happens in a seed of the arms.
const (
	armsLease   = trace.Second
	armsDelay   = armsLease        // of the lock-delay
	armsEnd     = 8 * trace.Second // of a run, from its start
	armsDrift   = 50_000           // clocks are wrong by up to 5 %,
	armsMargin  = 10_000           // and clients allow for a margin of 1 %, as the client library does
	armsPause   = 6                // in one tenure of so many the client is stopped,
	armsLongest = 3 * trace.Second // for so long at most
)

// RunArms measures how long two clients believe at the same time to hold one lock, and what a
// resource takes from those who are wrong, without protection, with a lock-delay, and with the
// token checked.
func RunArms(ctx context.Context, s Seeds) (*Arms, error) {
	all := &Arms{From: s.From, To: s.To}
	for _, name := range []string{ArmNothing, ArmLockDelay, ArmFencing} {
		runs, err := overSeeds(ctx, s, func(seed uint64) (Arm, error) { return runArm(name, seed) })
		if err != nil {
			return nil, fmt.Errorf("the arm %s: %w", name, err)
		}
		sum := Arm{Name: name}
		for i := range runs {
			sum.add(&runs[i])
		}
		all.Arms = append(all.Arms, sum)
	}
	return all, nil
}

func (a *Arm) add(o *Arm) {
	a.Grants += o.Grants
	a.Expires += o.Expires
	a.Pauses += o.Pauses
	a.Overstays += o.Overstays
	a.Overlap += o.Overlap
	a.Taken += o.Taken
	a.Refused += o.Refused
	a.Late += o.Late
	a.Stale += o.Stale
	if o.Overlap > 0 {
		a.OverlapSeeds++
	}
	if o.Stale > 0 {
		a.StaleSeeds++
	}
}

// Check returns nil if the outcome is what the law says, and what is wrong with it otherwise.
func (a *Arms) Check() error {
	var o objections
	for _, arm := range a.Arms {
		o.deny(arm.Overlap == 0, "%s: no two clients ever believed to hold the lock", arm.Name)
		o.deny(arm.Pauses == 0 || arm.Overstays == 0 || arm.Expires == 0, "%s: nobody overstayed", arm.Name)
	}
	nothing, delay, fencing := a.Arms[0], a.Arms[1], a.Arms[2]
	o.deny(nothing.Stale == 0, "without protection no stale write was taken: nobody went wrong")
	o.deny(delay.Stale == 0, "with a lock-delay no stale write was taken")
	o.deny(delay.Stale >= nothing.Stale,
		"a lock-delay spared nothing: %d stale writes, %d without", delay.Stale, nothing.Stale)
	o.deny(fencing.Stale != 0, "with fencing %d stale writes were taken", fencing.Stale)
	o.deny(fencing.Refused == 0, "with fencing no write was refused: there was nothing to fence off")
	o.deny(fencing.Overlap != nothing.Overlap, "fencing changed what clients believe")
	return o.err()
}
