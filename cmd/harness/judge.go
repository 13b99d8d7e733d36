package main

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/sim"
)

// violation is an invariant that does not hold.
type violation = sim.Violation

// invariantNames lists what the traces are judged by. The sentences are the simulator's.
func invariantNames() []string {
	return []string{
		"election-safety", "one-holder", "removal-meant", "state-machine-safety", "tokens-increase",
	}
}

// position is a place in the one history that all servers must share.
type position struct {
	index raft.Index
	term  raft.Term
}

// judge knows, besides what each event says, what all servers must agree on. It goes by results
// alone: a table that is wrong must not be the one to say so.
type judge struct {
	meant   map[position]uint64 // the tenure that the proposer of a removal had in mind
	leaders map[raft.Term]string
	due     map[string]raft.Index // what each server applies next
	first   []*trace.EntryRecord  // each entry as some server first applied it
	holders map[string]uint64     // who holds what after those
	tokens  uint64                // the last one given out
}

// judgeTrace goes through a merged trace. It returns what is broken, in the order of the events,
// and puts an event behind each that has broken something.
func judgeTrace(t *trace.Trace) []violation {
	j := &judge{
		meant: map[position]uint64{}, leaders: map[raft.Term]string{},
		due: map[string]raft.Index{}, holders: map[string]uint64{},
	}
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == trace.KindAppend && e.Entry.Meant != 0 {
			j.meant[position{e.Entry.Index, e.Entry.Term}] = e.Entry.Meant
		}
	}
	var all []violation
	s := newStitcher()
	for _, e := range t.Events {
		cause := s.own(e)
		for _, b := range j.event(&e) {
			b.At, b.Node = e.At, sim.Actor(e.Node)
			b.Event = s.extra(trace.Event{
				Cause: cause, At: e.At, Node: e.Node, Local: e.Local,
				Kind: trace.KindViolation, Rule: b.Invariant, Text: b.Detail,
			})
			all = append(all, b)
		}
	}
	t.Events = s.events
	return all
}

func (j *judge) event(e *trace.Event) (broken []violation) {
	add := func(invariant, detail string) {
		if detail != "" {
			broken = append(broken, violation{Invariant: invariant, Detail: detail})
		}
	}
	switch e.Kind {
	case trace.KindStart:
		j.due[e.Node] = 1
		if e.Snapshot != nil {
			j.due[e.Node] = e.Snapshot.Index + 1
		}
	case trace.KindTable:
		j.due[e.Node] = e.Snapshot.Index + 1
	case trace.KindState:
		add("election-safety", j.leads(e))
	case trace.KindApply:
		first := int(e.Entry.Index) == len(j.first)+1
		add("state-machine-safety", j.applies(e))
		if first {
			key, err := keyOf(e.Entry)
			if err != nil {
				add("state-machine-safety", err.Error())
				break
			}
			add("removal-meant", j.removes(e.Entry, key))
			add("one-holder", j.grants(e.Entry, key))
			add("tokens-increase", j.counts(e.Entry))
			follow(j.holders, key, e.Entry.Result)
		}
	}
	return broken
}

func keyOf(r *trace.EntryRecord) (string, error) {
	envelope, err := fsm.Decode([]byte(r.Command))
	if err != nil {
		return "", fmt.Errorf("entry %d cannot be read: %w", r.Index, err)
	}
	return envelope.Key, nil
}

func (j *judge) leads(e *trace.Event) string {
	if e.State.Role != raft.Leader.String() {
		return ""
	}
	if other, led := j.leaders[e.State.Term]; led && other != e.Node {
		return fmt.Sprintf("term %d has a second leader; the first was %s", e.State.Term, other)
	}
	j.leaders[e.State.Term] = e.Node
	return ""
}

// applies compares what a server has applied with what the first one did that came there.
func (j *judge) applies(e *trace.Event) string {
	r, due := e.Entry, j.due[e.Node]
	j.due[e.Node] = r.Index + 1
	if r.Index != due {
		return fmt.Sprintf("it applies entry %d where %d is due", r.Index, due)
	}
	if int(r.Index) == len(j.first)+1 {
		j.first = append(j.first, r)
		return ""
	}
	switch f := j.first[r.Index-1]; {
	case f.Term != r.Term || f.Command != r.Command:
		return fmt.Sprintf("it applies %q of term %d at %d; another applied %q of term %d",
			r.Command, r.Term, r.Index, f.Command, f.Term)
	case f.Result != r.Result || f.Hash != r.Hash:
		return fmt.Sprintf("entry %d comes to %s with table %s, on another server to %s with %s",
			r.Index, r.Result, r.Hash, f.Result, f.Hash)
	}
	return ""
}

// removes is the project's claim: a removal removes only the tenure that its issuer meant.
func (j *judge) removes(r *trace.EntryRecord, key string) string {
	meant, removed := j.meant[position{r.Index, r.Term}], j.holders[key]
	if !removes(r.Result) || meant == 0 || meant == removed {
		return ""
	}
	return fmt.Sprintf("entry %d, %q, was meant for token %d and removed token %d from %q",
		r.Index, r.Command, meant, removed, key)
}

func (j *judge) grants(r *trace.EntryRecord, key string) string {
	token := granted(r.Result)
	if holder, held := j.holders[key]; held && token != 0 {
		return fmt.Sprintf("entry %d grants %q with token %d while token %d holds it",
			r.Index, key, token, holder)
	}
	return ""
}

func (j *judge) counts(r *trace.EntryRecord) string {
	token := granted(r.Result)
	if token != 0 && token <= j.tokens {
		return fmt.Sprintf("entry %d was granted token %d after %d", r.Index, token, j.tokens)
	}
	j.tokens = max(j.tokens, token)
	return ""
}
