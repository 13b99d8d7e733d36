package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Skew says that two nodes' clocks disagree: what Early received had not left Late yet, had both
// clocks been right. They differ by more than By.
type Skew struct {
	Early, Late string
	By          Time
}

// Merge makes one trace of those of real nodes: in the order of At, but everything behind what it
// follows from. Each event gets a new number, a receipt's Cause becomes its sending, and At counts
// from the first event, whose time is the header's Zero. No At falls: an event that had to wait for
// its cause gets the time of the one before it. What the clocks got wrong is returned.
func Merge(traces []*Trace) (*Trace, []Skew, error) {
	if err := checkMerge(traces); err != nil {
		return nil, nil, err
	}
	if len(traces) == 1 && traces[0].Header.Zero != 0 {
		return traces[0], nil, nil // it comes from a Merge, and may tell of more than nodes
	}
	m := &merger{
		queues: map[string][]batch{}, sent: map[letter]*Event{}, ids: map[letter]int64{},
		skews: map[[2]string]Time{}, out: &Trace{Header: traces[0].Header},
	}
	m.out.Header.Nodes = nil
	for i, t := range traces {
		m.names(t.Header.Nodes)
		m.split(i, t)
	}
	slices.SortFunc(m.out.Header.Nodes, byNumber)
	if err := m.checkCopies(); err != nil {
		return nil, nil, err
	}
	for m.next() {
	}
	return m.out, m.disagreements(), nil
}

func checkMerge(traces []*Trace) error {
	if len(traces) == 0 {
		return errors.New("there is no trace to merge")
	}
	for _, t := range traces {
		switch {
		case !t.Header.Real:
			return errors.New("a simulation's trace is whole by itself: it is not merged")
		case t.Header.Cluster != traces[0].Header.Cluster:
			return errors.New("the traces are of different clusters")
		}
	}
	return nil
}

// byNumber orders S2 before S10.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// letter names a message between two servers. A reply has the number of its request.
type letter struct {
	from, to, kind string
	call           uint64
}

func letterOf(e *Event) (letter, bool) {
	m := e.Message
	if m == nil || m.Call == 0 || e.Kind != KindSend && e.Kind != KindReceive {
		return letter{}, false
	}
	return letter{m.From, m.To, m.Kind, m.Call}, true
}

// batch is what a node did at one time: inputs, and what followed. It stays in one piece.
type batch struct {
	trace  int // where it comes from
	events []Event
}

func (b *batch) at() Time  { return b.events[0].At }
func (b *batch) id() int64 { return b.events[0].ID }

// merger merges.
type merger struct {
	queues map[string][]batch // by node
	sent   map[letter]*Event  // what is sent, anywhere
	ids    map[letter]int64   // of what is sent, in the merged trace, as far as it goes
	skews  map[[2]string]Time
	out    *Trace
}

func (m *merger) names(nodes []string) {
	for _, name := range nodes {
		if !slices.Contains(m.out.Header.Nodes, name) {
			m.out.Header.Nodes = append(m.out.Header.Nodes, name)
		}
	}
}

// split puts a trace's batches into the queues. What has no cause begins one, unless the input
// before it says that there is more.
func (m *merger) split(trace int, t *Trace) {
	for i := range t.Events {
		e := t.Events[i]
		if l, ok := letterOf(&e); ok && e.Kind == KindSend {
			m.sent[l] = &t.Events[i]
		}
		queue := m.queues[e.Node]
		if i > 0 && t.Events[i-1].Node == e.Node && (e.Cause != 0 || t.Events[i-1].More) {
			last := &queue[len(queue)-1]
			last.events = append(last.events, e)
			continue
		}
		m.queues[e.Node] = append(queue, batch{trace, []Event{e}})
	}
	for node := range m.queues { // a node that was started again may have a file for each time
		slices.SortStableFunc(m.queues[node], func(a, b batch) int { return cmp.Compare(a.at(), b.at()) })
	}
}

// checkCopies refuses two traces of the same node at the same time.
func (m *merger) checkCopies() error {
	for _, node := range m.out.Header.Nodes {
		seen := map[int]bool{}
		last := -1
		for _, b := range m.queues[node] {
			if b.trace == last {
				continue
			}
			if seen[b.trace] {
				return fmt.Errorf("%s is in two of the traces at the same time; is one a copy?", node)
			}
			seen[b.trace], last = true, b.trace
		}
	}
	return nil
}

// next moves one batch to the merged trace: of those that have waited for nothing, or for what is
// there, the earliest. It returns false if none is left.
func (m *merger) next() bool {
	best, ready := "", false
	for node, queue := range m.queues {
		if len(queue) == 0 {
			continue
		}
		b, ok := &queue[0], m.ready(&queue[0])
		better := best == ""
		if !better {
			o := &m.queues[best][0]
			earlier := cmp.Or(cmp.Compare(b.at(), o.at()),
				cmp.Compare(b.trace, o.trace), cmp.Compare(b.id(), o.id())) < 0
			better = ok && !ready || ok == ready && earlier
		}
		if better {
			best, ready = node, ok
		}
	}
	if best == "" {
		return false
	}
	b := m.queues[best][0]
	m.queues[best] = m.queues[best][1:]
	m.move(&b)
	return true
}

// ready reports whether all that a batch has received is sent, as far as a trace tells.
func (m *merger) ready(b *batch) bool {
	for i := range b.events {
		l, ok := letterOf(&b.events[i])
		if ok && b.events[i].Kind == KindReceive && m.sent[l] != nil && m.ids[l] == 0 {
			return false
		}
	}
	return true
}

func (m *merger) move(b *batch) {
	h := &m.out.Header
	first := len(m.out.Events) == 0
	if first {
		h.Zero = b.at()
	}
	at := b.at() - h.Zero
	if !first {
		at = max(at, m.out.Events[len(m.out.Events)-1].At)
	}
	before := int64(len(m.out.Events))
	for i, e := range b.events {
		was := e.At
		e.ID, e.At = before+int64(i)+1, at
		if place := e.Cause - b.id(); e.Cause != 0 && place >= 0 && place < int64(i) {
			e.Cause = before + place + 1
		} else {
			e.Cause = 0
		}
		if l, ok := letterOf(&e); ok {
			m.link(l, &e, was)
		}
		m.out.Events = append(m.out.Events, e)
	}
}

// link connects a receipt with its sending.
func (m *merger) link(l letter, e *Event, at Time) {
	if e.Kind == KindSend {
		m.ids[l] = e.ID
		return
	}
	e.Cause = m.ids[l]
	if sent := m.sent[l]; sent != nil && sent.At > at {
		clocks := [2]string{e.Node, sent.Node}
		m.skews[clocks] = max(m.skews[clocks], sent.At-at)
	}
}

func (m *merger) disagreements() []Skew {
	var all []Skew
	for clocks, by := range m.skews {
		all = append(all, Skew{clocks[0], clocks[1], by})
	}
	slices.SortFunc(all, func(a, b Skew) int {
		return cmp.Or(byNumber(a.Early, b.Early), byNumber(a.Late, b.Late))
	})
	return all
}
