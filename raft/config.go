package raft

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Config is what a server is told once. All fields but those under "Beyond Figure 2" are required.
type Config struct {
	ID ServerID // this server

	// All servers that the cluster began with, the same on each of them; this one included. None on
	// a server that joins later: it waits until a leader speaks to it.
	Voters []ServerID

	// ElectionTimeout is the least time without a leader after which a server campaigns; each wait
	// is this plus a jitter. HeartbeatTimeout is how often a leader speaks when it has nothing to
	// say. A message's round trip should be well below the first and the second at most a third of
	// it.
	ElectionTimeout, HeartbeatTimeout Time

	// Jitter returns what to add to the nth election timeout, 0 ≤ jitter < ElectionTimeout. It must
	// be a pure function of n, and a different one on each server: servers that draw alike split
	// every vote.
	Jitter func(n uint64) Time

	MaxBatch int // the most entries in one AppendEntries
	Window   int // the most AppendEntries with entries that may be unanswered at a peer

	// Beyond Figure 2, each in the file of its name. They belong together: with one alone there are
	// faults under which a cluster elects and elects, or never does.
	PreVote        bool
	CheckQuorum    bool
	ChunkSize      int   // bytes of a snapshot in one InstallSnapshot; 0 stands for 1 MiB
	MaxSnapshot    int   // the most bytes of a snapshot that a leader may send; 0 stands for 1 GiB
	Keep           Index // entries that stay in the log before a snapshot's end, for slow followers
	MaxUncommitted int   // bytes of commands that a leader takes before they are committed; 0 for any
}

func (c Config) check() error {
	ids := slices.Sorted(slices.Values(c.Voters))
	switch {
	case c.ID == 0 || slices.Contains(ids, 0):
		return errors.New("config: a server has ID 0, which means nobody")
	case len(ids) > 0 && !slices.Contains(ids, c.ID):
		return fmt.Errorf("config: ID %d is not among Voters %v", c.ID, c.Voters)
	case len(slices.Compact(ids)) != len(c.Voters):
		return fmt.Errorf("config: Voters %v names a server twice", c.Voters)
	case c.HeartbeatTimeout <= 0:
		return fmt.Errorf("config: HeartbeatTimeout is %d µs, must be positive", c.HeartbeatTimeout)
	case c.HeartbeatTimeout >= c.ElectionTimeout:
		return fmt.Errorf("config: HeartbeatTimeout (%d µs) must be less than ElectionTimeout (%d µs), "+
			"or followers campaign against a live leader", c.HeartbeatTimeout, c.ElectionTimeout)
	case c.Jitter == nil:
		return errors.New("config: Jitter is missing")
	case c.MaxBatch < 1 || c.Window < 1:
		return fmt.Errorf("config: MaxBatch (%d) and Window (%d) must be at least 1", c.MaxBatch, c.Window)
	case min(c.ChunkSize, c.MaxSnapshot, c.MaxUncommitted) < 0:
		return fmt.Errorf("config: ChunkSize (%d), MaxSnapshot (%d), MaxUncommitted (%d): none can be negative",
			c.ChunkSize, c.MaxSnapshot, c.MaxUncommitted)
	}
	return nil
}

func (d Durable) check() error {
	log := d.log()
	entries := checkEntries(log.base, log.baseTerm, d.Term, log.entries)
	if err := cmp.Or(d.Snapshot.check(d.Term), entries); err != nil {
		return fmt.Errorf("durable state: %w", err)
	}
	if d.VotedFor != 0 && d.Term == 0 {
		return fmt.Errorf("durable state: a vote for server %d in term 0", d.VotedFor)
	}
	return nil
}
