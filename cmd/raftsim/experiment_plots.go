package main

import (
	"fmt"

	"ticketing/fsm/trace"
	"ticketing/sim"
)

// This file is the pictures of what experiments have found.

func (f armsFinding) plot() string {
	d := &drawing{width: 760, height: 305}
	seeds := f.To - f.From + 1
	overlap, stale := make([]float64, 3), make([]float64, 3)
	for i, a := range f.Arms.Arms {
		overlap[i], stale[i] = float64(a.Overlap)/float64(trace.Second), float64(a.Stale)
	}
	f.bars(d, 80, "overlap of belief, s", overlap)
	f.bars(d, 450, "stale writes taken", stale)
	return d.done(fmt.Sprintf("Three arms over the same %d seeds", seeds))
}

// bars draws one figure of each arm side by side.
func (f armsFinding) bars(d *drawing, x float64, name string, heights []float64) {
	a := axes{d: d, x: x, y: 60, width: 280, height: 210, right: 3, top: 1}
	for _, h := range heights {
		a.top = max(a.top, h*1.12)
	}
	a.frame("", name, false)
	for i, h := range heights {
		middle := a.px(float64(i) + 0.5)
		d.bar(middle-30, a.py(h), 60, a.y+a.height-a.py(h), []string{orange, blue, green}[i])
		d.text(middle, a.py(h)-6, "middle", ink, number(h))
		d.text(middle, a.y+a.height+18, "middle", ink, f.Arms.Arms[i].Name)
	}
}

func (f driftFinding) plot() string {
	d := &drawing{width: 800, height: 800}
	legend(d, 46, [][3]string{
		{"zero delay", orange, solid},
		{"with delays, the worst of the seeds", blue, "7 4"},
		{"with pauses, the worst of the seeds", green, "2 3"},
	})
	for i, r := range f.Rows {
		a := axes{d: d, x: 80 + float64(i%2)*385, y: 100 + float64(i/2)*225, width: 300, height: 140}
		plotCurve(&a, r)
	}
	a := axes{d: d, x: 80, y: 560, width: 685, height: 170, right: 100}
	for _, r := range f.Rows {
		for _, p := range r.Paused {
			a.top = max(a.top, inSeconds(p.Worst)*1.1)
		}
	}
	a.frame("margin, % of the lease; with pauses (clocks as above, a line each)", "overlap, s", true)
	for _, r := range f.Rows {
		var xs, ys []float64
		for _, p := range r.Paused {
			xs, ys = append(xs, inPercent(p.Margin)), append(ys, inSeconds(p.Worst))
		}
		a.curve(xs, ys, green, "2 3")
	}
	return d.done("How long two clients hold one lock of 10 s, by the margin that they keep")
}

// plotCurve draws overlap against margin for one rate error.
func plotCurve(a *axes, r sim.DriftRow) {
	a.top = 1
	var xs, tight, delayed []float64
	for _, p := range r.Curve {
		xs = append(xs, inPercent(p.Margin))
		tight, delayed = append(tight, inSeconds(p.Tight)*1000), append(delayed, inSeconds(p.Delayed)*1000)
		a.top = max(a.top, tight[len(tight)-1]*1.1)
		a.right = max(a.right, inPercent(p.Margin))
	}
	name := fmt.Sprintf("margin, %% of the lease; clocks wrong by %s %%", number(inPercent(r.Error)))
	a.frame(name, "overlap, ms", true)
	a.curve(xs, delayed, blue, "7 4")
	a.curve(xs, tight, orange, solid)
	a.mark(inPercent(r.Law), "2ρ/(1+ρ) = "+number(inPercent(r.Law))+" %")
}

func (f lifetimeFinding) plot() string {
	d := &drawing{width: 760, height: 385}
	a := axes{d: d, x: 80, y: 70, width: 640, height: 260, right: sim.MostElections, top: 2.2}
	legend(d, 46, [][3]string{
		{"restart at full", orange, "7 4"},
		{"own remaining time (ours)", green, solid},
		{"stale checkpoint", blue, "2 3"},
	})
	a.frame("elections within the lease", "lifetime, in leases", true)
	var xs, own, restart, stale []float64
	for _, r := range f.Rows {
		xs = append(xs, float64(r.Elections))
		own, restart = append(own, inLeases(r.Own.Mean)), append(restart, inLeases(r.Restart.Mean))
		stale = append(stale, inLeases(r.Stale.Mean))
	}
	a.curve(xs, restart, orange, "7 4")
	a.curve(xs, own, green, solid)
	a.curve(xs, stale, blue, "2 3")
	return d.done(fmt.Sprintf("How long a lease lasts, the mean of %d seeds", f.To-f.From+1))
}

func inPercent(ppm int64) float64    { return float64(ppm) / 10_000 }
func inLeases(ppm int64) float64     { return float64(ppm) / 1_000_000 }
func inSeconds(t trace.Time) float64 { return float64(t) / float64(trace.Second) }

// legend says what the lines are: words, colour and dashes.
func legend(d *drawing, y float64, entries [][3]string) {
	x := 80.0
	for _, e := range entries {
		d.line(x, y, x+30, y, e[1], e[2])
		d.text(x+38, y+4, "start", ink, e[0])
		x += 60 + 6.6*float64(len(e[0]))
	}
}
