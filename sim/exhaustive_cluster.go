package sim

import (
	"slices"

	"ticketing/fsm"
	"ticketing/raft"
)

// This file is a cluster of the product's replicas for an exhaustive search: no clock, no queue of
// events, and a disk that is done at once. What is in the network between two servers is a list, in
// order, and stays there until a step delivers or loses it.

const searchNodes = 3 // as a worldConfig has them unless told otherwise

// cluster is a few replicas and the network between them. Copies share replicas: one is cloned when
// a step first touches it, so a state costs what differs from the one before it.
type cluster struct {
	nodes   [searchNodes]*fsm.Replica
	network [searchNodes][searchNodes][]raft.Message
	own     uint8 // replicas that this copy has cloned, a bit each
}

// took is what a replica has done on an input, for those who watch.
type took struct {
	node     int
	replies  []fsm.Reply
	proposed []fsm.Proposed
	applied  []fsm.Applied
}

// newCluster starts servers with empty disks.
func newCluster(config *worldConfig) (cluster, error) {
	var c cluster
	jitter := func(uint64) raft.Time { return 0 } // no timer runs out by itself
	for i := range c.nodes {
		replica, err := fsm.New(config.replica(raft.ServerID(i+1), jitter), raft.Durable{}, 0)
		if err != nil {
			return cluster{}, err
		}
		c.nodes[i] = replica
	}
	c.own = 1<<searchNodes - 1
	return c, nil
}

// touch returns a replica that this copy may change.
func (c *cluster) touch(i int) *fsm.Replica {
	if c.own&(1<<i) == 0 {
		c.nodes[i] = c.nodes[i].Clone()
		c.own |= 1 << i
	}
	return c.nodes[i]
}

// settle lets a replica do what follows from its last input, saves what it writes, and puts what it
// sends into the network.
func (c *cluster) settle(i int, watch func(took)) {
	r := c.touch(i)
	for {
		out, err := r.Take()
		if err != nil {
			panic("sim: a replica has stopped in a search without disk faults: " + err.Error())
		}
		for _, m := range out.Messages {
			to := int(m.To - 1)
			c.network[i][to] = append(slices.Clip(c.network[i][to]), m)
		}
		watch(took{i, out.Replies, out.Proposed, out.Applied})
		if out.Write.Seq == 0 {
			return
		}
		r.Saved(out.Write.Seq)
	}
}

// deliver hands the first n messages of a kind that are on their way from one server to another
// over, in order, and returns how many there were. What they cause is on its way afterwards.
func (c *cluster) deliver(from, to int, kind messageKind, n int, watch func(took)) int {
	var these, others []raft.Message
	for _, m := range c.network[from][to] {
		if len(these) < n && kindOf(m.Body) == kind {
			these = append(these, m)
		} else {
			others = append(others, m)
		}
	}
	c.network[from][to] = others
	for _, m := range these {
		if err := c.touch(to).Receive(m); err != nil {
			panic("sim: a correct server has sent what another refuses: " + err.Error())
		}
		c.settle(to, watch)
	}
	return len(these)
}

// all is more messages than there are.
const all = 1 << 30

// flush delivers everything until nothing is on its way.
func (c *cluster) flush(watch func(took)) {
	for again := true; again; {
		again = false
		for from := range c.nodes {
			for to := range c.nodes {
				for kind := messageVote; kind <= messageAppendReply; kind++ {
					again = c.deliver(from, to, kind, all, watch) > 0 || again
				}
			}
		}
	}
}

// status is a server's Raft state at a glance.
func (c *cluster) status(i int) raft.Status { return c.nodes[i].Core().Status() }

// leads reports whether a server believes that it leads.
func (c *cluster) leads(i int) bool { return c.status(i).Role == raft.Leader }

// newest is the leader of the highest term.
func (c *cluster) newest() int {
	best, term := 0, raft.Term(0)
	for n := range c.nodes {
		if s := c.status(n); s.Role == raft.Leader && s.Term > term {
			best, term = n, s.Term
		}
	}
	return best
}
