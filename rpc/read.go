package rpc

import (
	"slices"

	"ticketing/fsm"
	"ticketing/raft"
)

// Get tells who holds a key. Unless it is asked for what it has itself, only a leader answers, from
// its applied table; one that was deposed and does not know it yet may answer with what was true
// earlier.
func (l lockService) Get(a *GetArgs, y *GetReply) error {
	key, local := a.Key, a.Local
	return read(l.session, y, &y.Status, func(leader string, leads bool) GetReply {
		if !leads && !local {
			return GetReply{Status: NotLeader, Leader: leader}
		}
		applied := l.node.replica.Core().Status().LastApplied
		tenure, held := l.node.replica.Table().Holder(key)
		if !held {
			return GetReply{Status: NotFound, Applied: applied}
		}
		return GetReply{Status: OK, Info: info(key, tenure), Applied: applied}
	})
}

// List tells all locks that are held, in pages. It may be as old as what Get answers.
func (l lockService) List(a *ListArgs, y *ListReply) error {
	after, local := a.After, a.Local
	return read(l.session, y, &y.Status, func(leader string, leads bool) ListReply {
		if !leads && !local {
			return ListReply{Status: NotLeader, Leader: leader}
		}
		page, table := ListReply{Status: OK}, l.node.replica.Table()
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
	return read(l.session, y, &y.Status, func(leader string, _ bool) StatusReply {
		r := l.node.replica
		s, table := r.Core().Status(), r.Table()
		times, more := r.LeaseTimes(maxListed)
		leases := make([]LeaseLeft, len(times))
		for i, t := range times {
			leases[i] = LeaseLeft{t.Key, t.Token, max(int64(t.Left)/1000, 0)}
		}
		return StatusReply{
			Status: OK, Leader: leader, ID: s.ID, Role: s.Role.String(), Term: s.Term,
			Commit: s.CommitIndex, Applied: s.LastApplied, Last: s.LastIndex,
			Held: table.Len(), Tokens: table.Tokens(), Hash: table.Hash(),
			Leases: leases, MoreLeases: more,
		}
	})
}

func info(key string, t fsm.Tenure) Info { return Info{key, t.Token, t.Owner, t.LeaseMS} }

// read lets the loop look at the replica. The function is told who leads, and whether it is this
// server and its table holds all that was acknowledged before: it does once an entry of its own
// term is applied. What it returns goes through a channel, since the caller may be gone by then.
func read[T any](s *session, y *T, status *Status, look func(leader string, leads bool) T) error {
	if !s.begin(false) {
		*status = Busy
		return nil
	}
	defer s.end(false)
	n, found := s.node, make(chan T, 1)
	// It goes through the peers' door, since it writes nothing: a server whose disk hangs can be
	// asked how it is.
	n.enter(s.ctx, n.fromPeers, func() {
		core := n.replica.Core()
		now := core.Status()
		applied, _ := core.Term(now.LastApplied)
		leads := now.Role == raft.Leader && applied == now.Term
		found <- look(n.config.Addrs[now.Leader], leads)
	})
	select {
	case *y = <-found:
	case <-s.ctx.Done(): // the node's end ends it too
		*status = Unknown
	}
	return nil
}
