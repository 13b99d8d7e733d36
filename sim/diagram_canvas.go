package sim

import (
	"strconv"
	"strings"
	"unicode"
)

// A paint is a colour of the 256 of a terminal, 0 for none; bold is added to it.
type paint int

const (
	paintPlain paint = 0
	paintBold  paint = 1000

	paintFaint   paint = 244
	paintEntries paint = 39
	paintSubject paint = 208 + paintBold
	paintWrong   paint = 203 + paintBold
	paintHeld    paint = 78 + paintBold
	paintCut     paint = 240
)

// Leaders' and tenures' colours, by term and by token. Neighbours differ in lightness, too.
var (
	leaderPaints = [...]paint{75, 214, 79, 176}
	tenurePaints = [...]paint{111, 78, 183, 222}
)

func paintOf[T ~uint64](from []paint, n T) paint {
	return from[(uint64(n)+uint64(len(from))-1)%uint64(len(from))]
}

// codes is how a terminal is told.
func (p paint) codes() string {
	var codes []string
	if p >= paintBold {
		codes = append(codes, "1")
	}
	if p%paintBold != 0 {
		codes = append(codes, "38;5;"+strconv.Itoa(int(p%paintBold)))
	}
	return "\x1b[" + strings.Join(codes, ";") + "m"
}

// canvas is one line, a cell for each column.
type canvas struct {
	Style
	cells []cell
}

type cell struct {
	r     rune
	paint paint
}

func newCanvas(o Style) *canvas { return &canvas{Style: o} }

// set puts a character in a column. In ASCII it becomes its like.
func (c *canvas) set(at int, r rune, p paint) {
	if at < 0 || at >= c.width() {
		return
	}
	for len(c.cells) <= at {
		c.cells = append(c.cells, cell{r: ' '})
	}
	if c.ASCII && r > unicode.MaxASCII {
		r = asciiLike(r)
	}
	c.cells[at] = cell{r, p}
}

func (c *canvas) text(at int, text string, p paint) {
	for _, r := range text {
		c.set(at, r, p)
		at++
	}
}

// asciiLike is the ASCII character that stands for one of the picture's.
func asciiLike(r rune) rune {
	const fancy = "│┃┊┆─╌▶◀▷◁✕●◆★⊘░█▓┼·"
	const plain = "|#:.-.><)(xo@*!%H=+."
	i := 0
	for _, f := range fancy {
		if f == r {
			return rune(plain[i])
		}
		i++
	}
	return '?'
}

// String is the line, without blanks at its end.
func (c *canvas) String() string {
	var b strings.Builder
	end := len(c.cells)
	for end > 0 && c.cells[end-1].r == ' ' {
		end--
	}
	now := paintPlain
	for _, cell := range c.cells[:end] {
		if p := cell.paint; c.Color && p != now && cell.r != ' ' {
			if now != paintPlain {
				b.WriteString("\x1b[0m")
			}
			if p != paintPlain {
				b.WriteString(p.codes())
			}
			now = p
		}
		b.WriteRune(cell.r)
	}
	if now != paintPlain {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}
