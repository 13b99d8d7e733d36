package sim

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"ticketing/fsm"
	"ticketing/fsm/trace"
)

// A chromeEvent is an event of the Trace Event Format. Its times are microseconds, as a trace's are.
type chromeEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	TS    trace.Time     `json:"ts"`
	Dur   *trace.Time    `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	ID    int64          `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"` // of a flow's end: the slice around it
	Scope string         `json:"s,omitempty"`  // of an instant
	Args  map[string]any `json:"args,omitempty"`
}

// The tracks of a server. A client, a resource and the world have steps alone.
const (
	trackRole  = 1
	trackSteps = 2
)

// locksPID is the process whose tracks are the keys; the hosts come behind it.
const locksPID = 1

// stepLasts is how long a step is drawn, which takes no time: long enough to be seen.
const stepLasts trace.Time = 1

// stretch is a slice whose end is not known yet.
type stretch struct {
	name string
	from trace.Time
	args map[string]any
}

// chrome collects the events of the format.
type chrome struct {
	events []chromeEvent
	pids   map[string]int
	keys   map[string]int
	end    trace.Time
	roles  map[string]*stretch
	locks  map[string]*stretch
	seen   map[int64]bool // entries that somebody has applied, by index
}

// writePerfetto writes a track for each server's role and one for its steps, one for each key with who
// held it, and a flow for each message that arrived.
func writePerfetto(t *trace.Trace, to io.Writer) error {
	c := &chrome{
		pids: map[string]int{}, keys: map[string]int{}, roles: map[string]*stretch{}, locks: map[string]*stretch{}, seen: map[int64]bool{},
	}
	if n := len(t.Events); n > 0 {
		c.end = t.Events[n-1].At
	}
	for _, host := range slices.Concat(t.Header.Nodes, t.Header.Clients) {
		c.pid(host)
	}
	steps, _ := stepsOf(t)
	for i := range steps {
		c.step(steps, i)
	}
	for _, node := range t.Header.Nodes {
		c.role(node, c.end, nil)
	}
	for _, key := range sortedKeys(c.locks) {
		c.unlock(key, c.end)
	}
	c.name(t)
	return c.write(t, to)
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// pid is the process that stands for a host.
func (c *chrome) pid(host string) int {
	if _, ok := c.pids[host]; !ok {
		c.pids[host] = locksPID + 1 + len(c.pids)
	}
	return c.pids[host]
}

func (c *chrome) add(e chromeEvent) { c.events = append(c.events, e) }

// step is a slice, and a flow from the one in which what arrives was sent. A flow has the category of
// its slices: Chrome finds them by that.
func (c *chrome) step(steps []step, i int) {
	s := &steps[i]
	e := s.first()
	pid := c.pid(s.host)
	c.add(chromeEvent{Name: string(e.Kind), Cat: "step", Phase: "X", TS: e.At, Dur: new(stepLasts), PID: pid, TID: trackSteps,
		Args: map[string]any{"id": e.ID, "what": s.words(), "clock": int64(e.Local)}})
	if s.from >= 0 && s.host != worldHost {
		from := &steps[s.from]
		flow := chromeEvent{Name: arrowName(e), Cat: "step", Phase: "s", TS: from.first().At, PID: c.pid(from.host), TID: trackSteps, ID: e.ID}
		c.add(flow)
		flow.Phase, flow.Bind, flow.TS, flow.PID = "f", "e", e.At, pid
		c.add(flow)
	}
	for _, e := range s.events {
		c.follow(s.host, e)
	}
}

// arrowName says what kind of message arrives.
func arrowName(e *trace.Event) string {
	switch {
	case e.Message != nil:
		return e.Message.Kind
	case e.Client != nil:
		return e.Client.Op
	}
	return string(e.Kind)
}

// follow keeps roles and locks, and marks what people look for.
func (c *chrome) follow(host string, e *trace.Event) {
	switch e.Kind {
	case trace.KindCrash, trace.KindStop:
		c.role(host, e.At, &stretch{name: "down", from: e.At})
	case trace.KindPause:
		c.add(c.instant(host, e, "t", "paused"))
	case trace.KindViolation:
		c.add(c.instant(host, e, "g", e.Rule+" is broken: "+e.Text))
	case trace.KindCommand:
		c.add(c.instant(host, e, "g", e.Text))
	case trace.KindApply:
		c.lock(e)
	}
	if s := e.State; s != nil {
		name := fmt.Sprintf("%s, term %d", s.Role, s.Term)
		if is := c.roles[host]; is == nil || is.name != name {
			c.role(host, e.At, &stretch{name: name, from: e.At, args: map[string]any{"last": s.Last, "commit": s.Commit, "vote": s.Vote}})
		}
	}
}

func (c *chrome) instant(host string, e *trace.Event, scope, name string) chromeEvent {
	return chromeEvent{Name: name, Cat: string(e.Kind), Phase: "i", TS: e.At, PID: c.pid(host), TID: trackSteps, Scope: scope}
}

// role ends what a server was, and begins what it is.
func (c *chrome) role(host string, at trace.Time, next *stretch) {
	if was := c.roles[host]; was != nil {
		c.add(was.slice(at, c.pid(host), trackRole, "role"))
	}
	c.roles[host] = next
}

// slice is a stretch that has come to its end.
func (s *stretch) slice(at trace.Time, pid, tid int, cat string) chromeEvent {
	return chromeEvent{Name: s.name, Cat: cat, Phase: "X", TS: s.from, Dur: new(max(at-s.from, 0)), PID: pid, TID: tid, Args: s.args}
}

// lock keeps who holds a key: from when the first server has applied the Grant until the first has
// applied what ended it. An entry's result is what the table said of it.
func (c *chrome) lock(e *trace.Event) {
	index := int64(e.Entry.Index)
	command, err := fsm.Decode([]byte(e.Entry.Command))
	if err != nil || c.seen[index] {
		return
	}
	c.seen[index] = true
	switch token, granted := strings.CutPrefix(e.Entry.Result, "Granted{"); {
	case granted && !strings.HasSuffix(token, " again"):
		c.unlock(command.Key, e.At)
		c.locks[command.Key] = &stretch{name: command.Owner + " #" + strings.TrimSuffix(token, "}"), from: e.At,
			args: map[string]any{"lease_ms": command.LeaseMS, "index": index}}
	case e.Entry.Result == fsm.Result{Kind: fsm.Released}.String() || e.Entry.Result == fsm.Result{Kind: fsm.Expired, Existed: true}.String():
		c.unlock(command.Key, e.At)
	}
}

// unlock ends who held a key, if anybody did.
func (c *chrome) unlock(key string, at trace.Time) {
	if _, known := c.keys[key]; !known {
		c.keys[key] = 1 + len(c.keys)
	}
	if was := c.locks[key]; was != nil {
		c.add(was.slice(at, locksPID, c.keys[key], "lock"))
		delete(c.locks, key)
	}
}

// name gives the tracks their names.
func (c *chrome) name(t *trace.Trace) {
	meta := func(kind string, pid, tid int, name string) {
		c.add(chromeEvent{Name: kind, Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
	}
	meta("process_name", locksPID, 0, "locks")
	for _, key := range sortedKeys(c.keys) {
		meta("thread_name", locksPID, c.keys[key], key)
	}
	for _, host := range sortedKeys(c.pids) {
		pid := c.pids[host]
		meta("process_name", pid, 0, host)
		c.add(chromeEvent{Name: "process_sort_index", Phase: "M", PID: pid, Args: map[string]any{"sort_index": pid}})
		if slices.Contains(t.Header.Nodes, host) {
			meta("thread_name", pid, trackRole, "role")
		}
		meta("thread_name", pid, trackSteps, "steps")
	}
}

// write writes an event a line, in the order of time.
func (c *chrome) write(t *trace.Trace, to io.Writer) error {
	slices.SortStableFunc(c.events, func(a, b chromeEvent) int { return cmp.Compare(a.TS, b.TS) })
	about, err := json.Marshal(map[string]any{
		"scenario": t.Header.Scenario, "seed": fmt.Sprint(t.Header.Seed), "without": strings.Join(t.Header.Without, ","),
	})
	if err != nil {
		return fmt.Errorf("writing for Perfetto: %w", err)
	}
	out := bufio.NewWriter(to)
	fmt.Fprintf(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":%s,\"traceEvents\":[", about)
	for i := range c.events {
		text, err := json.Marshal(&c.events[i])
		if err != nil {
			return fmt.Errorf("writing for Perfetto: %w", err)
		}
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		fmt.Fprintf(out, "\n%s", text)
	}
	fmt.Fprint(out, "\n]}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing for Perfetto: %w", err)
	}
	return nil
}
