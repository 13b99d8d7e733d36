package main

import (
	"fmt"
	"slices"
	"strings"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// server is a server's state, as its trace tells it.
type server struct {
	id      raft.ServerID
	name    string
	joins   bool // it was not there when the cluster began
	running bool
	paused  bool
	state   trace.StateRecord
	log     logged
	table   fsm.Table
	hash    string
	disk    disk
	read    string // what became of the last read there, as expect names it
}

// logged is a log: the snapshot that it begins behind, if there is one, and its entries.
type logged struct {
	behind  trace.SnapshotRecord // with index 0 if there is none
	entries []trace.EntryRecord
}

// put stores entries in place of what the log has from the first one's index on.
func (l *logged) put(entries []trace.EntryRecord) error {
	first := entries[0].Index
	if first <= l.behind.Index || first > l.behind.Index+raft.Index(len(l.entries))+1 {
		return fmt.Errorf("entry %d does not follow on a log that has %d entries behind entry %d",
			first, len(l.entries), l.behind.Index)
	}
	before := first - l.behind.Index - 1
	l.entries = append(l.entries[:before:before], entries...)
	return nil
}

// trim lets the log begin behind a snapshot. What stands behind the snapshot's last entry stays
// only if the log has that very entry.
func (l *logged) trim(s trace.SnapshotRecord) {
	n := int(s.Index) - int(l.behind.Index)
	switch {
	case n > 0 && n <= len(l.entries) && l.entries[n-1].Term == s.Term:
		l.entries = l.entries[n:]
	case n != 0 || s.Term != l.behind.Term:
		l.entries = nil
	}
	l.behind = s
}

// disk is what a server knows to be on its disk, and what is on its way there.
type disk struct {
	term   raft.Term
	vote   raft.ServerID
	log    logged
	writes []write
}

type write struct {
	trace.WriteRecord
	entries []trace.EntryRecord
}

// take lets an event change the server's state, as docs/trace.md says.
func (s *server) take(e trace.Event) (err error) {
	if e.State != nil {
		s.state = *e.State
	}
	switch e.Kind {
	case trace.KindAppend:
		err = s.log.put([]trace.EntryRecord{*e.Entry})
		if foundOnDisk(e) {
			s.disk.log = s.log
		}
	case trace.KindStart:
		s.disk.term, s.disk.vote = e.State.Term, e.State.Vote
		if e.Snapshot != nil {
			s.log.behind, s.disk.log.behind = *e.Snapshot, *e.Snapshot
		}
	case trace.KindTrim:
		s.log.trim(*e.Snapshot)
	case trace.KindWrite:
		w := write{WriteRecord: *e.Write}
		if w.First > 0 {
			from, to := w.First-s.log.behind.Index-1, w.Last-s.log.behind.Index
			w.entries = s.log.entries[from:to:to]
		}
		s.disk.writes = append(s.disk.writes, w)
	case trace.KindSaved:
		err = s.disk.saved(e.Write.Seq)
	case trace.KindApply:
		var envelope fsm.Envelope
		if envelope, err = fsm.Decode([]byte(e.Entry.Command)); err == nil {
			s.table.Apply(e.Entry.Index, envelope)
			s.hash = e.Entry.Hash
		}
	}
	if err != nil {
		return fmt.Errorf("the trace of %s: %s: %w", s.name, e.Kind, err)
	}
	return nil
}

// saved carries out the writes up to one: a server has one disk, which keeps the order.
func (d *disk) saved(seq uint64) error {
	for len(d.writes) > 0 && d.writes[0].Seq <= seq {
		w := d.writes[0]
		d.writes = d.writes[1:]
		d.term, d.vote = w.Term, w.Vote
		if w.Snapshot != nil {
			d.log.trim(*w.Snapshot)
		}
		if w.First > 0 {
			if err := d.log.put(w.entries); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore makes a server's table that of a snapshot. The trace has no table in it.
func (v *view) restore(s *server, index raft.Index) (err error) {
	if int(index) > len(v.history) {
		return fmt.Errorf("%s has a snapshot up to entry %d, and of what was applied %d are known",
			s.name, index, len(v.history))
	}
	s.table, err = v.tableAt(index)
	if index > 0 {
		s.hash = v.history[index-1].Hash
	}
	return err
}

// tableAt makes the table that there was after an entry, from what was applied up to there.
func (v *view) tableAt(index raft.Index) (t fsm.Table, err error) {
	for _, r := range v.history[:index] {
		envelope, err := fsm.Decode([]byte(r.Command))
		if err != nil {
			return t, fmt.Errorf("entry %d: %w", r.Index, err)
		}
		t.Apply(r.Index, envelope)
	}
	return t, nil
}

// members are the servers by which one goes, "" if it knows of none, and the entry that says so:
// the last of that kind in its log, or in the snapshot that it begins behind.
func (v *view) members(s *server) (text string, index raft.Index) {
	for _, e := range slices.Backward(s.log.entries) {
		if e.Members != "" {
			return e.Members, e.Index
		}
	}
	for _, e := range slices.Backward(v.history[:min(int(s.log.behind.Index), len(v.history))]) {
		if e.Members != "" {
			return e.Members, e.Index
		}
	}
	if s.joins {
		return "", 0
	}
	return v.first, 0
}

// belongs reports whether a server is one of those by whom the leader goes, or, if nobody leads,
// one of those by whom it goes itself.
func (v *view) belongs(s *server) bool {
	by := s
	if l := v.leader(); l != nil {
		by = l
	}
	members, _ := v.members(by)
	voters, learners, _ := strings.Cut(members, "+")
	return named(voters, s.name) || named(learners, s.name)
}

func named(list, name string) bool { return slices.Contains(strings.Split(list, ","), name) }

// leaves reports whether an event is that of a leader that goes because its removal is committed.
func (v *view) leaves(s *server, e *trace.Event) bool {
	leader := raft.Leader.String()
	if e.Kind != trace.KindState || s.state.Role != leader || e.State.Role == leader ||
		e.State.Term != s.state.Term {
		return false
	}
	members, index := v.members(s)
	voters, _, _ := strings.Cut(members, "+")
	return !named(voters, s.name) && index <= e.State.Commit
}
