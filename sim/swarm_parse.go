package sim

import (
	"slices"
	"strings"
)

// This file reads the lines of a swarm run.

func strikeVerbs() map[string]verb {
	return map[string]verb{
		"strike":  {usage: "strike WHAT [leader|candidate|S1] [for 300ms]", parse: parseStrike},
		"on":      {usage: "on MOMENT [#N] strike WHAT [it|leader|candidate|S1] [for 300ms]", parse: parseOn},
		"recover": {usage: "recover", flows: true, parse: func(*reader) Command { return Recover{} }},
	}
}

func parseStrike(r *reader) Command { return r.strike(false) }

func (r *reader) strike(atMoment bool) Strike {
	c := Strike{What: r.next()}
	kinds, names := strikeKinds(), StrikeNames()
	i := slices.Index(names, c.What)
	if i < 0 {
		r.unknown("strike", c.What, oneOf(names), names)
		return c
	}
	if kinds[i].aimed {
		c.Who = r.next()
		known := c.Who == whoLeader || c.Who == whoCandidate || atMoment && c.Who == whoIt
		if !known {
			r.node(c.Who)
		}
	}
	if r.peek() == "for" || !kinds[i].aimed {
		if word := r.next(); word != "for" {
			r.fail(r.usage, "%q does not say for how long", word)
		}
		c.For = r.positive(r.next())
	}
	return c
}

func parseOn(r *reader) Command {
	c := On{Moment: r.next()}
	if known := MomentNames(); !slices.Contains(known, c.Moment) {
		r.unknown("moment", c.Moment, oneOf(known), known)
	}
	if strings.HasPrefix(r.peek(), "#") {
		c.Nth = r.nth(r.next())
	}
	if word := r.next(); word != "strike" {
		r.fail(r.usage, "%q is no strike", word)
	}
	c.Strike = r.strike(true)
	return c
}
