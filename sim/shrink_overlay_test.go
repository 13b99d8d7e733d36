package sim

import (
	"fmt"
	"strings"
	"testing"

	"ticketing/internal/planted"
)

// shrinks is a program that looks for five seeds that break something, shrinks them, and prints of
// each the seed, the invariant, the actions before and after, and the milliseconds that it took.
const shrinks = `package main

import (
	"context"
	"fmt"
	"time"

	"ticketing/sim"
)

func main() {
	found := 0
	for seed := uint64(1); seed <= 2000 && found < 5; seed++ {
		s, err := sim.Plan(seed, "harsh", 0)
		if err != nil {
			panic(err)
		}
		if r, err := sim.Run(s, sim.Options{}); err != nil || len(r.Violations) == 0 {
			continue
		}
		begun := time.Now()
		short, err := sim.Shrink{Scenario: s}.Run(context.Background())
		if err != nil {
			panic(err)
		}
		found++
		fmt.Println(seed, short.Invariant, short.Before, short.After, time.Since(begun).Milliseconds())
	}
}
`

// A bug in Raft itself is found by the search and shrunk as one in the locks is.
func TestBugsPlantedInRaftShrinkToo(t *testing.T) {
	const durable = "after := c.seq\n\tif c.dirty() {\n\t\tafter++\n\t}"
	bugs := map[string]planted.Mistake{
		"a vote for a log that is behind": inRaft("election.go", "return c.upToDate(r.LastLogIndex, r.LastLogTerm)", "return true"),
		"two votes in a term":             inRaft("election.go", "if c.votedFor != 0 && c.votedFor != m.From {", "if false {"),
		"what matches is cut off":         inRaft("log.go", "if l.matches(e.Index, e.Term) {", "if false {"),
		"a promise before it is durable":  inRaft("durability.go", durable, "after := uint64(0)"),
	}
	for name, bug := range some(t, bugs, "two votes in a term") {
		t.Run(name, func(t *testing.T) {
			out := planted.Run(t, shrinks, nil, bug)
			t.Log(out)
			var lengths []int
			for line := range strings.Lines(out) {
				var seed, before, after, took int
				var invariant string
				if _, err := fmt.Sscan(line, &seed, &invariant, &before, &after, &took); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				lengths = append(lengths, after)
			}
			if len(lengths) < 3 || middle(lengths) > 6 {
				t.Errorf("%d seeds break something; they shrink to %v actions", len(lengths), lengths)
			}
		})
	}
}
