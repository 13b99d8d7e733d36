package sim

import (
	"fmt"
	"slices"
	"strings"

	"ticketing/fsm/trace"
)

// Sentence returns what an invariant says, "" if there is none of that name.
func Sentence(invariant string) string {
	for _, i := range invariants() {
		if i.name == invariant {
			return i.sentence
		}
	}
	return ""
}

// LastSteps returns the events that led to a violation, oldest first and at most n: those that
// caused it, one from another, and those about the same log entries as they name.
func LastSteps(t *trace.Trace, v Violation, n int) []string {
	if v.Event == 0 {
		return nil
	}
	wanted := map[int64]bool{}
	for id := v.Event; id > 0; id = t.Events[id-1].Cause {
		wanted[id] = true
	}
	entries := map[string]bool{}
	for _, e := range t.Events[:v.Event] {
		if e.Entry != nil && e.ID > v.Event-3 {
			entries[fmt.Sprint(e.Entry.Index, e.Entry.Term)] = true
		}
	}
	for _, e := range t.Events[:v.Event] {
		if e.Entry != nil && entries[fmt.Sprint(e.Entry.Index, e.Entry.Term)] {
			wanted[e.ID] = true
		}
	}
	var lines []string
	for id := v.Event; id > 0 && len(lines) < n; id-- {
		if e := &t.Events[id-1]; wanted[id] {
			lines = append(lines, fmt.Sprintf("%7d %12s  %-4s %s", e.ID, e.At, e.Node, describe(e)))
		}
	}
	slices.Reverse(lines)
	return lines
}

// describe says in a few words what an event was.
func describe(e *trace.Event) string {
	s := string(e.Kind)
	switch {
	case e.Message != nil:
		s += " " + describeMessage(e.Message)
	case e.Entry != nil:
		s += fmt.Sprintf(" %d@%d %q", e.Entry.Index, e.Entry.Term, e.Entry.Command)
		if e.Entry.Result != "" {
			s += " → " + e.Entry.Result
		}
		if e.Entry.Meant != 0 {
			s += fmt.Sprintf(" (meant for token %d)", e.Entry.Meant)
		}
	case e.Client != nil:
		s += " " + describeClient(e.Client)
	case e.Snapshot != nil && e.State == nil:
		s += fmt.Sprintf(" %d@%d", e.Snapshot.Index, e.Snapshot.Term)
	case e.Write != nil:
		s += fmt.Sprintf(" %d", e.Write.Seq)
	case e.State != nil:
		s += fmt.Sprintf(" %s term=%d commit=%d last=%d", e.State.Role, e.State.Term, e.State.Commit, e.State.Last)
	}
	if e.Text != "" {
		s += " " + e.Text
	}
	if e.Rule != "" {
		s += " [" + e.Rule + "]"
	}
	return s
}

func describeMessage(m *trace.MessageRecord) string {
	s := fmt.Sprintf("%s %s→%s term=%d", m.Kind, m.From, m.To, m.Term)
	if len(m.Entries) > 0 {
		s += fmt.Sprintf(" prev=%d entries=%d", m.PrevIndex, len(m.Entries))
	}
	switch {
	case m.Kind == trace.Snapshot || m.Kind == trace.SnapshotReply:
		s += fmt.Sprintf(" last=%d offset=%d", m.LastIndex, m.Offset)
	case m.Success && m.Kind == trace.ReadIndexReply:
		s += fmt.Sprintf(" index=%d", m.Index)
	case m.Success:
		s += fmt.Sprintf(" match=%d", m.Match)
	}
	return s
}

func describeClient(c *trace.ClientRecord) string {
	if c.Client == "" { // the scenario itself
		return c.Op + " " + c.Status
	}
	words := []string{c.Client, c.Op, c.Key}
	if c.Token != 0 {
		words = append(words, fmt.Sprintf("token=%d", c.Token))
	}
	if c.LeaseMS != 0 {
		words = append(words, "lease="+leaseWords(c.LeaseMS))
	}
	if c.Status != "" {
		words = append(words, c.Status)
	}
	return strings.Join(words, " ")
}
