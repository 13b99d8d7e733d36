package sim

import (
	"fmt"
	"strconv"
	"strings"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// Transcript writes the trace for people: a line for each input and what followed from it, with its
// event's number, the true time in milliseconds, the node, and the node's own clock where that is
// another. What the scenario says stands where it said it. Messages without news are counted.
func Transcript(t *trace.Trace, o Style) string {
	w := newScribe(t, o)
	w.heading()
	for i := range w.moments {
		w.moment(&w.moments[i])
	}
	w.flush()
	return w.out.String()
}

// scribe writes a transcript.
type scribe struct {
	*plot
	Style
	out    strings.Builder
	indent int // where the words begin
	id     int // the widths of the columns: events, times,
	time   int
	node   int // nodes,
	own    int // and their own clocks
	drift  bool
	states map[string]trace.StateRecord
	match  map[[2]string]raft.Index // the greatest that a node has heard from another
	prose  bool                     // the last line was prose

	quiet   int        // messages without news since the last line
	repeats bool       // not all of them heartbeats and replies
	last    trace.Time // when something was last written

	sessions map[raft.Index]bool // entries that begin one
	openings bool                // some of what was counted is about sessions that begin
}

func newScribe(t *trace.Trace, o Style) *scribe {
	w := &scribe{
		plot: newPlot(t), Style: o, id: 6, time: 11, node: 2, own: 10,
		states: map[string]trace.StateRecord{}, match: map[[2]string]raft.Index{},
		sessions: map[raft.Index]bool{},
	}
	for i := range t.Events {
		e := &t.Events[i]
		w.drift = w.drift || isAside(e)
		w.node = min(max(w.node, len([]rune(e.Node))), 12)
		w.id = max(w.id, len(strconv.FormatInt(e.ID, 10)))
		w.time = max(w.time, len(exactMillis(e.At)))
		w.own = max(w.own, len(exactMillis(trace.Time(e.Local))))
	}
	w.indent = w.id + 2 + w.time + 2 + w.node + 2
	if w.drift {
		w.indent += w.own + 2
	}
	return w
}

// isAside reports whether an event's node reads another time than the true one.
func isAside(e *trace.Event) bool {
	switch e.Kind {
	case trace.KindLost, trace.KindResource, trace.KindViolation:
		return false // no clock is read
	}
	return e.Node != "" && e.Local != raft.Time(e.At)
}

func (w *scribe) heading() {
	h := w.Header
	w.write(runWords(h), 0, paintBold)
	axis := "ms"
	if !h.Real {
		w.say(h.Title)
		axis = "true ms"
	}
	columns := fmt.Sprintf("%*s  %*s  %-*s", w.id, "event", w.time, axis, w.node, "who")
	if w.drift {
		columns += fmt.Sprintf("  %*s", w.own, "own ms")
	}
	w.write(columns, 0, paintFaint)
}

// write breaks text into lines, each but the first indented.
func (w *scribe) write(text string, indent int, p paint) {
	for i, line := range wrap(w.Clean(text), w.width()-indent) {
		c := newCanvas(w.Style)
		at := indent
		if i == 0 {
			at = 0
		}
		c.text(at, line, p)
		w.out.WriteString(c.String() + "\n")
	}
	w.prose = false
}

// say writes prose, with an empty line before it if it begins a paragraph.
func (w *scribe) say(text string) {
	if !w.prose && w.out.Len() > 0 {
		w.out.WriteString("\n")
	}
	w.write("# "+text, 2, paintBold)
	w.prose = true
}

// line writes about an event. What of the words does not fit stands below them.
func (w *scribe) line(e *trace.Event, text string, p paint) {
	w.settle(e.At)
	own := ""
	if isAside(e) {
		own = exactMillis(trace.Time(e.Local))
	}
	c := newCanvas(w.Style)
	c.text(0, fmt.Sprintf("%*d  %*s", w.id, e.ID, w.time, exactMillis(e.At)), paintFaint)
	c.text(w.id+2+w.time+2, clip(w.Clean(e.Node), w.node), paintBold)
	if w.drift {
		c.text(w.indent-w.own-2, fmt.Sprintf("%*s", w.own, own), paintFaint)
	}
	for i, words := range wrap(w.Clean(text), w.width()-w.indent) {
		if i > 0 {
			c = newCanvas(w.Style)
		}
		c.text(w.indent, words, p)
		w.out.WriteString(c.String() + "\n")
	}
	w.prose, w.last = false, e.At
}

// exactMillis writes a time in milliseconds with all its digits.
func exactMillis(t trace.Time) string {
	sign := ""
	if t < 0 {
		sign, t = "-", -t
	}
	return fmt.Sprintf("%s%d.%03d", sign, t/trace.Millisecond, t%trace.Millisecond)
}

// settle writes how many messages brought no news, if that took long enough to be worth a line.
func (w *scribe) settle(now trace.Time) {
	if w.quiet > 0 && now-w.last > quickEnough {
		w.flush()
	}
}

func (w *scribe) flush() {
	if w.quiet == 0 {
		return
	}
	words := "⋮ " + count(w.quiet, "heartbeat or reply", "heartbeats and replies")
	if w.repeats {
		words = "⋮ " + count(w.quiet, "message that says nothing new", "heartbeats, replies and repeats")
	}
	if w.openings {
		words = "⋮ " + count(w.quiet, "message that begins a session", "messages with which sessions begin, or that say nothing new")
	}
	c := newCanvas(w.Style)
	c.text(w.indent, w.Clean(words), paintFaint)
	w.out.WriteString(c.String() + "\n")
	w.quiet, w.repeats, w.openings, w.prose = 0, false, false, false
}

// moment writes one moment, or counts it.
func (w *scribe) moment(m *moment) {
	switch m.Kind {
	case trace.KindProse:
		w.settle(m.At)
		w.say(m.Text)
		return
	case trace.KindExpect:
		w.line(m.Event, "✓ expect "+m.Text, paintPlain)
	case trace.KindFailed:
		w.line(m.Event, "✕ "+m.Text, paintWrong)
	case trace.KindViolation:
		w.violation(m.Event)
	}
	if w.sessionsBegin(m) {
		return
	}
	if n, quiet := w.isQuiet(m); quiet {
		w.quiet += n
		return
	}
	words := w.begins(m)
	if effects := w.effects(m); len(effects) > 0 {
		if words != "" {
			words += " → "
		}
		words += strings.Join(effects, "; ")
	}
	if words != "" {
		w.line(m.Event, words, w.paintOf(m))
	}
	for _, e := range m.tail {
		if e.Kind == trace.KindViolation {
			w.violation(e)
		}
	}
}

// paintOf is the colour of a line: that of the subject where a lease's end is proposed or applied.
func (w *scribe) paintOf(m *moment) paint {
	for _, e := range m.tail {
		if e.Kind == trace.KindAppend && entryOf(e).Cause == "lease" || e.Rule == "Expire.Token" {
			return paintSubject
		}
	}
	if m.Kind == trace.KindCrash {
		return paintWrong
	}
	return paintPlain
}

func (w *scribe) violation(e *trace.Event) {
	w.line(e, fmt.Sprintf("✕ %s is broken: %s. Here, %s", e.Rule, Sentence(e.Rule), e.Text), paintWrong)
}
