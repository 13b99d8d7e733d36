package fsm

import (
	"errors"
	"testing"

	"ticketing/raft"
)

// change makes a call of a change of members: its number, and what to do for it at the server.
func (c *cluster) change(id raft.ServerID, next raft.Configuration) (uint64, func(*Replica)) {
	n := uint64(len(c.calls)) + 1
	c.calls = append(c.calls, &call{Request: Request{Call: n, Seq: n}, at: id, change: true})
	return n, func(r *Replica) { r.ChangeMembers(n, next) }
}

// changes asks a server for other members.
func (c *cluster) changes(id raft.ServerID, next raft.Configuration) uint64 {
	n, input := c.change(id, next)
	c.do(id, input)
	return n
}

// without are the servers of a cluster but one.
func without(out raft.ServerID, size int) raft.Configuration {
	var all raft.Configuration
	for id := range raft.ServerID(size) {
		if id+1 != out {
			all = append(all, raft.Member{ID: id + 1, Voter: true})
		}
	}
	return all
}

// A change is answered when its entry is applied, with the entry's index. To the table it is nothing,
// and the commands around it have their places.
func TestAChangeOfMembersIsAnsweredWhenItIsAppliedAndChangesNoTable(t *testing.T) {
	c := held1(t, Rules{})
	before := c.node(1).Table().Hash()
	next := without(3, 3)
	a, change := c.change(1, raft.Configuration{next[1], next[0]})
	b, ask := c.input(1, acquire(2, "gate"))
	c.do(1, change, ask)
	same(t, "before it is committed", ", ", c.answers(a, b))
	c.settle()
	same(t, "reply", []Reply{{Call: a, Status: Answered, Index: 3}}, c.calls[a-1].replies)
	same(t, "behind it", 4, c.calls[b-1].replies[0].Index)
	for _, id := range []raft.ServerID{1, 2} {
		x := c.node(id).applied[2]
		want := Applied{Index: 3, Term: 1, Hash: before, Members: next}
		same(t, "applied", want, x)
	}
	p := c.node(1).proposed[1]
	same(t, "proposed", Proposed{Index: 3, Term: 1, Members: next}, p)
}

// What is no change, comes too early or to the wrong server is answered at once, and changes nothing.
func TestAChangeOfMembersThatCannotBeIsRefused(t *testing.T) {
	c := newCluster(t, 3, Rules{}, slowly)
	same(t, "nobody leads", "not leader, ask 0", c.answer(c.changes(2, without(3, 3))))
	c.campaign(1)
	early := c.changes(1, without(3, 3))
	same(t, "before an entry of its own term is committed", "invalid", c.answer(early))
	if err := c.calls[early-1].replies[0].Err; !errors.Is(err, raft.ErrChanging) {
		t.Errorf("it says %v", err)
	}
	c.settle()
	same(t, "at a follower", "not leader, ask 1", c.answer(c.changes(2, without(3, 3))))
	none := c.changes(1, nil)
	same(t, "nobody left", "invalid", c.answer(none))
	if err := c.calls[none-1].replies[0].Err; !errors.Is(err, raft.ErrMembers) {
		t.Errorf("it says %v", err)
	}
	c.transfer(1, 2)
	same(t, "while leadership is on its way", "not leader, ask 2", c.answer(c.changes(1, without(3, 3))))
	same(t, "proposed", 0, len(c.node(1).proposed))
}

// Deposed before it is committed, a leader cannot say what becomes of it. Its successor may have it or
// not.
func TestAChangeOfMembersOfALeaderThatIsDeposedIsUnknown(t *testing.T) {
	c := leading(t, Rules{})
	c.held = appends(1)
	a := c.changes(1, without(3, 3))
	c.campaign(2)
	same(t, "at once", "unknown", c.answer(a))
	b := c.ask(2, acquire(2, "door")) // stands behind where the change stood
	c.held = nil
	c.drop(appends(1))
	c.settle()
	same(t, "answers", "unknown, Granted{1}", c.answers(a, b))

	c.held = appends(2)
	gone := c.changes(2, without(3, 3))
	c.disconnect(gone)
	d := c.ask(2, Request{Text: "x"})
	vote := raft.Message{From: 3, To: 2, Term: 9, Body: raft.RequestVote{}}
	late, change := c.change(2, without(3, 3))
	c.do(2, func(r *Replica) {
		if err := r.Receive(vote); err != nil {
			t.Fatal(err)
		}
	}, change)
	same(t, "in the same moment", ", unknown, not leader, ask 0", c.answers(gone, d, late))
	for _, n := range c.nodes {
		same(t, "kept", 0, len(n.changes))
	}
}

// Another leader's entry may stand where the change stood, and come with the news of that leader.
func TestAChangeOfMembersThatWasReplacedIsUnknown(t *testing.T) {
	c := leading(t, Rules{})
	c.isolate(1)
	a := c.changes(1, without(3, 3))
	c.elect(2)
	c.ask(2, acquire(2, "door"))
	c.settle()
	same(t, "before it hears of that", "", c.answer(a))
	c.heal()
	appended := raft.AppendEntries{
		PrevLogIndex: 1, PrevLogTerm: 1, Entries: c.node(2).Core().Entries(2, 3), LeaderCommit: 3,
	}
	c.do(1, func(r *Replica) {
		if err := r.Receive(raft.Message{From: 2, To: 1, Term: 2, Body: appended}); err != nil {
			t.Fatal(err)
		}
	})
	same(t, "applied", 3, c.status(1).LastApplied)
	same(t, "answer", "unknown", c.answer(a))
}

func TestAReplicaThatRetiresAnswersItsChangeOfMembers(t *testing.T) {
	c := leading(t, Rules{})
	a, change := c.change(1, without(3, 3))
	c.do(1, change, (*Replica).Retire)
	same(t, "answer", "unknown", c.answer(a))
	same(t, "afterwards", "not leader, ask 0", c.answer(c.changes(1, without(3, 3))))
}

// A leader that removes itself says so when that is committed, and no sooner. Everybody else who
// waits there is told to ask another server.
func TestALeaderThatRemovesItselfAnswersBeforeItGoes(t *testing.T) {
	c := held1(t, Rules{})
	b := c.ask(1, acquire(2, "door"))
	a := c.changes(1, without(1, 3))
	same(t, "before", ", ", c.answers(a, b))
	c.settle()
	same(t, "role", raft.Follower, c.status(1).Role)
	c.do(1)
	same(t, "answers", "Noop, not leader, ask 0", c.answers(a, b))
	same(t, "index", 3, c.calls[a-1].replies[0].Index)
	c.elect(2)
	again := c.ask(2, c.again(b))
	c.ask(2, release(1, "door", 1))
	c.settle()
	same(t, "B", "Granted{2}", c.answer(again))
}
