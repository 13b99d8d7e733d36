package sim

import (
	"ticketing/fsm"
	"ticketing/raft"
)

// ledger is what the observer alone knows: the one history that all servers must share.
type ledger struct {
	committed []commitRecord       // by index, from 1
	sets      []effective          // who the servers are, by what is committed
	applied   int                  // how many entries some node has applied
	holder    map[string]fsm.Token // who holds what after those
}

// commitRecord is an entry that some leader has counted as committed.
type commitRecord struct {
	chain uint64
	term  raft.Term // of the entry
	by    raft.Term // of the leader that committed it
}

// note follows the table along the first application of each entry.
func (l *ledger) note(a *fsm.Applied) {
	if l.holder == nil {
		l.holder = map[string]fsm.Token{}
	}
	switch {
	case a.Result.Kind == fsm.Granted && !a.Result.Again:
		l.holder[a.Envelope.Key] = a.Result.Token
	case removes(a.Result):
		delete(l.holder, a.Envelope.Key)
	}
}

// removes reports whether a result says that a tenure has ended.
func removes(r fsm.Result) bool {
	if r.Again {
		return false
	}
	return r.Kind == fsm.Released || r.Kind == fsm.Expired && r.Existed
}

// committedAt returns the record of an index, and whether it is committed.
func (l *ledger) committedAt(i raft.Index) (commitRecord, bool) {
	if i < 1 || int(i) > len(l.committed) {
		return commitRecord{}, false
	}
	return l.committed[i-1], true
}
