package sim

import (
	"cmp"
	"strconv"
	"strings"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file compares a node's state and messages in flight with what is expected, as text.

// holdsNode compares any of a node's state, each as text.
func (w *World) holdsNode(c CondNode) (bool, string) {
	n := w.node(c.Node)
	if n.replica == nil {
		return false, "it has not been added"
	}
	var wrong []string
	for _, f := range c.Fields {
		if is := n.field(f.Key, w.now); is != f.Value {
			wrong = append(wrong, f.Key+"="+is)
		}
	}
	return len(wrong) == 0, "it has " + strings.Join(wrong, " ")
}

func (n *node) field(key string, now trace.Time) string {
	s := n.status
	switch key {
	case "role":
		return s.Role.String()
	case "term":
		return text(s.Term)
	case "vote":
		return serverText(s.VotedFor)
	case "leader":
		return serverText(s.Leader)
	case "commit":
		return text(s.CommitIndex)
	case "applied":
		return text(s.LastApplied)
	case "last":
		return text(s.LastIndex)
	case "log":
		return termsText(n.entries())
	case "members":
		members, _ := n.replica.Core().Members()
		return membersText(members)
	case "read":
		return cmp.Or(n.reading.last, readNone)
	case "snapshot":
		return snapshotText(n.replica.Core().Snapshot())
	case "ahead":
		return signed(duration(trace.Time(n.clock.at(now)) - now))
	case "wall":
		return signed(duration(n.clock.wallAt(now) - now))
	case "durable.snapshot":
		return snapshotText(n.disk.durable.Snapshot)
	case "durable.term":
		return text(n.disk.durable.Term)
	case "durable.vote":
		return serverText(n.disk.durable.VotedFor)
	case "durable.log":
		return termsText(n.disk.durable.Entries)
	}
	return "?"
}

// entries are those that a node's log has in memory.
func (n *node) entries() []raft.Entry {
	core := n.replica.Core()
	return core.Entries(core.FirstIndex(), n.status.LastIndex)
}

func snapshotText(s *raft.Snapshot) string {
	if s == nil {
		return "none"
	}
	return text(s.LastIncludedIndex) + "@" + text(s.LastIncludedTerm)
}

func text[T ~uint64](n T) string { return strconv.FormatUint(uint64(n), 10) }

func serverText(id raft.ServerID) string {
	if id == 0 {
		return "none"
	}
	return string(NodeActor(id))
}

func termsText(entries []raft.Entry) string {
	if len(entries) == 0 {
		return "none"
	}
	terms := make([]string, len(entries))
	for i, e := range entries {
		terms[i] = text(e.Term)
	}
	return strings.Join(terms, ",")
}

func (w *World) holdsInFlight(c CondInFlight) (bool, string) {
	slots := w.selected(c.Messages)
	found := 0
	var seen []string
	for _, slot := range slots {
		f := &w.flights[slot]
		wrong := false
		for _, want := range c.Fields {
			wrong = wrong || f.field(want.Key) != want.Value
		}
		if !wrong {
			found++
		}
		seen = append(seen, f.describe(c.Fields))
	}
	is := "no message of that kind is in flight there"
	if len(seen) > 0 {
		is = "in flight there: " + strings.Join(seen, "; ")
	}
	return (found > 0) != c.No, is
}

// describe writes a message with the fields that were asked for.
func (f *flight) describe(wanted []Field) string {
	s := f.kind.String()
	for _, w := range wanted {
		s += " " + w.Key + "=" + f.field(w.Key)
	}
	return s
}

func (f *flight) field(key string) string {
	if key == "term" {
		return text(f.raft.Term)
	}
	switch b := f.raft.Body.(type) {
	case raft.RequestVote:
		if key == "last" {
			return text(b.LastLogIndex) + "@" + text(b.LastLogTerm)
		}
	case raft.RequestVoteReply:
		if key == "granted" {
			return yesNo(b.VoteGranted)
		}
	case raft.PreVote:
		if key == "last" {
			return text(b.LastLogIndex) + "@" + text(b.LastLogTerm)
		}
	case raft.PreVoteReply:
		if key == "granted" {
			return yesNo(b.VoteGranted)
		}
	case raft.AppendEntries:
		switch key {
		case "prev":
			return text(b.PrevLogIndex) + "@" + text(b.PrevLogTerm)
		case "entries":
			return strconv.Itoa(len(b.Entries))
		case "commit":
			return text(b.LeaderCommit)
		}
	case raft.InstallSnapshot, raft.InstallSnapshotReply:
		return snapshotField(b, key)
	case raft.AppendEntriesReply:
		switch key {
		case "success":
			return yesNo(b.Success)
		case "match":
			return text(b.MatchIndex)
		}
	}
	return "?"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// snapshotField is field for messages about snapshots.
func snapshotField(body raft.Body, key string) string {
	switch b := body.(type) {
	case raft.InstallSnapshot:
		switch key {
		case "last":
			return text(b.LastIncludedIndex) + "@" + text(b.LastIncludedTerm)
		case "offset":
			return text(b.Offset)
		case "done":
			return yesNo(b.Done)
		}
	case raft.InstallSnapshotReply:
		switch key {
		case "offset":
			return text(b.Offset)
		case "installed":
			return yesNo(b.Installed)
		}
	}
	return "?"
}
