package sim

import (
	"fmt"
	"strings"

	"ticketing/fsm"
)

// This file writes what an exhaustive search has found as a scenario, which the simulator runs with
// its own clients, network and clocks, and judges by its own invariants.
//
// Nothing happens in such a scenario but what its lines do. Every message waits in the network
// until a line delivers it, no disk takes time, and clocks hardly go but for the moment in which a
// lease runs out: clients never find that they have waited too long.

// recordedRate is slow enough that in no scenario a lease runs out on such a clock.
const recordedRate = "0.01"

// recorder writes the steps of a search down as lines of the scenario language. A nil one does
// nothing.
type recorder struct {
	lines   strings.Builder
	replies []string // what to do with the replies of this step, once they are on their way
	twice   map[[2]int]int
	clients [searchUsers]recordedClient
}

// recordedClient is what decides where a client of the simulator turns, and which of its messages
// is the oldest.
type recordedClient struct {
	server     int
	unanswered int
	copies     [searchNodes]int // of its requests, that are still on their way there
}

// Scenario is the search's way to the broken invariant as a file of the scenario language. It ends
// by expecting that invariant to be broken.
func (v *Verdict) Scenario() (name, text string, err error) {
	if v.Broken == "" {
		return "", "", fmt.Errorf("%s: nothing is broken, so there is nothing to show", v.Defences)
	}
	config := v.config()
	s, err := newLocks(&config, v.within)
	if err != nil {
		return "", "", err
	}
	r := &recorder{twice: map[[2]int]int{}}
	for _, step := range v.path {
		if step.do == actRepeat {
			r.twice[[2]int{int(step.who), int(step.nth)}]++
		}
	}
	r.head(v)
	s.recorder = r
	for _, step := range v.path {
		r.line("# %s.", capital(step.String()))
		next, ok := s.take(step)
		if !ok {
			return "", "", fmt.Errorf("%s: a step of the search cannot be taken again: %s", v.Defences, step)
		}
		s = next
	}
	if s.problem() != v.Broken {
		return "", "", fmt.Errorf("%s: taken again, the steps break %q and not %q",
			v.Defences, s.problem(), v.Broken)
	}
	r.line("expect %s violated", v.Broken)
	return v.Name(), r.lines.String(), nil
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (r *recorder) line(format string, args ...any) {
	fmt.Fprintf(&r.lines, format+"\n", args...)
}

// head sets the stage: S1 leads, both clients have a session, and every server has applied that.
func (r *recorder) head(v *Verdict) {
	r.line("# %s: %s is broken in %d steps", capital(v.Defences.String()), v.Broken, len(v.path))
	r.line("# No way there is shorter: an exhaustive search has found it (raftsim table). Every message waits")
	r.line("# until a line delivers it. Clocks all but stand still, except where a lease runs out.")
	r.line("nodes %d", searchNodes)
	pipeline := ""
	if !v.Pipelining {
		pipeline = " pipeline=off"
	}
	r.line("config election=10h heartbeat=1h prevote=off checkquorum=off window=%d%s", searchWindow, pipeline)
	if rules := v.Without(); len(rules) > 0 {
		r.line("without %s", strings.Join(rules, " "))
	}
	r.line("network delay=0s")
	r.line("disk * sync=0s")
	for n := range searchNodes {
		r.line("clock S%d rate=%s", n+1, recordedRate)
	}
	for u := range searchUsers {
		r.line("clock %s rate=%s", userName(u), recordedRate)
	}
	r.line("timeout S1")
	r.line("until leader S1")
	r.line("connect %s %s", userName(0), userName(1))
	r.line("run 1ms")
	r.line("hold *->*")
	for u := range searchUsers {
		r.line("hold %s->*", userName(u))
		r.line("hold *->%s", userName(u))
	}
}

// settle lets servers do what follows from the lines before it, and hands their answers over.
func (r *recorder) settle() {
	if r == nil {
		return
	}
	r.line("run 1ms")
	for _, reply := range r.replies {
		r.line("%s", reply)
	}
	r.replies = r.replies[:0]
}

func (r *recorder) carry(from, to int, kind messageKind, n int) {
	if r == nil || n == 0 {
		return
	}
	for range n {
		r.line("deliver S%d->S%d %s", from+1, to+1, kind)
	}
	r.settle()
}

func (r *recorder) timeout(n int) {
	if r != nil {
		r.line("timeout S%d", n+1)
		r.settle()
	}
}

func (r *recorder) lapse(n int) {
	if r != nil {
		r.line("clock S%d rate=1", n+1)
		r.line("run %ds", searchLease/1000)
		r.line("clock S%d rate=%s", n+1, recordedRate)
		r.settle()
	}
}

// ask writes a new request down. A client that waits for an answer from a server that was replaced
// gives up on it first.
func (r *recorder) ask(u, n int, open bool, q fsm.Request) {
	if r == nil {
		return
	}
	c, name := &r.clients[u], userName(u)
	if open {
		r.line("%s: disconnect", name)
	}
	line := fmt.Sprintf("%s: %s %s", name, requestVerb(q.Kind), q.Key)
	if q.LeaseMS != 0 {
		line += fmt.Sprintf(" lease=%ds", q.LeaseMS/1000)
	}
	if c.server != n {
		line += fmt.Sprintf(" via=S%d", n+1)
	}
	r.line("%s", line)
	c.server, c.unanswered = n, 1
	for range r.twice[[2]int{u, int(q.Seq) - 1}] {
		r.line("duplicate %s->S%d request%s", name, n+1, nth(c.copies[n]+1))
	}
	r.arrive(u, n)
	c.copies[n] += r.twice[[2]int{u, int(q.Seq) - 1}]
}

func requestVerb(k fsm.Kind) string {
	if k == fsm.Grant {
		return "acquire"
	}
	return k.String()
}

// arrive delivers the newest request of a client, behind the copies of older ones.
func (r *recorder) arrive(u, n int) {
	r.line("deliver %s->S%d request%s", userName(u), n+1, nth(r.clients[u].copies[n]+1))
}

// nth selects the nth oldest message.
func nth(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" #%d", n)
}

// retry writes down that a client sends its last request again. If that goes to another server than
// before, the client has to find out that nobody answers there, and some attempts are lost.
func (r *recorder) retry(u, n int) {
	if r == nil {
		return
	}
	c, name := &r.clients[u], userName(u)
	for {
		if c.unanswered >= 2 {
			c.server = (c.server + 1) % searchNodes
		}
		c.unanswered++
		r.line("%s: retry", name)
		if c.server == n {
			break
		}
		r.line("drop %s->S%d request%s", name, c.server+1, nth(c.copies[c.server]+1))
	}
	r.arrive(u, n)
}

func (r *recorder) repeat(u, n int) {
	if r != nil {
		r.line("deliver %s->S%d request", userName(u), n+1)
		r.clients[u].copies[n]--
	}
}

func (r *recorder) leave(u, n int) {
	if r != nil {
		r.line("%s: disconnect", userName(u))
		r.line("deliver %s->S%d%s", userName(u), n+1, nth(r.clients[u].copies[n]+1))
		r.settle()
	}
}

// reply has a server's reply delivered, if it is the answer that the client waits for.
func (r *recorder) reply(n, u int, answer bool) {
	if r == nil {
		return
	}
	verb := "drop"
	if answer {
		verb = "deliver"
		r.clients[u].unanswered = 0
	}
	r.replies = append(r.replies, fmt.Sprintf("%s S%d->%s request-reply", verb, n+1, userName(u)))
}
