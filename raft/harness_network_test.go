package raft_test

import (
	"fmt"
	"slices"

	"ticketing/raft"
)

// send puts a message on its link.
func (c *cluster) send(n *node, m raft.Message) {
	if err := c.observeMessage(n, m); err != nil {
		c.fatal("server %d sends %s: %v", n.id, describe(m), err)
	}
	if isRequest(m) {
		c.calls++
		m.Call = c.calls
	} else if n.owed[m.Call]--; n.owed[m.Call] < 0 {
		c.fatal("server %d answers a request that it was not asked: %s", n.id, describe(m))
	}
	c.note("%d sends    %s", n.id, describe(m))
	c.post(m)
	m.Call = 0 // the harness's, and no part of what a test expects
	n.sent = append(n.sent, m)
}

// post queues a message, which a test may have composed, unless its link is cut.
func (c *cluster) post(m raft.Message) {
	l := link{m.From, m.To}
	if c.down[l] {
		return
	}
	p := packet{Message: m}
	switch b := m.Body.(type) {
	case raft.AppendEntries:
		p.entries = slices.Clone(b.Entries)
	case raft.InstallSnapshot:
		p.data = string(b.Data)
	}
	c.queues[l] = append(c.queues[l], p)
}

func isRequest(m raft.Message) bool {
	switch m.Body.(type) {
	case raft.RequestVote, raft.AppendEntries, raft.PreVote, raft.ReadIndex,
		raft.TimeoutNow, raft.InstallSnapshot:
		return true
	}
	return false
}

// receive hands a message to its receiver, which must accept it.
func (c *cluster) receive(m raft.Message) {
	p := packet{Message: m}
	switch b := m.Body.(type) {
	case raft.AppendEntries:
		p.entries = b.Entries
	case raft.InstallSnapshot:
		p.data = string(b.Data)
	}
	if isRequest(m) {
		c.calls++
		p.Call = c.calls
	} else {
		c.observer.hearVote(m)
	}
	c.arrive(p)
}

func (c *cluster) arrive(p packet) {
	n := c.node(p.To)
	c.note("%d receives %s", n.id, describe(p.Message))
	a, _ := p.Body.(raft.AppendEntries)
	if !slices.EqualFunc(a.Entries, p.entries, sameEntry) {
		c.fatal("%s was sent with %v", describe(p.Message), terms(p.entries))
	}
	if s, _ := p.Body.(raft.InstallSnapshot); string(s.Data) != p.data {
		c.fatal("%s was sent with %q", describe(p.Message), p.data)
	}
	if isRequest(p.Message) {
		n.owed[p.Call]++
		_, c.waits[p.Call] = p.Body.(raft.ReadIndex)
	}
	c.input(n, func(core *raft.Core) {
		if err := core.Receive(p.Message); err != nil {
			c.fatal("server %d refuses %s: %v", n.id, describe(p.Message), err)
		}
	})
}

// deliver hands over the first message of a link and returns it. To a server that is down it is
// lost.
func (c *cluster) deliver(from, to raft.ServerID) raft.Message {
	return c.deliverAt(from, to, 0, true)
}

// deliverAt hands over the message at a place in a link's queue, which takes it away or, for a
// duplicate, leaves it.
func (c *cluster) deliverAt(from, to raft.ServerID, at int, remove bool) raft.Message {
	l := link{from, to}
	if at >= len(c.queues[l]) {
		c.fatal("no message %d from %d to %d", at, from, to)
	}
	p := c.queues[l][at]
	if remove {
		c.queues[l] = slices.Delete(c.queues[l], at, at+1)
	}
	if c.setup.only == 0 && c.node(to).core != nil {
		c.arrive(p)
	}
	return p.Message
}

// drop loses what is on its way from one server to another.
func (c *cluster) drop(from, to raft.ServerID) { delete(c.queues, link{from, to}) }

// cut separates two servers; what they send each other from now on is lost.
func (c *cluster) cut(a, b raft.ServerID) {
	c.down[link{a, b}], c.down[link{b, a}] = true, true
}

// join restores what cut has cut.
func (c *cluster) join(a, b raft.ServerID) {
	c.down[link{a, b}], c.down[link{b, a}] = false, false
}

// isolate cuts a server off from all others.
func (c *cluster) isolate(id raft.ServerID) {
	for other := range c.setup.all() {
		if other+1 != id {
			c.cut(id, other+1)
		}
	}
}

// heal restores all links.
func (c *cluster) heal() { clear(c.down) }

// run delivers everything, and what follows from it, until nothing is on its way. Nobody's clock
// moves, so if it does not come to an end then servers answer each other for ever.
func (c *cluster) run() {
	for steps := 0; ; steps++ {
		l, ok := c.next()
		if !ok {
			break
		}
		if steps > 20_000 {
			c.fatal("still talking after %d messages", steps)
		}
		c.deliver(l.from, l.to)
	}
	for _, n := range c.nodes {
		for call, owed := range n.owed {
			if owed > 0 && !c.waits[call] && n.core != nil && !n.lazy && len(n.writes) == 0 && n.saving == nil {
				c.fatal("server %d: request %d was never answered", n.id, call)
			}
		}
	}
}

// next is the first link, in order of the servers' ids, on which something waits.
func (c *cluster) next() (link, bool) {
	for from := range c.setup.all() {
		for to := range c.setup.all() {
			if l := (link{from + 1, to + 1}); len(c.queues[l]) > 0 {
				return l, true
			}
		}
	}
	return link{}, false
}

// describe writes a message down in the paper's words, shortened.
func describe(m raft.Message) string {
	head := fmt.Sprintf("%d→%d t=%d", m.From, m.To, m.Term)
	switch b := m.Body.(type) {
	case raft.RequestVote:
		return fmt.Sprintf("%s RequestVote last=%d@%d", head, b.LastLogIndex, b.LastLogTerm)
	case raft.PreVote:
		return fmt.Sprintf("%s PreVote last=%d@%d", head, b.LastLogIndex, b.LastLogTerm)
	case raft.AppendEntries:
		return fmt.Sprintf("%s AppendEntries prev=%d@%d terms=%v commit=%d",
			head, b.PrevLogIndex, b.PrevLogTerm, terms(b.Entries), b.LeaderCommit)
	case raft.InstallSnapshot:
		return fmt.Sprintf("%s InstallSnapshot last=%d@%d offset=%d +%d done=%v",
			head, b.LastIncludedIndex, b.LastIncludedTerm, b.Offset, len(b.Data), b.Done)
	}
	return fmt.Sprintf("%s %T%+v", head, m.Body, m.Body)
}
