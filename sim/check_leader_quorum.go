package sim

import (
	"fmt"

	"ticketing/raft"
)

// leaderQuorum counts the votes that were really given: the grants that left their voters, and the
// leader's own vote on its disk. A miscounted vote shows here before a second leader appears.
func leaderQuorum() invariant {
	type ballot struct {
		term  raft.Term
		voter raft.ServerID
	}
	granted := map[ballot]raft.ServerID{}
	return invariant{
		name:     "leader-quorum",
		sentence: "a leader has been granted the votes of a majority of those who have one in its own log",
		send: func(w *World, n *node, m *raft.Message) string {
			if r, ok := m.Body.(raft.RequestVoteReply); ok && r.VoteGranted {
				granted[ballot{r.RequestTerm, n.id}] = m.To
			}
			return ""
		},
		change: func(w *World, n *node, before, after *raft.Status) string {
			if !becameLeader(before, after) {
				return ""
			}
			votes, of := w.quorumOf(n.members().members, func(voter *node) bool {
				if voter == n {
					return n.disk.durable.HardState == raft.HardState{Term: after.Term, VotedFor: n.id}
				}
				return granted[ballot{after.Term, voter.id}] == n.id
			})
			if votes < majority(of) {
				return fmt.Sprintf("it leads term %d with the votes of %d of %d servers", after.Term, votes, of)
			}
			return ""
		},
	}
}
