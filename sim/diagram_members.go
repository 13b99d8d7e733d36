package sim

import (
	"slices"
	"strings"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file finds words for changes of the servers, from the trace alone.

// logged is what a server's log says about the servers, from an entry on.
type logged struct {
	index   raft.Index
	members string
}

// changesIn says of each entry that changes the servers what it changes. That depends on what was there
// before it in the log of the leader who made it.
func changesIn(t *trace.Trace) map[position]string {
	changes, logs := map[position]string{}, map[string][]logged{}
	first := t.Header.Members
	if first == "" && !t.Header.Real {
		first = strings.Join(t.Header.Nodes, ",")
	}
	for i := range t.Events {
		e := &t.Events[i]
		switch e.Kind {
		case trace.KindStart, trace.KindRestart:
			logs[e.Node] = []logged{{0, first}}
		case trace.KindAppend:
			entry := entryOf(e)
			log := slices.DeleteFunc(logs[e.Node], func(l logged) bool { return l.index > 0 && l.index >= entry.Index })
			if entry.Members != "" {
				at := position{entry.Index, entry.Term}
				if len(log) > 0 && entry.Cause != "" {
					changes[at] = changeOf(log[len(log)-1].members, entry.Members)
				}
				log = append(log, logged{entry.Index, entry.Members})
			}
			logs[e.Node] = log
		}
	}
	return changes
}

// changeWords says what an entry changes about the servers; whom they are, if that is not known.
func (p *plot) changeWords(entry trace.EntryRecord) string {
	if words := p.changes[position{entry.Index, entry.Term}]; words != "" {
		return words
	}
	return "names the servers " + entry.Members
}

// changeOf says in words how one set of servers becomes another, "" if it is more than one step.
func changeOf(before, after string) string {
	was, is := voting(before), voting(after)
	var words []string
	for _, name := range named(before) {
		vote, stays := is[name]
		switch {
		case !stays:
			words = append(words, "removes "+name)
		case vote && !was[name]:
			words = append(words, "gives "+name+" a vote")
		case !vote && was[name]:
			words = append(words, "makes "+name+" a learner")
		}
	}
	for _, name := range named(after) {
		if _, there := was[name]; !there {
			words = append(words, "adds "+name+" as a learner")
		}
	}
	if len(words) != 1 {
		return ""
	}
	return words[0]
}

// named lists the servers in a set.
func named(members string) []string {
	return strings.FieldsFunc(members, func(r rune) bool { return r == ',' || r == '+' })
}

// voting says of each server in a set whether it votes.
func voting(members string) map[string]bool {
	voters, learners, _ := strings.Cut(members, "+")
	all := map[string]bool{}
	for _, name := range named(voters) {
		all[name] = true
	}
	for _, name := range named(learners) {
		all[name] = false
	}
	return all
}
