package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ticketing/fsm/trace"
)

// Style says how text is drawn.
type Style struct {
	Color bool // with the 256 colours of a terminal
	ASCII bool // with nothing but ASCII
	Width int  // columns at most; 0 is 118
}

const (
	usualWidth = 118
	leastWidth = 60
)

func (o Style) width() int {
	if o.Width == 0 {
		return usualWidth
	}
	return max(o.Width, leastWidth)
}

// Diagram draws the trace: time downwards, a column for each node, a lane for each key, and a line
// for each thing that tells the story. Heartbeats are counted, not drawn. The lines have no line
// ends.
func Diagram(t *trace.Trace, o Style) []string {
	s := tell(t)
	d := s.layout(o)
	lines := d.title(s.title())
	lines = append(lines, d.header(t, s.legend()))
	return append(lines, s.draw(d, 0)...)
}

// layout is where everything stands.
type layout struct {
	Style
	center []int // of the nodes' columns
	keys   []string
	lane   []int // where the keys' lanes begin
	words  int   // where the words begin
	time   int   // the width of the first column
	events bool  // the first column counts events: no time passes
}

// Widths in columns.
const (
	leastTime = 7
	laneWidth = 8 // a bar, a name and a token
	mostLanes = 3
)

func (s *teller) layout(o Style) *layout {
	d := &layout{Style: o, events: s.instant()}
	n := len(s.Header.Nodes)
	wide := 9
	switch {
	case n > 5:
		wide = 6
	case n > 3:
		wide = 8
	}
	d.time = leastTime
	if k := len(s.Events); k > 0 && !d.events {
		d.time = max(d.time, len(millis(s.Events[k-1].At))+1)
	}
	for i := range n {
		d.center = append(d.center, d.time+wide/2+i*wide)
	}
	at := d.time + 1 + n*wide
	d.keys = s.keys[:min(len(s.keys), mostLanes)]
	for range d.keys {
		d.lane = append(d.lane, at)
		at += s.laneWidth()
	}
	d.words = at
	return d
}

// laneWidth fits the longest name of a tenure, within reason.
func (s *teller) laneWidth() int {
	wide := laneWidth
	for token, owner := range s.owners {
		wide = max(wide, len([]rune(tenureName(owner, token)))+3)
	}
	return min(wide, 2*laneWidth)
}

// instant reports whether the whole run takes no time, as one that is stepped by hand does.
func (s *teller) instant() bool {
	n := len(s.Events)
	return n > 0 && s.Events[n-1].At < trace.Millisecond
}

// title says what was run and, if the trace has one, what it found.
func (s *teller) title() string {
	words := []string{runWords(s.Header)}
	if finding := s.finding(); finding != "" {
		words = append(words, finding)
	}
	return strings.Join(words, " · ")
}

// runWords says which run it was.
func runWords(h trace.Header) string {
	if h.Real {
		start := time.UnixMicro(int64(h.Zero)).UTC().Format("2006-01-02 15:04:05.000 MST")
		return listed(h.Nodes) + " · cluster " + strconv.FormatUint(h.Cluster, 16) + " · from " + start
	}
	return fmt.Sprintf("%s · seed %d · %s", h.Scenario, h.Seed, rulesWords(h))
}

func rulesWords(h trace.Header) string {
	if len(h.Without) == 0 {
		return "all rules on"
	}
	return "WITHOUT " + strings.Join(h.Without, ", ")
}

// finding is the sentence about ends of leases that the trace proves: the worst one, and the first
// of its kind.
func (s *teller) finding() string {
	switch {
	case len(s.gone) > 0:
		return s.gone[0]
	case len(s.late) > 0:
		return s.late[0]
	}
	for i := range s.Events {
		if s.Events[i].Kind == trace.KindViolation {
			return s.Events[i].Rule + " is broken"
		}
	}
	return ""
}

func (d *layout) title(text string) []string {
	var lines []string
	for _, line := range wrap(d.Clean(text), d.width()) {
		c := newCanvas(d.Style)
		c.text(0, line, paintBold)
		lines = append(lines, c.String())
	}
	return lines
}

// header names the columns, with the rates of clocks that are not true, and says what the signs
// mean.
func (d *layout) header(t *trace.Trace, legend []sign) string {
	c := newCanvas(d.Style)
	axis := "ms"
	if d.events {
		axis = "event"
	}
	c.text(d.time-1-len(axis), axis, paintFaint)
	for i, name := range t.Header.Nodes {
		name += rateWords(rate(t, name))
		name = d.Clean(name)
		c.text(d.center[i]-(len([]rune(name))-1)/2, name, paintBold)
	}
	for i, key := range d.keys {
		c.text(d.lane[i], clip(d.Clean(key), d.laneOf(i)-1), paintBold)
	}
	at := d.words
	for _, g := range legend {
		if at+2+len(g.means) > d.width() {
			break
		}
		c.set(at, g.mark, paintBold)
		c.text(at+2, g.means, paintFaint)
		at += len(g.means) + 4
	}
	return c.String()
}

// A sign is a character of the picture and what it means.
type sign struct {
	mark  rune
	means string
}

// legend lists the signs that the rows use.
func (s *teller) legend() []sign {
	var used strings.Builder
	for i := range s.rows {
		r := &s.rows[i]
		used.WriteString(r.mark)
		for _, head := range r.arrows {
			used.WriteRune(head)
		}
		if len(r.reached) > 0 {
			used.WriteRune('▶')
		}
		for _, look := range r.nodes {
			if look.cut {
				used.WriteRune('░')
			}
		}
	}
	var legend []sign
	for _, g := range []sign{
		{'★', "leads"}, {'●', "proposes"}, {'▶', "arrives"}, {'▷', "arrives later"}, {'✕', "lost"},
		{'◆', "commits"}, {'░', "cut off"},
	} {
		if strings.ContainsRune(used.String(), g.mark) {
			legend = append(legend, g)
		}
	}
	return legend
}

func (d *layout) laneOf(i int) int {
	if i+1 < len(d.lane) {
		return d.lane[i+1] - d.lane[i]
	}
	return d.words - d.lane[i]
}

// rateWords writes a clock's rate as ×1.5, and nothing for a true one. Less than a percent is not
// shown.
func rateWords(ppm int64) string {
	hundredths := (ppm + 5_000) / 10_000
	if hundredths == 100 {
		return ""
	}
	words := fmt.Sprintf("×%d.%02d", hundredths/100, hundredths%100)
	return strings.TrimSuffix(strings.TrimRight(words, "0"), ".")
}

// clip cuts text to a width.
func clip(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:width])
	}
	return text
}
