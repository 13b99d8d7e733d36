package sim

import (
	"encoding/json"
	"fmt"

	"ticketing/fsm/trace"
)

// A Difference is where two runs part, and what follows from that. Randomness in a run is keyed, so
// what has nothing to do with it is the same in both, to the microsecond.
type Difference struct {
	Runs  [2]*Result
	First [2]int64              // of each run the first event that the other does not have; 0 if it has all
	Same  int                   // events that both have until then
	At    trace.Time            // when that is
	Apart int                   // events that differ and do not follow from it
	Since map[string]trace.Time // when what follows reached whom
	only  [2]map[int64]bool     // events that the other run does not have
	cone  [2]map[int64]bool     // those of them that are, or follow from, the first
	world bool                  // one of them is a line about the network or a clock, so all may follow
}

// Parted reports whether the runs differ at all.
func (d *Difference) Parted() bool { return d.First != [2]int64{} }

// Follows counts the events of a run that follow from the first that differs.
func (d *Difference) Follows(run int) int { return len(d.cone[run]) }

// Diff compares two recorded runs. An event is the same if the other run has it at the same time and
// with the same content. What a scenario says and expects does not count: it makes nothing happen.
func Diff(a, b *Result) *Difference {
	d := &Difference{Runs: [2]*Result{a, b}, Since: map[string]trace.Time{}}
	for i := range d.Runs {
		d.only[i], d.cone[i] = map[int64]bool{}, map[int64]bool{}
	}
	d.match()
	d.begin()
	if d.Parted() {
		d.spread()
	}
	return d
}

// match finds the events that only one run has.
func (d *Difference) match() {
	twins := map[string][]int64{}
	for i := range d.Runs[1].Trace.Events {
		if e := &d.Runs[1].Trace.Events[i]; happens(e) {
			key := content(e)
			twins[key] = append(twins[key], e.ID)
			d.only[1][e.ID] = true
		}
	}
	for i := range d.Runs[0].Trace.Events {
		e := &d.Runs[0].Trace.Events[i]
		if !happens(e) {
			continue
		}
		key := content(e)
		if twin := twins[key]; len(twin) > 0 {
			delete(d.only[1], twin[0])
			twins[key] = twin[1:]
			continue
		}
		d.only[0][e.ID] = true
	}
}

func happens(e *trace.Event) bool {
	switch e.Kind {
	case trace.KindProse, trace.KindExpect, trace.KindFailed:
		return false
	}
	return true
}

// content is an event without its number and its cause's, which depend on how many came before.
func content(e *trace.Event) string {
	same := *e
	same.ID, same.Cause = 0, 0
	text, err := json.Marshal(&same)
	if err != nil {
		panic(fmt.Sprintf("sim: event %d of a run cannot be written: %v", e.ID, err))
	}
	return string(text)
}

// begin finds the first difference.
func (d *Difference) begin() {
	d.At = 1 << 62
	for i, r := range d.Runs {
		for j := range r.Trace.Events {
			if e := &r.Trace.Events[j]; d.only[i][e.ID] {
				d.First[i], d.At = e.ID, min(d.At, e.At)
				break
			}
		}
	}
	for i := range d.Runs[0].Trace.Events {
		e := &d.Runs[0].Trace.Events[i]
		if e.ID == d.First[0] || d.Parted() && e.At > d.At {
			break
		}
		if happens(e) {
			d.Same++
		}
	}
}

// spread finds what follows from the first difference: what it caused, what that caused, and all that
// differs later on at a node that it has reached. An event that is missing is a cause too, so both
// runs are gone through together.
func (d *Difference) spread() {
	at := [2]int{}
	for {
		run := -1
		for i, r := range d.Runs {
			for at[i] < len(r.Trace.Events) && !d.only[i][r.Trace.Events[at[i]].ID] {
				at[i]++
			}
			if at[i] < len(r.Trace.Events) && (run < 0 || r.Trace.Events[at[i]].At < d.Runs[run].Trace.Events[at[run]].At) {
				run = i
			}
		}
		if run < 0 {
			return
		}
		d.reach(run, &d.Runs[run].Trace.Events[at[run]])
		at[run]++
	}
}

// reach asks whether an event that only one run has follows from the first, and from then on whatever
// differs at its node does.
func (d *Difference) reach(run int, e *trace.Event) {
	_, touched := d.Since[e.Node]
	first := len(d.cone[0])+len(d.cone[1]) == 0
	if !first && !touched && !d.world && !d.cone[run][e.Cause] {
		d.Apart++
		return
	}
	d.cone[run][e.ID] = true
	if e.Node != "" && !touched && e.Kind != trace.KindLost { // a lost message gets nowhere
		d.Since[e.Node] = e.At
	}
	if e.Kind == trace.KindCommand {
		d.world = true
	}
}
