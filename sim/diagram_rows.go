package sim

import (
	"slices"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// A row is one line of the picture: what happened, and how everything stands meanwhile.
type row struct {
	event    int64 // the event that it tells
	at       trace.Time
	own      string                       // the acting node's own clock, when it differs
	node     int                          // the acting node's column, -1 for none
	mark     string                       // drawn there: ●, ◆, ★t1, ✕
	arrows   map[int]rune                 // heads of what leaves from there, by column: ▶ quick, ▷ slow, ✕ lost
	reached  map[int][]*trace.EntryRecord // what arrives late, by column,
	from     int                          // and the column that it comes from
	words    string
	tone     tone
	lock     map[string]string // said in a key's lane in place of its bar
	nodes    []nodeLook
	held     map[string]tenureLook
	asking   *trace.ClientRecord // of a row about a request, and who makes it
	askers   []string
	replaced []string  // nodes that had other entries there
	opening  string    // of its words
	letGo    bool      // of a row about a network that lets go of what it held
	asks     raft.Term // of a row in which a candidate asks for votes
	wouldAsk bool      // in which a server asks whether it would win
}

// A tone is why a row is coloured.
type tone int

const (
	toneNone    tone = iota
	toneElects       // about leadership
	toneEntries      // entries travel
	toneSubject      // about the end of a lease: what the picture is about
	toneWrong        // what must not be
)

// nodeLook is how a node's column looks.
type nodeLook struct {
	role   string
	term   raft.Term
	down   bool
	paused bool
	cut    bool
}

// tenureLook is who holds a key.
type tenureLook struct {
	owner string
	token uint64
	fresh bool // no row has named it yet
}

// teller walks through a trace and makes its rows.
type teller struct {
	*plot
	rows    []row
	keys    []string // in the order of their first mention
	column  map[string]int
	drift   map[string]bool // nodes whose clocks are not true
	nodes   []nodeLook
	held    map[string]tenureLook
	owners  map[uint64]string   // who was given a token
	meant   map[position]uint64 // the tenure that a leader meant with an entry
	subject map[position]bool   // entries that a leader proposed because a lease was over
	applied raft.Index
	told    map[int64]bool     // events that an earlier row has told
	stored  map[sentEntry]bool // arrivals that an earlier row has drawn; from is ""
	links   map[[2]string]bool // that are cut
	late    []string           // findings: an Expire that met another tenure, and removed nothing
	gone    []string           // findings: a removal of another tenure than was meant
	over    map[uint64]string  // how a token's tenure ended
}

// position names an entry.
type position struct {
	index raft.Index
	term  raft.Term
}

// tell makes the rows of a trace.
func tell(t *trace.Trace) *teller {
	s := &teller{
		plot: newPlot(t), column: map[string]int{}, drift: map[string]bool{}, held: map[string]tenureLook{},
		owners: map[uint64]string{}, meant: map[position]uint64{}, subject: map[position]bool{},
		told:   map[int64]bool{},
		stored: map[sentEntry]bool{}, links: map[[2]string]bool{}, over: map[uint64]string{},
	}
	for i, name := range t.Header.Nodes {
		s.column[name] = i
		s.nodes = append(s.nodes, nodeLook{role: raft.Follower.String()})
	}
	for i := range t.Events {
		e := &t.Events[i]
		if _, ok := s.column[e.Node]; ok && isAside(e) && !t.Header.Real {
			s.drift[e.Node] = true
		}
		if e.Client != nil && e.Client.Key != "" && !slices.Contains(s.keys, e.Client.Key) {
			s.keys = append(s.keys, e.Client.Key)
		}
	}
	for i := range s.moments {
		s.moment(&s.moments[i])
	}
	return s
}

// moment tells one moment, in the order in which its parts follow from each other.
func (s *teller) moment(m *moment) {
	switch m.Kind {
	case trace.KindStart, trace.KindRestart, trace.KindCrash, trace.KindPause, trace.KindResume,
		trace.KindStop:
		s.process(m)
	case trace.KindCommand:
		s.command(m)
	case trace.KindRequest:
		s.request(m.Event)
	case trace.KindDisconnect:
		s.add(m.Event, m.Node+" leaves before it is answered", toneNone)
	case trace.KindAnswer:
		s.answer(m)
	case trace.KindResource:
		s.resource(m)
	case trace.KindViolation:
		s.violation(m.Event)
	}
	s.real(m)
	var appended, applied []*trace.Event
	for _, e := range m.tail {
		switch e.Kind {
		case trace.KindState:
			s.state(m, e)
		case trace.KindAppend:
			appended = append(appended, e)
		case trace.KindApply:
			applied = append(applied, e)
		case trace.KindStop:
			s.down(e)
		}
	}
	s.applies(m, applied)
	s.readsAndTransfers(m)
	s.snapshots(m)
	s.violations(m)
	if m.Kind != trace.KindStart && m.Kind != trace.KindRestart {
		s.appends(m, appended)
	}
}

// add makes a row about an event, with everything as it stands now.
func (s *teller) add(e *trace.Event, words string, tone tone) *row {
	r := row{event: e.ID, at: e.At, node: -1, from: -1, words: words, tone: tone, nodes: slices.Clone(s.nodes)}
	if column, ok := s.column[e.Node]; ok {
		r.node = column
		if s.drift[e.Node] {
			r.own = millis(trace.Time(e.Local))
		}
	}
	r.held = map[string]tenureLook{}
	for key, tenure := range s.held {
		r.held[key] = tenure
		tenure.fresh = false
		s.held[key] = tenure
	}
	s.rows = append(s.rows, r)
	return &s.rows[len(s.rows)-1]
}

// last is the latest row, nil before the first.
func (s *teller) last() *row {
	if len(s.rows) == 0 {
		return nil
	}
	return &s.rows[len(s.rows)-1]
}

func (s *teller) violations(m *moment) {
	for _, e := range m.tail {
		if e.Kind == trace.KindViolation {
			s.violation(e)
		}
	}
}

// violation is a broken invariant. If the row before shows something wrong at the same time, it
// says so there.
func (s *teller) violation(e *trace.Event) {
	if r := s.last(); r != nil && r.tone == toneWrong && r.at == e.At {
		r.words += "; " + e.Rule + " is broken"
		return
	}
	s.add(e, "✕ "+e.Rule+" is broken: "+Sentence(e.Rule), toneWrong)
}
