package rpc

import (
	"net/rpc"

	"ticketing/raft"
)

// The RPCs beyond Figure 2, each with its reply, as those in peer.go.
type (
	PreVoteArgs struct {
		Header
		raft.PreVote
	}
	PreVoteReply struct {
		Status Status
		Header
		raft.PreVoteReply
	}
	ReadIndexArgs struct {
		Header
		raft.ReadIndex
	}
	ReadIndexReply struct {
		Status Status
		Header
		raft.ReadIndexReply
	}
	TimeoutNowArgs  struct{ Header } // gob has no way to send a raft.TimeoutNow, which is empty
	TimeoutNowReply struct {
		Status Status
		Header
		raft.TimeoutNowReply
	}
	InstallSnapshotArgs struct {
		Header
		raft.InstallSnapshot
	}
	InstallSnapshotReply struct {
		Status Status
		Header
		raft.InstallSnapshotReply
	}
)

// call sends one request.
func (n *Node) call(client *rpc.Client, m raft.Message) *rpc.Call {
	h, done := Header{n.config.Cluster, m.From, m.To, m.Term, m.Call}, make(chan *rpc.Call, 1)
	switch body := m.Body.(type) {
	case raft.RequestVote:
		return client.Go("Raft.RequestVote", &RequestVoteArgs{h, body}, new(RequestVoteReply), done)
	case raft.AppendEntries:
		return client.Go("Raft.AppendEntries", &AppendEntriesArgs{h, body}, new(AppendEntriesReply), done)
	case raft.PreVote:
		return client.Go("Raft.PreVote", &PreVoteArgs{h, body}, new(PreVoteReply), done)
	case raft.ReadIndex:
		return client.Go("Raft.ReadIndex", &ReadIndexArgs{h, body}, new(ReadIndexReply), done)
	case raft.TimeoutNow:
		return client.Go("Raft.TimeoutNow", &TimeoutNowArgs{h}, new(TimeoutNowReply), done)
	case raft.InstallSnapshot:
		args := &InstallSnapshotArgs{h, body}
		return client.Go("Raft.InstallSnapshot", args, new(InstallSnapshotReply), done)
	}
	panic("rpc: a request that has no name")
}

// replyMessage is the message in a reply.
func replyMessage(reply any) (Header, raft.Message, Status) {
	switch y := reply.(type) {
	case *RequestVoteReply:
		return y.Header, y.Header.message(y.RequestVoteReply), y.Status
	case *AppendEntriesReply:
		return y.Header, y.Header.message(y.AppendEntriesReply), y.Status
	case *PreVoteReply:
		return y.Header, y.Header.message(y.PreVoteReply), y.Status
	case *ReadIndexReply:
		return y.Header, y.Header.message(y.ReadIndexReply), y.Status
	case *TimeoutNowReply:
		return y.Header, y.Header.message(y.TimeoutNowReply), y.Status
	case *InstallSnapshotReply:
		return y.Header, y.Header.message(y.InstallSnapshotReply), y.Status
	}
	panic("rpc: a reply that has no request")
}

// isReply reports whether a message is one that a handler waits for.
func isReply(b raft.Body) bool {
	switch b.(type) {
	case raft.RequestVoteReply, raft.AppendEntriesReply, raft.PreVoteReply, raft.ReadIndexReply,
		raft.TimeoutNowReply, raft.InstallSnapshotReply:
		return true
	}
	return false
}

// mayBeOld reports whether a message is worth nothing once there is a newer one: it says how things
// are. All others say something that no later one says again.
func mayBeOld(b raft.Body) bool {
	switch body := b.(type) {
	case raft.RequestVote, raft.PreVote:
		return true
	case raft.AppendEntries:
		return len(body.Entries) == 0
	}
	return false
}

func (r raftService) PreVote(a *PreVoteArgs, y *PreVoteReply) error {
	respond(r, a.Header, a.PreVote, func(h Header, b raft.PreVoteReply) {
		*y = PreVoteReply{OK, h, b}
	})
	return nil
}

func (r raftService) ReadIndex(a *ReadIndexArgs, y *ReadIndexReply) error {
	respond(r, a.Header, a.ReadIndex, func(h Header, b raft.ReadIndexReply) {
		*y = ReadIndexReply{OK, h, b}
	})
	return nil
}

func (r raftService) TimeoutNow(a *TimeoutNowArgs, y *TimeoutNowReply) error {
	respond(r, a.Header, raft.TimeoutNow{}, func(h Header, b raft.TimeoutNowReply) {
		*y = TimeoutNowReply{OK, h, b}
	})
	return nil
}

func (r raftService) InstallSnapshot(a *InstallSnapshotArgs, y *InstallSnapshotReply) error {
	respond(r, a.Header, a.InstallSnapshot, func(h Header, b raft.InstallSnapshotReply) {
		*y = InstallSnapshotReply{OK, h, b}
	})
	return nil
}
