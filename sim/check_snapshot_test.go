package sim

import (
	"testing"

	"ticketing/fsm"
	"ticketing/raft"
)

// ending is a snapshot of a table in which one lock was granted, in entry 1.
func ending(index raft.Index, term raft.Term, table *fsm.Table) *raft.Snapshot {
	return &raft.Snapshot{
		LastIncludedIndex: index, LastIncludedTerm: term, Members: set(1, 2, 3), Data: encoded(table),
	}
}

func tableOf(key string) *fsm.Table {
	var table fsm.Table
	table.Apply(1, fsm.Envelope{Command: fsm.Command{Kind: fsm.Grant, Key: key, LeaseMS: 1}})
	return &table
}

// applies tells an invariant that entry 1 granted the door.
func applies(w *World, i *invariant) {
	i.firstApply(w, w.nodes[0], &fsm.Applied{
		Index: 1, Term: 1, Envelope: fsm.Envelope{Command: fsm.Command{Kind: fsm.Grant, Key: "door", LeaseMS: 1}},
	})
}

// trims shows a server whose log is to begin behind a snapshot, with a file on its disk.
func trims(w *World, i *invariant, file, s *raft.Snapshot) string {
	w.nodes[0].disk.files.durable = file
	return i.took(w, w.nodes[0], &fsm.Output{Write: raft.Write{Seq: 1, Snapshot: s}})
}

func showingsOfSnapshots(t *testing.T) map[string][]showing {
	return map[string][]showing{
		"snapshot-agrees": {
			{"a snapshot of another table", "are not those of a table that has applied", func(w *World, i *invariant) string {
				applies(w, i)
				return i.saves(w, w.nodes[1], ending(1, 1, tableOf("gate")))
			}},
			{"a server that starts with it", "are not those of a table that has applied", func(w *World, i *invariant) string {
				applies(w, i)
				w.nodes[1].disk.durable.Snapshot = ending(1, 1, tableOf("gate"))
				return i.restart(w, w.nodes[1])
			}},
			{"a table that is not the snapshot's", "is not that of entry 1", func(w *World, i *invariant) string {
				applies(w, i)
				return i.restored(w, w.nodes[1], 1)
			}},
			{"a snapshot of the table", "", func(w *World, i *invariant) string {
				applies(w, i)
				return i.saves(w, w.nodes[1], ending(1, 1, tableOf("door"))) +
					i.saves(w, w.nodes[2], ending(1, 1, tableOf("door")))
			}},
		},
		"snapshot-committed": {
			{"an entry that is not committed", "up to entry 3, which is not committed", func(w *World, i *invariant) string {
				commit(w, 1, log("", 1, 1))
				return i.saves(w, w.nodes[0], ending(3, 1, tableOf("door")))
			}},
			{"another term's entry", "entry 2 of term 2; that of term 1 is committed there", func(w *World, i *invariant) string {
				commit(w, 1, log("", 1, 1))
				w.nodes[0].disk.durable.Snapshot = ending(2, 2, tableOf("door"))
				return i.restart(w, w.nodes[0])
			}},
			{"other servers", "says that the servers are S1,S2; they are S1,S2,S3", func(w *World, i *invariant) string {
				commit(w, 1, log("", 1, 1))
				s := ending(2, 1, tableOf("door"))
				s.Members = set(1, 2)
				return i.saves(w, w.nodes[0], s)
			}},
			{"the last committed entry", "", func(w *World, i *invariant) string {
				commit(w, 1, log("", 1, 1))
				return i.saves(w, w.nodes[0], ending(2, 1, tableOf("door")))
			}},
		},
		"snapshot-durable": {
			{"no file", "behind entry 2, and the disk has no such snapshot", func(w *World, i *invariant) string {
				return trims(w, i, nil, ending(2, 1, tableOf("door")))
			}},
			{"an older file", "behind entry 2, and the disk has no such snapshot", func(w *World, i *invariant) string {
				return trims(w, i, ending(1, 1, tableOf("door")), ending(2, 1, tableOf("door")))
			}},
			{"the file", "", func(w *World, i *invariant) string {
				return trims(w, i, ending(2, 1, tableOf("door")), ending(2, 1, tableOf("door")))
			}},
		},
	}
}
