package raft

import "errors"

// This file bounds what a leader takes, which is not in Figure 2. Where proposals come faster than they
// are committed, or no majority answers, the log grows and with it the memory of every server. Clients
// that are refused wait and try again; they would have had to wait in any case.

// ErrBusy is returned by Propose while too many bytes are not committed.
var ErrBusy = errors.New("too much is waiting to be committed")

// backlog is how many bytes the commands of a part of the log have: behind from, up to to. It is what
// busy has counted, and nobody else has to tell it of a commit or of a new entry.
type backlog struct {
	term     Term
	from, to Index
	bytes    int
}

// busy reports whether another command would make it too many bytes that are not committed. One is
// always taken, whatever its size. Only what has changed since the last time is counted: in its own
// term a leader's log grows at its end alone. What was committed and is gone from the log cannot be
// taken off any more; then, and in another term, it counts anew.
func (c *Core) busy(command []byte) bool {
	b := &c.backlog
	if b.term != c.currentTerm || b.from < c.log.base {
		*b = backlog{term: c.currentTerm, from: c.commitIndex, to: c.commitIndex}
	}
	b.bytes += commandBytes(c.log.slice(b.to+1, c.log.lastIndex()))
	b.bytes -= commandBytes(c.log.slice(b.from+1, c.commitIndex))
	b.from, b.to = c.commitIndex, c.log.lastIndex()
	most := c.config.MaxUncommitted
	return most > 0 && b.bytes > 0 && b.bytes+len(command) > most
}

func commandBytes(entries []Entry) (n int) {
	for _, e := range entries {
		n += len(e.Command)
	}
	return n
}
