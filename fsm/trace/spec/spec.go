package spec

import (
	"fmt"
	"strings"

	"ticketing/fsm/trace"
)

// Roles, as a trace names them.
const (
	follower     = "follower"
	preCandidate = "pre-candidate" // a follower to the specification, which has no PreVote
	candidate    = "candidate"
	leader       = "leader"
)

// Report is how often each of the specification's actions was taken, by its name there, and each
// step that the specification does not have, by ours.
type Report struct {
	Actions, Additions map[string]int
}

// Refusal is the first step of a trace that the specification does not allow.
type Refusal struct {
	Event int64 // its id
	Node  string
	Why   string
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("event %d, %s: %s", r.Event, r.Node, r.Why)
}

// server has the specification's variables of one server. An index counts from 1, as there.
type server struct {
	name        string
	role        string // state[i]
	term        uint64 // currentTerm[i]
	vote        string // votedFor[i], "" for Nil
	log         []trace.EntryRecord
	commitIndex int
	granted     map[string]bool // votesGranted[i]
	matchIndex  map[string]int

	said said
	disk disk
	now  seen // what the trace says of the input that is being looked at
}

// seen is what stands in a trace of one input and its consequences.
type seen struct {
	input  *trace.Event
	log    []trace.EntryRecord // after the append and trim events
	state  *trace.StateRecord  // nil if nothing changed
	rule   string
	judged bool
}

// judge goes through one trace.
type judge struct {
	servers   map[string]*server
	start     string                // the members that a cluster begins with
	committed []trace.EntryRecord   // by any leader
	sent      map[int64]trace.Event // sends, by their id
	report    *Report
	events    []trace.Event
	event     *trace.Event // that is being looked at
}

// Check goes through a trace. It returns a *Refusal for the first step that is none of the
// specification's, and an error of another kind if the trace itself is broken, or is one of real
// nodes, whose inputs are taken many at a time.
func Check(t *trace.Trace) (*Report, error) {
	if t.Header.Real {
		return nil, fmt.Errorf("a trace of real nodes takes many inputs in one step; give one of a simulated run")
	}
	j := &judge{
		servers: map[string]*server{}, start: t.Header.Members, sent: map[int64]trace.Event{}, events: t.Events,
		report: &Report{Actions: map[string]int{}, Additions: map[string]int{}},
	}
	if j.start == "" {
		j.start = strings.Join(t.Header.Nodes, ",")
	}
	for _, name := range t.Header.Nodes {
		j.servers[name] = &server{name: name, role: follower}
	}
	for i := range t.Events {
		j.event = &t.Events[i]
		if s := j.servers[j.event.Node]; s != nil {
			if err := j.step(s, j.event); err != nil {
				return j.report, err
			}
		}
	}
	for _, name := range t.Header.Nodes {
		if err := j.settle(j.servers[name]); err != nil {
			return j.report, err
		}
	}
	return j.report, nil
}

func (j *judge) refuse(s *server, format string, args ...any) error {
	return &Refusal{j.event.ID, s.name, fmt.Sprintf(format, args...)}
}

// step takes one event of a server.
func (j *judge) step(s *server, e *trace.Event) error {
	switch e.Kind {
	case trace.KindAppend, trace.KindTrim, trace.KindState:
		return j.follow(s, e)
	case trace.KindViolation, trace.KindProse, trace.KindExpect, trace.KindFailed:
		return nil
	}
	if err := j.settle(s); err != nil {
		return err
	}
	switch e.Kind {
	case trace.KindSend:
		j.sent[e.ID] = *e
		return j.maySend(s, e.Message)
	case trace.KindWrite:
		s.disk.begin(e.Write, s.log)
		return nil
	case trace.KindSynced:
		return j.synced(s, e)
	case trace.KindStart, trace.KindRestart:
		if e.Kind == trace.KindStart && e.Snapshot != nil {
			return fmt.Errorf("event %d: %s starts from a snapshot, and nothing tells what was before", e.ID, s.name)
		}
		s.begin(e)
		return nil
	case trace.KindSaved:
		if err := j.synced(s, e); err != nil {
			return err
		}
	case trace.KindReceive:
		if err := j.wasSent(s, e); err != nil {
			return err
		}
	case trace.KindCrash, trace.KindStop, trace.KindPause, trace.KindResume,
		trace.KindApply, trace.KindTable, trace.KindKeep, trace.KindReply:
		return nil
	}
	s.now = seen{input: e, log: s.log}
	return nil
}

// follow notes what an input has changed.
func (j *judge) follow(s *server, e *trace.Event) error {
	if s.now.input == nil || s.now.input.ID != e.Cause { // of a line of the scenario, not of the server
		if err := j.settle(s); err != nil {
			return err
		}
		if e.Cause < 1 || e.Cause >= e.ID {
			return j.refuse(s, "%s has no cause", e.Kind)
		}
		s.now = seen{input: &j.events[e.Cause-1], log: s.log}
	}
	if s.now.judged {
		return j.refuse(s, "%s does not follow its input at once", e.Kind)
	}
	log := s.now.log
	switch e.Kind {
	case trace.KindState:
		s.now.state, s.now.rule = e.State, e.Rule
	case trace.KindAppend:
		i := int(e.Entry.Index)
		if i < 1 || i > len(log)+1 {
			return j.refuse(s, "entry %d is appended to a log of %d", i, len(log))
		}
		s.now.log = append(log[:i-1:i-1], *e.Entry)
	case trace.KindTrim:
		if i := int(e.Snapshot.Index); i > len(log) || log[i-1].Term != e.Snapshot.Term {
			if i > len(j.committed) || j.committed[i-1].Term != e.Snapshot.Term {
				return j.refuse(s, "a snapshot up to entry %d of term %d, which no leader has committed", i, e.Snapshot.Term)
			}
			s.now.log = j.committed[:i:i]
		}
	}
	return nil
}

// settle judges the input that a server took last, when all that it has changed is known.
func (j *judge) settle(s *server) error {
	n := &s.now
	if n.judged || n.input == nil {
		return nil
	}
	n.judged = true
	if n.input.Kind == trace.KindStart || n.input.Kind == trace.KindRestart {
		return j.restarted(s)
	}
	if err := j.take(s); err != nil {
		return err
	}
	return j.compare(s)
}

// compare holds the specification's variables against the trace's.
func (j *judge) compare(s *server) error {
	input := s.now.input
	if n := len(s.log); n != len(s.now.log) || !sameEntries(s.log, s.now.log) {
		return j.refuse(s, "after %s its log ends at %d and by the specification at %d, or they differ before",
			input.Kind, len(s.now.log), n)
	}
	t := s.now.state
	if t == nil {
		t = &s.said.state
	}
	s.said.state = *t
	want, got := s.variables(), variables(t)
	if want != got {
		return j.refuse(s, "after %s (event %d) it has %s, and by the specification %s", input.Kind, input.ID, got, want)
	}
	return nil
}

func (s *server) variables() string {
	return fmt.Sprintf("%s of term %d, vote %q, commitIndex %d", s.role, s.term, s.vote, s.commitIndex)
}

func variables(t *trace.StateRecord) string {
	return fmt.Sprintf("%s of term %d, vote %q, commitIndex %d", roleOf(t), uint64(t.Term), voteOf(t), uint64(t.Commit))
}

func roleOf(t *trace.StateRecord) string {
	if t.Role == preCandidate {
		return follower
	}
	return t.Role
}

func voteOf(t *trace.StateRecord) string {
	if t.Vote == 0 {
		return ""
	}
	return trace.NodeName(t.Vote)
}

func sameEntry(a, b trace.EntryRecord) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Command == b.Command && a.Members == b.Members
}

func sameEntries(a, b []trace.EntryRecord) bool {
	for i := range min(len(a), len(b)) {
		if !sameEntry(a[i], b[i]) {
			return false
		}
	}
	return true
}
