package main

import (
	"fmt"
	"strings"
	"time"

	"ticketing/sim"
)

// printChapter is a line for a chapter, and one for each of its scenarios that did not hold.
func (g *grading) printChapter(c *call, n int, ch *graded) {
	mark, says := "ok", fmt.Sprintf("%d of %d hold", ch.holding(), len(ch.rows))
	switch {
	case len(ch.rows) == 0:
		mark, says = "-", fmt.Sprintf("left out: %d scenarios before have looped", mostLoops)
	case !ch.held():
		mark = "NO"
	}
	fmt.Fprintf(c.out, "%2d  %-2s  %-17s %s\n", n, mark, ch.name, says)
	style := g.look.style(c)
	for i := range ch.rows {
		if r := &ch.rows[i]; !r.held() {
			c.printClean(fmt.Sprintf("        %-23s %s\n", r.name, r.why()), style)
		}
	}
}

// why says in a line why a run did not hold.
func (r *gradedRow) why() string {
	switch {
	case r.crash != nil:
		return r.crash.line()
	case len(r.outcome.Violated) > 0:
		return "BROKEN  " + strings.Join(r.outcome.Violated, ", ")
	}
	return "FAILED  " + r.outcome.Failure
}

// line says in one line what a crash was.
func (c *crash) line() string {
	where := ""
	if len(c.frames) > 0 {
		words := strings.Fields(c.frames[0])
		where = ", at " + words[len(words)-1]
	}
	return fmt.Sprintf("%-7s %s%s", c.kind, c.says, where)
}

func (g *grading) printSearch(c *call, f *ownFindings, took time.Duration) {
	mark := "ok"
	if !f.held() {
		mark = "NO"
	}
	fmt.Fprintf(c.out, "    %-2s  %-17s %d random runs from seed %d, faults %s, in %s\n",
		mark, "search", f.Seeds, f.First, g.shared.faults, took.Round(100*time.Millisecond))
	style := g.look.style(c)
	for _, s := range f.crashes {
		if f.places[s.place()] == s.seed {
			c.printClean(fmt.Sprintf("        %-23s %s\n", fmt.Sprintf("seed %d", s.seed), s.line()), style)
		}
	}
	if f.failed != nil {
		row := gradedRow{outcome: f.failed}
		c.printClean(fmt.Sprintf("        %-23s %s\n", fmt.Sprintf("seed %d", f.Last), row.why()), style)
	}
}

// printEnd says which invariants held in all of it, and how to go on.
func (g *grading) printEnd(c *call, all []graded, f *ownFindings) {
	broken := brokenIn(all, f)
	fmt.Fprintf(c.out, "invariants: %d of %d were never broken\n", len(sim.Invariants())-len(broken), len(sim.Invariants()))
	for _, name := range broken {
		fmt.Fprintf(c.out, "    %-23s %s\n", name, sim.Sentence(name))
	}
	for i := range all {
		if ch := &all[i]; !ch.held() {
			fmt.Fprintf(c.out, "go on with %d, %s: %s\n", i+1, ch.name, ch.about)
			for j := range ch.rows {
				if r := &ch.rows[j]; !r.held() {
					fmt.Fprintf(c.out, "    %s\n", g.again(r.name))
					break
				}
			}
			return
		}
	}
	switch {
	case f.failed != nil:
		fmt.Fprintf(c.out, "go on with the search:\n    %s\n", g.shared.replayCommand(f.Last))
	case len(f.crashes) > 0:
		fmt.Fprintf(c.out, "go on with the search:\n    %s\n", f.crashes[0].again)
	default:
		fmt.Fprintln(c.out, "all of it holds")
	}
}

// brokenIn lists the invariants that were broken anywhere, in the order of raftsim list.
func brokenIn(all []graded, f *ownFindings) (broken []string) {
	seen := map[string]bool{}
	for _, ch := range all {
		for _, r := range ch.rows {
			if r.outcome != nil {
				for _, v := range r.outcome.Violated {
					seen[v] = true
				}
			}
		}
	}
	if f.failed != nil {
		for _, v := range f.failed.Violated {
			seen[v] = true
		}
	}
	for _, i := range sim.Invariants() {
		if seen[i.Name] {
			broken = append(broken, i.Name)
		}
	}
	return broken
}

// report is what -json prints.
func (g *grading) report(all []graded, f *ownFindings) map[string]any {
	var list []map[string]any
	for i := range all {
		rows := []map[string]any{}
		for j := range all[i].rows {
			r := &all[i].rows[j]
			row := map[string]any{"scenario": r.name, "held": r.held()}
			if !r.held() {
				row["why"], row["again"] = r.why(), g.again(r.name)
			}
			rows = append(rows, row)
		}
		list = append(list, map[string]any{"chapter": all[i].name, "held": all[i].held(), "scenarios": rows})
	}
	return map[string]any{
		"chapters": list, "search": f.report(&g.shared), "broken": append([]string{}, brokenIn(all, f)...),
		"held": allHeld(all) && f.held(),
	}
}
