package raft

import (
	"strings"
	"testing"
)

// This file alone looks inside a Core: what Check and Delta refuse cannot be brought about from
// outside, or the package would be broken. They are worth something only if they would notice.

// leader3 is server 1 of three, which leads term 2 with log [1 1 2], entry 1 committed.
func leader3(t *testing.T) *Core {
	t.Helper()
	c, err := New(Config{
		ID: 1, Voters: []ServerID{1, 2, 3}, ElectionTimeout: 100, HeartbeatTimeout: 10,
		Jitter: func(uint64) Time { return 0 }, MaxBatch: 2, Window: 2,
	}, Durable{
		HardState: HardState{Term: 1},
		Entries:   []Entry{{Index: 1, Term: 1}, {Index: 2, Term: 1}},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	step := func(m Message) {
		m.From, m.To = 2, 1
		if err := c.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	step(Message{Term: 1, Body: AppendEntries{PrevLogIndex: 1, PrevLogTerm: 1, LeaderCommit: 1}})
	c.ElectionTimeout()
	c.Saved(c.Take().Write.Seq)
	step(Message{Term: 2, Body: RequestVoteReply{RequestTerm: 2, VoteGranted: true}})
	c.Saved(c.Take().Write.Seq)
	step(Message{Term: 2, Body: AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 1, Success: true}})
	if c.role != Leader || Check(c) != nil {
		t.Fatalf("%+v: %v", c.Status(), Check(c))
	}
	return c
}

// three is the configuration of leader3.
var three = Configuration{{ID: 1, Voter: true}, {ID: 2, Voter: true}, {ID: 3, Voter: true}}

// changes lets an entry change the servers.
func (c *Core) changes(i Index, members Configuration) {
	c.log.entries[i-1].Members = members
	c.configurations = append(c.configurations, effective{i, members})
	c.setPeers()
}

func TestCheckRefusesWhatNoRunReaches(t *testing.T) {
	for reason, damage := range map[string]func(*Core){
		"commitIndex 4 is beyond the last entry": func(c *Core) { c.commitIndex = 4 },
		"lastApplied 2 is beyond commitIndex":    func(c *Core) { c.lastApplied = 2 },
		"first unsaved index 5":                  func(c *Core) { c.log.unsaved = 5 },
		"first unsaved index 0":                  func(c *Core) { c.log.unsaved = 0 },
		"write 9 is saved":                       func(c *Core) { c.saved = 9 },
		"the log begins behind entry 2": func(c *Core) {
			c.snapshots.last, c.log.base, c.log.entries = &Snapshot{LastIncludedIndex: 1}, 2, c.log.entries[2:]
		},
		"the log begins behind entry 1, with a snapshot of 0": func(c *Core) {
			c.log.base, c.log.entries = 1, c.log.entries[1:]
		},
		"with a snapshot of 2, applied 1, committed 1": func(c *Core) {
			c.snapshots.last = &Snapshot{LastIncludedIndex: 2}
		},
		"first unsaved index 1 is outside 2 to 4": func(c *Core) {
			c.snapshots.last, c.log.base, c.log.entries = &Snapshot{LastIncludedIndex: 1}, 1, c.log.entries[1:]
			c.log.unsaved = 1
		},
		"its log says [{0 [{1 true } {2 true } {3 true }]} {2 ": func(c *Core) { c.log.entries[1].Members = three[:2] },
		"{2 [{1 true } {2 true }]}], its log says": func(c *Core) {
			c.configurations = append(c.configurations, effective{2, three[:2]})
		},
		"its peers are not those":       func(c *Core) { c.peers = c.peers[1:] },
		"differ by more than one voter": func(c *Core) { c.changes(2, three[:1]) },
		"changed at 3, and the change at 2": func(c *Core) {
			c.changes(2, three[:2])
			c.changes(3, three)
		},
		"whose vote is for 3":            func(c *Core) { c.votedFor = 3 },
		"whose vote is for 0":            func(c *Core) { c.votedFor = 0 },
		"the leader of term 2 follows 3": func(c *Core) { c.leader = 3 },
		"has no entry of that term":      func(c *Core) { c.currentTerm = 3 },
		"entry 1 stands where 2": func(c *Core) {
			c.log.entries = []Entry{{Index: 1, Term: 1}, {Index: 1, Term: 1}, {Index: 3, Term: 2}}
		},
		"entry 2 has term 1, after 2": func(c *Core) {
			c.log.entries = []Entry{{Index: 1, Term: 2}, {Index: 2, Term: 1}, {Index: 3, Term: 2}}
		},
		"entry 1 has term 0, after 1": func(c *Core) { c.log.entries[0].Term = 0 },
		"after 1 and in term 1":       func(c *Core) { c.role, c.currentTerm = Follower, 1 },
		"peer 2: nextIndex 4, matchIndex 4": func(c *Core) {
			c.peers[0].matchIndex, c.peers[0].nextIndex = 4, 4
		},
		"peer 3: nextIndex 2, matchIndex 2": func(c *Core) {
			c.peers[1].matchIndex, c.peers[1].nextIndex = 2, 2
		},
		"peer 2: nextIndex 5":          func(c *Core) { c.peers[0].nextIndex = 5 },
		"peer 2: 3 messages in flight": func(c *Core) { c.peers[0].inflight = []Index{1, 2, 3} },
		"1 messages in flight, probing t": func(c *Core) {
			c.peers[1].probing, c.peers[1].inflight = true, []Index{3}
		},
	} {
		c := leader3(t)
		damage(c)
		if err := Check(c); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("error %v, want %q", err, reason)
		}
	}
}

func TestDeltaRefusesWhatNoInputDoes(t *testing.T) {
	for reason, damage := range map[string]func(*Core){
		"currentTerm fell from 2 to 1":             func(c *Core) { c.currentTerm = 1 },
		"the vote of term 2 changed from 1 to 3":   func(c *Core) { c.votedFor = 3 },
		"the vote of term 2 changed from 1 to 0":   func(c *Core) { c.votedFor = 0 },
		"the leader of term 2 became a follower":   func(c *Core) { c.role = Follower },
		"the leader of term 2 became a candidate":  func(c *Core) { c.role = Candidate },
		"commitIndex fell from 1 to 0":             func(c *Core) { c.commitIndex = 0 },
		"lastApplied fell from 1 to 0":             func(c *Core) { c.lastApplied = 0 },
		"writes went back: 2 of 2 saved":           func(c *Core) { c.saved = 1 },
		"writes went back: 2 of 2 saved, then 2 o": func(c *Core) { c.seq = 1 },
		"an entry among the first 3": func(c *Core) {
			c.log.entries = c.log.entries[:2]
		},
		"an entry among the first 1": func(c *Core) { // in a new term what is committed stays
			c.role, c.currentTerm, c.leader = Follower, 9, 0
			c.log.entries = []Entry{{Index: 1, Term: 3}, {Index: 2, Term: 3}}
		},
	} {
		before := leader3(t)
		after := before.Clone()
		damage(after)
		if err := Delta(before, after); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("error %v, want %q", err, reason)
		}
		if err := Delta(before, before.Clone()); err != nil {
			t.Errorf("no change: %v", err)
		}
	}
	compacted := leader3(t)
	compacted.snapshots.last = &Snapshot{LastIncludedIndex: 1}
	compacted.log.base, compacted.log.baseTerm, compacted.log.entries = 1, 1, compacted.log.entries[1:]
	for reason, damage := range map[string]func(*Core){
		"the log began behind entry 1, with a snapshot of 1; then 0 and 1": func(c *Core) {
			c.log.base, c.log.entries = 0, leader3(t).log.entries
		},
		"the log began behind entry 1, with a snapshot of 1; then 1 and 0": func(c *Core) { c.snapshots.last = nil },
		"an entry among the first 3":                                       func(c *Core) { c.log.baseTerm, c.log.base, c.log.entries = 9, 2, c.log.entries[1:] },
	} {
		after := compacted.Clone()
		damage(after)
		if err := Delta(compacted, after); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("error %v, want %q", err, reason)
		}
	}
	if err := Delta(leader3(t), compacted); err != nil {
		t.Errorf("a log that was compacted: %v", err)
	}
	follower := leader3(t)
	follower.role, follower.leader = Follower, 2
	after := follower.Clone()
	after.leader = 3
	err := Delta(follower, after)
	if err == nil || !strings.Contains(err.Error(), "changed from 2 to 3") {
		t.Errorf("another leader in the term: %v", err)
	}
}
