package rpc

import (
	"slices"

	"ticketing/fsm"
)

// Get tells who holds a key: so that nobody can have known better when the question came, or, if it is
// asked for what it has itself, from its own table, which may be older.
func (l lockService) Get(a *GetArgs, y *GetReply) error {
	key := a.Key
	return read(l.session, a.Local, y, &y.Status, func(status Status, leader string) GetReply {
		if status != OK {
			return GetReply{Status: status, Leader: leader}
		}
		applied := l.node.replica.Core().Status().LastApplied
		tenure, held := l.node.replica.Table().Holder(key)
		if !held {
			return GetReply{Status: NotFound, Leader: leader, Applied: applied}
		}
		return GetReply{Status: OK, Leader: leader, Info: info(key, tenure), Applied: applied}
	})
}

// List tells all locks that are held, in pages. Each of them is as good as what Get answers.
func (l lockService) List(a *ListArgs, y *ListReply) error {
	after := a.After
	return read(l.session, a.Local, y, &y.Status, func(status Status, leader string) ListReply {
		if status != OK {
			return ListReply{Status: status, Leader: leader}
		}
		page, table := ListReply{Status: OK, Leader: leader}, l.node.replica.Table()
		page.Applied = l.node.replica.Core().Status().LastApplied
		keys := table.Keys()
		next, _ := slices.BinarySearch(keys, after+"\x00") // the least key that is greater
		keys = keys[next:]
		if page.More = len(keys) > maxListed; page.More {
			keys = keys[:maxListed]
		}
		for _, key := range keys {
			tenure, _ := table.Holder(key)
			page.Locks = append(page.Locks, info(key, tenure))
		}
		return page
	})
}

// Status describes the server that is asked, whether it leads or not.
func (l lockService) Status(_ *StatusArgs, y *StatusReply) error {
	return read(l.session, true, y, &y.Status, func(_ Status, leader string) StatusReply {
		r := l.node.replica
		s, table := r.Core().Status(), r.Table()
		times, more := r.LeaseTimes(maxListed)
		leases := make([]LeaseLeft, len(times))
		for i, t := range times {
			leases[i] = LeaseLeft{t.Key, t.Token, max(int64(t.Left)/1000, 0)}
		}
		return StatusReply{
			Status: OK, Leader: leader, ID: s.ID, Role: s.Role.String(), Term: s.Term,
			Learner: l.node.learns(), Removed: l.node.removed,
			Commit: s.CommitIndex, Applied: s.LastApplied, Last: s.LastIndex,
			Held: table.Len(), Tokens: table.Tokens(), Hash: table.Hash(),
			Leases: leases, MoreLeases: more,
			First: r.Core().FirstIndex(), Snapshot: l.node.lastSnapshot(),
		}
	})
}

func info(key string, t fsm.Tenure) Info { return Info{key, t.Token, t.Owner, t.LeaseMS} }

// read lets the loop look at the replica: at once if what it has itself will do, and otherwise when
// the replica vouches that its table is as new as any. The function is told with OK that it may tell
// what is there, and else why not and who leads. What it returns goes through a channel, since the
// caller may be gone by then.
func read[T any](
	s *session, local bool, y *T, status *Status, look func(status Status, leader string) T,
) error {
	if !s.begin(false) {
		*status = Busy
		return nil
	}
	defer s.end(false)
	n, found, call := s.node, make(chan T, 1), s.node.calls.Add(1)
	answer := func(r fsm.Reply) {
		if r.Status == fsm.Answered { // whoever asks may want to lock next
			r.Leader = n.replica.Core().Status().Leader
		}
		found <- look(statusOfRead(r), n.addrOf(r.Leader))
	}
	// It goes through the peers' door, since it writes nothing: a server whose disk hangs can be
	// asked how it is.
	n.enter(s.ctx, n.fromPeers, func() {
		if local {
			answer(fsm.Reply{Status: fsm.Answered})
			return
		}
		n.questions.add(call, answer)
	})
	select {
	case *y = <-found:
	case <-s.ctx.Done(): // the node's end ends it too
		*status = Unknown
		n.enter(n.ctx, n.fromPeers, func() {
			n.questions.forget(call)
		})
	}
	return nil
}

// questions are the clients' reads. The replica has one at a time; all that come meanwhile share the
// next, as the core's do. A follower would ask its leader once for each, and the queue to a peer has
// room for a few.
type questions struct {
	call  uint64                     // of the one that the replica has, 0 for none
	asked map[uint64]func(fsm.Reply) // what to do with its answer, by the handlers' calls
	next  map[uint64]func(fsm.Reply) // and with the next one's
}

func (q *questions) add(call uint64, answer func(fsm.Reply)) {
	if q.next == nil {
		q.next = map[uint64]func(fsm.Reply){}
	}
	q.next[call] = answer
}

// forget drops a handler whose caller has left.
func (q *questions) forget(call uint64) {
	delete(q.asked, call)
	delete(q.next, call)
}

// due reports whether there is something to ask, and nothing is asked already.
func (q *questions) due() bool { return q.call == 0 && len(q.next) > 0 }

// ask asks the replica, if that is due.
func (n *Node) ask() {
	q := &n.questions
	if q.due() {
		q.call, q.asked, q.next = n.calls.Add(1), q.next, nil
		n.replica.Read(q.call)
	}
}

// answer tells all who have asked.
func (q *questions) answer(y fsm.Reply) {
	all := q.asked
	q.call, q.asked = 0, nil
	for _, tell := range all {
		tell(y)
	}
}

func statusOfRead(r fsm.Reply) Status {
	switch r.Status {
	case fsm.Answered:
		return OK
	case fsm.NotLeader:
		return NotLeader
	}
	return Unknown
}
