package raft

// This file is CheckQuorum (thesis, sections 6.2 and 4.2.3), which is not in Figure 2, and has two
// halves that need each other. A leader that cannot reach a majority, or whose own disk stands still,
// steps down: nothing that it accepts can be committed, and where its messages do arrive they keep
// servers quiet who could elect another. And a server that hears a leader refuses to help depose it.
// It is on with Config.CheckQuorum.

// hearsLeader reports whether this server leads, or has heard its leader within the least election
// timeout. A server that started again has heard nobody yet.
func (c *Core) hearsLeader() bool {
	return c.role == Leader || c.leader != 0 && c.now < c.contact+c.config.ElectionTimeout
}

// disturbs reports whether a question of a later term is none of this server's business, as it hears
// a leader whom most others may hear as well. It is then answered with a refusal in this server's own
// term, which All.2 does not raise. The asker may be cut off from the leader alone, or not be a
// member any more; if it has a reason, the leader falls silent and the next question is heard. With a
// later term it joins again all the same: its refusal of the leader's next AppendEntries raises the
// leader's, once.
//
//spec:rule CheckQuorum.Sticky
func (c *Core) disturbs(m Message) bool {
	if m.Term <= c.currentTerm || !c.hearsLeader() {
		return false
	}
	switch body := m.Body.(type) {
	case PreVote:
		return true
	case RequestVote:
		return c.config.CheckQuorum && !body.Transfer
	}
	return false
}

// quorumDue is when this leader has to step down, unless it hears from others until then: an
// election timeout after the last moment since which a majority, itself included, has been heard,
// and an election timeout after the oldest write began that its disk has not finished. Never, without
// Config.CheckQuorum.
func (c *Core) quorumDue() Time {
	if !c.config.CheckQuorum {
		return never
	}
	since := reached(c, c.now, func(p *peer) Time { return p.heard })
	if len(c.outstanding) > 0 {
		since = min(since, c.outstanding[0].begun)
	}
	return since + c.config.ElectionTimeout
}

// never is later than any clock reads.
const never Time = 1<<63 - 1

// stepDown ends a leadership without another term: nobody else can lead in this one. What is in the
// log stays there and may yet be committed, by whoever leads next.
//
//spec:rule CheckQuorum.StepDown
func (c *Core) stepDown() {
	c.becomeFollower(c.currentTerm)
	c.leader = 0
}
