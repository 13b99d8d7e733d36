package sim

import "time"

// This file reads lines about clocks.

const clockUsage = "clock S1 rate=1.5 [offset=250ms], stop, jump=+1h, slew=+1s [pace=0.05%], wander=5% [every=1s], " +
	"strobe=+1s every=10ms for=2s, [coarse=15ms] [late=20ms], or timely"

// ntpPace, in parts per million, is how fast the usual NTP daemons slew at most.
const ntpPace = 500

func parseClock(r *reader) Command {
	c := SetClock{Actor: r.anyone(r.next())}
	r.needOne()
	several := len(r.left) > 1
	r.options(options{
		"rate=": func(v string) { c.RatePPM = r.rate(v) },
		"offset=": func(v string) {
			r.setUp("clock offset=")
			c.Offset = r.positive(v)
		},
		"stop":    func(string) { c.Stop = true },
		"jump=":   func(v string) { c.Jump = r.jump(v) },
		"slew=":   func(v string) { c.Slew = r.jump(v) },
		"pace=":   func(v string) { c.Pace = r.deviation(v) },
		"wander=": func(v string) { c.Wander = r.deviation(v) },
		"strobe=": func(v string) { c.Strobe = r.jump(v) },
		"every=":  func(v string) { c.Every = r.positive(v) },
		"for=":    func(v string) { c.For = r.positive(v) },
		"coarse=": func(v string) { c.Coarse = r.positive(v) },
		"late=":   func(v string) { c.Late = r.positive(v) },
		"timely":  func(string) { c.Timely = true },
	})
	if several && (c.Stop || c.Jump != 0) {
		r.fail("a line for each", "stop and jump= stand alone")
	}
	return r.clockParts(c)
}

// clockParts looks whether what belongs together stands together, and nothing else.
func (r *reader) clockParts(c SetClock) SetClock {
	kinds := 0
	for _, said := range []bool{
		c.RatePPM != 0 || c.Offset != 0, c.Stop, c.Jump != 0, c.Slew != 0, c.Wander != 0, c.Strobe != 0,
		c.Coarse != 0 || c.Late != 0, c.Timely,
	} {
		if said {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		r.fail("a line for each", "the line says several things about the clock")
	case c.Pace != 0 && c.Slew == 0:
		r.fail("slew=+1s pace=0.05%", "pace= is a slew's")
	case c.For != 0 && c.Strobe == 0:
		r.fail("strobe=+1s every=10ms for=2s", "for= is a strobe's")
	case c.Every != 0 && c.Strobe == 0 && c.Wander == 0:
		r.fail("strobe=+1s every=10ms for=2s or wander=5% every=1s", "every= is a strobe's or a wandering clock's")
	case c.Strobe != 0 && (c.Every == 0 || c.For == 0):
		r.fail("strobe=+1s every=10ms for=2s", "a strobe needs every= and for=")
	}
	if c.Slew != 0 && c.Pace == 0 {
		c.Pace = ntpPace
	}
	if c.Wander != 0 && c.Every == 0 {
		c.Every = time.Second
	}
	return c
}

// deviation reads by how much a rate may differ from another, in parts per million.
func (r *reader) deviation(v string) int {
	ppm := r.share(v)
	if r.err == nil && (ppm < 1 || ppm > perMillion/2) {
		r.fail("0.0001% to 50%", "%q is out of range", v)
	}
	return ppm
}
