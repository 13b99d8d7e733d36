package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/sim"
)

// view is what can be known of the servers from outside, while they run: what they have written
// into their traces. A trace is some milliseconds behind its server.
type view struct {
	servers map[raft.ServerID]*server // those that were ever started
	lives   []*life
	counts  counts
	first   string              // the servers with which the cluster begins
	history []trace.EntryRecord // each entry as some server first applied it
}

// life is one process of a server, and its trace.
type life struct {
	server *server
	file   *os.File
	rest   []byte // of a line whose end is not there yet
	begun  bool   // the header is read
	whole  trace.Trace
}

func newView(n int) *view {
	v := &view{servers: map[raft.ServerID]*server{}, counts: newCounts()}
	var all []string
	for i := range n {
		all = append(all, v.add(raft.ServerID(i+1)).name)
	}
	v.first = strings.Join(all, ",")
	return v
}

// add makes room for a server.
func (v *view) add(id raft.ServerID) *server {
	s := &server{id: id, name: trace.NodeName(id)}
	v.servers[id] = s
	return s
}

// ids are the servers in order.
func (v *view) ids() []raft.ServerID { return slices.Sorted(maps.Keys(v.servers)) }

// follow begins to read the trace of a server that was started. From then on the view is empty of
// what it was before: all that is only in memory is gone.
func (v *view) follow(id raft.ServerID, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("following server %d: %w", id, err)
	}
	s := v.servers[id]
	*s = server{id: id, name: s.name, joins: s.joins, running: true}
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
	if e.Kind == trace.KindApply && int(e.Entry.Index) == len(v.history)+1 {
		v.history = append(v.history, *e.Entry)
	}
	if !v.current(e.life) {
		return nil // its server has been started again since
	}
	s := e.life.server
	if v.leaves(s, &e.Event) {
		v.counts.of["members.left"]++
	}
	if e.Snapshot != nil && (e.Kind == trace.KindTable || e.Kind == trace.KindStart) {
		if err := v.restore(s, e.Snapshot.Index); err != nil {
			return err
		}
	}
	return s.take(e.Event)
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
