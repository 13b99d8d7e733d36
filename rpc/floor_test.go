package rpc

import (
	"testing"
	"time"

	"ticketing/raft"
)

// All servers' tables start from the floor, whoever leads and whichever starts again; and what is
// counted is the tokens that were given out.
func TestTokensOfAllLeadersAreAboveTheFloor(t *testing.T) {
	const floor = 1 << 60
	inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
		for id := range c.addrs {
			c.stop(id)
		}
		c.config.TokenFloor = floor
		for id := range c.addrs {
			*c.disks[id] = disk{sync: slowSync} // a new cluster
			c.restart(id)
		}
		k := c.client(t, "A")
		for round := range 3 {
			leader := c.leader()
			l := lock(t, k, "door", time.Minute)
			if want := uint64(floor + round + 1); uint64(l.Token()) != want {
				t.Errorf("the token is %d, want %d", l.Token(), want)
			}
			unlock(t, l)
			if n := scrape(t, c.nodes[leader])["lockd_tokens_issued_total"]; n != float64(round+1) {
				t.Errorf("%v tokens were given out", n)
			}
			c.stop(leader)
			c.restart(leader)
		}
		c.leader()
		time.Sleep(2 * heartbeat)
		c.sameTables(t)
	})
}
