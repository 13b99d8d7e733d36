package sim

import (
	"fmt"
	"strconv"
	"strings"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// begins says what a moment began with.
func (w *scribe) begins(m *moment) string {
	var words []string
	for _, e := range m.inputs() {
		words = append(words, w.input(&moment{Event: e, tail: m.tail}))
	}
	return strings.Join(words, "; ")
}

// input says what an input was.
func (w *scribe) input(m *moment) string {
	switch m.Kind {
	case trace.KindStart, trace.KindRestart:
		return w.starts(m)
	case trace.KindCommand:
		return m.Text
	case trace.KindElectionTimeout:
		return "election timer fires"
	case trace.KindHeartbeatTimeout:
		return "heartbeat timer fires"
	case trace.KindSaved:
		return "the write is on disk"
	case trace.KindKept:
		return fmt.Sprintf("the snapshot up to entry %d is on disk", snapshotOf(m.Event).Index)
	case trace.KindWake:
		return "reads its clock"
	case trace.KindCrash:
		return strings.TrimSpace("loses power " + m.Text)
	case trace.KindPause:
		if m.Text != "" {
			return "is suspended with its machine"
		}
		return "stops running"
	case trace.KindResume:
		return "goes on"
	case trace.KindStop:
		return stopWords(m.Text)
	case trace.KindLost:
		return w.loses(m.Event)
	case trace.KindReceive:
		if m.Message != nil {
			return w.receives(messageOf(m.Event))
		}
		return "receives " + requestWords(clientOf(m.Event))
	case trace.KindRequest, trace.KindAnswer, trace.KindDisconnect, trace.KindResource:
		return w.clients(m)
	}
	return ""
}

func (w *scribe) starts(m *moment) string {
	s := stateOf(m.Event)
	w.states[m.Node] = *s
	words := "starts"
	if m.Kind == trace.KindRestart {
		words = "restarts"
	}
	words += fmt.Sprintf(" in term %d", s.Term)
	if s.Vote != 0 {
		words += ", vote " + serverText(s.Vote)
	}
	words += ", with " + holdsWords(m.Snapshot, s.Last)
	if s.Last > 0 {
		words += fmt.Sprintf(", the last of term %d", s.LastTerm)
	}
	if m.Text != "" {
		words += "; " + m.Text
	}
	return words
}

func (w *scribe) receives(r *trace.MessageRecord) string {
	switch r.Kind {
	case trace.Vote:
		words := fmt.Sprintf("receives vote request from %s, term %d", r.From, r.Term)
		if r.LastIndex > 0 {
			words += fmt.Sprintf(", whose log ends at %d of term %d", r.LastIndex, r.LastTerm)
		}
		return words
	case trace.PreVote:
		return fmt.Sprintf("is asked by %s whether it would win term %d", r.From, r.Term+1)
	case trace.PreVoteReply:
		if r.Granted {
			return "hears that it would have the vote of " + r.From
		}
		return fmt.Sprintf("hears that it would not have the vote of %s, term %d", r.From, r.Term)
	case trace.VoteReply:
		if r.Granted {
			return "receives the vote of " + r.From
		}
		return fmt.Sprintf("receives a refusal from %s, term %d", r.From, r.Term)
	case trace.Append:
		if len(r.Entries) == 0 {
			return fmt.Sprintf("receives heartbeat from %s, commit %d", r.From, r.Commit)
		}
		return fmt.Sprintf("receives append from %s: %s (%s)", r.From,
			count(len(r.Entries), "entry", "entries"), w.entriesWords(r.Entries))
	case trace.AppendReply:
		if r.Success {
			key := [2]string{r.To, r.From}
			w.match[key] = max(w.match[key], r.Match)
			return fmt.Sprintf("hears that %s has %s", r.From, upTo(r.Match))
		}
		return fmt.Sprintf("hears that %s does not match at %d", r.From, r.PrevIndex)
	}
	return hearsOfLeading(r)
}

// hearsOfLeading is receives for messages about reads, transfers and snapshots.
func hearsOfLeading(r *trace.MessageRecord) string {
	switch r.Kind {
	case trace.ReadIndex:
		return "is asked by " + r.From + " for a read"
	case trace.ReadIndexReply:
		if r.Success {
			return fmt.Sprintf("hears that it may read as of entry %d", r.Index)
		}
		return "hears that " + r.From + " cannot vouch for a read"
	case trace.TimeoutNow:
		return "is told by " + r.From + " to campaign"
	case trace.TimeoutNowReply:
		return fmt.Sprintf("hears that %s is in term %d", r.From, r.Term)
	case trace.Snapshot, trace.SnapshotReply:
		return hearsOfSnapshot(r)
	}
	return fmt.Sprintf("receives %s from %s", r.Kind, r.From)
}

func upTo(match raft.Index) string {
	if match == 0 {
		return "nothing yet"
	}
	return span(1, match)
}

// entriesWords lists entries with their commands, the last of many only by their number.
func (p *plot) entriesWords(entries []trace.EntryRecord) string {
	const most = 4
	var words []string
	for _, e := range entries[:min(len(entries), most)] {
		words = append(words, fmt.Sprintf("%d %s", e.Index, p.commandWords(e)))
	}
	if more := len(entries) - most; more > 0 {
		words = append(words, fmt.Sprintf("… %d more", more))
	}
	return strings.Join(words, ", ")
}

// commandWords writes a command with its owner, without the numbers that only machines need.
func (p *plot) commandWords(entry trace.EntryRecord) string {
	e, err := fsm.Decode([]byte(entry.Command))
	switch {
	case entry.Members != "":
		return p.changeWords(entry)
	case err != nil:
		return strconv.Quote(entry.Command)
	case e.Kind == fsm.Noop && e.Text == "":
		return "no-op"
	case e.Client == 0 && e.Owner == "":
		return strings.TrimSpace(strings.TrimPrefix(entry.Command, "- "))
	}
	_, command, _ := strings.Cut(strings.TrimSpace(entry.Command), `" `)
	return trace.ClientName(e.Owner, e.Client) + ": " + command
}

func (w *scribe) loses(e *trace.Event) string {
	r := messageOf(e)
	what := r.Kind + " from " + r.From
	if e.Client != nil {
		what = requestWords(clientOf(e))
	}
	return fmt.Sprintf("loses %s (%s)", what, e.Text)
}

// requestWords names a client's message.
func requestWords(c *trace.ClientRecord) string {
	words := c.Client + ": " + c.Op
	if c.Token != 0 {
		words += " " + strconv.FormatUint(c.Token, 10)
	}
	return strings.TrimSpace(words + " " + c.Key)
}

// resourceWords says what a resource made of a call.
func resourceWords(c *trace.ClientRecord) string {
	call := fmt.Sprintf("%s's %s with token %d", c.Client, c.Op, c.Token)
	switch c.Status {
	case stateRefused:
		return fmt.Sprintf("the resource refuses %s: it has seen %d", call, c.High)
	case stateChecked:
		return fmt.Sprintf("the resource finds %s right, having seen %d, and begins with it", call, c.High)
	}
	return fmt.Sprintf("the resource takes %s; before, it had seen %d", call, c.High)
}

func inSquare(rule string) string {
	if rule == "" {
		return ""
	}
	return " [" + rule + "]"
}

func (w *scribe) clients(m *moment) string {
	c := clientOf(m.Event)
	switch m.Kind {
	case trace.KindRequest:
		if c.Server == "" {
			what := "writes to"
			if c.Op == opRead {
				what = "reads"
			}
			return fmt.Sprintf("%s what %s guards, with token %d", what, c.Key, c.Token)
		}
		words := strings.TrimSpace(fmt.Sprintf("asks %s: %s %s", c.Server, c.Op, c.Key))
		if c.Token != 0 {
			words += fmt.Sprintf(", token %d", c.Token)
		}
		if c.LeaseMS != 0 {
			words += fmt.Sprintf(", lease %d ms", c.LeaseMS)
		}
		return words
	case trace.KindDisconnect:
		return "leaves " + c.Server + " before it is answered"
	case trace.KindResource:
		return resourceWords(c) + inSquare(m.Rule)
	}
	if m.Text == "" {
		return "has no token for " + c.Key + ", and sends nothing"
	}
	words := "hears from " + c.Server + ": " + m.Text
	switch {
	case m.Text == stateExtended:
		words += fmt.Sprintf("; believes to hold %s until its clock reads %s", c.Key, exactMillis(trace.Time(c.Until)))
	case c.Status == fsm.Expiring.String():
		words += ", an Expire of it is in the log"
	case m.Text == stateGranted:
		words += fmt.Sprintf(", token %d; believes to hold %s until its clock reads %s",
			c.Token, c.Key, exactMillis(trace.Time(c.Until)))
	}
	return words
}
