package sim

import (
	"fmt"
	"strings"

	"ticketing/fsm/trace"
)

// Text draws how many futures fail, a line a moment, and tells what happened where that rises most.
func (m *Moments) Text(o Style) string {
	p := &linesOf{Style: o}
	p.say(runWords(m.Run.Trace.Header), 0)
	p.say(fmt.Sprintf("%s breaks at %s ms. Of %d other futures from a moment on, so many break it too:",
		m.Broken.Invariant, exactMillis(m.Broken.At), m.Futures), 0)
	p.say("", 0)
	p.say(fmt.Sprintf("%12s  %12s  %s", "at ms", "ms before", "how many"), 0)
	steep := m.steepest()
	for i, s := range m.Shares {
		p.share(m, s)
		if i == steep && m.rise(i) > 0 {
			p.between(m.Run.Trace, s.At, m.Shares[i+1].At)
		}
	}
	p.say("", 0)
	end := m.NoReturn()
	p.say(fmt.Sprintf("The point of no return: from %s ms on, %s ms before it breaks, nine of ten futures break it.",
		exactMillis(end.At), exactMillis(m.Broken.At-end.At)), 0)
	return p.out.String()
}

// linesOf writes lines that are broken where they are too long.
type linesOf struct {
	Style
	out strings.Builder
}

func (p *linesOf) say(text string, indent int) {
	for i, part := range wrap(p.Clean(text), p.width()-indent) {
		if i > 0 {
			part = strings.Repeat(" ", indent) + part
		}
		p.out.WriteString(part + "\n")
	}
}

// share draws one moment: a bar of as many columns as half of a hundred futures.
func (p *linesOf) share(m *Moments, s Share) {
	c := newCanvas(p.Style)
	c.text(0, fmt.Sprintf("%12s  %12s  %5d  ", exactMillis(s.At), exactMillis(m.Broken.At-s.At), s.Fails), paintPlain)
	full := "█"
	if p.ASCII {
		full = "#"
	}
	c.text(35, strings.Repeat(full, s.Fails*50/m.Futures), paintSubject)
	p.out.WriteString(c.String() + "\n")
}

// mostTold bounds how much is told of what happened between two moments.
const mostTold = 8

// between tells what happened in the run that fails, between two moments.
func (p *linesOf) between(t *trace.Trace, from, to trace.Time) {
	w := newScribe(t, p.Style)
	told := 0
	for i := range w.moments {
		m := &w.moments[i]
		about := w.opens(m)
		_, quiet := w.isQuiet(m)
		words := w.tellMoment(m)
		if m.At < from || m.At >= to || about || quiet || words == "" || !happens(m.Event) {
			continue
		}
		if told++; told <= mostTold {
			p.say(fmt.Sprintf("      | %12s  %-4s  %s", exactMillis(m.At), clip(m.Node, 4), words), 28)
		}
	}
	if told > mostTold {
		p.say(fmt.Sprintf("      | and %d more", told-mostTold), 0)
	}
}
