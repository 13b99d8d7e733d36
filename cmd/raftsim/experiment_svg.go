package main

import (
	"fmt"
	"math"
	"strings"
)

// This file draws with lines and words. The pictures have a background of their own, so that they
// read the same on a light page and on a dark one.

// Colours that can be told apart in grey as well, on white.
const (
	blue, orange, green = "#0a5f8f", "#c4580a", "#3f7d20"
	ink, faint, paper   = "#1f2328", "#d5d9de", "#ffffff"
)

// solid is a line without gaps, where others have dashes.
const solid = "none"

// drawing is an SVG picture that grows.
type drawing struct {
	body          strings.Builder
	width, height int
}

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.body, format+"\n", args...) }

// text sets words; anchor is start, middle or end.
func (d *drawing) text(x, y float64, anchor, color, words string) {
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(words)
	d.add(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`, x, y, anchor, color, escaped)
}

// upright sets words that are read from below, in the middle of y.
func (d *drawing) upright(x, y float64, words string) {
	d.add(`<text transform="translate(%.1f %.1f) rotate(-90)" text-anchor="middle" fill="%s">%s</text>`,
		x, y, ink, words)
}

func (d *drawing) line(x1, y1, x2, y2 float64, color, dashes string) {
	d.add(`<path d="M%.1f %.1fL%.1f %.1f" stroke="%s" stroke-dasharray="%s"/>`,
		x1, y1, x2, y2, color, dashes)
}

func (d *drawing) bar(x, y, w, h float64, color string) {
	d.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, x, y, w, h, color)
}

// done returns the picture, with a title for those who do not see it.
func (d *drawing) done(title string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d"`+
		` font-family="sans-serif" font-size="12" fill="none" stroke-width="1.5" role="img">
<title>%[3]s</title>
<rect width="%[1]d" height="%[2]d" rx="6" fill="%[4]s"/>
<g stroke="none" font-size="15" font-weight="bold"><text x="16" y="26" fill="%[5]s">%[3]s</text></g>
%[6]s</svg>
`, d.width, d.height, title, paper, ink, d.body.String())
}

// axes is a place in a drawing where figures are drawn, from 0 up to right and top.
type axes struct {
	d                   *drawing
	x, y, width, height float64 // of the figures' area; y is its upper edge
	right, top          float64
}

func (a *axes) px(x float64) float64 { return a.x + x/a.right*a.width }
func (a *axes) py(y float64) float64 { return a.y + a.height - y/a.top*a.height }

// frame draws the axes with their marks and names.
func (a *axes) frame(xName, yName string, xMarks bool) {
	for _, t := range marks(a.top) {
		a.d.line(a.x, a.py(t), a.x+a.width, a.py(t), faint, solid)
		a.d.text(a.x-6, a.py(t)+4, "end", ink, number(t))
	}
	if xMarks {
		for _, t := range marks(a.right) {
			a.d.line(a.px(t), a.y+a.height, a.px(t), a.y+a.height+4, ink, solid)
			a.d.text(a.px(t), a.y+a.height+17, "middle", ink, number(t))
		}
	}
	a.d.line(a.x, a.y, a.x, a.y+a.height, ink, solid)
	a.d.line(a.x, a.y+a.height, a.x+a.width, a.y+a.height, ink, solid)
	a.d.text(a.x+a.width/2, a.y+a.height+34, "middle", ink, xName)
	a.d.upright(a.x-58, a.y+a.height/2, yName)
}

// curve draws a line through points.
func (a *axes) curve(xs, ys []float64, color, dashes string) {
	var path strings.Builder
	for i := range xs {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], a.px(xs[i]), a.py(ys[i]))
	}
	a.d.add(`<path d="%s" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`,
		path.String(), color, dashes)
}

// mark draws a dashed line at x, and says what is there.
func (a *axes) mark(x float64, words string) {
	a.d.line(a.px(x), a.y, a.px(x), a.y+a.height, ink, "2 4")
	a.d.text(a.px(x), a.y-5, "middle", ink, words)
}

// marks are round numbers from 0 up to a most.
func marks(most float64) (all []float64) {
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, part := range []float64{0.1, 0.2, 0.25, 0.5, 1} {
		if most/(step*part) <= 6 {
			step *= part
			break
		}
	}
	for i := 0; float64(i)*step <= most*1.001; i++ {
		all = append(all, float64(i)*step)
	}
	return all
}

// number writes a mark without needless digits, with thin gaps between thousands.
func number(x float64) string {
	if x < 1000 {
		return fmt.Sprintf("%.4g", x)
	}
	n := int64(math.Round(x))
	return fmt.Sprintf("%d %03d", n/1000, n%1000)
}
