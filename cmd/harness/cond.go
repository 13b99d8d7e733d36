package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/sim"
)

// holds reports whether a condition holds, as far as the view goes, and what is instead.
func (r *replay) holds(cond sim.Cond) (ok bool, is string) {
	switch c := cond.(type) {
	case sim.CondLeader:
		return r.view.holdsLeader(c)
	case sim.CondNode:
		return r.view.holdsNode(c)
	case sim.CondHolder:
		return r.view.holdsTable(c.Key, c.Client, c.Token, c.At)
	case sim.CondFree:
		return r.view.holdsTable(c.Key, "", 0, c.At)
	case sim.CondClient:
		return r.holdsClient(c)
	case sim.CondCount:
		n := r.view.counts.of[c.Name]
		return compare(n, c.Op, c.N), fmt.Sprintf("it is %d", n)
	case sim.CondConverged:
		return r.view.holdsConverged()
	case sim.CondViolated:
		return r.holdsViolated(c)
	}
	panic(fmt.Sprintf("harness: nobody has refused the condition %q", cond))
}

func compare(a int64, op string, b int64) bool {
	switch op {
	case "=":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	}
	return a >= b
}

func (r *replay) holdsClient(c sim.CondClient) (bool, string) {
	a := r.actors[c.Client]
	if a == nil {
		return false, fmt.Sprintf("there is no client %s", c.Client)
	}
	return a.state == c.State && (c.Token == 0 || uint64(a.token) == c.Token), a.String()
}

func (r *replay) holdsViolated(c sim.CondViolated) (bool, string) {
	_, broken, err := r.judged()
	if err != nil {
		return false, err.Error()
	}
	is := func(b violation) bool { return b.Invariant == c.Invariant }
	return slices.ContainsFunc(broken, is), "it has held so far"
}

func (v *view) holdsLeader(c sim.CondLeader) (bool, string) {
	l := v.leader()
	if l == nil {
		return c.Node == 0, "there is no leader"
	}
	is := fmt.Sprintf("%s leads term %d", l.name, l.state.Term)
	return c.Node != 0 && l.id == c.Node && (c.Term == 0 || l.state.Term == c.Term), is
}

func (v *view) holdsNode(c sim.CondNode) (bool, string) {
	s := v.servers[c.Node]
	if s == nil {
		return false, fmt.Sprintf("S%d has not been added", c.Node)
	}
	if !s.running {
		return false, s.name + " is down"
	}
	var is []string
	ok := true
	for _, f := range c.Fields {
		value := v.field(s, f.Key)
		ok = ok && value == f.Value
		is = append(is, f.Key+"="+value)
	}
	return ok, s.name + " has " + strings.Join(is, " ")
}

// field is one of a server's fields that expect can name, as text.
func (v *view) field(s *server, key string) string {
	switch key {
	case "role":
		return s.state.Role
	case "term":
		return number(s.state.Term)
	case "vote":
		return serverText(s.state.Vote)
	case "leader":
		return serverText(s.state.Leader)
	case "commit":
		return number(s.state.Commit)
	case "applied":
		return number(s.state.Applied)
	case "last":
		return number(s.state.Last)
	case "log":
		return termsText(s.log.entries)
	case "members":
		members, _ := v.members(s)
		return cmp.Or(members, "none")
	case "snapshot":
		return snapshotText(s.log.behind)
	case "durable.snapshot":
		return snapshotText(s.disk.log.behind)
	case "read":
		return cmp.Or(s.read, "none")
	case "durable.term":
		return number(s.disk.term)
	case "durable.vote":
		return serverText(s.disk.vote)
	case "durable.log":
		return termsText(s.disk.log.entries)
	}
	panic(fmt.Sprintf("harness: nobody has refused the field %q", key))
}

func number[T ~uint64](n T) string { return strconv.FormatUint(uint64(n), 10) }

func serverText(id raft.ServerID) string {
	if id == 0 {
		return "none"
	}
	return string(sim.NodeActor(id))
}

func snapshotText(s trace.SnapshotRecord) string {
	if s.Index == 0 {
		return "none"
	}
	return number(s.Index) + "@" + number(s.Term)
}

func termsText(log []trace.EntryRecord) string {
	if len(log) == 0 {
		return "none"
	}
	terms := make([]string, len(log))
	for i, e := range log {
		terms[i] = number(e.Term)
	}
	return strings.Join(terms, ",")
}

// holdsTable looks at who holds a key in applied tables; no client means that it is free.
func (v *view) holdsTable(key string, client sim.Actor, token uint64, at sim.Actor) (bool, string) {
	var looked []*server
	switch most := v.mostApplied(); {
	case at != "":
		for _, id := range v.ids() {
			s := v.servers[id]
			if s.is(at) && s.running && (at != sim.Everyone || v.belongs(s)) {
				looked = append(looked, s)
			}
		}
	case most != nil:
		looked = append(looked, most)
	}
	if len(looked) == 0 {
		return false, "that server is down"
	}
	is := ""
	for _, s := range looked {
		tenure, held := s.table.Holder(key)
		is = fmt.Sprintf("at %s %s", s.name, tenureText(tenure, held))
		right := held == (client != "") && (!held || tenure.Owner == string(client) &&
			(token == 0 || uint64(tenure.Token) == token))
		if !right {
			return false, is
		}
	}
	return true, is
}

func tenureText(t fsm.Tenure, held bool) string {
	if !held {
		return "it is free"
	}
	return fmt.Sprintf("%s holds it with token %d", t.Owner, t.Token)
}

// holdsConverged: one leader, and the same log, commitIndex and table at all that run and that it
// counts among the servers.
func (v *view) holdsConverged() (bool, string) {
	l := v.leader()
	if l == nil {
		return false, "there is no leader"
	}
	if l.state.Commit < l.state.Last {
		return false, fmt.Sprintf("%s has entries to %d and has committed %d",
			l.name, l.state.Last, l.state.Commit)
	}
	for _, id := range v.ids() {
		s := v.servers[id]
		switch {
		case !s.running || s == l || !v.belongs(s):
		case s.state.Role == raft.Leader.String():
			return false, fmt.Sprintf("%s and %s both lead", l.name, s.name)
		case s.state.Last != l.state.Last || !agree(&s.log, &l.log):
			return false, fmt.Sprintf("the logs of %s and %s differ", l.name, s.name)
		case s.state.Commit != l.state.Commit || s.state.Applied != l.state.Applied:
			return false, fmt.Sprintf("%s has committed %d, %s %d",
				l.name, l.state.Commit, s.name, s.state.Commit)
		case s.hash != l.hash:
			return false, fmt.Sprintf("the tables of %s and %s differ", l.name, s.name)
		}
	}
	return true, fmt.Sprintf("all have committed %d entries", l.state.Commit)
}

// agree compares two logs as far as both have entries. What is in a snapshot is compared as the
// table.
func agree(a, b *logged) bool {
	from := max(a.behind.Index, b.behind.Index)
	behind := func(l *logged) []trace.EntryRecord {
		return l.entries[min(int(from-l.behind.Index), len(l.entries)):]
	}
	return slices.EqualFunc(behind(a), behind(b), func(a, b trace.EntryRecord) bool {
		return a.Index == b.Index && a.Term == b.Term && a.Command == b.Command && a.Members == b.Members
	})
}
