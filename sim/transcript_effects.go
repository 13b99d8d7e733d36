package sim

import (
	"fmt"
	"slices"
	"strings"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// effects says what followed from an input: what changed, what was stored, applied, and sent.
func (w *scribe) effects(m *moment) []string {
	var words []string
	var appended, applied []*trace.Event
	for _, e := range m.tail {
		switch e.Kind {
		case trace.KindState:
			words = append(words, w.changes(e)...)
		case trace.KindAppend:
			if m.Kind != trace.KindStart && m.Kind != trace.KindRestart {
				appended = append(appended, e)
			}
		case trace.KindApply:
			applied = append(applied, e)
		case trace.KindStop:
			words = append(words, stopWords(e.Text))
		case trace.KindTrim, trace.KindTable, trace.KindKeep:
			words = append(words, snapshotWords(e))
		}
	}
	words = slices.Concat(w.appendWords(appended), words, applyWords(applied))
	return append(words, w.leaves(m)...)
}

func stopWords(why string) string {
	if why == trace.ToldToStop {
		return "is stopped"
	}
	return "stops itself: " + why
}

// changes says what of a node's state changed, besides its log.
func (w *scribe) changes(e *trace.Event) []string {
	before, after := w.states[e.Node], *stateOf(e)
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
func (p *plot) appendWords(events []*trace.Event) []string {
	if len(events) == 0 {
		return nil
	}
	first, last := entryOf(events[0]), entryOf(events[len(events)-1])
	rule := ""
	if events[0].Rule != "" {
		rule = " [" + events[0].Rule + "]"
	}
	var entries []trace.EntryRecord
	for _, e := range events {
		entries = append(entries, *entryOf(e))
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
	return []string{"appends " + p.entriesWords(entries) + why + rule}
}

func applyWords(events []*trace.Event) []string {
	var words []string
	for _, e := range events {
		text := fmt.Sprintf("%d %s", entryOf(e).Index, entryOf(e).Result)
		if servers := entryOf(e).Members; servers != "" {
			text = fmt.Sprintf("%d with the servers %s", entryOf(e).Index, servers)
		}
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
		receivers, said := to[text]
		if !said {
			words = append(words, text)
		}
		if receiver != "" {
			receivers = append(receivers, receiver)
		}
		to[text] = receivers
	}
	for _, e := range m.tail {
		switch e.Kind {
		case trace.KindSend:
			add(sendWords(e))
		case trace.KindReply:
			add(saysWords(e), "")
		case trace.KindLost:
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
func sendWords(e *trace.Event) (text, receiver string) {
	r := messageOf(e)
	rule := ""
	if e.Rule != "" {
		rule = " [" + e.Rule + "]"
	}
	switch r.Kind {
	case trace.Vote:
		return "asks for the vote of", r.To
	case trace.VoteReply:
		if r.Granted {
			return "votes for " + r.To + rule, ""
		}
		return "refuses " + r.To + " its vote" + rule, ""
	case trace.PreVote:
		return "asks whether it would have the vote of", r.To
	case trace.PreVoteReply:
		if r.Granted {
			return "would vote for " + r.To + rule, ""
		}
		return "would not vote for " + r.To + rule, ""
	case trace.Append:
		if n := len(r.Entries); n > 0 {
			return fmt.Sprintf("sends %s to", span(r.Entries[0].Index, r.Entries[n-1].Index)), r.To
		}
		return fmt.Sprintf("tells commit %d to", r.Commit), r.To
	case trace.AppendReply:
		if r.Success {
			return fmt.Sprintf("tells %s that it has %s", r.To, upTo(r.Match)) + rule, ""
		}
		return "refuses " + r.To + "'s append" + rule, ""
	}
	return leaderWords(r, rule)
}

// leaderWords is sendWords for messages about reads, transfers and snapshots.
func leaderWords(r *trace.MessageRecord, rule string) (text, receiver string) {
	switch r.Kind {
	case trace.ReadIndex:
		return "asks for a read as of now at", r.To
	case trace.ReadIndexReply:
		if r.Success {
			return fmt.Sprintf("tells %s to read as of entry %d", r.To, r.Index) + rule, ""
		}
		return "tells " + r.To + " that it cannot vouch for a read", ""
	case trace.TimeoutNow:
		return "tells " + r.To + " to campaign", ""
	case trace.TimeoutNowReply:
		return "answers " + r.To, ""
	case trace.Snapshot, trace.SnapshotReply:
		return sendsSnapshot(r)
	}
	return "sends " + r.Kind + " to", r.To
}

// saysWords says what a client, or the scenario itself, is answered.
func saysWords(e *trace.Event) string {
	c := clientOf(e)
	asOf := fmt.Sprintf("as of entry %d", c.Index)
	switch {
	case c.Client != "":
		return "answers " + c.Client + ": " + replyWords(c)
	case c.Status == stateUnknown:
		return "says: " + e.Text
	case c.Status == stateRefused:
		return "refuses: " + e.Text
	case c.Status == readFailed:
		return "cannot answer the read"
	case c.Status == readStale:
		return "shows its table " + asOf + ", which is old"
	}
	return "shows its table " + asOf
}

func replyWords(c *trace.ClientRecord) string {
	if c.Result != "" {
		return c.Result
	}
	return c.Status
}
