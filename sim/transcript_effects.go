package sim

import (
	"fmt"
	"slices"
	"strings"

	"ticketing/fsm"
	"ticketing/raft"
)

// effects says what followed from an input: what changed, what was stored, applied, and sent.
func (w *scribe) effects(m *moment) []string {
	var words []string
	var appended, applied []*Event
	for _, e := range m.tail {
		switch e.Kind {
		case KindState:
			words = append(words, w.changes(e)...)
		case KindAppend:
			if m.Kind != KindStart && m.Kind != KindRestart {
				appended = append(appended, e)
			}
		case KindApply:
			applied = append(applied, e)
		case KindStop:
			words = append(words, "stops itself: "+e.Text)
		}
	}
	words = slices.Concat(appendWords(appended), words, applyWords(applied))
	return append(words, w.leaves(m)...)
}

// changes says what of a node's state changed, besides its log.
func (w *scribe) changes(e *Event) []string {
	before, after := w.states[e.Node], *e.state()
	w.states[e.Node] = after
	var words []string
	switch {
	case after.Role == raft.Leader.String() && before.Role != after.Role:
		words = append(words, fmt.Sprintf("leads term %d", after.Term))
	case after.Role == raft.Candidate.String() && after.Term > before.Term:
		words = append(words, fmt.Sprintf("becomes candidate of term %d", after.Term))
	case after.Role != before.Role && before.Role != "":
		words = append(words, fmt.Sprintf("becomes %s in term %d", after.Role, after.Term))
	case after.Term > before.Term:
		words = append(words, fmt.Sprintf("enters term %d", after.Term))
	}
	if after.Commit > before.Commit {
		words = append(words, "commits "+span(before.Commit+1, after.Commit))
	}
	if n := len(words); n > 0 && e.Rule != "" {
		words[n-1] += " [" + e.Rule + "]"
	}
	return words
}

// appendWords says what is new in a log: proposed by a leader, or stored by a follower.
func appendWords(events []*Event) []string {
	if len(events) == 0 {
		return nil
	}
	first, last := events[0].entry(), events[len(events)-1].entry()
	rule := ""
	if events[0].Rule != "" {
		rule = " [" + events[0].Rule + "]"
	}
	var entries []EntryRecord
	for _, e := range events {
		entries = append(entries, *e.entry())
	}
	switch events[0].Rule {
	case "AE.3":
		return []string{"stores " + span(first.Index, last.Index) + " in place of what stood there" + rule}
	case "AE.4":
		return []string{"stores " + span(first.Index, last.Index) + rule}
	}
	why := ""
	if last.Cause == fsm.ForLease.String() {
		why = fmt.Sprintf(" because the lease of token %d is over", last.Meant)
	}
	return []string{"appends " + entriesWords(entries) + why + rule}
}

func applyWords(events []*Event) []string {
	var words []string
	for _, e := range events {
		text := fmt.Sprintf("%d %s", e.entry().Index, e.entry().Result)
		if e.Rule != "" && e.Rule != "Token.Grows" {
			text += " [" + e.Rule + "]"
		}
		words = append(words, text)
	}
	switch n := len(words); {
	case n == 0:
		return nil
	case n > 6:
		return []string{fmt.Sprintf("applies %s, … %s", words[0], words[n-1])}
	}
	return []string{"applies " + strings.Join(words, ", ")}
}

// leaves says what is sent; the same to several is said once.
func (w *scribe) leaves(m *moment) []string {
	var words []string
	to := map[string][]string{}
	add := func(text, receiver string) {
		if to[text] == nil {
			words = append(words, text)
		}
		to[text] = append(to[text], receiver)
	}
	for _, e := range m.tail {
		switch e.Kind {
		case KindSend:
			add(sendWords(e))
		case KindReply:
			add("answers "+e.asked().Client+": "+replyWords(e.asked()), "")
		case KindLost:
			add("lost at once ("+e.Text+"): what goes to", e.Node)
		}
	}
	for i, text := range words {
		if receivers := listed(to[text]); receivers != "" {
			words[i] = text + " " + receivers
		}
		words[i] = strings.TrimSuffix(words[i], " ")
	}
	return words
}

// sendWords says what a message is, and to whom if that is not its end.
func sendWords(e *Event) (text, receiver string) {
	r := e.message()
	rule := ""
	if e.Rule != "" {
		rule = " [" + e.Rule + "]"
	}
	switch r.Kind {
	case messageVote.String():
		return "asks for the vote of", r.To
	case messageVoteReply.String():
		if r.Granted {
			return "votes for " + r.To + rule, ""
		}
		return "refuses " + r.To + " its vote" + rule, ""
	case messageAppend.String():
		if n := len(r.Entries); n > 0 {
			return fmt.Sprintf("sends %s to", span(r.Entries[0].Index, r.Entries[n-1].Index)), r.To
		}
		return fmt.Sprintf("tells commit %d to", r.Commit), r.To
	case messageAppendReply.String():
		if r.Success {
			return fmt.Sprintf("tells %s that it has %s", r.To, upTo(r.Match)) + rule, ""
		}
		return "refuses " + r.To + "'s append" + rule, ""
	}
	return "sends " + r.Kind + " to", r.To
}

func replyWords(c *ClientRecord) string {
	if c.Result != "" {
		return c.Result
	}
	return c.Status
}
