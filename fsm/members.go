package fsm

import (
	"errors"
	"slices"

	"ticketing/raft"
)

// A change of members is in the log, and its caller is not answered yet.
type change struct {
	call  uint64
	index raft.Index
	term  raft.Term
}

// ChangeMembers proposes another set of servers, see raft.Core.ChangeMembers, for a caller who is
// answered as for a Request: Answered with the Index when this server has applied the entry, even if
// that removes this very server; NotLeader, Unknown; or Invalid with the core's error. The entry has
// its place in the log like any other, and changes nothing in the table.
func (r *Replica) ChangeMembers(call uint64, next raft.Configuration) {
	r.observeLeadership()
	if r.leader == nil {
		r.reply(Reply{Call: call, Status: NotLeader, Leader: r.otherLeader()})
		return
	}
	index, term, err := r.core.ChangeMembers(next)
	switch {
	case errors.Is(err, raft.ErrTransferring):
		r.reply(Reply{Call: call, Status: NotLeader, Leader: r.core.Transferring()})
	case err != nil:
		r.reply(Reply{Call: call, Status: Invalid, Err: err})
	default:
		r.changes = append(r.changes, change{call, index, term})
		members := r.core.Entries(index, index)[0].Members // the same, by rising id
		r.out.Proposed = append(r.out.Proposed, Proposed{Index: index, Term: term, Members: members})
	}
}

// answerChanges tells the callers what is known by now. It comes after what is committed was
// applied and looks at the log alone: a leader that removes itself steps down because that is
// committed, and its caller shall hear of the success and not of the stepping down.
func (r *Replica) answerChanges() {
	if len(r.changes) == 0 {
		return
	}
	s := r.core.Status()
	r.changes = slices.DeleteFunc(r.changes, func(c change) bool {
		term, _ := r.core.Term(c.index)
		switch {
		case c.index <= s.LastApplied && term == c.term:
			r.reply(Reply{Call: c.call, Status: Answered, Index: c.index})
		case c.index <= s.LastApplied || r.retired || s.Role != raft.Leader || s.Term != c.term:
			r.reply(Reply{Call: c.call, Status: Unknown})
		default:
			return false
		}
		return true
	})
}
