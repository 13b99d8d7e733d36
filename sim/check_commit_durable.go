package sim

import (
	"fmt"

	"ticketing/raft"
)

// commitDurable looks when an entry is committed, and again whenever a disk changes below what is:
// a committed entry that leaves a majority is lost, whether or not anyone has noticed yet.
func commitDurable() invariant {
	copies := func(w *World, i raft.Index) int {
		record, _ := w.ledger.committedAt(i)
		copies := 0
		for _, n := range w.nodes {
			if chain, has := chainAt(n.disk.chains, i); has && chain == record.chain {
				copies++
			}
		}
		return copies
	}
	low := map[raft.ServerID]raft.Index{} // how much of what is committed each disk had
	return invariant{
		name:     "commit-durable",
		sentence: "a committed entry is on the disks of a majority, from then on",
		change: func(w *World, n *node, before, after *raft.Status) string {
			if after.Role != raft.Leader || after.CommitIndex == before.CommitIndex {
				return ""
			}
			if c := copies(w, after.CommitIndex); c < len(w.nodes)/2+1 {
				return fmt.Sprintf("entry %d is committed and on the disks of %d of %d servers",
					after.CommitIndex, c, len(w.nodes))
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
			if c := copies(w, have+1); c < len(w.nodes)/2+1 {
				return fmt.Sprintf("entry %d was committed and is now on the disks of %d of %d servers", have+1, c, len(w.nodes))
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
