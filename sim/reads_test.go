package sim

import (
	"strings"
	"testing"

	"ticketing/internal/planted"
)

// A scenario that holds by the luck of its seed shows nothing.
func TestScenariosAboutReadsAndTransfersHoldOnManySeeds(t *testing.T) {
	ran := 0
	for _, s := range Library() {
		about := strings.HasPrefix(s.Name, "read-") || strings.HasPrefix(s.Name, "transfer") ||
			strings.HasPrefix(s.Name, "stale-")
		if !about {
			continue
		}
		ran++
		for seed := uint64(1); seed <= 40; seed++ {
			r, err := Run(s, Options{Seed: &seed, Deep: seed <= 4})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Held() {
				t.Errorf("%s, seed %d: %v, %v", s.Name, seed, r.Failure, r.Unexpected())
			}
		}
	}
	if ran < 9 {
		t.Errorf("there are only %d", ran)
	}
}

// searches is a program that prints which invariant the search finds broken in 2,000 harsh runs.
const searches = `package main

import (
	"context"
	"fmt"

	"ticketing/sim"
)

func main() {
	f, err := sim.Search{From: 1, To: 2000, Faults: "harsh"}.Explore(context.Background())
	switch {
	case err != nil:
		panic(err)
	case f.Failed == nil:
		fmt.Println("nothing")
	default:
		fmt.Println(f.Failed.Violations[0].Invariant, "at seed", f.Last)
	}
}
`

// Each is a short cut that somebody could take, and that shows in no run without faults.
//
//spec:test Read.Index
//spec:test Read.OwnTerm
func TestTheSearchFindsReadsThatAreAnsweredTooEarly(t *testing.T) {
	t.Parallel()
	cases := map[string][2]string{
		"without a round": {
			"r.round != 0 && r.round <= confirmed", "r.round != 0 && confirmed >= 0",
		},
		"on a round that had begun before": {
			"		return // one is under way; what has come since waits for the next\n",
			`		for i := range c.reading.pending {
			if r := &c.reading.pending[i]; r.round == 0 {
				r.round, r.index = c.reading.round, c.commitIndex
			}
		}
		return
`,
		},
		"before an entry of the own term is committed": {
			"c.role != Leader || !c.ownTermCommitted()", "c.role != Leader",
		},
	}
	for name, c := range some(t, cases, "without a round", "before an entry of the own term is committed") {
		found := plantedInRaft(t, "readindex.go", c[0], c[1]) // the second is seen by one run in 2,000
		t.Logf("%s: %s", name, found)
		if !strings.HasPrefix(found, "reads-linearizable ") {
			t.Errorf("%s: the search finds %s", name, found)
		}
	}
}

// plantedInRaft runs the search over package raft in which one piece of a file stands otherwise.
func plantedInRaft(t *testing.T, file, is, instead string) string {
	t.Helper()
	return planted.Run(t, searches, nil, inRaft(file, is, instead))
}

// inRaft is a mistake in a file of package raft.
func inRaft(file, is, instead string) planted.Mistake {
	return planted.Mistake{File: "raft/" + file, Is: is, Instead: instead}
}
