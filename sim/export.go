package sim

import (
	"fmt"
	"io"
	"strings"

	"ticketing/fsm/trace"
)

// This file is what the formats for other people's viewers have in common. docs/exports.md describes
// them.

// ExportFormats lists what Export writes.
func ExportFormats() []string { return []string{"jsonl", "shiviz", "perfetto"} }

// Export writes a trace for another program: as JSON lines in this project's own schema, as a log for
// ShiViz, or as a trace for Perfetto and Chrome.
func Export(t *trace.Trace, format string, out io.Writer) error {
	var err error
	switch format {
	case "jsonl":
		_, err = t.WriteTo(out)
	case "shiviz":
		err = writeShiViz(t, out)
	case "perfetto":
		err = writePerfetto(t, out)
	default:
		err = fmt.Errorf("unknown format %q%s; expected one of %s",
			format, Nearest(format, ExportFormats()), strings.Join(ExportFormats(), " "))
	}
	return err
}

// worldHost is where events are that happen to no node, client or resource.
const worldHost = "world"

// step is what one host did at once: an input and what followed from it.
type step struct {
	host   string
	events []*trace.Event
	from   int // the step in which what arrived here was sent, or -1
}

func (s *step) first() *trace.Event { return s.events[0] }

// stepsOf makes steps of a trace. What is lost never happens to anybody, and prose is no event. at
// says in which step an event is, -1 for none.
func stepsOf(t *trace.Trace) (steps []step, at []int) {
	at = make([]int, len(t.Events)+1)
	last := map[string]int{} // step by host
	for i := range t.Events {
		e := &t.Events[i]
		at[e.ID] = -1
		if e.Kind == trace.KindLost || e.Kind == trace.KindProse {
			continue
		}
		cause := -1
		if e.Cause > 0 {
			cause = at[e.Cause]
		}
		host := hostOf(e)
		if present, ok := last[host]; ok && cause == present && !beginsStep(e.Kind) {
			steps[present].events = append(steps[present].events, e)
			at[e.ID] = present
			continue
		}
		if cause >= 0 && steps[cause].host == host {
			cause = -1 // of its own past it knows anyway
		}
		at[e.ID], last[host] = len(steps), len(steps)
		steps = append(steps, step{host, []*trace.Event{e}, cause})
	}
	return steps, at
}

// hostOf is where an event happens. Hosts have no spaces in them.
func hostOf(e *trace.Event) string {
	host := e.Node
	if e.Kind == trace.KindResource {
		host = "resource:" + e.Node
	}
	if host == "" {
		return worldHost
	}
	return strings.Join(strings.Fields(host), "_")
}

// beginsStep reports whether an event is an input, with which a step begins.
func beginsStep(k trace.EventKind) bool {
	switch k {
	case trace.KindTrim, trace.KindState, trace.KindAppend, trace.KindWrite, trace.KindTable, trace.KindApply,
		trace.KindKeep, trace.KindSend, trace.KindReply, trace.KindStop, trace.KindViolation:
		return false
	}
	return true
}

// words says what a step was, in a line. What it hands to its disk is left away.
func (s *step) words() string {
	var all []string
	for i, e := range s.events {
		switch e.Kind {
		case trace.KindWrite, trace.KindKeep, trace.KindTrim:
			if i > 0 {
				continue
			}
		}
		all = append(all, strings.Join(strings.Fields(describe(e)), " "))
	}
	return strings.Join(all, "; ")
}
