package main

import (
	"fmt"

	"ticketing/sim"
)

// mostSentences is how many things that did not happen are told in a sentence each; of the others there
// is the name.
const mostSentences = 8

// printUnseen says what has not happened of all that a search should see.
func (c *call) printUnseen(f *sim.Findings) {
	unseen, all := f.Unseen(), len(sim.Happenings())
	if len(unseen) == 0 {
		fmt.Fprintf(c.out, "  Seen             all %d things that a search should see\n", all)
		return
	}
	fmt.Fprintf(c.out, "  Seen             %8d of the %d things that a search should see; not yet:\n", all-len(unseen), all)
	told := min(len(unseen), mostSentences)
	for _, h := range unseen[:told] {
		fmt.Fprintf(c.out, "    %-22s %s\n", h.Counter, h.Sentence)
	}
	line := "    and"
	for _, name := range names(unseen[told:]) {
		if len(line)+1+len(name) > width {
			fmt.Fprintln(c.out, line)
			line = "       "
		}
		line += " " + name
	}
	if told < len(unseen) {
		fmt.Fprintln(c.out, line)
	}
}

// printHeld is the last line of a search in which nothing broke.
func (c *call) printHeld(f *sim.Findings, requireAll bool) {
	fmt.Fprintf(c.out, "all %d invariants held, at every event or, about what clients saw, at the end of each run\n", len(sim.Invariants()))
	if unseen := len(f.Unseen()); requireAll && unseen > 0 {
		fmt.Fprintf(c.out, "NOT ENOUGH  -require-all, and %d things did not happen: take more seeds, or -faults harsh\n", unseen)
	}
}

func names(list []sim.Happening) []string {
	counters := []string{}
	for _, h := range list {
		counters = append(counters, h.Counter)
	}
	return counters
}
