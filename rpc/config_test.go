package rpc

import (
	"testing"

	"ticketing/raft"
)

// What goes beyond Figure 2 is on unless somebody takes it away, and a leader's log has a bound.
func TestAServerHasAllThatTheCoreOffers(t *testing.T) {
	config := Config{ID: 1, Addrs: map[raft.ServerID]string{1: ""}}.withDefaults()
	if c := config.raft(); !c.PreVote || !c.CheckQuorum || c.MaxUncommitted == 0 || c.ChunkSize == 0 {
		t.Errorf("it has %+v", c)
	}
	config.NoPreVote, config.NoCheckQuorum = true, true
	if c := config.raft(); c.PreVote || c.CheckQuorum {
		t.Errorf("what was taken away is there: %+v", c)
	}
}
