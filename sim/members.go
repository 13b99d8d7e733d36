package sim

import (
	"fmt"
	"slices"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file changes which servers there are. Who asks for that stands beside the leader, as with reads.

// What a scenario asks for, in its lines and in a trace.
const (
	opAdd     = "add"
	opPromote = "promote"
	opRemove  = "remove"
)

// changeCall is a change that a leader was asked for, and has not answered.
type changeCall struct {
	call   uint64
	change Change
}

// doChange asks the leader for other servers. A server that is added for the first time is switched on
// now, with nothing on its disk.
func (w *World) doChange(c Change) error {
	w.steps++
	n := w.node(c.Node)
	if c.Do == opAdd && n.joins && n.boots == 0 {
		if err := w.boot(n, trace.KindStart); err != nil {
			return err
		}
	}
	w.cause = 0
	w.traceCommand(c)
	w.joining = slices.DeleteFunc(w.joining, func(id raft.ServerID) bool { return id == c.Node })
	if c.Do == opAdd && !c.Learner {
		w.joining = append(w.joining, c.Node)
		w.scheduleJoin(c.Node)
	}
	l := w.leader()
	if l == nil || l.paused {
		w.refuseChange(l, c, "nobody leads")
		return nil
	}
	w.change(l, c)
	return nil
}

// change asks a server.
func (w *World) change(l *node, c Change) {
	now, _ := l.replica.Core().Members()
	next, problem := c.of(now)
	if problem != "" {
		w.refuseChange(l, c, problem)
		return
	}
	l.nextCall++
	l.changing = append(l.changing, changeCall{l.nextCall, c})
	w.prepare(l)
	w.tick(l)
	l.replica.ChangeMembers(l.nextCall, next)
	w.step(l, nil)
}

// of is what a change makes of the servers, or why it makes no sense. Whether it may be made now the
// leader says.
func (c Change) of(now raft.Configuration) (next raft.Configuration, problem string) {
	next = slices.Clone(now)
	i := slices.IndexFunc(now, func(m raft.Member) bool { return m.ID == c.Node })
	switch {
	case c.Do == opAdd && i >= 0:
		return nil, fmt.Sprintf("S%d is there already", c.Node)
	case c.Do == opAdd:
		return append(next, raft.Member{ID: c.Node}), ""
	case i < 0:
		return nil, fmt.Sprintf("S%d is not one of the servers", c.Node)
	case c.Do == opPromote:
		next[i].Voter = true
		return next, ""
	}
	return slices.Delete(next, i, i+1), ""
}

// answerChange takes a leader's answer to a change, and reports whether it is one. What is committed is
// counted where it is applied.
func (w *World) answerChange(n *node, y *fsm.Reply) bool {
	i := slices.IndexFunc(n.changing, func(c changeCall) bool { return c.call == y.Call })
	if i < 0 {
		return false
	}
	c := n.changing[i].change
	n.changing = slices.Delete(n.changing, i, i+1)
	switch y.Status {
	case fsm.Answered:
	case fsm.Invalid:
		w.refuseChange(n, c, y.Err.Error())
	case fsm.Unknown:
		w.counters[countMembersUnknown]++
		w.replyChange(n, c, stateUnknown, "it does not lead any more, and cannot tell whether that will be")
	default:
		w.refuseChange(n, c, "it does not lead, or is handing over")
	}
	return true
}

func (w *World) refuseChange(n *node, c Change, why string) {
	w.counters[countMembersRefused]++
	w.replyChange(n, c, stateRefused, why)
}

func (w *World) replyChange(n *node, c Change, status, text string) {
	if w.trace == nil {
		return
	}
	e := trace.Event{Kind: trace.KindReply, Text: text, Client: &trace.ClientRecord{Op: c.Do, Status: status}}
	if n == nil {
		w.emit(e)
		return
	}
	e.Client.Server = string(n.name)
	w.emitNode(n, e)
}

// scheduleJoin lets whoever adds a server look again after a heartbeat.
func (w *World) scheduleJoin(id raft.ServerID) {
	w.schedule(event{at: w.now + w.config.heartbeat, kind: eventJoin, slot: uint32(id)})
}

// join is a look at a server that is to have a vote: it is added again if that came to nothing, and
// promoted as soon as the leader would do it. Nothing is asked in vain.
func (w *World) join(id raft.ServerID) {
	l := w.leader()
	if !slices.Contains(w.joining, id) {
		return
	}
	w.scheduleJoin(id)
	if l == nil || l.paused {
		return
	}
	now, _ := l.replica.Core().Members()
	c := Change{Do: opPromote, Node: id}
	switch i := slices.IndexFunc(now, func(m raft.Member) bool { return m.ID == id }); {
	case i < 0:
		c = Change{Do: opAdd, Node: id, Learner: true}
	case now[i].Voter:
		w.joined(l, id)
		return
	}
	next, _ := c.of(now)
	if _, _, err := l.replica.Core().Clone().ChangeMembers(next); err != nil {
		return
	}
	w.steps++
	w.traceCommand(c)
	w.change(l, c)
}

// joined ends the looking once it is certain that a server votes.
func (w *World) joined(l *node, id raft.ServerID) {
	if _, index := l.replica.Core().Members(); index <= l.status.CommitIndex {
		w.joining = slices.DeleteFunc(w.joining, func(other raft.ServerID) bool { return other == id })
	}
}

// first are the servers that a run begins with: those with votes, then the learners.
func (c *worldConfig) first() (all raft.Configuration) {
	for id := range raft.ServerID(c.nodes + c.learners) {
		all = append(all, raft.Member{ID: id + 1, Voter: int(id) < c.nodes})
	}
	return all
}

// startEntry is the entry of a log at the start of a run. If there are learners, the first entry of all
// names the servers: nothing else could.
func (c *worldConfig) startEntry(index raft.Index, term raft.Term) raft.Entry {
	e := raft.Entry{Index: index, Term: term}
	if index == 1 && c.learners > 0 {
		e.Members = c.first()
	}
	return e
}

// startLearners gives those that no line gives a log one with that entry.
func (w *World) startLearners() {
	if w.config.learners == 0 {
		return
	}
	for _, n := range w.nodes {
		d := &n.disk.durable
		if n.joins || d.Snapshot != nil || len(d.Entries) > 0 {
			continue
		}
		hard := raft.HardState{Term: max(d.Term, 1), VotedFor: d.VotedFor}
		n.disk.startFrom(raft.Durable{HardState: hard, Entries: []raft.Entry{w.config.startEntry(1, 1)}})
		w.firstTerm = max(w.firstTerm, hard.Term)
	}
}

// joiners is how many servers a scenario adds that are not there from the start.
func (s *Scenario) joiners(config *worldConfig) int {
	most := config.nodes + config.learners
	for _, line := range s.Lines {
		command := line.Command
		if at, ok := command.(At); ok {
			command = at.Command
		}
		if c, ok := command.(Change); ok {
			most = max(most, int(c.Node))
		}
	}
	return most - config.nodes - config.learners
}
