package sim

import (
	"fmt"

	"ticketing/raft"
)

// matchSound looks at a leader's belief about a follower each time that an answer may have changed
// it. Once the follower has gone on to a later term, its log may lawfully differ. Of one whose
// disk is lost the belief is of no account: it does not come back.
func matchSound() invariant {
	return invariant{
		name:     "match-sound",
		sentence: "a leader's matchIndex is at most what the follower durably shares with it",
		received: func(w *World, n *node, m *raft.Message) string {
			if !acknowledges(m.Body) || n.status.Role != raft.Leader {
				return ""
			}
			follower := w.node(m.From)
			_, match := n.replica.Core().Progress(m.From)
			if follower.status.Term > n.status.Term || follower.disk.lost {
				return ""
			}
			mine, _ := chainAt(n.chains, match)
			theirs, has := chainAt(follower.disk.chains, match)
			if !has || mine != theirs {
				return fmt.Sprintf("it believes that S%d has its log up to %d; that one's disk does not", m.From, match)
			}
			return ""
		},
	}
}

// acknowledges reports whether a message can tell a leader what a follower has.
func acknowledges(body raft.Body) bool {
	switch body.(type) {
	case raft.AppendEntriesReply, raft.InstallSnapshotReply:
		return true
	}
	return false
}
