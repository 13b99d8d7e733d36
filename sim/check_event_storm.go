package sim

import (
	"fmt"

	"ticketing/fsm/trace"
)

// stormy is more inputs in a second than any server has to take: an idle one takes some 40, and a
// busy one some hundreds.
const stormy = 20_000

// eventStorm catches servers that answer every message with two. The table stays right and nothing
// else shows it, but such a run would never end; so this one ends it, whatever is tolerated.
func eventStorm() invariant {
	var seen [maxNodes + 1]struct { // by server
		until trace.Time
		steps int
	}
	return invariant{
		name:     stormName,
		sentence: fmt.Sprintf("no server takes more than %d inputs in a second of true time", stormy),
		step: func(w *World, n *node) string {
			s := &seen[n.id]
			if w.now >= s.until {
				s.until, s.steps = (w.now/trace.Second+1)*trace.Second, 0
			}
			if s.steps++; s.steps > stormy {
				return fmt.Sprintf("it has taken %d inputs since %s", s.steps, s.until-trace.Second)
			}
			return ""
		},
	}
}
