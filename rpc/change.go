package rpc

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"ticketing/fsm"
	"ticketing/raft"
)

// The RPCs about the servers themselves.
type (
	MembersArgs struct {
		Local bool // answer with the server's own configuration, whether it leads or not
	}
	MembersReply struct {
		Roster
		Status  Status
		Leader  string
		Cluster uint64     // see Config
		Floor   fsm.Token  // see Config.TokenFloor
		Index   raft.Index // of the entry that says so; 0 if it is the command line
		Members []MemberInfo
	}

	ChangeArgs struct {
		Change  Change
		ID      raft.ServerID
		Address string // AddMember: where it listens
	}
	ChangeReply struct {
		Roster
		Status Status // OK; Already if it is so; Changing if it has to wait
		Leader string
		Detail string
	}
)

// MemberInfo is a server of the cluster. Match and Behind only a leader can tell: up to where the
// server's log is known to be the leader's, and how much of what is committed it lacks.
type MemberInfo struct {
	ID            raft.ServerID
	Voter, Leader bool
	Address       string
	Match, Behind raft.Index
}

// Change is what can be done to one server.
type Change uint8

const (
	AddMember     Change = iota + 1 // as a learner, which is sent the log and counts for nothing
	PromoteMember                   // to one that votes
	RemoveMember
)

// errAlready says that a change would change nothing.
var errAlready = errors.New("it is so already")

// Members tells who the servers are. Who leads has the last word on it, and knows how far each is.
func (l lockService) Members(a *MembersArgs, y *MembersReply) error {
	local := a.Local
	return read(l.session, local, y, &y.Status, func(status Status, leader string) MembersReply {
		n := l.node
		s := n.replica.Core().Status()
		if status == OK && !local && s.Role != raft.Leader {
			status = NotLeader
		}
		if status != OK {
			return MembersReply{Status: status, Leader: leader}
		}
		return n.memberList(s, leader)
	})
}

func (n *Node) memberList(s raft.Status, leader string) MembersReply {
	members, index := n.replica.Core().Members()
	list := MembersReply{
		Status: OK, Leader: leader, Cluster: n.config.Cluster, Floor: n.config.TokenFloor, Index: index,
	}
	for _, m := range members {
		i := MemberInfo{
			ID: m.ID, Voter: m.Voter, Leader: m.ID == s.Leader, Address: n.addrOf(m.ID),
		}
		if s.Role == raft.Leader {
			i.Match = n.match(s, m.ID)
			i.Behind = s.CommitIndex - min(i.Match, s.CommitIndex)
		}
		list.Members = append(list.Members, i)
	}
	return list
}

func (n *Node) match(s raft.Status, id raft.ServerID) raft.Index {
	if id == s.ID {
		return s.Durable
	}
	_, match := n.replica.Core().Progress(id)
	return match
}

// ChangeMembers adds, promotes or removes one server, and answers when that is committed.
func (l lockService) ChangeMembers(a *ChangeArgs, y *ChangeReply) error {
	if !l.begin(false) {
		y.Status = Busy
		return nil
	}
	defer l.end(false)
	n, reply, call, args := l.node, make(chan fsm.Reply, 1), l.node.calls.Add(1), *a
	args.Address = strings.Clone(args.Address)
	entered := n.enter(l.ctx, n.fromClients, func() {
		if l.ctx.Err() == nil {
			n.callers[call] = caller{reply, fsm.Noop, n.now()}
			n.change(call, args)
		}
	})
	if !entered {
		y.Status = Unknown
		return nil
	}
	select {
	case r := <-reply:
		y.Status, y.Leader, y.Detail = statusOfChange(r), n.addrOf(r.Leader), changeDetail(r.Err)
	case <-l.ctx.Done(): // a change that is in the log goes its way
		y.Status = Unknown
		n.enter(n.ctx, n.fromPeers, func() {
			delete(n.callers, call)
			n.replica.Disconnect(fsm.Request{Call: call})
		})
	}
	return nil
}

// change hands a change to the replica, or answers at once. The loop calls it.
func (n *Node) change(call uint64, a ChangeArgs) {
	s := n.replica.Core().Status()
	if n.retired || s.Role != raft.Leader {
		n.answer(fsm.Reply{Call: call, Status: fsm.NotLeader, Leader: n.otherLeader()})
		return
	}
	next, err := n.nextMembers(s, a)
	if err != nil {
		n.answer(fsm.Reply{Call: call, Status: fsm.Invalid, Err: err})
		return
	}
	n.replica.ChangeMembers(call, next)
}

// nextMembers is the configuration that a change leads to. All addresses are in it, also those that
// the command line has told this server until now: whoever reads the log then reaches everybody.
func (n *Node) nextMembers(s raft.Status, a ChangeArgs) (raft.Configuration, error) {
	members, index := n.replica.Core().Members()
	if index > s.CommitIndex { // or what is so already might be taken back
		return nil, fmt.Errorf("%w: the change at index %d is not committed", raft.ErrChanging, index)
	}
	next := slices.Clone(members)
	for i := range next {
		next[i].Address = n.addrOf(next[i].ID)
	}
	switch a.Change {
	case AddMember:
		return added(next, a.ID, a.Address)
	case PromoteMember:
		return n.promoted(s, next, a.ID)
	case RemoveMember:
		return removed(next, a.ID)
	}
	return nil, fmt.Errorf("%w: there is no change with the number %d", raft.ErrMembers, a.Change)
}

func added(next raft.Configuration, id raft.ServerID, address string) (raft.Configuration, error) {
	if id == 0 {
		return nil, fmt.Errorf("%w: ids begin at 1", raft.ErrMembers)
	}
	if err := CheckAddr(address); err != nil {
		return nil, fmt.Errorf("%w: %w", raft.ErrMembers, err)
	}
	for _, m := range next {
		switch {
		case m.ID == id && m.Address == address:
			return nil, fmt.Errorf("%w: server %d, at %s, is a member", errAlready, id, address)
		case m.ID == id:
			return nil, fmt.Errorf("%w: server %d is a member already, at %s; a new server needs an "+
				"id that no other has had", raft.ErrMembers, id, m.Address)
		case m.Address == address:
			return nil, fmt.Errorf("%w: server %d has the address %s; if it is gone for good, remove "+
				"it first", raft.ErrMembers, m.ID, address)
		}
	}
	return append(next, raft.Member{ID: id, Address: address}), nil
}

// promoted refuses a learner that is behind, as the core does, and says how far.
func (n *Node) promoted(
	s raft.Status, next raft.Configuration, id raft.ServerID,
) (raft.Configuration, error) {
	m := memberOf(next, id)
	switch {
	case m == nil:
		return nil, errNoMember(id)
	case m.Voter:
		return nil, fmt.Errorf("%w: server %d votes", errAlready, id)
	}
	if match := n.match(s, id); match == 0 || match+maxBatch < s.CommitIndex {
		return nil, fmt.Errorf("%w: server %d has not caught up, it has %d of %d entries; is it "+
			"running, and can it be reached at %s?", raft.ErrChanging, id, match, s.CommitIndex, m.Address)
	}
	m.Voter = true
	return next, nil
}

func removed(next raft.Configuration, id raft.ServerID) (raft.Configuration, error) {
	m := memberOf(next, id)
	if m == nil {
		return nil, fmt.Errorf("%w: %w", errAlready, errNoMember(id))
	}
	others := slices.DeleteFunc(next, func(m raft.Member) bool { return m.ID == id })
	if !slices.ContainsFunc(others, func(m raft.Member) bool { return m.Voter }) {
		return nil, fmt.Errorf("%w: server %d is the only one that votes; add and promote another "+
			"one before", raft.ErrMembers, id)
	}
	return others, nil
}

func errNoMember(id raft.ServerID) error {
	return fmt.Errorf("%w: server %d is not a member; lockctl member list shows who is",
		raft.ErrMembers, id)
}

func statusOfChange(r fsm.Reply) Status {
	switch {
	case r.Status == fsm.Answered:
		return OK
	case r.Status == fsm.NotLeader:
		return NotLeader
	case errors.Is(r.Err, errAlready):
		return Already
	case errors.Is(r.Err, raft.ErrChanging):
		return Changing
	case r.Status == fsm.Invalid:
		return Invalid
	}
	return Unknown
}

// changeDetail is an error without its kind, which the status tells.
func changeDetail(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	for _, kind := range []error{errAlready, raft.ErrMembers, raft.ErrChanging} {
		text = strings.TrimPrefix(text, kind.Error()+": ")
	}
	return text
}

// CheckAddr checks that others can be told to connect to an address.
func CheckAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("%q is no host that others can connect to", host)
	}
	if strings.ContainsFunc(host, notInHost) || len(host) > 255 {
		return fmt.Errorf("%q is not the name of a host", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("the port %q is not a number from 1 to 65535", port)
	}
	return nil
}

func notInHost(r rune) bool { return r <= ' ' || r == '/' || r == '=' || r == ',' || r >= 0x7f }
