package sim

import (
	"fmt"

	"ticketing/raft"
)

// voteOnce spans crashes: what counts is what others were told, and what the disk says when it
// comes back.
func voteOnce() invariant {
	type ballot struct {
		term  raft.Term
		voter raft.ServerID
	}
	votes := map[ballot]raft.ServerID{}
	cast := func(n *node, term raft.Term, candidate raft.ServerID) string {
		if other, voted := votes[ballot{term, n.id}]; voted && other != candidate {
			return fmt.Sprintf("in term %d it voted for S%d and for S%d", term, other, candidate)
		}
		votes[ballot{term, n.id}] = candidate
		return ""
	}
	return invariant{
		restart: func(w *World, n *node) string {
			if s := n.status; s.VotedFor != 0 {
				return cast(n, s.Term, s.VotedFor)
			}
			return ""
		},
		name:     "vote-once",
		sentence: "a server votes for at most one candidate in a term, crashes included",
		send: func(w *World, n *node, m *raft.Message) string {
			switch body := m.Body.(type) {
			case raft.RequestVote: // a candidate tells that it has voted for itself
				return cast(n, m.Term, n.id)
			case raft.RequestVoteReply:
				if body.VoteGranted {
					return cast(n, body.RequestTerm, m.To)
				}
			}
			return ""
		},
	}
}
