package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/sim"
)

// narrator tells a run while it happens: the scenario's lines at the margin, what the servers do
// indented, each with the milliseconds since the servers were ready.
type narrator struct {
	out     io.Writer
	quiet   bool
	words   string // prose that waits for its paragraph's end
	roles   map[string]string
	applied raft.Index
	started map[string]bool
	holders map[string]uint64   // by key, after the entries so far
	meant   map[position]uint64 // by whoever has proposed a removal
}

const (
	narrow = 96 // columns
	indent = 10 // of what has no time
)

func newNarrator(out io.Writer, quiet bool) *narrator {
	return &narrator{
		out: out, quiet: quiet, roles: map[string]string{}, started: map[string]bool{},
		holders: map[string]uint64{}, meant: map[position]uint64{},
	}
}

func (n *narrator) printf(format string, args ...any) {
	if !n.quiet {
		fmt.Fprintf(n.out, format, args...)
	}
}

// prose takes a line of the scenario's own words. Lines that follow one another are one paragraph,
// as they are broken for a wider page; one that begins with a space is left as it is.
func (n *narrator) prose(text string) {
	if text == "" || strings.HasPrefix(text, " ") {
		n.paragraph()
		n.printf("%*s# %s\n", indent, "", text)
		return
	}
	n.words += " " + text
}

// paragraph prints the prose that has come.
func (n *narrator) paragraph() {
	for _, line := range wrap(n.words, narrow-indent-2) {
		n.printf("%*s# %s\n", indent, "", line)
	}
	n.words = ""
}

// wrap breaks a text into lines.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line == "" {
		return lines
	}
	return append(lines, line)
}

// line prints a line of the scenario and what came of it.
func (n *narrator) line(at time.Duration, line sim.Line, said string) {
	text := line.Command.String()
	switch c := line.Command.(type) {
	case sim.Question:
		n.prose("? " + c.Text)
		n.paragraph()
		return
	case sim.SetNodes, sim.SetSeed, sim.SetConfig, sim.SetWithout, sim.SetNetwork:
		n.printf("%*s%s\n", indent, "", text)
		return
	}
	if said == "" {
		n.printf("%s%s\n", stamp(at), text)
		return
	}
	const column = 44
	if len(text) > column-2 || len(said) > narrow-indent-column-3 {
		n.printf("%s%s\n", stamp(at), text)
		for _, line := range wrap("-> "+said, narrow-indent-4) {
			n.printf("%*s%s\n", indent+4, "", line)
		}
		return
	}
	n.printf("%s%-*s-> %s\n", stamp(at), column, text, said)
}

// stamp is a time, in milliseconds.
func stamp(at time.Duration) string {
	return fmt.Sprintf("%*.1f  ", indent-2, float64(at.Microseconds())/1000)
}

// event prints what a server did, if it is worth it: who leads, what comes into the log, and what
// it comes to when it is committed.
func (n *narrator) event(at time.Duration, e *trace.Event) {
	text := n.tell(e)
	if text == "" {
		return
	}
	n.printf("%s    %s\n", stamp(max(at, 0)), text)
}

// remark prints what has come of a line later on.
func (n *narrator) remark(at time.Duration, text string) {
	for i, line := range wrap(text, narrow-indent-4) {
		head := stamp(at)
		if i > 0 {
			head = fmt.Sprintf("%*s", indent, "")
		}
		n.printf("%s    %s\n", head, line)
	}
}

func (n *narrator) tell(e *trace.Event) string {
	switch e.Kind {
	case trace.KindTrim:
		return fmt.Sprintf("%s has entries to %d in a snapshot, and no more in its log",
			e.Node, e.Snapshot.Index)
	case trace.KindTable:
		return fmt.Sprintf("%s has the table from a leader's snapshot", e.Node)
	case trace.KindStart:
		again := n.started[e.Node]
		n.started[e.Node] = true
		n.roles[e.Node] = e.State.Role
		if again {
			return fmt.Sprintf("%s is back, with %d entries on its disk", e.Node, e.State.Last)
		}
	case trace.KindState:
		before := n.roles[e.Node]
		n.roles[e.Node] = e.State.Role
		return tellRole(e, before)
	case trace.KindAppend:
		if e.Entry.Meant != 0 { // its proposer alone knows
			n.meant[position{e.Entry.Index, e.Entry.Term}] = e.Entry.Meant
		}
		if e.Entry.Cause != "" && e.Entry.Command+e.Entry.Members != "" {
			return fmt.Sprintf("%s appends %d: %s%s", e.Node, e.Entry.Index, command(e.Entry),
				tellCause(e.Entry))
		}
	case trace.KindApply:
		if e.Entry.Index <= n.applied || e.Entry.Command+e.Entry.Members == "" {
			n.applied = max(n.applied, e.Entry.Index)
			return ""
		}
		n.applied = e.Entry.Index
		return fmt.Sprintf("%d is committed: %s -> %s%s",
			e.Entry.Index, command(e.Entry), e.Entry.Result, n.meets(e.Entry))
	}
	return ""
}

// meets says what a removal has met that was meant for another tenure.
func (n *narrator) meets(r *trace.EntryRecord) string {
	e, err := fsm.Decode([]byte(r.Command))
	if err != nil {
		return ""
	}
	holder, meant := n.holders[e.Key], n.meant[position{r.Index, r.Term}]
	follow(n.holders, e.Key, r.Result)
	switch {
	case holder == 0 || meant == 0 || holder == meant:
		return ""
	case removes(r.Result):
		return fmt.Sprintf(" and ENDS #%d!", holder)
	}
	return fmt.Sprintf(", as #%d holds it", holder)
}

func tellRole(e *trace.Event, before string) string {
	leader, candidate := raft.Leader.String(), raft.Candidate.String()
	switch {
	case e.State.Role == before:
	case e.State.Role == leader:
		return fmt.Sprintf("%s wins term %d and leads", e.Node, e.State.Term)
	case e.State.Role == candidate:
		return fmt.Sprintf("%s asks for votes in term %d", e.Node, e.State.Term)
	case before == leader:
		return fmt.Sprintf("%s steps down: there is term %d", e.Node, e.State.Term)
	}
	return ""
}

// tellCause says why a leader has proposed something by itself.
func tellCause(r *trace.EntryRecord) string {
	switch r.Cause {
	case fsm.ForLease.String():
		return fmt.Sprintf(", as the lease of #%d is over by its clock", r.Meant)
	case fsm.ForCleanup.String():
		return fmt.Sprintf(", as the client of #%d has gone", r.Meant)
	}
	return ""
}

// command writes an entry's command as people say it.
func command(r *trace.EntryRecord) string {
	if r.Members != "" {
		return "Members " + r.Members
	}
	e, err := fsm.Decode([]byte(r.Command))
	if err != nil {
		return r.Command
	}
	of := ""
	if e.Owner != "" {
		of = " for " + e.Owner
	}
	switch e.Kind {
	case fsm.Grant:
		return fmt.Sprintf("Grant %s%s", e.Key, of)
	case fsm.Release:
		if e.Token == 0 {
			return fmt.Sprintf("Release %s whoever holds it%s", e.Key, of)
		}
		return fmt.Sprintf("Release %s #%d%s", e.Key, e.Token, of)
	case fsm.Expire:
		return fmt.Sprintf("Expire %s #%d", e.Key, e.Token)
	case fsm.Extend:
		return fmt.Sprintf("Extend %s #%d%s", e.Key, e.Token, of)
	case fsm.Open:
		return "a session" + of
	}
	return strings.TrimSpace("Noop " + e.Text)
}
