package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ticketing/raft"
)

// setUpVerbs are the commands that stand before the first event. Disks and clocks can be set up,
// too, but have events of their own.
func setUpVerbs() map[string]verb {
	return map[string]verb{
		"nodes":   {usage: "nodes N [learners M]", setUp: true, parse: parseNodes},
		"seed":    {usage: "seed N", setUp: true, parse: parseSeed},
		"manual":  {usage: "manual", setUp: true, parse: parseManual},
		"config":  {usage: "config KEY=VALUE …", setUp: true, parse: parseConfig},
		"without": {usage: "without RULE …", setUp: true, parse: parseWithout},
		"node":    {usage: "node S1 [term=3] [vote=S2] [log=1,1,2] [snapshot=4@1]", setUp: true, parse: parseNode},
		"network": {usage: "network KEY=VALUE …", setUp: true, parse: parseNetwork},
		"link":    {usage: "link S1->S2 KEY=VALUE …", setUp: true, parse: parseLink},
	}
}

// once refuses a second line about the same thing, which would silently undo the first.
func (r *reader) once(thing string) {
	if r.p.said[thing] {
		r.fail(thing+" once", "a second line says %s", thing)
	}
	r.p.said[thing] = true
}

// setUp refuses a set-up line, or a part of one, that comes too late.
func (r *reader) setUp(what string) {
	switch {
	case r.scheduled:
		r.fail("it in a line before the first event", "%s is set-up, not an event", what)
	case r.p.firstEvent > 0:
		r.fail("it before all events", "%s is set-up, but line %d is an event",
			what, r.p.firstEvent)
	}
}

// needOne refuses a line of options that has none and so says nothing.
func (r *reader) needOne() {
	if len(r.left) == 0 {
		r.fail(r.usage, "the line says nothing")
	}
}

func parseNodes(r *reader) Command {
	r.once("nodes")
	if r.p.named {
		r.fail("nodes before the first line that names a node", "nodes comes too late")
	}
	c := SetNodes{N: r.count(r.next())}
	if r.peek() == "learners" {
		r.next()
		c.Learners = r.count(r.next())
	}
	if c.N > maxNodes || c.Learners > maxNodes-c.N {
		r.fail("1 to 9", "%d nodes are too many", c.N+c.Learners)
		return c // so many would take for ever
	}
	r.p.nodes = c.N + c.Learners
	r.p.first = map[raft.ServerID]bool{}
	for id := range raft.ServerID(c.N + c.Learners) {
		r.p.first[id+1] = int(id) < c.N
	}
	return c
}

func parseSeed(r *reader) Command {
	r.once("seed")
	return SetSeed{Seed: r.digits(r.next(), 64)}
}

func parseManual(r *reader) Command {
	r.once("manual")
	return SetManual{}
}

func parseConfig(r *reader) Command {
	r.needOne()
	var c SetConfig
	r.options(options{
		"election=":    func(v string) { c.Election = r.positive(v) },
		"heartbeat=":   func(v string) { c.Heartbeat = r.positive(v) },
		"prevote=":     func(v string) { c.PreVote = r.onOff(v) },
		"checkquorum=": func(v string) { c.CheckQuorum = r.onOff(v) },
		"pipeline=":    func(v string) { c.Pipeline = r.onOff(v) },
		"batch=":       func(v string) { c.Batch = r.count(v) },
		"window=":      func(v string) { c.Window = r.count(v) },
		"snapshot=": func(v string) {
			every := raft.Index(r.number(v))
			c.SnapshotEvery = &every
		},
		"keep=":  func(v string) { c.Keep = raft.Index(r.count(v)) },
		"chunk=": func(v string) { c.Chunk = r.count(v) },
	})
	if c.Election > 0 {
		r.p.election = c.Election
	}
	if c.Heartbeat > 0 {
		r.p.heartbeat = c.Heartbeat
	}
	if r.p.heartbeat >= r.p.election {
		// Followers would campaign against a leader that is alive.
		r.fail("heartbeat below election", "heartbeat is %s and election is %s",
			brief(r.p.heartbeat), brief(r.p.election))
	}
	return c
}

func parseWithout(r *reader) Command {
	r.needOne()
	var c SetWithout
	known := RuleNames()
	named := map[string]bool{}
	for len(r.left) > 0 {
		rule := r.next()
		switch {
		case !slices.Contains(known, rule):
			r.unknown("rule", rule, oneOf(known), known)
		case named[rule]:
			r.fail(r.usage, "%q stands twice", rule)
		}
		named[rule] = true
		c.Rules = append(c.Rules, rule)
	}
	return c
}

func parseNode(r *reader) Command {
	c := SetNode{Node: r.node(r.next())}
	r.once("node " + string(NodeActor(c.Node)))
	termSet := false
	r.options(options{
		"term=":     func(v string) { c.Term, termSet = raft.Term(r.number(v)), true },
		"vote=":     func(v string) { c.Vote = r.node(v) },
		"log=":      func(v string) { c.Log = r.log(v) },
		"snapshot=": func(v string) { c.Snapshot = r.snapshotEnd(v) },
	})
	last := c.Snapshot.Term
	if len(c.Log) > 0 {
		if c.Log[0] < last {
			r.fail("a log that goes on where the snapshot ends", "the log begins with term %d, the snapshot ends with %d",
				c.Log[0], last)
		}
		last = c.Log[len(c.Log)-1]
	}
	if !termSet {
		c.Term = last
	}
	switch {
	case last > c.Term:
		r.fail("term= not below the log's", "the log has term %d, the node only %d", last, c.Term)
	case c.Vote != 0 && c.Term == 0:
		r.fail("term= along with vote=", "nobody votes in term 0")
	}
	return c
}

// maxSnapshot bounds what a snapshot that a server starts with stands for: the simulator keeps a hash of
// each entry.
const maxSnapshot = 100_000

// snapshotEnd reads where a snapshot ends, "4@1".
func (r *reader) snapshotEnd(v string) Position {
	index, term, ok := strings.Cut(v, "@")
	if !ok {
		r.fail("an index and a term, such as 4@1", "%q is not the end of a snapshot", v)
	}
	p := Position{raft.Index(r.from1(index)), raft.Term(r.from1(term))}
	if p.Index > maxSnapshot {
		r.fail(fmt.Sprintf("at most %d", maxSnapshot), "entry %d is too far", p.Index)
	}
	return p
}

func parseNetwork(r *reader) Command { return SetNetwork{LinkSpec: r.linkSpec()} }

func parseLink(r *reader) Command {
	from, to := r.link(r.next())
	return SetNetwork{From: from, To: to, LinkSpec: r.linkSpec()}
}

func (r *reader) linkSpec() LinkSpec {
	r.needOne()
	var s LinkSpec
	r.options(options{
		"delay=": func(v string) { s.DelaySet = true; s.DelayMin, s.DelayMax = r.span(v) },
		"tail=":  func(v string) { s.TailSet = true; s.TailPPM, s.Tail = r.tail(v) },
		"loss=":  func(v string) { ppm := r.share(v); s.LossPPM = &ppm },
		"duplicate=": func(v string) {
			ppm := r.share(v)
			s.DuplicatePPM = &ppm
		},
	})
	if s.DelaySet && s.TailSet && s.Tail < s.DelayMax {
		r.fail("a tail of at least the delay", "the tail ends at %s and the delay at %s",
			brief(s.Tail), brief(s.DelayMax))
	}
	return s
}

// tail reads "3%:1500ms".
func (r *reader) tail(v string) (ppm int, most time.Duration) {
	share, end, ok := strings.Cut(v, ":")
	if !ok {
		r.fail("a share and a delay, such as tail=3%:1500ms", "%q is not a tail", v)
	}
	return r.share(share), r.duration(end)
}
