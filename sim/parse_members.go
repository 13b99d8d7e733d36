package sim

import (
	"fmt"

	"ticketing/raft"
)

func memberVerbs() map[string]verb {
	return map[string]verb{
		opAdd:     {usage: "add S4 [learner]", parse: parseAdd},
		opPromote: {usage: "promote S4", parse: parsePromote},
		opRemove:  {usage: "remove S2", parse: parseRemove},
	}
}

// parseAdd reads a server that there is not yet. It may be named from this line on.
func parseAdd(r *reader) Command {
	c := Change{Do: opAdd, Node: r.newcomer(r.next())}
	r.options(options{"learner": func(string) { c.Learner = true }})
	return c
}

// newcomer reads the name of the next server, or of one that lines before have named otherwise than as
// one of the first. What a leader makes of it nobody knows yet.
func (r *reader) newcomer(word string) raft.ServerID {
	r.p.named = true
	id, next := Actor(word).Node(), raft.ServerID(r.p.nodes)+1
	expected := fmt.Sprintf("S%d, or one that was removed", next)
	_, first := r.p.first[id]
	switch {
	case next > maxNodes && id >= next:
		r.fail(fmt.Sprintf("at most %d", maxNodes), "%s is one server too many", word)
	case id < 1 || id > next || NodeActor(id) != Actor(word):
		r.fail(expected, "%q cannot be added", word)
	case id == next:
		r.p.nodes++
	case first && !r.scheduled:
		r.fail(expected, "%s is there already", word)
	}
	return id
}

func parsePromote(r *reader) Command {
	c := Change{Do: opPromote, Node: r.node(r.next())}
	if r.p.first[c.Node] && !r.scheduled {
		r.fail("a learner", "S%d votes already", c.Node)
	}
	return c
}

func parseRemove(r *reader) Command {
	c := Change{Do: opRemove, Node: r.node(r.next())}
	delete(r.p.first, c.Node)
	return c
}
