package raft_test

import (
	"errors"
	"testing"

	"ticketing/raft"
)

// A server that joined has the log from its first entry on, and learns who the servers are from an entry
// in it. A snapshot that ended before that one would say that there is nobody, and whoever got it would
// be a server of no cluster.
func TestAServerThatJoinedTakesNoSnapshotBeforeItKnowsWhoTheServersAre(t *testing.T) {
	c := newCluster(t, setup{size: 3, joining: 1})
	c.elect(1)
	c.propose(1, "x")
	c.run()
	added := c.change(1, servers(1, 2, 3, -4))
	c.run()
	c.heartbeat(1)
	c.run()
	same(t, "it has applied", added, c.status(4).LastApplied)
	if err := c.core(4).Compact(added-1, nil); !errors.Is(err, raft.ErrCompacting) {
		t.Errorf("asked for a snapshot that ends before it was added, it says %v", err)
	}
	c.compact(4, added)
}
