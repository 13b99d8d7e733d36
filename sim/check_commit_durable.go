package sim

import (
	"fmt"

	"ticketing/raft"
)

// commitDurable looks when an entry is committed, and again whenever a disk changes below what is:
// a committed entry that leaves a majority is lost, whether or not anyone has noticed yet.
func commitDurable() invariant {
	copies := func(w *World, by raft.Configuration, i raft.Index) (copies, of int) {
		record, _ := w.ledger.committedAt(i)
		return w.quorumOf(by, func(n *node) bool {
			chain, has := chainAt(n.disk.chains, i)
			return has && chain == record.chain
		})
	}
	var by raft.Configuration             // whose majority has all that is committed
	low := map[raft.ServerID]raft.Index{} // how much of what is committed each disk had
	return invariant{
		name:     "commit-durable",
		sentence: "a committed entry is on the disks of a majority, from then on",
		change: func(w *World, n *node, before, after *raft.Status) string {
			led := before.Role == raft.Leader && before.Term == after.Term // if it leaves with this
			if after.Role != raft.Leader && !led || after.CommitIndex == before.CommitIndex {
				return ""
			}
			mine := n.members().members
			if int(after.CommitIndex) >= len(w.ledger.committed) {
				by = mine
			}
			if c, of := copies(w, mine, after.CommitIndex); c < majority(of) {
				return fmt.Sprintf("entry %d is committed and on the disks of %d of %d servers",
					after.CommitIndex, c, of)
			}
			return ""
		},
		store: func(w *World, n *node) string {
			had := low[n.id]
			have := shared(w, n)
			low[n.id] = have
			if have >= had {
				return ""
			}
			if by == nil {
				by = w.config.first()
			}
			if c, of := copies(w, by, have+1); c < majority(of) {
				return fmt.Sprintf("entry %d was committed and is now on the disks of %d of %d servers", have+1, c, of)
			}
			return ""
		},
	}
}

// shared is how far a disk's log is what is committed. Chain hashes cover the prefix, so it can
// search from the end.
func shared(w *World, n *node) raft.Index {
	i := raft.Index(min(len(n.disk.chains), len(w.ledger.committed)))
	for i > 0 && n.disk.chains[i-1] != w.ledger.committed[i-1].chain {
		i--
	}
	return i
}
