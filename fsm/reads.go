package fsm

import (
	"maps"
	"slices"

	"ticketing/raft"
)

// This file is reads: who holds a lock, told so that nobody can have known better when the question
// came. The table of any server will do, as soon as it has applied what raft's ReadIndex names. To
// answer from the table at once would be to tell what was true before: a leader that was replaced
// does not know it.

// reads are the questions that are not answered.
type reads struct {
	asked     map[uint64]bool // calls that the core has been asked about
	confirmed []confirmed     // those that it has answered, while the table is not so far
}

// A confirmed read waits until the table holds the entry at index.
type confirmed struct {
	call  uint64
	index raft.Index
}

// Read asks to be told when this server's table is at least as new as any was at this moment. It is
// by the Take that brings the Answered, and the driver reads the table before its next input. If it
// cannot be known, the reply is NotLeader where another server is known to lead and Unknown where
// not, and the driver's client may ask again: nothing was proposed. Call is in the place of a
// Request's, and it names the question between the servers too. So it is not used twice even by a
// server that has started again in between, unless no message outlives that.
func (r *Replica) Read(call uint64) {
	if r.retired || r.core.Read(call) != nil {
		r.reply(Reply{Call: call, Status: NotLeader, Leader: r.otherLeader()})
		return
	}
	if r.reads.asked == nil {
		r.reads.asked = map[uint64]bool{}
	}
	r.reads.asked[call] = true
}

// otherLeader is the server that leads, if it is known and not this one.
func (r *Replica) otherLeader() raft.ServerID {
	if s := r.core.Status(); s.Leader != s.ID {
		return s.Leader
	}
	return 0
}

// answerReads takes what the core has answered and tells the callers, once the table is so far.
func (r *Replica) answerReads(states []raft.ReadState) {
	for _, s := range states {
		if !r.reads.asked[s.ID] {
			continue // its caller has gone
		}
		delete(r.reads.asked, s.ID)
		if s.OK {
			r.reads.confirmed = append(r.reads.confirmed, confirmed{s.ID, s.Index})
			continue
		}
		r.refuseRead(s.ID)
	}
	if len(r.reads.confirmed) == 0 {
		return
	}
	applied := r.core.Status().LastApplied
	r.reads.confirmed = slices.DeleteFunc(r.reads.confirmed, func(c confirmed) bool {
		if c.index > applied {
			return false
		}
		r.reply(Reply{Call: c.call, Status: Answered, Index: c.index})
		return true
	})
}

// refuseRead tells a caller that nobody has vouched for this server's table.
func (r *Replica) refuseRead(call uint64) {
	y := Reply{Call: call, Status: Unknown, Leader: r.otherLeader()}
	if y.Leader != 0 {
		y.Status = NotLeader
	}
	r.reply(y)
}

// refuseReads does so for all that wait.
func (r *Replica) refuseReads() {
	for _, call := range slices.Sorted(maps.Keys(r.reads.asked)) {
		r.refuseRead(call)
	}
	for _, c := range r.reads.confirmed {
		r.refuseRead(c.call)
	}
	r.reads = reads{}
}

// disconnect forgets a call.
func (r *reads) disconnect(call uint64) {
	delete(r.asked, call)
	r.confirmed = slices.DeleteFunc(r.confirmed, func(c confirmed) bool { return c.call == call })
}

func (r *reads) clone() reads {
	return reads{asked: maps.Clone(r.asked), confirmed: slices.Clone(r.confirmed)}
}

func (r *reads) appendState(b []byte, applied raft.Index) []byte {
	b = appendNumbers(b, uint64(len(r.asked)), uint64(len(r.confirmed)))
	for _, call := range slices.Sorted(maps.Keys(r.asked)) {
		b = appendNumbers(b, call)
	}
	for _, c := range r.confirmed {
		b = appendNumbers(b, c.call, ahead(c.index, applied))
	}
	return b
}
