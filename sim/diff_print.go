package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ticketing/fsm/trace"
)

// Text says where the runs part and tells what follows, in so many lines at most, 0 for all.
func (d *Difference) Text(o Style, lines int) string {
	p := &diffPrinter{Difference: d, Style: o}
	for i, r := range d.Runs {
		p.write(i, side(i)+"  "+runWords(r.Trace.Header))
	}
	p.say("")
	if !d.Parted() {
		p.say(fmt.Sprintf("They are the same: %s in %s ms.",
			count(d.Same, "event", "events"), exactMillis(d.Runs[0].End)))
		return p.out.String()
	}
	p.say(fmt.Sprintf("The same for %s. From %s ms on, A and B are what only that run has:",
		count(d.Same, "event", "events"), exactMillis(d.At)))
	p.say("")
	told := p.tell()
	if lines == 0 || lines > len(told) {
		lines = len(told)
	}
	for _, l := range told[:lines] {
		p.line(l)
	}
	if left := len(told) - lines; left > 0 {
		p.say(fmt.Sprintf("   … %s to the end", count(left, "more line", "more lines")))
	}
	p.say("")
	p.sum()
	return p.out.String()
}

// diffPrinter writes a difference.
type diffPrinter struct {
	*Difference
	Style
	out strings.Builder
}

// side is the letter that stands for a run.
func side(run int) string { return [...]string{"A", "B"}[run] }

func (p *diffPrinter) write(run int, text string) {
	c := newCanvas(p.Style)
	c.text(0, text, [...]paint{paintPlain, paintSubject}[run])
	p.out.WriteString(c.String() + "\n")
}

func (p *diffPrinter) say(text string) { p.out.WriteString(p.Clean(text) + "\n") }

// oneSided is what one run has and the other does not, in words.
type oneSided struct {
	run   int
	at    trace.Time
	node  string
	words string
}

// tell tells both runs' parts of the cone, in the order of time.
func (p *diffPrinter) tell() []oneSided {
	var all []oneSided
	for run, r := range p.Runs {
		w := newScribe(r.Trace, p.Style)
		for i := range w.moments {
			m := &w.moments[i]
			about, quiet := w.opens(m), false
			if !about {
				_, quiet = w.isQuiet(m)
			}
			words := w.tellMoment(m)
			if about || quiet && m.ID != p.First[run] || words == "" || !p.differs(run, m) {
				continue
			}
			all = append(all, oneSided{run, m.At, m.Node, words})
		}
	}
	slices.SortStableFunc(all, func(a, b oneSided) int { return int(a.at - b.at) })
	return all
}

// tellMoment is a moment in words, and what it broke.
func (w *scribe) tellMoment(m *moment) string {
	words := slices.DeleteFunc([]string{w.begins(m), strings.Join(w.effects(m), "; ")},
		func(s string) bool { return s == "" })
	for _, e := range slices.Concat(m.inputs(), m.tail) {
		if e.Kind == trace.KindViolation {
			words = append(words, "✕ "+e.Rule+" is broken")
		}
	}
	return strings.Join(words, " → ")
}

// differs reports whether any of a moment's events is in the cone.
func (p *diffPrinter) differs(run int, m *moment) bool {
	return slices.ContainsFunc(slices.Concat(m.inputs(), m.tail),
		func(e *trace.Event) bool { return p.cone[run][e.ID] })
}

func (p *diffPrinter) line(l oneSided) {
	const indent = 20
	for i, part := range wrap(p.Clean(l.words), p.width()-indent) {
		if i > 0 {
			p.write(l.run, strings.Repeat(" ", indent)+part)
			continue
		}
		p.write(l.run, fmt.Sprintf("%s %10s  %-4s  %s", side(l.run), exactMillis(l.at), clip(l.node, 4), part))
	}
}

// sum says whom it has reached, how much of both runs differs, and how each ended.
func (p *diffPrinter) sum() {
	reached := slices.Collect(maps.Keys(p.Since))
	slices.SortFunc(reached, func(a, b string) int {
		if p.Since[a] != p.Since[b] {
			return int(p.Since[a] - p.Since[b])
		}
		return strings.Compare(a, b)
	})
	for i, name := range reached {
		reached[i] = name + " at " + exactMillis(p.Since[name])
	}
	words := "It reached " + strings.Join(reached, ", ")
	if len(reached) == 0 {
		words = "It reached nobody"
	}
	for _, part := range wrap(p.Clean(words+fmt.Sprintf(". It is %s of A's and %s of B's.",
		count(p.Follows(0), "event", "events"), count(p.Follows(1), "event", "events"))), p.width()) {
		p.say(part)
	}
	if p.Apart > 0 {
		p.say(count(p.Apart, "more event differs", "more events differ") +
			" by lines of a scenario: that wait, ask who leads, or stand in one of them alone.")
	}
	for i, r := range p.Runs {
		p.write(i, fmt.Sprintf("%s  %s", side(i), p.Clean(howItEnded(r))))
	}
}

// howItEnded is how a run ended, in a line.
func howItEnded(r *Result) string {
	switch {
	case len(r.Violations) > 0:
		return fmt.Sprintf("✕ %s broke at %s ms", r.Violations[0].Invariant, exactMillis(r.Violations[0].At))
	case r.Failure != nil:
		return "✕ " + r.Failure.Error()
	}
	return fmt.Sprintf("✓ all held, until %s ms", exactMillis(r.End))
}
