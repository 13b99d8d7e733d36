package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// verb is a command of the language: how it is written, and what reads the words behind its name.
type verb struct {
	usage string
	parse func(*reader) Command
	setUp bool // only before the first event
	flows bool // lets time pass, or waits, so that it cannot itself be scheduled
}

// verbs is the language but for what clients do.
func verbs() map[string]verb {
	all := map[string]verb{}
	parts := []map[string]verb{setUpVerbs(), timeVerbs(), faultVerbs(), strikeVerbs(), memberVerbs()}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// command reads a command from its first word on.
func (r *reader) command() Command {
	r.usage = "a command"
	word := r.next()
	if name, ok := strings.CutSuffix(word, ":"); ok {
		return r.clientCommand(name)
	}
	v, ok := r.p.verbs[word]
	if !ok {
		r.unknown("command", word, `a verb such as run, or a client as in "A: write door"`,
			slices.Sorted(maps.Keys(r.p.verbs)))
		return nil
	}
	r.usage = v.usage
	switch {
	case v.setUp:
		r.setUp(word)
	case v.flows && r.scheduled:
		r.fail("a command that happens at once", "%s cannot be scheduled", word)
	}
	return v.parse(r)
}

func timeVerbs() map[string]verb {
	return map[string]verb{
		"connect":   {usage: "connect A B, or connect others=N", parse: parseConnect},
		"run":       {usage: "run DURATION", flows: true, parse: parseRun},
		"until":     {usage: "until CONDITION [within 2s]", flows: true, parse: parseUntil},
		"at":        {usage: "at 404ms COMMAND", flows: true, parse: parseAt},
		"expect":    {usage: "expect CONDITION", parse: parseExpect},
		"timeout":   {usage: "timeout S1", parse: parseTimeout},
		"beat":      {usage: "beat S1", parse: parseBeat},
		"read":      {usage: "read S1 [local], or A: read KEY", parse: parseRead},
		"transfer":  {usage: "transfer S1 S2", parse: parseTransfer},
		"snapshot":  {usage: "snapshot S1", parse: parseSnapshot},
		"propose":   {usage: "propose S1 TEXT", parse: parsePropose},
		"deliver":   {usage: "deliver [S1->S2] [KIND] [#N], or deliver all", parse: parseDeliver},
		"drop":      {usage: "drop [S1->S2] [KIND] [#N]", parse: parseDrop},
		"duplicate": {usage: "duplicate [S1->S2] [KIND] [#N]", parse: parseDuplicate},
		"hold":      {usage: "hold S1->S2 [KIND]", parse: parseHold},
		"release":   {usage: "release S1->S2 [KIND], or A: release KEY", parse: parseRelease},
	}
}

func parseRun(r *reader) Command { return RunFor{For: r.duration(r.next())} }

// maxOthers bounds how many sessions a line opens: a run keeps all its events in memory.
const maxOthers = 10_000

func parseConnect(r *reader) Command {
	r.needOne()
	var c Connect
	if n, others := strings.CutPrefix(r.peek(), "others="); others {
		r.next()
		c.Others = int(r.from1(n))
		if c.Others > maxOthers {
			r.fail(fmt.Sprintf("others=1 to others=%d", maxOthers), "%d are too many", c.Others)
		}
		return c
	}
	for len(r.left) > 0 {
		c.Clients = append(c.Clients, r.client(r.next()))
	}
	return c
}

func parseUntil(r *reader) Command { return Until{Cond: r.cond(), Within: r.within()} }

// within reads an optional "within 2s".
func (r *reader) within() time.Duration {
	if r.peek() != "within" {
		return 0
	}
	r.next()
	return r.positive(r.next())
}

func parseExpect(r *reader) Command {
	cond := r.cond()
	_, patient := cond.(CondConverged)
	switch {
	case patient && r.scheduled && r.peek() == "within":
		r.fail("expect converged", "a scheduled expect cannot wait")
	case patient:
		cond = CondConverged{Within: r.within()}
	case r.peek() == "within":
		r.fail("until CONDITION within 2s, or expect converged within 2s", "expect looks only once")
	}
	return Expect{Cond: cond}
}

func parseAt(r *reader) Command {
	at := r.duration(r.next())
	r.scheduled = true
	return At{Time: at, Command: r.command()}
}

func parseTimeout(r *reader) Command { return Timeout{Node: r.node(r.next())} }

func parseBeat(r *reader) Command { return Beat{Node: r.node(r.next())} }

func parseRead(r *reader) Command {
	c := ReadTable{Node: r.node(r.next())}
	r.options(options{"local": func(string) { c.Local = true }})
	return c
}

func parseTransfer(r *reader) Command {
	return Transfer{From: r.node(r.next()), To: r.node(r.next())}
}

func parseSnapshot(r *reader) Command { return Compact{Node: r.node(r.next())} }

func parsePropose(r *reader) Command {
	c := Propose{Node: r.node(r.next())}
	var text []string
	for len(r.left) > 0 && r.peek() != "#" {
		text = append(text, r.next())
	}
	if len(text) == 0 {
		r.fail(r.usage, "the text is missing")
	}
	c.Text = strings.Join(text, " ")
	return c
}

func parseDeliver(r *reader) Command {
	if r.peek() == "all" {
		r.next()
		return Deliver{Verb: "deliver", All: true}
	}
	return r.oneMessage("deliver")
}

func parseDrop(r *reader) Command { return r.oneMessage("drop") }

func parseDuplicate(r *reader) Command { return r.oneMessage("duplicate") }

// oneMessage reads which message in flight the verb is about.
func (r *reader) oneMessage(verb string) Deliver {
	c := Deliver{Verb: verb}
	for len(r.left) > 0 {
		switch isNth := strings.HasPrefix(r.peek(), "#"); {
		case isNth && c.Nth > 0:
			r.end()
		case isNth:
			c.Nth = r.nth(r.next())
		default:
			r.selection(&c.Messages)
		}
	}
	return c
}

// selection reads a link or a kind of message, whichever comes next.
func (r *reader) selection(m *Messages) {
	word := r.next()
	switch isLink := strings.Contains(word, "->"); {
	case isLink && m.From != "":
		r.fail(r.usage, "a second link stands in the line")
	case isLink:
		m.From, m.To = r.link(word)
	case m.Kind != "":
		r.fail(r.usage, "%q is too much", word)
	default:
		m.Kind = r.kind(word)
	}
}

func parseHold(r *reader) Command { return r.hold(false) }

func parseRelease(r *reader) Command { return r.hold(true) }

func (r *reader) hold(again bool) Hold {
	c := Hold{Again: again}
	c.From, c.To = r.link(r.next())
	if len(r.left) > 0 {
		c.Kind = r.kind(r.next())
	}
	return c
}

// clientCommand reads what a client does, from behind its name.
func (r *reader) clientCommand(name string) Command {
	client := r.client(name)
	r.usage = "A: acquire, release, extend, write, read, disconnect, retry, pause, suspend or resume"
	switch verb := r.next(); verb {
	case "acquire":
		r.usage = "A: acquire KEY lease=10s [try] [via=S2]"
		return r.acquire(client)
	case "release":
		r.usage = "A: release KEY [token=N] [via=S2]"
		return r.releaseLock(client)
	case "write":
		r.usage = "A: write KEY [token=N] [takes=300ms]"
		return r.write(client)
	case "read":
		r.usage = "A: read KEY"
		return Read{Client: client, Key: r.key(r.next())}
	case "disconnect", "retry", "pause", "suspend", "resume":
		r.usage = "A: " + verb
		return ClientDo{Client: client, Do: verb}
	case "extend":
		r.usage = "A: extend KEY lease=10s [via=S2]"
		return r.extend(client)
	default:
		known := []string{
			"acquire", "release", "extend", "write", "read", "disconnect", "retry", "pause", "suspend", "resume",
		}
		r.unknown("client command", verb, oneOf(known), known)
	}
	return nil
}

func (r *reader) extend(client Actor) Command {
	c := Extend{Client: client, Key: r.key(r.next())}
	leased := false
	r.options(options{
		"lease=": func(v string) { c.Lease, leased = r.lease(v), true },
		"via=":   func(v string) { c.Via = r.node(v) },
	})
	if !leased {
		r.fail(r.usage, "the lease is missing")
	}
	return c
}

func (r *reader) acquire(client Actor) Command {
	c := Acquire{Client: client, Key: r.key(r.next())}
	leased := false
	r.options(options{
		"lease=": func(v string) { c.Lease, leased = r.lease(v), true },
		"try":    func(string) { c.Try = true },
		"via=":   func(v string) { c.Via = r.node(v) },
	})
	if !leased {
		r.fail(r.usage, "the lease is missing")
	}
	return c
}

func (r *reader) releaseLock(client Actor) Command {
	c := ReleaseLock{Client: client, Key: r.key(r.next())}
	r.options(options{
		"token=": func(v string) { c.Token, c.TokenSet = r.number(v), true },
		"via=":   func(v string) { c.Via = r.node(v) },
	})
	return c
}

func (r *reader) write(client Actor) Command {
	c := Write{Client: client, Key: r.key(r.next())}
	r.options(options{
		"token=": func(v string) { c.Token, c.TokenSet = r.number(v), true },
		"takes=": func(v string) { c.Takes = r.positive(v) },
	})
	return c
}
