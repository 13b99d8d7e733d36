package fsm

import (
	"fmt"
	"testing"

	"ticketing/raft"
)

// question makes a call of a read: its number, and what to do for it at the server.
func (c *cluster) question(id raft.ServerID) (uint64, func(*Replica)) {
	n := uint64(len(c.calls)) + 1
	floor := raft.Index(len(c.audit.log))
	made := &call{Request: Request{Call: n, Seq: n}, at: id, read: true, floor: floor}
	made.late = c.status(id).LastApplied < floor
	c.calls = append(c.calls, made)
	return n, func(r *Replica) { r.Read(n) }
}

// read asks a server to vouch for its table.
func (c *cluster) read(id raft.ServerID) uint64 {
	n, input := c.question(id)
	c.do(id, input)
	return n
}

// read compares an answer with what any server had applied when the question came: whatever a client
// had been told by then, the table that is read has it.
func (a *audit) read(n *node, call *call, y Reply) error {
	applied := n.Core().Status().LastApplied
	switch {
	case y.Status == NotLeader && y.Leader != n.id, y.Status == Unknown && y.Leader == 0:
		a.counts["read refused"]++
	case y.Status != Answered:
		return fmt.Errorf("to a read")
	case y.Index < call.floor || applied < y.Index:
		return fmt.Errorf("STALE: entry %d was applied when it was asked, here is %d", call.floor, applied)
	case call.late:
		a.counts["read late"]++
	default:
		a.counts["read"]++
	}
	return nil
}

// timeouts are such that ticks reach them: reads and transfers are given up.
func timeouts(c *Config) {
	c.Raft.ElectionTimeout, c.Raft.HeartbeatTimeout = 3*second, second
}

// Reads at any server, in any schedule. The audit looks at each answer: see read.
func TestAReadSeesWhateverWasAppliedWhenItWasAsked(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for seed := range uint64(schedules) {
		s := newSchedule(t, seed, Rules{}, timeouts)
		deposed := 0
		s.beside = func() {
			id := s.server()
			for _, n := range s.nodes {
				if n.Replica != nil && s.status(id).Role == raft.Leader && s.status(n.id).Term > s.status(id).Term {
					deposed++
				}
			}
			s.read(id)
		}
		s.run(steps)
		s.calm()
		for range 2 { // what was lost on the way is given up
			for _, n := range s.nodes {
				s.tick(n.id, 3*second)
			}
			s.settle()
		}
		for _, call := range s.calls {
			if !call.gone && len(call.replies) == 0 {
				s.fatal("a read without an answer: %+v", call)
			}
		}
		for _, n := range s.nodes {
			same(t, fmt.Sprintf("kept at %d, %s", n.id, s.failure), 0, len(n.reads.asked)+len(n.reads.confirmed))
		}
		counts["of the deposed"] += deposed
		for name, n := range s.counts {
			counts[name] += n
		}
	}
	t.Log(counts)
	atLeast(t, counts, "read", 5*schedules)
	atLeast(t, counts, "read late", schedules)
	atLeast(t, counts, "read refused", 5*schedules)
	atLeast(t, counts, "of the deposed", schedules)
}

// Hazard 36, consul#54, etcd 0.4.1: a leader that was replaced does not tell who holds a lock.
func TestALeaderThatWasReplacedDoesNotVouchForItsTable(t *testing.T) {
	c := held1(t, Rules{}, timeouts)
	c.isolate(1)
	c.elect(2)
	c.tick(2, 10*second)
	c.settle()
	b := c.ask(2, acquire(2, "door"))
	c.settle()
	same(t, "B", "Granted{2}", c.answer(b))
	same(t, "what the old leader has", "door=1", holders(c.node(1).Table()))
	early, late := c.read(1), c.read(1)
	same(t, "at once", "", c.answer(early))
	c.tick(1, 3*second)
	same(t, "nobody has heard it", "unknown", c.answer(early))
	same(t, "nor the other", "unknown", c.answer(late))
	again := c.read(1)
	c.heal()
	c.do(2, (*Replica).HeartbeatTimeout)
	c.settle()
	same(t, "when it has heard", "not leader, ask 2", c.answer(again))
	d := c.read(1)
	c.settle()
	same(t, "as a follower", Answered, c.calls[d-1].replies[0].Status)
	same(t, "what it has then", "door=2", holders(c.node(1).Table()))
}

// A server whose table is not so far answers by the very Take that brings it there.
func TestAFollowerAnswersAReadWhenItHasAppliedWhatTheLeaderNamed(t *testing.T) {
	c := leading(t, Rules{})
	c.held = func(m raft.Message) bool { return appends(1)(m) && m.To == 3 }
	a := c.ask(1, acquire(1, "door"))
	c.settle()
	same(t, "A", "Granted{1}", c.answer(a))
	q := c.read(3)
	c.settle()
	same(t, "before", "", c.answer(q))
	same(t, "confirmed", 1, len(c.node(3).reads.confirmed))
	applied := len(c.node(3).applied)
	for len(c.calls[q-1].replies) == 0 {
		same(t, "what it has", "", holders(c.node(3).Table()))
		applied = len(c.node(3).applied)
		c.deliver(0)
	}
	same(t, "what it has", "door=1", holders(c.node(3).Table()))
	same(t, "applied in that Take", applied+1, len(c.node(3).applied))
	same(t, "reply", []Reply{{Call: q, Status: Answered, Index: 2}}, c.calls[q-1].replies)
}

func TestAReadIsRefusedWhereNobodyCanVouch(t *testing.T) {
	c := newCluster(t, 3, Rules{}, timeouts)
	same(t, "before there is a leader", "not leader, ask 0", c.answer(c.read(2)))
	c.campaign(1)
	early := c.read(1)
	c.do(1)
	same(t, "before an entry of its own term is committed", "", c.answer(early))
	c.settle()
	same(t, "then", Answered, c.calls[early-1].replies[0].Status)
	same(t, "the index", 1, c.calls[early-1].replies[0].Index)

	c.isolate(2)
	follower := c.read(2)
	c.tick(2, 2*second)
	same(t, "a follower that is cut off", "", c.answer(follower))
	c.tick(2, second)
	same(t, "after an election timeout", "unknown", c.answer(follower))
}

// Nothing is told to one that has left, whether the core has answered or not.
func TestAReadIsForgottenWithItsCaller(t *testing.T) {
	c := leading(t, Rules{})
	c.held = func(m raft.Message) bool { return appends(1)(m) && m.To == 3 }
	c.ask(1, acquire(1, "door"))
	asked, confirmed := c.read(3), c.read(3)
	c.disconnect(asked)
	c.settle()
	same(t, "confirmed", 1, len(c.node(3).reads.confirmed))
	c.disconnect(confirmed)
	n, input := c.question(1)
	c.do(1, input, c.gone(n))
	c.held = nil
	c.settle()
	same(t, "answers", ", , ", c.answers(asked, confirmed, n))
	for _, n := range c.nodes {
		same(t, "kept", 0, len(n.reads.asked)+len(n.reads.confirmed))
	}
}

// A driver that is about to stop leaves no caller without an answer, and none that comes too late.
func TestAReplicaThatRetiresAnswersItsReads(t *testing.T) {
	c := leading(t, Rules{})
	c.held = func(m raft.Message) bool { return appends(1)(m) && m.To == 3 }
	c.ask(1, acquire(1, "door"))
	c.settle()
	confirmed := c.read(3)
	c.settle()
	asked, question := c.question(3)
	c.do(3, question, (*Replica).Retire)
	leader, question := c.question(1)
	c.do(1, question, (*Replica).Retire)
	same(t, "answers", "not leader, ask 1, not leader, ask 1, unknown", c.answers(asked, confirmed, leader))
	same(t, "afterwards", "not leader, ask 1, not leader, ask 0", c.answers(c.read(3), c.read(1)))
	c.held = nil
	c.settle()
}
