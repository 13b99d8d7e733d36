package main

import (
	"fmt"
	"slices"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// counts are the counters of the scenario language that traces and the harness's own doings can
// tell. A run in which the interesting thing never happened proves nothing.
type counts struct {
	of      map[string]int64
	states  map[string]trace.StateRecord // of each server, before the next change
	holders map[string]uint64            // who holds what after the entries below
	applied raft.Index                   // by any server
	parts   map[[2]string]part           // what each server was last sent of a snapshot, and by whom
}

// part is a part of a snapshot that was sent.
type part struct {
	term   raft.Term
	end    raft.Index
	offset uint64
}

func newCounts() counts {
	c := counts{
		of: map[string]int64{}, states: map[string]trace.StateRecord{},
		holders: map[string]uint64{}, parts: map[[2]string]part{},
	}
	for _, name := range counterNames() {
		c.of[name] = 0
	}
	return c
}

// counterNames lists what can be asked.
func counterNames() []string {
	names := []string{
		"cleanups", "commits", "crashes", "cuts", "deposed", "elections", "expire.bare",
		"expire.existed", "expire.free", "expire.newer", "expire.proposed", "grant.granted",
		"grant.rejected", "leaders", "members.changed", "members.left", "members.refused", "noops",
		"pauses", "reads", "reads.failed", "refused", "release.not-found", "release.released",
		"restarts", "snapshots", "snapshots.installed", "snapshots.restored", "snapshots.sent", "terms",
		"transfers.done", "transfers.given-up", "transfers.refused", "truncations", "try.held", "written",
	}
	for _, kind := range []string{
		trace.Vote, trace.VoteReply, trace.Append, trace.AppendReply, trace.PreVote, trace.PreVoteReply,
		trace.ReadIndex, trace.ReadIndexReply, trace.TimeoutNow, trace.TimeoutNowReply,
		trace.Snapshot, trace.SnapshotReply,
	} {
		names = append(names, "messages."+kind)
	}
	slices.Sort(names)
	return names
}

// take counts an event of a server.
func (c *counts) take(e trace.Event) {
	switch e.Kind {
	case trace.KindStart:
		c.states[e.Node] = *e.State
		c.of["terms"] = max(c.of["terms"], int64(e.State.Term))
	case trace.KindState:
		c.changed(c.states[e.Node], *e.State)
		c.states[e.Node] = *e.State
	case trace.KindAppend:
		c.appended(e)
	case trace.KindApply:
		if e.Entry.Index == c.applied+1 {
			c.applied++
			c.firstApplied(e.Entry)
		}
	case trace.KindSend:
		c.of["messages."+e.Message.Kind]++
		c.sent(e.Message)
	case trace.KindTrim:
		if e.Rule == "Snapshot.Save" {
			c.of["snapshots"]++
		} else {
			c.of["snapshots.installed"]++
		}
	case trace.KindTable:
		c.of["snapshots.restored"]++
	case trace.KindReply:
		if e.Client.Status == fsm.Held.String() {
			c.of["try.held"]++
		}
	}
}

// sent counts a snapshot when its first part leaves for the first time.
func (c *counts) sent(m *trace.MessageRecord) {
	if m.Kind != trace.Snapshot {
		return
	}
	way, p := [2]string{m.From, m.To}, part{m.Term, m.LastIndex, m.Offset}
	if p.offset == 0 && p != c.parts[way] {
		c.of["snapshots.sent"]++
	}
	c.parts[way] = p
}

func (c *counts) changed(before, after trace.StateRecord) {
	leader := raft.Leader.String()
	if after.Role == raft.Candidate.String() && after.Term > before.Term {
		c.of["elections"]++
	}
	if after.Role == leader && before.Role != leader {
		c.of["leaders"]++
	}
	if before.Role == leader && after.Role != leader {
		c.of["deposed"]++
	}
	c.of["terms"] = max(c.of["terms"], int64(after.Term))
}

func (c *counts) appended(e trace.Event) {
	before := c.states[e.Node]
	switch r := e.Entry; {
	case r.Index <= before.Last && !foundOnDisk(e):
		c.of["truncations"]++
		before.Last = r.Index - 1 // what follows replaces nothing
		c.states[e.Node] = before
	case r.Cause == fsm.ForCleanup.String():
		c.of["cleanups"]++
	case r.Cause == fsm.ForLease.String():
		if envelope, err := fsm.Decode([]byte(r.Command)); err == nil && envelope.Kind == fsm.Expire {
			c.of["expire.proposed"]++
		} else {
			c.of["expire.bare"]++
		}
	}
}

// foundOnDisk reports whether an append tells of what a server has started with. The start is the
// first event of its trace.
func foundOnDisk(e trace.Event) bool { return e.Cause == 1 }

// firstApplied counts an entry once, however many servers apply it.
func (c *counts) firstApplied(r *trace.EntryRecord) {
	c.of["commits"]++
	if r.Members != "" {
		c.of["members.changed"]++
	}
	envelope, err := fsm.Decode([]byte(r.Command))
	if err != nil {
		return // the server has stopped, and says so
	}
	holder := c.holders[envelope.Key]
	switch r.Result {
	case fsm.Result{Kind: fsm.GrantRejected}.String():
		c.of["grant.rejected"]++
	case fsm.Result{Kind: fsm.Released}.String():
		c.of["release.released"]++
	case fsm.Result{Kind: fsm.NotFound}.String():
		c.of["release.not-found"]++
	case fsm.Result{Kind: fsm.ResultNoop}.String():
		c.of["noops"]++
	case fsm.Result{Kind: fsm.Expired, Existed: true}.String():
		c.of["expire.existed"]++
	case fsm.Result{Kind: fsm.Expired}.String():
		if holder != 0 && holder != uint64(envelope.Token) {
			c.of["expire.newer"]++
		} else {
			c.of["expire.free"]++
		}
	default:
		c.of["grant.granted"] += min(1, int64(granted(r.Result)))
	}
	follow(c.holders, envelope.Key, r.Result)
}

// follow keeps who holds what, by the results alone.
func follow(holders map[string]uint64, key, result string) {
	if token := granted(result); token != 0 {
		holders[key] = token
	}
	if removes(result) {
		delete(holders, key)
	}
}

// granted is the token in a result, 0 if it grants nothing.
func granted(result string) uint64 {
	var token uint64
	if n, err := fmt.Sscanf(result, "Granted{%d}", &token); n != 1 || err != nil {
		return 0
	}
	return token
}

// removes reports whether a result says that a tenure has ended.
func removes(result string) bool {
	return result == fsm.Result{Kind: fsm.Released}.String() ||
		result == fsm.Result{Kind: fsm.Expired, Existed: true}.String()
}
