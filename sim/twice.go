package sim

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"ticketing/fsm/trace"
)

// This file runs a seed twice. All that this package is good for rests on the two being the same: a
// failure is replayed, shrunk and explained by running it again.

// Divergence is where two runs of one seed part.
type Divergence struct {
	Seed   uint64
	Hashes [2]string // of the two traces
	Event  int       // the first that differs, counted from 1
	Common []string  // the last events before it, as JSON, the same in both
	Lines  [2]string // the event in each run; "" if that trace has ended
}

// common is how many of the events before it a divergence has.
const common = 6

// Hash is the SHA-256 of a recorded run's trace, as it would be written to a file.
func (r *Result) Hash() (string, error) {
	h := sha256.New()
	if _, err := r.Trace.WriteTo(h); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// twice runs a seed twice. It returns the first of the two, without its trace.
func (s Search) twice(seed uint64) (*Result, *Divergence, error) {
	var runs [2]*Result
	d := &Divergence{Seed: seed}
	for i := range runs {
		r, err := s.Run(seed, Options{Record: true})
		if err != nil {
			return nil, nil, err
		}
		if d.Hashes[i], err = r.Hash(); err != nil {
			return nil, nil, err
		}
		runs[i] = r
	}
	one, other := runs[0], runs[1]
	same := d.Hashes[0] == d.Hashes[1] && one.counters == other.counters && one.Steps == other.Steps && one.End == other.End
	if same {
		d = nil
	} else if err := d.find(one.Trace.Events, other.Trace.Events); err != nil {
		return nil, nil, err
	}
	one.Trace = nil
	return one, d, nil
}

// find looks for the first event that differs, as it is written down. If there is none, what differs
// is in no trace, and the place is behind the last event.
func (d *Divergence) find(one, other []trace.Event) error {
	line := func(events []trace.Event, i int) (string, error) {
		if i >= len(events) {
			return "", nil
		}
		text, err := json.Marshal(&events[i])
		return string(text), err
	}
	for i := range max(len(one), len(other)) + 1 {
		a, err := line(one, i)
		if err != nil {
			return err
		}
		b, err := line(other, i)
		if err != nil {
			return err
		}
		if d.Event, d.Lines = i+1, [2]string{a, b}; a != b {
			break
		}
		if a != "" {
			d.Common = append(d.Common, a)
		}
		d.Common = d.Common[max(0, len(d.Common)-common):]
	}
	return nil
}
