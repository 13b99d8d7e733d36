package trace

import (
	"fmt"
	"strconv"
	"strings"

	"ticketing/fsm"
	"ticketing/raft"
)

// NodeName names a server.
func NodeName(id raft.ServerID) string { return fmt.Sprintf("S%d", id) }

// ClientName names a client as people know it: by its owner, or else by the end of its number.
func ClientName(owner string, id fsm.ClientID) string {
	if owner == "" {
		return fmt.Sprintf("c%06x", uint64(id)&0xffffff)
	}
	return owner
}

// What texts and fields may say that tools look for.
const (
	Disconnect = "disconnect"   // ClientRecord.Op: a client has left
	ToldToStop = "told to stop" // Event.Text of a stop: by whoever runs the node
)

// OfStatus writes a server's state down.
func OfStatus(s raft.Status) *StateRecord {
	return &StateRecord{
		Role: s.Role.String(), Term: s.Term, Vote: s.VotedFor, Leader: s.Leader,
		Commit: s.CommitIndex, Applied: s.LastApplied, Last: s.LastIndex, LastTerm: s.LastTerm,
	}
}

// OfEntry writes an entry of a log down.
func OfEntry(e raft.Entry) EntryRecord {
	return EntryRecord{Index: e.Index, Term: e.Term, Command: string(e.Command), Members: MembersText(e.Members)}
}

// MembersText writes servers down, the voters first: S1,S2,S3+S4, where S4 is a learner. It is empty if
// there are none.
func MembersText(members raft.Configuration) string {
	var voters, learners []string
	for _, m := range members {
		if m.Voter {
			voters = append(voters, NodeName(m.ID))
		} else {
			learners = append(learners, NodeName(m.ID))
		}
	}
	text := strings.Join(voters, ",")
	if len(learners) > 0 {
		text += "+" + strings.Join(learners, ",")
	}
	return text
}

// The kinds of messages between servers.
const (
	Vote        = "vote"
	VoteReply   = "vote-reply"
	Append      = "append"
	AppendReply = "append-reply"

	PreVote      = "prevote"
	PreVoteReply = "prevote-reply"

	ReadIndex       = "read"
	ReadIndexReply  = "read-reply"
	TimeoutNow      = "transfer"
	TimeoutNowReply = "transfer-reply"
	Snapshot        = "snapshot"
	SnapshotReply   = "snapshot-reply"
)

// OfMessage writes down every field of a message between servers.
func OfMessage(m *raft.Message) *MessageRecord {
	r := &MessageRecord{From: NodeName(m.From), To: NodeName(m.To), Term: m.Term, Call: m.Call}
	switch b := m.Body.(type) {
	case raft.RequestVote:
		r.Kind, r.LastIndex, r.LastTerm = Vote, b.LastLogIndex, b.LastLogTerm
	case raft.RequestVoteReply:
		r.Kind, r.RequestTerm, r.Granted = VoteReply, b.RequestTerm, b.VoteGranted
	case raft.PreVote:
		r.Kind, r.LastIndex, r.LastTerm = PreVote, b.LastLogIndex, b.LastLogTerm
	case raft.PreVoteReply:
		r.Kind, r.RequestTerm, r.Granted = PreVoteReply, b.RequestTerm, b.VoteGranted
	case raft.ReadIndex:
		r.Kind, r.Read = ReadIndex, b.ID
	case raft.ReadIndexReply:
		r.Kind, r.Read, r.RequestTerm = ReadIndexReply, b.ID, b.RequestTerm
		r.Success, r.Index = b.Success, b.Index
	case raft.TimeoutNow:
		r.Kind = TimeoutNow
	case raft.TimeoutNowReply:
		r.Kind, r.RequestTerm = TimeoutNowReply, b.RequestTerm
	case raft.InstallSnapshot:
		r.Kind, r.LastIndex, r.LastTerm = Snapshot, b.LastIncludedIndex, b.LastIncludedTerm
		r.Offset, r.Size, r.Done = b.Offset, len(b.Data), b.Done
	case raft.InstallSnapshotReply:
		r.Kind, r.RequestTerm, r.LastIndex = SnapshotReply, b.RequestTerm, b.LastIncludedIndex
		r.Offset, r.Installed = b.Offset, b.Installed
	case raft.AppendEntries:
		r.Kind, r.Commit = Append, b.LeaderCommit
		r.PrevIndex, r.PrevTerm = b.PrevLogIndex, b.PrevLogTerm
		for _, e := range b.Entries {
			r.Entries = append(r.Entries, OfEntry(e))
		}
	case raft.AppendEntriesReply:
		r.Kind, r.RequestTerm, r.PrevIndex = AppendReply, b.RequestTerm, b.PrevLogIndex
		r.Success, r.Match = b.Success, b.MatchIndex
		r.ConflictTerm, r.ConflictIndex = b.ConflictTerm, b.ConflictIndex
	}
	return r
}

// OfRequest writes down what a client asks.
func OfRequest(q *fsm.Request) *ClientRecord {
	return &ClientRecord{
		Op: q.Kind.String(), Key: q.Key, Seq: q.Seq, Attempt: q.Attempt, LeaseMS: q.LeaseMS,
		Token: uint64(q.Token),
	}
}

// OfReply writes down how a request is answered.
func OfReply(q *fsm.Request, y *fsm.Reply) *ClientRecord {
	r := OfRequest(q)
	r.Status = y.Status.String()
	if q.Kind == fsm.Grant {
		r.Token = uint64(y.Result.Token)
	}
	if y.Status == fsm.Answered {
		r.Result = y.Result.String()
	}
	return r
}

// OfWrite writes down a write that goes to the disk.
func OfWrite(w *raft.Write) *WriteRecord {
	r := &WriteRecord{Seq: w.Seq, Term: w.Term, Vote: w.VotedFor}
	if k := len(w.Entries); k > 0 {
		r.First, r.Last = w.Entries[0].Index, w.Entries[k-1].Index
	}
	r.Snapshot = OfSnapshot(w.Snapshot)
	return r
}

// OfSnapshot writes a snapshot down; nil if there is none.
func OfSnapshot(s *raft.Snapshot) *SnapshotRecord {
	if s == nil {
		return nil
	}
	return &SnapshotRecord{Index: s.LastIncludedIndex, Term: s.LastIncludedTerm, Size: len(s.Data)}
}

// Changed is the event of a state that has become another. It reports false if nothing has changed
// that belongs to Figure 2's state: what is durable changes with the disk alone.
func Changed(before, after *raft.Status, received *raft.Message) (Event, bool) {
	b := *before
	b.Durable = after.Durable
	if b == *after {
		return Event{}, false
	}
	rule := ruleOfChange(before, after, received)
	return Event{Kind: KindState, State: OfStatus(*after), Rule: rule}, true
}

// Appended is the event of an entry that has come into a log, which ended at lastBefore until then.
// The role is the server's, and p tells of the proposal if this server has made one.
func Appended(e raft.Entry, lastBefore raft.Index, role raft.Role, p *fsm.Proposed) Event {
	r := OfEntry(e)
	if p != nil {
		r.Cause, r.Meant = p.Cause.String(), uint64(p.Meant)
	}
	return Event{Kind: KindAppend, Entry: &r, Rule: ruleOfAppend(e, lastBefore, role, p)}
}

// Applied is the event of an entry that was carried out.
func Applied(a *fsm.Applied, command []byte) Event {
	r := OfEntry(raft.Entry{Index: a.Index, Term: a.Term, Command: command, Members: a.Members})
	r.Result, r.Hash = a.Result.String(), strconv.FormatUint(a.Hash, 16)
	return Event{Kind: KindApply, Entry: &r, Rule: ruleOfResult(&a.Envelope, a.Result)}
}
