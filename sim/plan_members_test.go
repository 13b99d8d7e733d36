package sim

import "testing"

// Without PreVote and CheckQuorum a server that was removed deposes leaders for ever, as
// member-removed-server-without-checkquorum shows. A run that ended so would say nothing about Raft.
func TestTheSearchKeepsServersThatWereRemovedQuiet(t *testing.T) {
	type shape struct{ changes, noPreVote, noCheckQuorum bool }
	runs := map[shape]int{}
	for seed := uint64(1); seed <= 1000; seed++ {
		for _, faults := range []string{"mild", "harsh"} { // a swarm cuts them off before it asks for progress
			s, err := Plan(seed, faults, 0)
			if err != nil {
				t.Fatal(err)
			}
			var is shape
			for _, line := range s.Lines {
				switch c := line.Command.(type) {
				case SetConfig:
					is.noPreVote, is.noCheckQuorum = c.PreVote != nil, c.CheckQuorum != nil
				case At:
					_, change := c.Command.(Change)
					is.changes = is.changes || change
				}
			}
			runs[is]++
		}
	}
	for _, is := range []shape{{true, true, false}, {true, false, true}, {false, true, true}} {
		if runs[is] < 10 {
			t.Errorf("%d runs with %+v; that is no test", runs[is], is)
		}
	}
	if n := runs[shape{true, true, true}]; n > 0 {
		t.Errorf("in %d runs servers come and go, and nothing keeps the removed ones quiet", n)
	}
}
