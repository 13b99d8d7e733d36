package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// stateMachineSafety: Figure 3, and more: the digest of the table after each entry must be the same
// everywhere, so that a state machine which is not a function of the log shows as well. A table may
// come from a snapshot; then it is what others had after the snapshot's last entry.
func stateMachineSafety() invariant {
	var s applications
	next := map[raft.ServerID]raft.Index{}
	return invariant{
		name:     "state-machine-safety",
		sentence: "every server applies the same entries in order, each once, with the same table after each",
		restart: func(w *World, n *node) string {
			next[n.id] = n.disk.base()
			return s.restored(next[n.id], n.replica.Table().Hash())
		},
		restored: func(w *World, n *node, end raft.Index) string {
			if end <= next[n.id] {
				return fmt.Sprintf("its table goes back from entry %d to the snapshot up to entry %d", next[n.id], end)
			}
			next[n.id] = end
			return s.restored(end, n.replica.Table().Hash())
		},
		apply: func(w *World, n *node, a *fsm.Applied) string {
			next[n.id]++
			if a.Index != next[n.id] {
				return fmt.Sprintf("it applies entry %d where %d is due", a.Index, next[n.id])
			}
			f := s.first(a)
			if f.term != a.Term {
				return fmt.Sprintf("it applies an entry of term %d at %d; another applied one of term %d", a.Term, a.Index, f.term)
			}
			if f.hash != a.Hash {
				return fmt.Sprintf("after entry %d its table has hash %x, another server's had %x", a.Index, a.Hash, f.hash)
			}
			return ""
		},
	}
}

// applications are by index what each entry came to where it was applied first; of term 0 what nobody
// has applied since the run began.
type applications []application

type application struct {
	term raft.Term
	hash uint64
}

// first returns what an entry came to where it was applied first, which may be now.
func (s *applications) first(a *fsm.Applied) application {
	for int(a.Index) > len(*s) {
		*s = append(*s, application{})
	}
	f := &(*s)[a.Index-1]
	if f.term == 0 {
		*f = application{a.Term, a.Hash}
	}
	return *f
}

// restored compares a table from a snapshot with those that have applied its last entry.
func (s applications) restored(end raft.Index, hash uint64) string {
	if end == 0 || int(end) > len(s) || s[end-1].term == 0 || s[end-1].hash == hash {
		return ""
	}
	return fmt.Sprintf("from the snapshot up to entry %d it has a table with hash %x, other servers' had %x after that entry",
		end, hash, s[end-1].hash)
}
