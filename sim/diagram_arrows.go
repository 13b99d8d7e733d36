package sim

// mark draws what the acting node does.
func (d *layout) mark(c *canvas, r *row) {
	at, p := d.center[r.node], r.tone.ink()
	switch r.mark {
	case "":
		return
	case "◆":
		p = r.tone.paint()
	case "✕":
		p = paintWrong
	case "●":
	default: // ★t1
		p = paintOf(leaderPaints[:], r.nodes[r.node].term) + paintBold
	}
	c.text(at, r.mark, p)
}

// arrows draws what leaves to one side: a line through the columns as far as the last receiver,
// with a head at each.
func (d *layout) arrows(c *canvas, r *row, side int) {
	at := d.center[r.node] + side
	if side > 0 {
		at += max(len([]rune(r.mark))-1, 0)
	}
	for i := r.node + side; i >= 0 && i < len(d.center); i += side {
		if d.beyond(r, i, side) {
			return
		}
		head, received := r.arrows[i]
		next := i
		for !received {
			next += side
			head, received = r.arrows[next]
		}
		line, p := '─', r.tone.ink()
		if head == '▷' {
			line = '╌'
		}
		end := d.center[i]
		for ; (end-at)*side > 0; at += side { // a wide mark may have passed it already
			c.set(at, line, p)
		}
		switch {
		case next != i:
			c.set(at, '┼', p)
		case head == '✕':
			c.set(end-side, head, paintWrong)
		default:
			c.set(end-side, pointing(head, side), p)
		}
		at += side
	}
}

// beyond reports whether nobody from column i on receives anything.
func (d *layout) beyond(r *row, i, side int) bool {
	for ; i >= 0 && i < len(d.center); i += side {
		if _, ok := r.arrows[i]; ok {
			return false
		}
	}
	return true
}

// pointing turns an arrow head to the left if need be.
func pointing(head rune, side int) rune {
	if side < 0 {
		switch head {
		case '▶':
			return '◀'
		case '▷':
			return '◁'
		}
	}
	return head
}
