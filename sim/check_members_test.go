package sim

import (
	"testing"

	"ticketing/fsm"
	"ticketing/raft"
)

// set is a configuration of voters.
func set(ids ...raft.ServerID) (members raft.Configuration) {
	for _, id := range ids {
		members = append(members, raft.Member{ID: id, Voter: true})
	}
	return members
}

// changing tells an invariant that a node has a log with two entries, which say who the servers are.
func changing(w *World, i *invariant, sets ...raft.Configuration) string {
	n := w.nodes[0]
	for k, members := range sets {
		n.sets = append(n.sets, effective{raft.Index(k) + 1, members})
	}
	return appendTo(w, i, 1, following(1), log("", 1, 1))
}

// electedBy tells an invariant that a node leads, by a set of servers.
func electedBy(w *World, i *invariant, members raft.Configuration) string {
	w.nodes[0].sets = []effective{{members: members}}
	return elect(w, i, 1, 2)
}

func showingsOfMembers() map[string][]showing {
	return map[string][]showing{
		"members-logged": {
			{"a change that is in its log", "it goes by S1,S2,S3 of entry 0, and its log says S1,S2, entry 1", func(w *World, i *invariant) string {
				w.nodes[0].sets = append(w.nodes[0].sets, effective{1, set(1, 2)})
				return i.took(w, w.nodes[0], &fsm.Output{})
			}},
			{"the set that it started with", "", func(w *World, i *invariant) string {
				return i.took(w, w.nodes[0], &fsm.Output{})
			}},
		},
		"one-change": {
			{"two changes", "the changes at 1 and 2 are in its log, and neither is committed", func(w *World, i *invariant) string {
				return changing(w, i, set(1, 2), set(1, 2, 3))
			}},
			{"two changes, where another entry is committed", "the changes at 1 and 2", func(w *World, i *invariant) string {
				commit(w, 1, log("other", 1))
				return changing(w, i, set(1, 2), set(1, 2, 3))
			}},
			{"two changes, one of them committed", "", func(w *World, i *invariant) string {
				commit(w, 1, log("", 1))
				return changing(w, i, set(1, 2), set(1, 2, 3))
			}},
		},
		"majorities-overlap": {
			{"two servers changed at once", "S3,S4,S5 follows on S1,S2,S3 in its log", func(w *World, i *invariant) string {
				return changing(w, i, set(3, 4, 5))
			}},
			{"a leader of other servers", "it leads term 2 by S2,S3,S4, while S1,S2,S3 is committed", func(w *World, i *invariant) string {
				return electedBy(w, i, set(2, 3, 4))
			}},
			{"one server added", "", func(w *World, i *invariant) string {
				return changing(w, i, set(1, 2, 3, 4)) + electedBy(w, i, set(1, 2, 3, 4))
			}},
		},
	}
}

func TestMajoritiesOverlapAsTheyAreCountedOneByOne(t *testing.T) {
	overlapping, apart := 0, 0
	for a := 1; a < 64; a++ {
		for b := 1; b < 64; b++ {
			want := false
			for qa := range subsets(a) {
				for qb := range subsets(b) {
					want = want || qa&qb == 0 && ones(qa) == majority(ones(a)) && ones(qb) == majority(ones(b))
				}
			}
			if got := disjoint(members(a), members(b)); got != want {
				t.Fatalf("%s and %s: disjoint %v, want %v", membersText(members(a)), membersText(members(b)), got, want)
			}
			overlapping, apart = overlapping+count01(!want), apart+count01(want)
		}
	}
	if overlapping < 100 || apart < 100 {
		t.Errorf("%d pairs overlap and %d do not", overlapping, apart)
	}
}

// members are the servers whose bits are set.
func members(bits int) (all raft.Configuration) {
	for id := range 6 {
		if bits>>id&1 == 1 {
			all = append(all, raft.Member{ID: raft.ServerID(id) + 1, Voter: true})
		}
	}
	return all
}

func ones(bits int) (n int) {
	for ; bits > 0; bits >>= 1 {
		n += bits & 1
	}
	return n
}

// subsets yields each set of bits within some.
func subsets(of int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for s := of; yield(s) && s > 0; s = (s - 1) & of {
		}
	}
}
