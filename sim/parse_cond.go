package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ticketing/raft"
)

// conditionWords start the conditions that no name starts.
func conditionWords() []string {
	return []string{"leader", "no", "in-flight", "holder", "free", "count", "converged"}
}

// cond reads a condition. A "within" that follows it is left to the command around it.
func (r *reader) cond() Cond {
	word := r.next()
	switch word {
	case "leader":
		return r.leader()
	case "no":
		return r.absence()
	case "in-flight":
		return r.inFlight()
	case "holder":
		return r.holder()
	case "free":
		return r.free()
	case "count":
		return r.counter()
	case "converged":
		r.usage = "converged [within 2s]"
		return CondConverged{}
	}
	switch {
	case r.peek() == "violated":
		return r.violated(word)
	case isNodeName(word):
		return r.nodeState(word)
	case isClient(word):
		return r.clientState(word)
	}
	known := conditionWords()
	r.unknown("condition", word, oneOf(known)+`, a node, a client, or "NAME violated"`,
		slices.Concat(known, InvariantNames()))
	return nil
}

func (r *reader) leader() Cond {
	r.usage = "leader S1 [term=2]"
	c := CondLeader{Node: r.node(r.next())}
	r.options(options{"term=": func(v string) { c.Term = raft.Term(r.from1(v)) }})
	return c
}

// from1 reads a number that is never 0, such as a term with a leader or a token.
func (r *reader) from1(v string) uint64 {
	n := r.number(v)
	if n == 0 {
		r.fail("a number from 1 up", "%q is too small", v)
	}
	return n
}

// absence reads what stands behind "no".
func (r *reader) absence() Cond {
	r.usage = "no leader, or no in-flight S1->S2 [KIND]"
	switch word := r.next(); word {
	case "leader":
		return CondLeader{}
	case "in-flight":
		c := r.inFlight()
		c.No = true
		return c
	default:
		known := []string{"leader", "in-flight"}
		r.unknown("condition behind no", word, oneOf(known), known)
	}
	return nil
}

func (r *reader) inFlight() CondInFlight {
	r.usage = "in-flight S1->S2 [KIND] [KEY=VALUE …]"
	var c CondInFlight
	c.From, c.To = r.link(r.next())
	if word := r.peek(); word != "" && word != "within" && !strings.Contains(word, "=") {
		c.Kind = r.kind(r.next())
	}
	c.Fields = r.fields(map[string]func(string) string{
		"term=":    r.numeral,
		"prev=":    r.position,
		"entries=": r.numeral,
		"commit=":  r.numeral,
		"last=":    r.position,
		"granted=": r.yesNo,
		"success=": r.yesNo,
		"match=":   r.numeral,

		"offset=":    r.numeral,
		"done=":      r.yesNo,
		"installed=": r.yesNo,
	})
	// A message without the field would never match, and the line would only look like a check.
	kindsOf := map[string][]string{"prev": {"append"}, "entries": {"append"}, "commit": {"append"},
		"last": {"vote", "prevote", "snapshot"}, "granted": {"vote-reply", "prevote-reply"},
		"success": {"append-reply"}, "match": {"append-reply"},
		"offset": {"snapshot", "snapshot-reply"}, "done": {"snapshot"}, "installed": {"snapshot-reply"}}
	for _, f := range c.Fields {
		kinds := kindsOf[f.Key]
		if c.Kind != "" && kinds != nil && !slices.Contains(kinds, c.Kind) {
			r.fail("it with "+oneOf(kinds), "messages of kind %s have no %s", c.Kind, f.Key)
		}
	}
	return c
}

// fields reads options whose values are compared as text later on. So each known one brings a
// function that checks a value and returns the one way to write it.
func (r *reader) fields(known map[string]func(string) string) []Field {
	var fields []Field
	take := options{}
	for key, canonical := range known {
		take[key] = func(v string) {
			fields = append(fields, Field{Key: strings.TrimSuffix(key, "="), Value: canonical(v)})
		}
	}
	r.options(take)
	return fields
}

func (r *reader) nodeState(node string) Cond {
	r.usage = "S1 KEY=VALUE …"
	c := CondNode{Node: r.node(node)}
	c.Fields = r.fields(map[string]func(string) string{
		"role=":         r.role,
		"term=":         r.numeral,
		"vote=":         r.nodeName,
		"commit=":       r.numeral,
		"applied=":      r.numeral,
		"last=":         r.numeral,
		"read=":         r.readState,
		"members=":      r.members,
		"log=":          r.logTerms,
		"leader=":       r.nodeName,
		"durable.term=": r.numeral,
		"durable.vote=": r.nodeName,
		"durable.log=":  r.logTerms,
		"snapshot=":     r.snapshot,
		"ahead=":        r.ahead,
		"wall=":         r.ahead,

		"durable.snapshot=": r.snapshot,
	})
	if len(c.Fields) == 0 {
		r.fail("role=, term=, log= or the like", "nothing is said about %s", node)
	}
	return c
}

// ahead reads by how much a clock is ahead of true time, or behind it: +100ms, -5s or 0s.
func (r *reader) ahead(v string) string {
	if d, err := time.ParseDuration(v); err == nil && d == 0 {
		return signed(0)
	}
	return signed(r.jump(v))
}

func (r *reader) numeral(v string) string { return strconv.FormatUint(r.number(v), 10) }

func (r *reader) role(v string) string {
	known := []string{raft.Follower.String(), raft.Candidate.String(), raft.Leader.String(),
		raft.PreCandidate.String()}
	if !slices.Contains(known, v) {
		r.unknown("role", v, oneOf(known), known)
	}
	return v
}

// members reads the servers that there are, the learners behind a plus: "S1,S2,S3+S4".
func (r *reader) members(v string) string {
	if v == "none" {
		return v
	}
	last := raft.ServerID(0)
	voters, learners, more := strings.Cut(v, "+")
	groups := []string{voters}
	if more {
		groups = append(groups, learners)
	}
	for _, group := range groups {
		last = 0
		for name := range strings.SplitSeq(group, ",") {
			id := r.node(name)
			if id <= last {
				r.fail("each once, by rising number, learners behind a plus: S1,S2,S3+S4", "%q is out of order", v)
			}
			last = id
		}
	}
	return v
}

func (r *reader) nodeName(v string) string {
	if v != "none" {
		r.node(v)
	}
	return v
}

func (r *reader) logTerms(v string) string { return logText(r.log(v)) }

func (r *reader) yesNo(v string) string {
	if v != "yes" && v != "no" {
		r.fail("yes or no", "%q is neither yes nor no", v)
	}
	return v
}

// snapshot reads the end of a snapshot, or "none".
func (r *reader) snapshot(v string) string {
	if v == "none" {
		return v
	}
	return r.position(v)
}

// position reads an index and the term of the entry there, "3@2".
func (r *reader) position(v string) string {
	index, term, ok := strings.Cut(v, "@")
	if !ok {
		r.fail("an index and a term, such as 3@2", "%q is not a position", v)
	}
	return fmt.Sprintf("%d@%d", r.number(index), r.number(term))
}

func (r *reader) free() Cond {
	r.usage = "free KEY [at S3]"
	c := CondFree{Key: r.key(r.next())}
	r.options(options{"at": func(string) { c.At = r.nodeOrAll(r.next()) }})
	return c
}

func (r *reader) holder() Cond {
	r.usage = "holder KEY A [token=2] [at S3]"
	c := CondHolder{Key: r.key(r.next()), Client: r.client(r.next())}
	r.options(options{
		"token=": func(v string) { c.Token = r.from1(v) },
		"at":     func(string) { c.At = r.nodeOrAll(r.next()) },
	})
	return c
}

func (r *reader) clientState(client string) Cond {
	known := []string{"granted", "waiting", "rejected", "released", "extended", "connected", "not-found",
		"unknown", "forgotten", "written", "read", "refused", "not-leader", "late", "invalid", "nothing"}
	r.usage = client + " " + oneOf(known)
	c := CondClient{Client: r.client(client), State: r.next()}
	switch {
	case !slices.Contains(known, c.State):
		r.unknown("state of a client", c.State, oneOf(known), known)
	case c.State == "granted":
		r.options(options{"token=": func(v string) { c.Token = r.from1(v) }})
	}
	return c
}

func (r *reader) counter() Cond {
	r.usage = "count NAME >= 1"
	name := r.next()
	known := CounterNames()
	switch {
	case slices.Contains(known, name):
	default:
		r.unknown("counter", name, "one such as expire.newer", known)
	}
	op := r.next()
	if ops := []string{"=", "!=", "<", "<=", ">", ">="}; !slices.Contains(ops, op) {
		r.fail(oneOf(ops), "%q does not compare", op)
	}
	return CondCount{Name: name, Op: op, N: int64(r.number(r.next()))}
}

func (r *reader) violated(name string) Cond {
	r.usage = "INVARIANT violated"
	r.next()
	if known := InvariantNames(); !slices.Contains(known, name) {
		r.unknown("invariant", name, `one that "raftsim list -invariants" prints`, known)
	}
	return CondViolated{Invariant: name}
}
