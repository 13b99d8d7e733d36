package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/sim"
)

// view is what can be known of the servers from outside, while they run: what they have written
// into their traces. A trace is some milliseconds behind its server.
type view struct {
	servers map[raft.ServerID]*server
	lives   []*life
	counts  counts
}

// life is one process of a server, and its trace.
type life struct {
	server *server
	file   *os.File
	rest   []byte // of a line whose end is not there yet
	begun  bool   // the header is read
	whole  trace.Trace
}

// server is a server's state, as its trace tells it.
type server struct {
	id      raft.ServerID
	name    string
	running bool
	paused  bool
	state   trace.StateRecord
	log     []trace.EntryRecord
	table   fsm.Table
	hash    string
	disk    disk
}

// disk is what a server knows to be on its disk, and what is on its way there.
type disk struct {
	term   raft.Term
	vote   raft.ServerID
	log    []trace.EntryRecord
	writes []write
}

type write struct {
	trace.WriteRecord
	entries []trace.EntryRecord
}

func newView(n int) *view {
	v := &view{servers: map[raft.ServerID]*server{}, counts: newCounts()}
	for i := range n {
		id := raft.ServerID(i + 1)
		v.servers[id] = &server{id: id, name: trace.NodeName(id)}
	}
	return v
}

// ids are the servers in order.
func (v *view) ids() []raft.ServerID {
	var ids []raft.ServerID
	for i := range len(v.servers) {
		ids = append(ids, raft.ServerID(i+1))
	}
	return ids
}

// follow begins to read the trace of a server that was started. From then on the view is empty of
// what it was before: all that is only in memory is gone.
func (v *view) follow(id raft.ServerID, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("following server %d: %w", id, err)
	}
	s := v.servers[id]
	*s = server{id: id, name: s.name, running: true}
	v.lives = append(v.lives, &life{server: s, file: f})
	return nil
}

func (v *view) close() error {
	var errs []error
	for _, l := range v.lives {
		errs = append(errs, l.file.Close())
	}
	return errors.Join(errs...)
}

// fresh is an event that was not looked at before.
type fresh struct {
	trace.Event
	life *life
}

// look reads what is new, in the order of time. The view is as before until it takes the events.
func (v *view) look() ([]fresh, error) {
	var all []fresh
	for _, l := range v.lives {
		events, err := l.read()
		if err != nil {
			return nil, fmt.Errorf("reading the trace of %s: %w", l.server.name, err)
		}
		for _, e := range events {
			all = append(all, fresh{e, l})
		}
	}
	slices.SortStableFunc(all, func(a, b fresh) int { return cmp.Compare(a.At, b.At) })
	return all, nil
}

// take lets the view know an event.
func (v *view) take(e *fresh) error {
	v.counts.take(e.Event)
	if !v.current(e.life) {
		return nil // its server has been started again since
	}
	return e.life.server.take(e.Event)
}

// current reports whether a life is its server's last one.
func (v *view) current(l *life) bool {
	for _, other := range slices.Backward(v.lives) {
		if other.server == l.server {
			return other == l
		}
	}
	return false
}

// read returns the lines that have been finished since the last time.
func (l *life) read() ([]trace.Event, error) {
	more, err := io.ReadAll(l.file)
	if err != nil {
		return nil, err
	}
	l.rest = append(l.rest, more...)
	before := len(l.whole.Events)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return l.whole.Events[before:], nil
		}
		l.rest = rest
		if !l.begun {
			l.begun = true
			if err := json.Unmarshal(line, &l.whole.Header); err != nil {
				return nil, err
			}
			continue
		}
		var e trace.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		l.whole.Events = append(l.whole.Events, e)
	}
}

// take lets an event change the server's state, as docs/trace.md says.
func (s *server) take(e trace.Event) error {
	if e.State != nil {
		s.state = *e.State
	}
	switch e.Kind {
	case trace.KindAppend:
		if int(e.Entry.Index) > len(s.log)+1 {
			return fmt.Errorf("%s appends entry %d to a log of %d", s.name, e.Entry.Index, len(s.log))
		}
		s.log = append(s.log[:e.Entry.Index-1:e.Entry.Index-1], *e.Entry)
		if foundOnDisk(e) {
			s.disk.log = s.log
		}
	case trace.KindStart:
		s.disk.term, s.disk.vote = e.State.Term, e.State.Vote
	case trace.KindWrite:
		w := write{WriteRecord: *e.Write}
		if w.First > 0 {
			w.entries = s.log[w.First-1 : w.Last : w.Last]
		}
		s.disk.writes = append(s.disk.writes, w)
	case trace.KindSaved:
		s.disk.saved(e.Write.Seq)
	case trace.KindApply:
		envelope, err := fsm.Decode([]byte(e.Entry.Command))
		if err != nil {
			return fmt.Errorf("%s applies entry %d: %w", s.name, e.Entry.Index, err)
		}
		s.table.Apply(e.Entry.Index, envelope)
		s.hash = e.Entry.Hash
	}
	return nil
}

// saved carries out the writes up to one: a server has one disk, which keeps the order.
func (d *disk) saved(seq uint64) {
	for len(d.writes) > 0 && d.writes[0].Seq <= seq {
		w := d.writes[0]
		d.writes = d.writes[1:]
		d.term, d.vote = w.Term, w.Vote
		if w.First > 0 {
			d.log = append(d.log[:w.First-1:w.First-1], w.entries...)
		}
	}
}

// leader is the leader of the highest term among those that run, nil if none leads.
func (v *view) leader() *server {
	var leader *server
	for _, id := range v.ids() {
		s := v.servers[id]
		if s.running && s.state.Role == raft.Leader.String() &&
			(leader == nil || s.state.Term > leader.state.Term) {
			leader = s
		}
	}
	return leader
}

// mostApplied is the running server that has applied most, nil if none runs.
func (v *view) mostApplied() *server {
	var most *server
	for _, id := range v.ids() {
		if s := v.servers[id]; s.running && (most == nil || s.state.Applied > most.state.Applied) {
			most = s
		}
	}
	return most
}

// is reports whether an actor of a scenario is that server.
func (s *server) is(a sim.Actor) bool { return a == sim.Everyone || a.Node() == s.id }
