package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ticketing/raft"
)

// This file is how leadership is handed over: because somebody asks for it, or because the leader is
// about to be stopped. What makes it right is raft's; here is who is chosen, and who is told.

// handover is a handler that waits for the end of a transfer.
type handover struct {
	to     raft.ServerID
	result chan<- TransferReply
}

// Transfer hands leadership to another server. It is answered when that one leads, or another one
// does, or this one has given up.
func (l lockService) Transfer(a *TransferArgs, y *TransferReply) error {
	if !l.begin(false) {
		y.Status = Busy
		return nil
	}
	defer l.end(false)
	*y = l.node.transfer(l.ctx, a.To)
	return nil
}

// HandOver lets another server lead, if this one does and one of the others has lately been heard
// from. It returns who leads then, or 0 if this server did not lead or is the only voter. It takes an
// election timeout at most. It is for a server that is about to be stopped: a leader that merely vanishes leaves the others
// to find out.
func (n *Node) HandOver(ctx context.Context) (raft.ServerID, error) {
	ctx, cancel := context.WithTimeout(ctx, n.config.ElectionTimeout)
	defer cancel()
	if n.votesAlone(ctx) {
		return 0, nil
	}
	switch y := n.transfer(ctx, 0); y.Status {
	case OK:
		return y.ID, nil
	case NotLeader:
		return 0, nil
	case Unknown:
		return 0, errors.New("nobody has taken over within an election timeout")
	default:
		return 0, errors.New(y.Detail)
	}
}

// votesAlone reports whether there is no other voter, who could take over. Who the servers are says the
// log: a cluster may have grown since this one was started, or shrunk.
func (n *Node) votesAlone(ctx context.Context) bool {
	alone := make(chan bool, 1)
	n.enter(ctx, n.fromPeers, func() {
		alone <- !slices.ContainsFunc(n.members, func(m raft.Member) bool {
			return m.Voter && m.ID != n.config.ID
		})
	})
	select {
	case a := <-alone:
		return a
	case <-ctx.Done():
		return false
	}
}

// transfer begins a transfer, to the server that is chosen if none is named, and waits for its end.
func (n *Node) transfer(ctx context.Context, to raft.ServerID) (y TransferReply) {
	result := make(chan TransferReply, 1)
	var waits handover // the loop's
	n.enter(ctx, n.fromPeers, func() {
		s := n.replica.Core().Status()
		if s.Role != raft.Leader || n.retired {
			result <- TransferReply{Status: NotLeader, Leader: n.addrOf(n.otherLeader())}
			return
		}
		chosen := to
		if chosen == 0 {
			chosen = n.heir()
		}
		if chosen == 0 {
			result <- TransferReply{Status: GivenUp, Detail: "no other voter has been heard lately"}
			return
		}
		if err := n.replica.Transfer(chosen); err != nil {
			result <- TransferReply{Status: Invalid, Detail: err.Error()}
			return
		}
		waits = handover{chosen, result}
		n.handovers = append(n.handovers, waits)
	})
	select {
	case y = <-result:
	case <-ctx.Done():
		y.Status = Unknown
		n.enter(n.ctx, n.fromPeers, func() {
			n.handovers = slices.DeleteFunc(n.handovers, func(h handover) bool { return h == waits })
		})
	}
	return y
}

// heir is the best server to hand over to: of the voters that have answered within an election
// timeout, one with the most of the log, and of several the one that was heard last. It is 0 if there
// is none. A server that has just died can look as good as any; then the transfer is given up.
func (n *Node) heir() (best raft.ServerID) {
	core := n.replica.Core()
	members, _ := core.Members()
	most, latest := raft.Index(0), raft.Time(0)
	for _, m := range members {
		heard, ok := n.answered[m.ID]
		if !ok || !m.Voter || heard+raft.Time(n.config.ElectionTimeout.Microseconds()) < n.now() {
			continue
		}
		_, match := core.Progress(m.ID)
		if best == 0 || match > most || match == most && heard > latest {
			best, most, latest = m.ID, match, heard
		}
	}
	return best
}

// conclude tells those who wait for a transfer how it has ended. The loop calls it after each Take.
func (n *Node) conclude() {
	if len(n.handovers) == 0 {
		return
	}
	s, under := n.replica.Core().Status(), n.replica.Transferring()
	n.handovers = slices.DeleteFunc(n.handovers, func(h handover) bool {
		switch {
		case s.Role == raft.Leader && under == h.to:
			return false
		case s.Role == raft.Leader:
			h.result <- TransferReply{Status: GivenUp, Leader: n.addrOf(s.Leader), ID: s.ID,
				Detail: fmt.Sprintf("server %d did not take over within an election timeout, or another "+
					"transfer was begun; server %d leads as before", h.to, s.ID)}
			return true
		case s.Leader == 0 && n.retired:
			h.result <- TransferReply{Status: Unknown}
			return true
		case s.Leader == 0:
			return false // it is not known yet who leads
		}
		h.result <- TransferReply{Status: OK, Leader: n.addrOf(s.Leader), ID: s.Leader}
		return true
	})
}
