package sim

import "ticketing/sim/linear"

// clientsAgree looks at no server. It is asked once, when a run has ended and nothing else is broken:
// once a rule is, what clients see is bound to be wrong, too. Without numbers a request that is sent
// again is carried out again, and its answer is of the second time; so that is not judged. A search
// that would take too long gives up, and is counted.
func clientsAgree() invariant {
	return invariant{
		name: "clients-agree",
		sentence: "one order of all that clients have asked and seen, as one lock table would carry it out, " +
			"explains each answer (asked at the end of a run)",
		end: func(w *World) string {
			if w.config.rules.NoRequestIDs {
				return ""
			}
			problem, gaveUp := linear.Check(w.history.all, historyPlaces)
			w.counters[countHistories]++
			w.counters[countHistoriesOperations] += int64(len(w.history.all))
			w.counters[countHistoriesGaveUp] += int64(gaveUp)
			if w.history.full {
				w.counters[countHistoriesCut]++
			}
			return problem
		},
	}
}
