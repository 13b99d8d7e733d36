package sim

import (
	"fmt"

	"ticketing/raft"
)

// persistBeforeSend compares what a message shows with the sender's disk, at the moment of sending.
// Broken durability shows here within a few events; the lost entry or second vote that it may lead
// to takes thousands.
func persistBeforeSend() invariant {
	return invariant{
		name:     "persist-before-send",
		sentence: "no message shows a term, gives a vote or acknowledges an entry that is not durable at its sender",
		send: func(w *World, n *node, m *raft.Message) string {
			d := &n.disk.durable
			if m.Term > d.Term {
				return fmt.Sprintf("it says term %d, its disk %d", m.Term, d.Term)
			}
			if m.Term < d.Term {
				return "" // sent late, of a term that is over; the disk has gone on
			}
			switch body := m.Body.(type) {
			case raft.RequestVote:
				if d.VotedFor != n.id {
					return fmt.Sprintf("it campaigns in term %d, its disk has its vote as S%d", m.Term, d.VotedFor)
				}
			case raft.RequestVoteReply:
				if body.VoteGranted && d.VotedFor != m.To {
					return fmt.Sprintf("it grants S%d its vote of term %d, its disk has S%d", m.To, m.Term, d.VotedFor)
				}
			case raft.AppendEntriesReply:
				if body.Success && body.MatchIndex > n.disk.last() {
					return fmt.Sprintf("it acknowledges entry %d, its disk ends at %d", body.MatchIndex, n.disk.last())
				}
			case raft.InstallSnapshotReply:
				if body.Installed && body.LastIncludedIndex > n.disk.last() {
					return fmt.Sprintf("it says to have the snapshot up to entry %d, its disk ends at %d",
						body.LastIncludedIndex, n.disk.last())
				}
			}
			return ""
		},
	}
}
