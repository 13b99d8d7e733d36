package sim

import (
	"fmt"

	"ticketing/fsm"
)

// This file says what can happen in the search of the lock service.

// scope bounds what happens, and counts down.
type scope struct {
	acquires, extends, lapses          int8
	duplicates, disconnects, elections int8
	wide                               bool // without the short cuts
}

const (
	searchKey   = "door"
	searchLease = 10_000 // ms; it runs out when a step says so
	searchUsers = 2
	second      = 1 // S2, who may be elected
	partner     = 2 // S3, without whom nothing is committed
)

// act is what a step does; who and where are a user and a server, or two servers.
type act uint8

const (
	actAcquire   act = iota // a user asks a server for the lock
	actRelease              // gives it back, with the token that it was granted, in time or late
	actExtend               // asks for a new lease
	actLeave                // leaves before it has its answer
	actRetry                // sends its last request again, answered or not
	actRepeat               // a copy of an earlier request arrives where that was sent
	actLapse                // the lease of the key's holder runs out on a server's clock
	actReplicate            // what a leader has for another server arrives, and the replies
	actCampaign             // a server is elected by another one's vote
)

// lockStep is a step of the search. Nth is which request a copy is of, or how many messages from S1
// still reach S2 before it campaigns.
type lockStep struct {
	do    act
	who   uint8
	where uint8
	nth   uint8
}

func (s lockStep) String() string {
	who, where, server := userName(int(s.who)), s.where+1, s.who+1
	switch s.do {
	case actAcquire:
		return fmt.Sprintf("%s asks S%d for the lock", who, where)
	case actRelease:
		return fmt.Sprintf("%s gives the lock back, at S%d", who, where)
	case actExtend:
		return fmt.Sprintf("%s asks S%d to extend its lease", who, where)
	case actLeave:
		return fmt.Sprintf("%s leaves before it has its answer", who)
	case actRetry:
		return fmt.Sprintf("%s sends its last request again, to S%d", who, where)
	case actRepeat:
		return fmt.Sprintf("a copy of %s's request %d arrives at S%d", who, s.nth+1, where)
	case actLapse:
		return fmt.Sprintf("the holder's lease runs out at S%d", where)
	case actReplicate:
		return fmt.Sprintf("what S%d has sent reaches S%d, and the replies reach S%d", server, where, server)
	}
	if s.nth == 0 {
		return fmt.Sprintf("S%d hears no more of S1 and is elected, by S%d", server, where)
	}
	return fmt.Sprintf("what S1 has sent reaches S%d, which is elected, by S%d", server, where)
}

// steps lists what can happen next. The newest leader is the only one that can still commit
// anything, and so the only one that is asked, unless the scope is wide. A leader that waits for
// its start-of-term entry does nothing else before: what it is asked meanwhile it looks at
// afterwards, in the order in which it came, as if it came then.
func (s *locks) steps() []lockStep {
	if s.left.wide {
		return s.wideSteps()
	}
	n := s.newest()
	if s.over(n) {
		return nil
	}
	var list []lockStep
	st := s.status(n)
	if !s.waits || st.LastApplied >= s.start {
		list = s.leaderSteps(nil, n)
	}
	if st.LastIndex > st.CommitIndex {
		list = append(list, lockStep{do: actReplicate, who: uint8(n), where: partner})
	}
	if s.left.elections > 0 && n == 0 {
		// Of what S1 has sent it since S3 last got something, S2 gets nothing or all.
		list = append(list, lockStep{actCampaign, second, partner, 0})
		if k := len(s.network[0][second]); k > 0 {
			list = append(list, lockStep{actCampaign, second, partner, uint8(k)})
		}
	}
	return list
}

// over reports whether nobody holds the key or ever will: then there is nothing left that could be
// taken away.
func (s *locks) over(n int) bool {
	if s.judge.holder != 0 || s.left.acquires > 0 || s.left.duplicates > 0 {
		return false
	}
	for i := range s.users {
		if me := &s.users[i]; me.open && me.sent[len(me.sent)-1].request.Kind == fsm.Grant {
			return false
		}
	}
	core, st := s.nodes[n].Core(), s.status(n)
	for i := st.LastApplied + 1; i <= st.LastIndex; i++ {
		if e, err := fsm.Decode(core.Entries(i, i)[0].Command); err != nil || e.Kind == fsm.Grant {
			return false
		}
	}
	return true
}

// wideSteps is steps without any short cut: every server may campaign, vote, lead on after it was
// replaced and not noticed, and get its messages or not.
func (s *locks) wideSteps() []lockStep {
	var list []lockStep
	for n := range s.nodes {
		if !s.leads(n) {
			for voter := range s.nodes {
				if voter != n && s.left.elections > 0 {
					list = append(list, lockStep{actCampaign, uint8(n), uint8(voter), 0})
				}
			}
			continue
		}
		list = s.leaderSteps(list, n)
		for to := range s.nodes {
			if len(s.network[n][to]) > 0 {
				list = append(list, lockStep{do: actReplicate, who: uint8(n), where: uint8(to)})
			}
		}
	}
	return list
}

// leaderSteps lists what clients and the clock can do to a leader.
func (s *locks) leaderSteps(list []lockStep, n int) []lockStep {
	add := func(do act, who, where, nth int) {
		list = append(list, lockStep{do, uint8(who), uint8(where), uint8(nth)})
	}
	for u := searchUsers - 1; u >= 0; u-- { // of two shortest ways, the one with more of B
		s.userSteps(u, n, add)
	}
	h, held := s.nodes[n].Table().Holder(searchKey)
	if held && s.left.lapses > 0 && s.lapsed[n] != (lapseOf{h.Token, h.Since}) {
		add(actLapse, 0, n, 0)
	}
	return list
}
