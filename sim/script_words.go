package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ticketing/raft"
)

// lineWriter puts a line together.
type lineWriter struct{ b strings.Builder }

// newLine starts a line.
func newLine(format string, args ...any) *lineWriter {
	w := &lineWriter{}
	fmt.Fprintf(&w.b, format, args...)
	return w
}

// when adds another word if it is called for.
func (w *lineWriter) when(called bool, format string, args ...any) *lineWriter {
	if called {
		w.b.WriteByte(' ')
		fmt.Fprintf(&w.b, format, args...)
	}
	return w
}

func (w *lineWriter) String() string { return w.b.String() }

// brief writes a duration without the zeros behind it: 1m, not 1m0s.
func brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// signed is brief with a sign, but for no time at all.
func signed(d time.Duration) string {
	if d > 0 {
		return "+" + brief(d)
	}
	return brief(d)
}

func spanText(least, most time.Duration) string {
	if least == most {
		return brief(least)
	}
	return brief(least) + ".." + brief(most)
}

// decimalText writes n units of 10^-places as a decimal, without rounding.
func decimalText(n int64, places int) string {
	digits := fmt.Sprintf("%0*d", places+1, n)
	whole, fraction := digits[:len(digits)-places], digits[len(digits)-places:]
	fraction = strings.TrimRight(fraction, "0")
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

func percentText(ppm int) string { return decimalText(int64(ppm), 4) + "%" }

func onOffText(on *bool) string {
	if on != nil && *on {
		return "on"
	}
	return "off"
}

func indexText(i *raft.Index) string {
	if i == nil {
		return ""
	}
	return text(*i)
}

func shareText(ppm *int) string {
	if ppm == nil {
		return ""
	}
	return percentText(*ppm)
}

// logText writes a log.
func logText(log []raft.Term) string {
	if len(log) == 0 {
		return "none"
	}
	words := make([]string, len(log))
	for i, t := range log {
		words[i] = strconv.FormatUint(uint64(t), 10)
	}
	return strings.Join(words, ",")
}
