package sim

import (
	"fmt"
	"strconv"
	"strings"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// What is longer than this without a row is a gap, and drawn as one.
const gap = 120 * trace.Millisecond

// draw draws the rows of events from an id on.
func (s *teller) draw(d *layout, from int64) []string {
	var lines []string
	var before *row
	for i := range s.rows {
		r := &s.rows[i]
		if r.event < from {
			continue
		}
		if before != nil && r.at-before.at > gap {
			lines = append(lines, s.drawGap(d, before, r))
		}
		lines = append(lines, d.draw(r, before == nil)...)
		before = r
	}
	return lines
}

// drawGap is a line for the time between two rows, and how many messages without news it took.
func (s *teller) drawGap(d *layout, before, after *row) string {
	messages := 0
	for i := before.event; i < after.event-1 && i < int64(len(s.Events)); i++ {
		m := messageOf(&s.Events[i])
		reply := m.Kind == trace.AppendReply
		if s.Events[i].Kind == trace.KindSend && (reply || m.Kind == trace.Append && len(m.Entries) == 0) {
			messages++
		}
	}
	c := newCanvas(d.Style)
	rest := *before
	rest.mark, rest.arrows, rest.reached, rest.lock = "", nil, nil, nil
	d.columns(c, &rest)
	d.lanes(c, &rest, nameNone)
	words := "⋮ " + millis(after.at-before.at) + " ms"
	if messages > 0 {
		words += ", " + count(messages, "heartbeat or reply", "heartbeats and replies")
	}
	c.text(d.words, d.Clean(words), paintFaint)
	return c.String()
}

// draw draws a row, and below it what of its words does not fit.
func (d *layout) draw(r *row, label bool) []string {
	words := r.words
	if r.own != "" {
		words += fmt.Sprintf(" (own clock %s)", r.own)
	}
	var lines []string
	for i, line := range wrap(d.Clean(words), d.width()-d.words) {
		c := newCanvas(d.Style)
		rest, naming := *r, nameFresh
		if label {
			naming = nameAll
		}
		if i > 0 {
			naming = nameNone
			rest.mark, rest.arrows, rest.reached, rest.lock = "", nil, nil, nil
		} else {
			axis := millis(r.at)
			if d.events {
				axis = strconv.FormatInt(r.event, 10)
			}
			c.text(d.time-1-len(axis), axis, paintFaint)
		}
		d.columns(c, &rest)
		d.lanes(c, &rest, naming)
		c.text(d.words, line, r.tone.paint())
		lines = append(lines, c.String())
	}
	return lines
}

func (t tone) paint() paint {
	switch t {
	case toneSubject:
		return paintSubject
	case toneWrong:
		return paintWrong
	}
	return paintPlain
}

// columns draws how the nodes stand, and over it what happens.
func (d *layout) columns(c *canvas, r *row) {
	for i, look := range r.nodes {
		at := d.center[i]
		if look.cut && !look.down {
			for _, side := range []int{-2, -1, 1, 2} {
				c.set(at+side, '░', paintCut)
			}
		}
		line, p := look.line()
		c.set(at, line, p)
	}
	if r.node >= 0 {
		for _, side := range []int{-1, 1} {
			d.arrows(c, r, side)
		}
		d.mark(c, r)
	}
	for i := range d.center {
		if len(r.reached[i]) == 0 {
			continue
		}
		if r.from > i {
			c.set(d.center[i]+1, '◀', r.tone.ink())
		} else {
			c.set(d.center[i]-1, '▶', r.tone.ink())
		}
	}
}

// line is the character of a node's column.
func (look nodeLook) line() (rune, paint) {
	switch {
	case look.down:
		return ' ', paintPlain
	case look.paused:
		return '┆', paintFaint
	case look.role == raft.Leader.String():
		return '┃', paintOf(leaderPaints[:], look.term)
	case look.role == raft.Candidate.String():
		return '┊', paintOf(leaderPaints[:], look.term)
	}
	return '│', paintFaint
}

// ink is the colour of arrows.
func (t tone) ink() paint {
	switch t {
	case toneSubject, toneWrong:
		return t.paint()
	case toneElects:
		return paintFaint
	}
	return paintEntries
}

// Which tenures a line names: those that it grants, all, or none.
const (
	nameFresh = iota
	nameAll
	nameNone
)

// lanes draws who holds what.
func (d *layout) lanes(c *canvas, r *row, naming int) {
	for i, key := range d.keys {
		at := d.lane[i]
		tenure, held := r.held[key]
		switch said := r.lock[key]; {
		case said != "":
			c.text(at, clip(d.said(said), d.laneOf(i)-1), r.tone.paint())
		case !held:
			c.set(at, '·', paintFaint)
		default:
			p := paintOf(tenurePaints[:], tenure.token)
			c.set(at, bar(tenure.token), p)
			if naming == nameAll || naming == nameFresh && tenure.fresh {
				name := d.Clean(tenureName(tenure.owner, tenure.token))
				c.text(at+2, clip(name, d.laneOf(i)-3), p+paintBold)
			}
		}
	}
}

// said is what stands in a lane in place of a bar; its signs are single characters, which the
// canvas knows.
func (d *layout) said(text string) string {
	if d.ASCII {
		return strings.ReplaceAll(text, "≠", "!=")
	}
	return text
}

// bar alternates, so that tenures that follow each other differ without colour.
func bar(token uint64) rune {
	if token%2 == 0 {
		return '▓'
	}
	return '█'
}
