package rpc

import (
	"errors"
	"fmt"
	"strings"

	"ticketing/fsm"
	"ticketing/raft"
)

// The clients' RPCs. Client is a session that Open has begun, Seq the client's number for a request,
// and its requests below Lowest are closed: it waits for none of their answers. A request may be
// sent again with the same numbers and a greater Attempt, and is carried out once; if an earlier
// call still waits, that is answered Superseded. Client 0 is no session: then a request that is sent
// again is another one. Leader is an address, if known.
type (
	OpenArgs  struct{ Owner string }
	OpenReply struct {
		Roster
		Status Status
		Leader string
		Detail string
		Client fsm.ClientID // OK: the session
	}

	AcquireArgs struct {
		Client  fsm.ClientID
		Seq     uint64
		Lowest  uint64
		Attempt uint32
		Owner   string // for people
		Key     string
		LeaseMS int64
		Try     bool // do not wait
	}
	AcquireReply struct {
		Roster
		Status  Status
		Leader  string
		Detail  string // Invalid: why
		LeastMS int64  // Invalid, as the lease is too short: what it must be at least
		Holder  Info   // Held: who has it, if that is applied yet
		Token   fsm.Token
		Attempt uint32 // the newest that the leader had when it proposed the Grant
	}

	ExtendArgs struct {
		Client  fsm.ClientID
		Seq     uint64
		Lowest  uint64
		Owner   string
		Key     string
		Token   fsm.Token
		LeaseMS int64 // from now on
	}
	ExtendReply struct {
		Roster
		Status  Status // OK; NotFound if the tenure is over, Expiring if it is about to be
		Leader  string
		Detail  string
		LeastMS int64
	}

	ReleaseArgs struct {
		Client fsm.ClientID
		Seq    uint64
		Lowest uint64
		Owner  string
		Key    string
		Token  fsm.Token // 0 releases the key whoever holds it
	}
	ReleaseReply struct {
		Roster
		Status Status
		Leader string
		Detail string
	}

	GetArgs struct {
		Key   string
		Local bool // answer from the server's own table, whether it leads or not
	}
	GetReply struct {
		Roster
		Status  Status
		Leader  string
		Info    Info       // OK
		Applied raft.Index // up to where the log is applied that the answer comes from
	}

	ListArgs struct {
		After string // keys greater than this one
		Local bool   // as in GetArgs
	}
	ListReply struct {
		Roster
		Status  Status
		Leader  string
		Locks   []Info // by key
		More    bool   // there are more; ask again after the last of these
		Applied raft.Index
	}

	TransferArgs struct {
		To raft.ServerID // 0 lets the leader choose
	}
	TransferReply struct {
		Roster
		Status Status // OK: another server leads; GivenUp: nobody took over
		Leader string
		ID     raft.ServerID // the leader's
		Detail string
	}

	StatusArgs  struct{}
	StatusReply struct {
		Roster
		Status  Status
		Leader  string
		ID      raft.ServerID
		Role    string
		Learner bool       // a member that does not vote yet
		Removed raft.Index // of the entry that has ended its membership; 0 if none has
		Term    raft.Term
		Commit  raft.Index
		Applied raft.Index
		Last    raft.Index
		Held    int
		Tokens  fsm.Token // the last one given out
		Hash    uint64    // of the table; equal on servers that have applied the same

		// What is left of leases by that server's own count, the shortest first. Each server counts
		// for itself, from when it applied the Grant; the leader's count is the one that is acted on.
		Leases     []LeaseLeft
		MoreLeases bool // than maxListed

		First    raft.Index // the first entry that is still in the log
		Snapshot SnapshotInfo
	}
)

// Roster is in each of these replies, so that a client hears of it when servers come and go.
type Roster struct {
	// MembersAt is the index of the last committed entry that says who the servers are, as far as the
	// one that answers knows; 0 if it is the command line.
	MembersAt raft.Index
}

func (r *Roster) roster() *Roster { return r }

// LeaseLeft is how long a lock's lease still is, in milliseconds. One that is over is there until
// its end is applied.
type LeaseLeft struct {
	Key   string
	Token fsm.Token
	Left  int64
}

// Info is a lock that is held.
type Info struct {
	Key     string
	Token   fsm.Token
	Owner   string
	LeaseMS uint32 // in full, not what is left of it
}

const maxListed = 500 // locks in one reply: with the longest keys and owners a quarter of maxMessage

// lockService is what clients call.
type lockService struct{ *session }

func (l lockService) Open(a *OpenArgs, y *OpenReply) error {
	r, status := l.request(fsm.Request{Owner: a.Owner, Kind: fsm.Open})
	y.Status, y.Leader, y.Detail = status, l.node.addrOf(r.Leader), detail(r)
	y.Client = r.Result.Client
	return nil
}

// tooShort says what is wrong with a lease that does not outlive an election, "" if it does.
func (l lockService) tooShort(ms int64) (detail string, least int64) {
	if least = l.node.config.LeastLease.Milliseconds(); ms >= least {
		return "", 0
	}
	return fmt.Sprintf("the lease must be at least %dms, to outlive an election, not %dms", least, ms),
		least
}

func (l lockService) Extend(a *ExtendArgs, y *ExtendReply) error {
	if y.Detail, y.LeastMS = l.tooShort(a.LeaseMS); y.Detail != "" {
		y.Status = Invalid
		return nil
	}
	r, status := l.request(fsm.Request{
		Client: a.Client, Seq: a.Seq, Lowest: a.Lowest, Owner: a.Owner,
		Kind: fsm.Extend, Key: a.Key, Token: a.Token, LeaseMS: a.LeaseMS,
	})
	y.Status, y.Leader, y.Detail = status, l.node.addrOf(r.Leader), detail(r)
	return nil
}

func (l lockService) Acquire(a *AcquireArgs, y *AcquireReply) error {
	if y.Detail, y.LeastMS = l.tooShort(a.LeaseMS); y.Detail != "" {
		y.Status = Invalid
		return nil
	}
	r, status := l.request(fsm.Request{
		Client: a.Client, Seq: a.Seq, Lowest: a.Lowest, Attempt: a.Attempt, Owner: a.Owner,
		Kind: fsm.Grant, Key: a.Key, LeaseMS: a.LeaseMS, Try: a.Try,
	})
	y.Status, y.Leader, y.Detail = status, l.node.addrOf(r.Leader), detail(r)
	y.Token, y.Attempt = r.Result.Token, r.Attempt
	if status == Held {
		var holder GetReply // best effort: nobody, if it cannot be asked for
		err := l.Get(&GetArgs{Key: a.Key, Local: true}, &holder)
		y.Holder = holder.Info
		return err
	}
	return nil
}

func (l lockService) Release(a *ReleaseArgs, y *ReleaseReply) error {
	r, status := l.request(fsm.Request{
		Client: a.Client, Seq: a.Seq, Lowest: a.Lowest, Owner: a.Owner,
		Kind: fsm.Release, Key: a.Key, Token: a.Token,
	})
	y.Status, y.Leader, y.Detail = status, l.node.addrOf(r.Leader), detail(r)
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
	waits := q.Kind == fsm.Grant
	if !l.begin(waits) {
		return fsm.Reply{}, Busy
	}
	defer l.end(waits)
	n, reply := l.node, make(chan fsm.Reply, 1)
	q.Call = n.calls.Add(1)
	q.Key, q.Owner = strings.Clone(q.Key), strings.Clone(q.Owner)
	entered := n.enter(l.ctx, n.fromClients, func() {
		if l.ctx.Err() != nil {
			return // it has left, and its leaving may have come in by the other door before this
		}
		if n.retired {
			reply <- fsm.Reply{Status: fsm.NotLeader, Leader: n.otherLeader()}
			return
		}
		n.callers[q.Call] = caller{reply, q.Kind, n.now()}
		n.replica.Request(q)
		n.witness.requested(q)
	})
	if !entered {
		return fsm.Reply{}, Unknown
	}
	select {
	case r := <-reply:
		if l.ctx.Err() == nil {
			return r, statusOf(r)
		}
		reply <- r // nobody will read it
	case <-l.ctx.Done():
	}
	n.enter(n.ctx, n.fromPeers, func() { n.abandon(q, reply) })
	return fsm.Reply{}, Unknown
}

// abandon cancels a request whose caller has left. If it was granted the lock in this very moment,
// the replica believes that it was answered, but nobody has read the answer: the lock is given
// back. It goes through the peers' door, since it must not wait for the disk behind others.
func (n *Node) abandon(q fsm.Request, reply <-chan fsm.Reply) {
	n.metrics.clientsLost++
	n.witness.left(q)
	if _, waits := n.callers[q.Call]; waits || len(reply) == 0 {
		delete(n.callers, q.Call)
		n.replica.Disconnect(q)
		return
	}
	if r := <-reply; r.Status == fsm.Answered {
		n.replica.Undelivered(q, r)
	}
}

// statusOf translates what the replica says.
func statusOf(r fsm.Reply) Status {
	switch r.Status {
	case fsm.Answered:
		switch r.Result.Kind {
		case fsm.Granted, fsm.Released, fsm.Extended, fsm.Opened:
			return OK
		case fsm.GrantRejected:
			return Held
		case fsm.NotFound:
			if errors.Is(r.Err, fsm.ErrTokenAhead) {
				return Ahead
			}
			return NotFound
		case fsm.ResultNoop:
			return Closed
		case fsm.SessionUnknown:
			return Gone
		case fsm.TableFull:
			return TableFull
		case fsm.NumberReused:
			return Reused
		}
	case fsm.Held:
		return Held
	case fsm.NotLeader:
		return NotLeader
	case fsm.Superseded:
		return Superseded
	case fsm.Expiring:
		return Expiring
	case fsm.Full:
		return Full
	case fsm.Busy:
		return Busy
	case fsm.Invalid:
		return invalid(r.Err)
	}
	return Unknown
}

// invalid tells a session that is used wrongly from a request that would be wrong in any.
func invalid(err error) Status {
	switch {
	case errors.Is(err, fsm.ErrReused):
		return Reused
	case errors.Is(err, fsm.ErrClosed):
		return Below
	case errors.Is(err, fsm.ErrTooMany):
		return TooFar
	}
	return Invalid
}
