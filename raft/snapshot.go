package raft

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// This file is log compaction (section 7 of the paper), which is not in Figure 2: what the state
// machine is after an entry stands for the log up to that entry, and the log begins behind it. A
// follower that needs entries which are gone is sent the snapshot, in chunks (Figure 13).
//
// What it stands for is committed, so it can neither be wrong nor be withdrawn, in whatever term.
//
// Snapshots are large. So the driver makes them durable beside the log's writes, which clients wait
// for, and the log begins behind a snapshot only once that is done: then the next write says so. Until
// that write is durable too, the disk has the old snapshot and the whole log, and any crash leaves
// the one or the other.

// A Snapshot stands for the log up to its last included entry. It is never changed.
type Snapshot struct {
	LastIncludedIndex Index
	LastIncludedTerm  Term
	Members           Configuration // in effect at that entry
	Data              []byte        // the state machine's
}

// InstallSnapshot carries a part of a snapshot to a follower (Figure 13). The term and the leader are
// the message's.
type InstallSnapshot struct {
	LastIncludedIndex Index
	LastIncludedTerm  Term
	Members           Configuration
	Offset            uint64 // where Data stands in the snapshot's data
	Data              []byte
	Done              bool // it is the last
}

// InstallSnapshotReply answers InstallSnapshot.
type InstallSnapshotReply struct {
	RequestTerm       Term   // echoes the term of the request
	LastIncludedIndex Index  // echoes the request
	Offset            uint64 // the next byte that the follower expects
	Installed         bool   // its log is the leader's up to the snapshot's end, durably
}

func (s InstallSnapshot) receive(c *Core, m Message)      { c.receiveInstallSnapshot(m, s) }
func (r InstallSnapshotReply) receive(c *Core, m Message) { c.receiveInstallSnapshotReply(m, r) }
func (r InstallSnapshotReply) answers() (Term, bool)      { return r.RequestTerm, r.Installed }

// ErrCompacting is wrapped by Compact's errors that pass: another snapshot is on its way to the disk, or
// this server does not know yet who the servers are.
var ErrCompacting = errors.New("no snapshot can be begun now")

// snapshots is what a server knows of its own.
type snapshots struct {
	last   *Snapshot // the log begins behind it, or up to Config.Keep entries earlier; nil if at 0
	marker Index     // 0, or the next write names last, and changes the log from this index on

	saving  *Snapshot // on its way to the disk
	asked   bool      // Take has given it out
	request Message   // its last chunk, if it is a leader's, and not answered

	incoming incoming
	restore  *Snapshot // that the state machine is to become
}

// incoming is the part of a leader's snapshot that has arrived. A crash loses it.
type incoming struct {
	Snapshot
	term Term // of the leader; 0 if there is no such part
}

// Compact takes the state machine's data after the entry at index was applied: the log up to there
// will go once it is durable. That is asked for by Output.Save. It keeps data, which must not change any
// more. Errors: ErrCompacting, or there is nothing to gain, as a snapshot reaches as far.
//
//spec:rule Snapshot.Save
func (c *Core) Compact(index Index, data []byte) error {
	switch {
	case index > c.lastApplied:
		panic(fmt.Sprintf("raft: a snapshot of entry %d, and only %d are applied", index, c.lastApplied))
	case c.snapshots.saving != nil:
		return ErrCompacting
	case index <= c.snapshots.index():
		return fmt.Errorf("a snapshot of entry %d: there is one of entry %d", index, c.snapshots.index())
	}
	if len(c.membersAt(index)) == 0 { // it joined later, by an entry that is not applied yet
		return fmt.Errorf("%w: nothing says who the servers were at entry %d", ErrCompacting, index)
	}
	term, _ := c.log.term(index)
	c.snapshots.saving, c.snapshots.asked = &Snapshot{index, term, c.membersAt(index), data}, false
	return nil
}

// Snapshot returns the last durable snapshot, nil if there is none.
func (c *Core) Snapshot() *Snapshot { return c.snapshots.last }

// FirstIndex is the index of the first entry that the log still holds, or would hold.
func (c *Core) FirstIndex() Index { return c.log.base + 1 }

func (s *snapshots) index() Index {
	if s.last == nil {
		return 0
	}
	return s.last.LastIncludedIndex
}

// takeSave gives out each snapshot once. It is called by Take, and forgets what nobody will complete.
func (c *Core) takeSave() *Snapshot {
	if in := &c.snapshots.incoming; in.term < c.currentTerm || in.LastIncludedIndex <= c.commitIndex {
		*in = incoming{}
	}
	if c.snapshots.asked {
		return nil
	}
	c.snapshots.asked = true
	return c.snapshots.saving
}

// TakeRestore returns what the state machine has to become before anything else is applied to it, nil
// if there is nothing of the kind. Like TakeCommitted it may be called ahead of Take; until then that
// has nothing to give.
//
//spec:rule Snapshot.Restore
func (c *Core) TakeRestore() *Snapshot {
	s := c.snapshots.restore
	c.snapshots.restore = nil
	return s
}

// SnapshotSaved reports that the snapshot which Take gave out as Save is durable. From now on the log
// begins behind it.
func (c *Core) SnapshotSaved(lastIncludedIndex Index) {
	s, request := c.snapshots.saving, c.snapshots.request
	if s == nil || !c.snapshots.asked || s.LastIncludedIndex != lastIncludedIndex {
		panic(fmt.Sprintf("raft: a snapshot of entry %d reported as saved, which was not given out",
			lastIncludedIndex))
	}
	c.snapshots.saving, c.snapshots.request = nil, Message{}
	c.adopt(s)
	if request.From != 0 {
		c.answerInstall(request, s.LastIncludedIndex, uint64(len(s.Data)), true)
	}
}

// adopt lets the log begin behind a snapshot. "If existing log entry has same index and term as
// snapshot's last included entry, retain log entries following it": they are right, and may have been
// acknowledged. Otherwise "discard the entire log", which ends earlier or holds what no leader has
// committed, and "reset state machine using snapshot contents".
//
//spec:rule Snapshot.Suffix
func (c *Core) adopt(s *Snapshot) {
	index := s.LastIncludedIndex
	c.snapshots.last, c.snapshots.marker = s, c.log.unsaved
	if !c.log.matches(index, s.LastIncludedTerm) {
		c.log = log{base: index, baseTerm: s.LastIncludedTerm}
		c.lastApplied = index
		c.snapshots.restore, c.snapshots.marker = s, 1
	}
	c.log.unsaved = max(c.log.unsaved, index+1) // the snapshot itself is saved
	c.commitIndex = max(c.commitIndex, index)
	// What is not applied yet is needed, and so are a few entries more, for followers that are a little
	// behind.
	c.log.dropTo(min(index-min(index, c.config.Keep), c.lastApplied))
	c.rebaseMembers(index, s.Members)
}

// dropTo moves the base up to an index. The rest moves to an array of its own, so that the old one can
// go.
func (l *log) dropTo(index Index) {
	if index <= l.base {
		return
	}
	l.baseTerm, _ = l.term(index)
	l.entries = slices.Clone(l.entries[index-l.base:])
	l.base = index
}

// chunkSize is what a Config.ChunkSize of 0 stands for: on a slow link it takes a tenth of a second,
// and a snapshot of 100 MB is a hundred round trips.
const chunkSize = 1 << 20

// install sends a peer the next chunk of a snapshot, if it needs one.
func (c *Core) install(p *peer) {
	// One chunk is on its way at a time. What is not answered within an election timeout is sent again:
	// the network does not report a loss, nor a follower that it has crashed.
	//spec:rule Snapshot.Chunk
	if p.sending != nil && p.probed && c.now < p.chunkSent+c.config.ElectionTimeout {
		return
	}
	// Entries would do unless the one before nextIndex is gone. A snapshot that was begun is sent to
	// its end, though there may be another by then, or a slow follower would never have a whole one.
	// But as long as it is not known to have any of it, as one that is down, it is sent the newest.
	//spec:rule Snapshot.Need
	switch {
	case p.sending == nil && p.nextIndex > c.log.base:
		return
	case p.sending == nil || p.offset == 0:
		p.sending, p.offset = c.snapshots.last, 0
		p.nextIndex = p.sending.LastIncludedIndex + 1
		p.probing, p.inflight = true, p.inflight[:0]
	}
	s := p.sending
	end := min(p.offset+cmp.Or(c.config.ChunkSize, chunkSize), len(s.Data))
	c.send(p.id, InstallSnapshot{
		LastIncludedIndex: s.LastIncludedIndex, LastIncludedTerm: s.LastIncludedTerm, Members: s.Members,
		Offset: uint64(p.offset), Data: s.Data[p.offset:end:end], Done: end == len(s.Data),
	})
	p.probed, p.chunkSent = true, c.now
}

// receiveInstallSnapshot is the receiver's part of the InstallSnapshot RPC. The last chunk is answered
// when the snapshot is in its place.
func (c *Core) receiveInstallSnapshot(m Message, s InstallSnapshot) {
	index, in, saving := s.LastIncludedIndex, &c.snapshots.incoming, c.snapshots.saving
	// "Reply immediately if term < currentTerm."
	if m.Term < c.currentTerm {
		c.answerInstall(m, index, 0, false)
		return
	}
	c.follow(m.From)
	switch {
	case index <= c.commitIndex: // an old message, or it has caught up by other means
		c.answerInstall(m, index, 0, true)
		return
	case saving != nil && saving.LastIncludedIndex == index:
		c.answerInstall(m, index, uint64(len(saving.Data)), false)
		return
	}
	if in.term < m.Term || in.LastIncludedIndex < index {
		*in = incoming{*s.about(), m.Term}
	}
	// "Write data into snapshot file at given offset", if it is the part that comes next. After a crash
	// that is the first one again, and the leader hears of it.
	//spec:rule Snapshot.Offset
	next := in.LastIncludedIndex == index && s.Offset == uint64(len(in.Data))
	if next {
		in.Data = append(in.Data, s.Data...)
	}
	if !next || !s.Done || saving != nil {
		c.answerInstall(m, index, uint64(len(in.Data)), false)
		return
	}
	whole := in.Snapshot
	c.snapshots.incoming = incoming{}
	c.snapshots.saving, c.snapshots.asked, c.snapshots.request = &whole, false, m
}

// answerInstall answers a chunk. That the snapshot is installed it may say once the write that names
// it is durable, and to a leader that still is one.
//
//spec:rule Snapshot.Installed
func (c *Core) answerInstall(request Message, index Index, offset uint64, installed bool) {
	installed = installed && request.Term == c.currentTerm
	reply := c.reply(request, InstallSnapshotReply{request.Term, index, offset, installed})
	if installed {
		c.hold(reply)
		return
	}
	c.holdForTerm(reply)
}

// receiveInstallSnapshotReply sends what the follower expects next. An answer that names the chunk
// which is on its way is an old one, or the follower is not done with saving.
func (c *Core) receiveInstallSnapshotReply(m Message, r InstallSnapshotReply) {
	if c.role != Leader || r.RequestTerm != c.currentTerm {
		return
	}
	p := c.peer(m.From)
	p.heard = c.now
	switch {
	case p.sending == nil || p.sending.LastIncludedIndex != r.LastIncludedIndex:
	case r.Installed:
		p.matchIndex = max(p.matchIndex, r.LastIncludedIndex)
		p.nextIndex = max(p.nextIndex, p.matchIndex+1)
		p.probing, p.probed, p.sending = false, false, nil
		c.advanceCommit()
	case r.Offset != uint64(p.offset) && r.Offset <= uint64(len(p.sending.Data)):
		p.offset, p.probed = int(r.Offset), false
	}
}

// maxSnapshot is what a Config.MaxSnapshot of 0 stands for: as much as raft/wal stores, and twenty times
// the table of a million locks.
const maxSnapshot = 1 << 30

// validateInstall refuses what no correct leader sends. A part is kept until the last one comes, so
// there is a bound on how far they may go: a leader that never says Done would fill the memory.
func (c *Core) validateInstall(m Message, s InstallSnapshot) error {
	most, size := uint64(cmp.Or(c.config.MaxSnapshot, maxSnapshot)), uint64(len(s.Data))
	if size == 0 && !s.Done || size > most || s.Offset > most-size {
		return malformed("a chunk of %d bytes at %d of a snapshot; one has at most %d", size, s.Offset, most)
	}
	if err := s.about().check(m.Term); err != nil {
		return malformed("%v", err)
	}
	return cmp.Or(c.validateCommitted(s.LastIncludedIndex, s.LastIncludedTerm), c.validateLeader(m))
}

// about is the snapshot without its data.
func (s InstallSnapshot) about() *Snapshot {
	return &Snapshot{s.LastIncludedIndex, s.LastIncludedTerm, s.Members, nil}
}

// check returns an error if there can be no such snapshot, in the term most at the latest. Who the
// servers are has to be in it: the entries that say so are gone. It need not be there at all.
func (s *Snapshot) check(most Term) error {
	switch {
	case s == nil:
		return nil
	case s.LastIncludedIndex == 0 || s.LastIncludedTerm == 0 || s.LastIncludedTerm > most:
		return fmt.Errorf("a snapshot of entry %d of term %d, in term %d",
			s.LastIncludedIndex, s.LastIncludedTerm, most)
	}
	if err := s.Members.check(); err != nil {
		return fmt.Errorf("the members of a snapshot: %w", err)
	}
	return nil
}

// startFrom lets a server that starts go on from its snapshot.
func (c *Core) startFrom(s *Snapshot) {
	members := c.config.first()
	if s != nil {
		members = s.Members
	}
	c.snapshots.last, c.commitIndex, c.lastApplied = s, c.log.base, c.log.base
	c.rebaseMembers(c.log.base, members)
	c.readMembers(c.log.base + 1)
}

// log returns the log behind the snapshot.
func (d Durable) log() (l log) {
	if s := d.Snapshot; s != nil {
		l.base, l.baseTerm = s.LastIncludedIndex, s.LastIncludedTerm
	}
	covered := func(e Entry) bool { return e.Index <= l.base && l.matches(e.Index, e.Term) }
	l.entries = slices.DeleteFunc(slices.Clone(d.Entries), covered)
	l.unsaved = l.lastIndex() + 1
	return l
}
