package rpc

import (
	"fmt"
	"slices"
	"strings"

	"ticketing/fsm"
	"ticketing/raft"
)

// The clients' RPCs. Client and Seq name a request; one that still waits may be sent again, with
// the same numbers and a greater Attempt, and the earlier call is answered Superseded. Leader is an
// address, if known.
type (
	AcquireArgs struct {
		Client  fsm.ClientID
		Seq     uint64
		Attempt uint32
		Owner   string // for people
		Key     string
		LeaseMS int64
		Try     bool // do not wait
	}
	AcquireReply struct {
		Status  Status
		Leader  string
		Detail  string // Invalid: why
		Token   fsm.Token
		Attempt uint32 // the newest that the leader had when it proposed the Grant
	}

	ReleaseArgs struct {
		Client fsm.ClientID
		Seq    uint64
		Owner  string
		Key    string
		Token  fsm.Token // 0 releases the key whoever holds it
	}
	ReleaseReply struct {
		Status Status
		Leader string
		Detail string
	}

	GetArgs  struct{ Key string }
	GetReply struct {
		Status Status
		Leader string
		Info   Info // OK
	}

	ListArgs  struct{ After string } // keys greater than this one
	ListReply struct {
		Status Status
		Leader string
		Locks  []Info // by key
		More   bool   // there are more; ask again after the last of these
	}

	StatusArgs  struct{}
	StatusReply struct {
		Status  Status
		Leader  string
		ID      raft.ServerID
		Role    string
		Term    raft.Term
		Commit  raft.Index
		Applied raft.Index
		Last    raft.Index
		Held    int
		Tokens  fsm.Token // the last one given out
		Hash    uint64    // of the table; equal on servers that have applied the same
	}
)

// Info is a lock that is held.
type Info struct {
	Key     string
	Token   fsm.Token
	Owner   string
	LeaseMS uint32 // in full, not what is left of it
}

const maxListed = 500 // locks in one ListReply

// lockService is what clients call.
type lockService struct{ *session }

func (l lockService) Acquire(a *AcquireArgs, y *AcquireReply) error {
	if least := l.node.config.LeastLease.Milliseconds(); a.LeaseMS < least {
		y.Status = Invalid
		y.Detail = fmt.Sprintf("the lease must be at least %dms, to outlive an election, not %dms",
			least, a.LeaseMS)
		return nil
	}
	r, status := l.request(fsm.Request{
		Client: a.Client, Seq: a.Seq, Attempt: a.Attempt, Owner: a.Owner,
		Kind: fsm.Grant, Key: a.Key, LeaseMS: a.LeaseMS, Try: a.Try,
	})
	y.Status, y.Leader, y.Detail = status, l.node.config.Addrs[r.Leader], detail(r)
	y.Token, y.Attempt = r.Result.Token, r.Attempt
	return nil
}

func (l lockService) Release(a *ReleaseArgs, y *ReleaseReply) error {
	r, status := l.request(fsm.Request{
		Client: a.Client, Seq: a.Seq, Owner: a.Owner, Kind: fsm.Release, Key: a.Key, Token: a.Token,
	})
	y.Status, y.Leader, y.Detail = status, l.node.config.Addrs[r.Leader], detail(r)
	return nil
}

func detail(r fsm.Reply) string {
	if r.Err == nil {
		return ""
	}
	return r.Err.Error()
}

// request hands a request to the replica and waits for its reply.
func (l lockService) request(q fsm.Request) (fsm.Reply, Status) {
	if !l.begin() {
		return fsm.Reply{}, Busy
	}
	defer l.end()
	n, reply := l.node, make(chan fsm.Reply, 1)
	q.Call = n.calls.Add(1)
	q.Key, q.Owner = strings.Clone(q.Key), strings.Clone(q.Owner)
	entered := n.enter(l.ctx, n.fromClients, func() {
		n.callers[q.Call] = reply
		n.replica.Request(q)
	})
	if !entered {
		return fsm.Reply{}, Unknown
	}
	select {
	case r := <-reply:
		return r, statusOf(r)
	case <-l.ctx.Done():
		n.enter(n.ctx, n.fromPeers, func() { n.abandon(q, reply) })
		return fsm.Reply{}, Unknown
	}
}

// abandon cancels a request whose caller has left. If it was granted the lock in this very moment,
// the replica believes that it was answered, but nobody has read the answer: the lock is given
// back. It goes through the peers' door, since it must not wait for the disk behind others.
func (n *Node) abandon(q fsm.Request, reply <-chan fsm.Reply) {
	if _, waits := n.callers[q.Call]; waits || len(reply) == 0 {
		delete(n.callers, q.Call)
		n.replica.Disconnect(q)
		return
	}
	if r := <-reply; r.Status == fsm.Answered && r.Result.Kind == fsm.Granted {
		n.replica.Request(fsm.Request{
			Call: n.calls.Add(1), Kind: fsm.Release, Key: q.Key, Token: r.Result.Token,
		})
	}
}

// statusOf translates what the replica says.
func statusOf(r fsm.Reply) Status {
	switch r.Status {
	case fsm.Answered:
		switch r.Result.Kind {
		case fsm.Granted, fsm.Released:
			return OK
		case fsm.GrantRejected:
			return Held
		case fsm.NotFound:
			return NotFound
		}
	case fsm.Held:
		return Held
	case fsm.NotLeader:
		return NotLeader
	case fsm.Superseded:
		return Superseded
	case fsm.Invalid:
		return Invalid
	}
	return Unknown
}

// Get tells who holds a key. Only a leader answers, from its applied table; one that was deposed
// and does not know it yet may answer with what was true earlier.
func (l lockService) Get(a *GetArgs, y *GetReply) error {
	key := a.Key
	return read(l.session, y, &y.Status, func(leader string, leads bool) GetReply {
		if !leads {
			return GetReply{Status: NotLeader, Leader: leader}
		}
		tenure, held := l.node.replica.Table().Holder(key)
		if !held {
			return GetReply{Status: NotFound}
		}
		return GetReply{Status: OK, Info: info(key, tenure)}
	})
}

// List tells all locks that are held, in pages. It may be as old as what Get answers.
func (l lockService) List(a *ListArgs, y *ListReply) error {
	after := a.After
	return read(l.session, y, &y.Status, func(leader string, leads bool) ListReply {
		if !leads {
			return ListReply{Status: NotLeader, Leader: leader}
		}
		page, table := ListReply{Status: OK}, l.node.replica.Table()
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
		s, table := l.node.replica.Core().Status(), l.node.replica.Table()
		return StatusReply{
			Status: OK, Leader: leader, ID: s.ID, Role: s.Role.String(), Term: s.Term,
			Commit: s.CommitIndex, Applied: s.LastApplied, Last: s.LastIndex,
			Held: table.Len(), Tokens: table.Tokens(), Hash: table.Hash(),
		}
	})
}

func info(key string, t fsm.Tenure) Info { return Info{key, t.Token, t.Owner, t.LeaseMS} }

// read lets the loop look at the replica. The function is told who leads, and whether it is this
// server and its table holds all that was acknowledged before: it does once an entry of its own
// term is applied. What it returns goes through a channel, since the caller may be gone by then.
func read[T any](s *session, y *T, status *Status, look func(leader string, leads bool) T) error {
	if !s.begin() {
		*status = Busy
		return nil
	}
	defer s.end()
	n, found := s.node, make(chan T, 1)
	n.enter(s.ctx, n.fromClients, func() {
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
