package sim

import (
	"slices"
	"strings"
)

func faultVerbs() map[string]verb {
	return map[string]verb{
		"cut":      {usage: "cut S1 S2 | S3 S4, or cut S1->S2", parse: parseCut},
		"isolate":  {usage: "isolate S1", parse: parseIsolate},
		"heal":     {usage: "heal, or heal S1->S2", parse: parseHeal},
		"pause":    {usage: "pause S1, or A: pause", parse: parsePause},
		"suspend":  {usage: "suspend S1 [clock=on], or A: suspend", parse: parseSuspend},
		"resume":   {usage: "resume S1, or A: resume", parse: parseResume},
		"crash":    {usage: "crash S1 [writing] [torn|some|all|keep=2|lost]", parse: parseCrash},
		"restart":  {usage: "restart S1", parse: parseRestart},
		"disk":     {usage: "disk S1 sync=2ms..8ms, stall, fail, reorder, ok or finish [#2 | snapshot]", parse: parseDisk},
		"clock":    {usage: clockUsage, parse: parseClock},
		"resource": {usage: "resource KEY mistake=NAME, or resource KEY restart", parse: parseResource},
	}
}

func parseCut(r *reader) Command {
	if strings.Contains(r.peek(), "->") {
		from, to := r.link(r.next())
		return CutOne{From: from, To: to}
	}
	groups := [][]Actor{nil}
	seen := map[Actor]bool{}
	// The bar may touch its neighbours.
	r.left = strings.Fields(strings.ReplaceAll(strings.Join(r.left, " "), "|", " | "))
	for len(r.left) > 0 {
		word := r.next()
		if word == "|" {
			groups = append(groups, nil)
			continue
		}
		actor := r.anyone(word)
		if seen[actor] {
			r.fail("everyone at most once", "%s stands twice", actor)
		}
		seen[actor] = true
		last := len(groups) - 1
		groups[last] = append(groups[last], actor)
	}
	for _, group := range groups {
		if len(group) == 0 || len(groups) < 2 {
			r.fail(r.usage, "the line does not have somebody on both sides of a bar")
		}
	}
	return Cut{Groups: groups}
}

func parseIsolate(r *reader) Command { return Isolate{Node: r.node(r.next())} }

func parseHeal(r *reader) Command {
	var c Heal
	if len(r.left) > 0 {
		c.From, c.To = r.link(r.next())
	}
	return c
}

func parsePause(r *reader) Command { return Pause{Node: r.node(r.next())} }

func parseSuspend(r *reader) Command {
	c := Suspend{Node: r.node(r.next())}
	r.options(options{"clock=": func(v string) { c.ClockOn = *r.onOff(v) }})
	return c
}

func parseResume(r *reader) Command { return Resume{Node: r.node(r.next())} }

func parseCrash(r *reader) Command {
	c := Crash{Node: r.nodeOrAll(r.next())}
	if c.Writing = r.peek() == "writing"; c.Writing {
		r.next()
	}
	how := r.peek()
	keep, keeps := strings.CutPrefix(how, "keep=")
	switch {
	case keeps:
		r.next()
		c.Keep = r.count(keep)
	case how == "lost" && (c.Writing || c.Node == Everyone):
		r.fail("crash S1 lost", "one disk at a time is lost, and none in the middle of a write")
	case slices.Contains([]string{"torn", "some", "all", "lost"}, how):
		c.How = r.next()
	}
	return c
}

func parseRestart(r *reader) Command { return Restart{Node: r.nodeOrAll(r.next())} }

func parseDisk(r *reader) Command {
	c := SetDisk{Node: r.nodeOrAll(r.next())}
	word := r.next()
	sync, isSync := strings.CutPrefix(word, "sync=")
	switch {
	case isSync:
		r.setUp("disk sync=")
		c.SyncSet = true
		c.SyncMin, c.SyncMax = r.span(sync)
	case slices.Contains([]string{"stall", "fail", "reorder", "ok"}, word):
		c.Do = word
	case word == "finish":
		c.Do = word
		switch r.peek() {
		case "":
		case "snapshot":
			r.next()
			c.File = true
		default:
			c.Nth = r.nth(r.next())
		}
	default:
		r.unknown("disk command", word, r.usage, []string{"sync=", "stall", "fail", "reorder", "ok", "finish"})
	}
	return c
}

func parseResource(r *reader) Command {
	c := SetResource{Key: r.key(r.next())}
	word := r.next()
	mistake, isMistake := strings.CutPrefix(word, "mistake=")
	switch known := mistakeNames(); {
	case isMistake && !slices.Contains(known, mistake):
		r.unknown("mistake", mistake, oneOf(known), known)
	case isMistake:
		r.setUp("resource mistake=")
		r.once("resource " + c.Key)
		c.Mistake = mistake
	case word == "restart":
		c.Restart = true
	default:
		r.unknown("resource command", word, r.usage, []string{"mistake=", "restart"})
	}
	return c
}
