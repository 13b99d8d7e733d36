package sim

import (
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file draws what goes wrong with clocks and disks in a random run, a class of faults a function.

// A faultClass is one way to go wrong for a while. What it draws is keyed by who it is about and when,
// so that it does not depend on what else is drawn.
type faultClass struct {
	name string
	draw func(f *fault)
}

// fault is one of a class, on its way into a plan: it begins and ends at these times, and in between
// nothing else may stop the server or its disk.
type fault struct {
	p        *planner
	who      Actor
	from, to trace.Time
}

// pick draws 0 … n-1 for the ith decision about the fault.
func (f *fault) pick(i int, n int64) int64 {
	ordinal := uint64(f.from)<<4 | uint64(i) // all in 64 bits, so that every machine draws the same
	return below(draw(f.p.seed, streamPlan, uint64(topicFault), nameKey(string(f.who)), ordinal), n)
}

func (f *fault) during(begin, end Command) {
	f.p.at(f.from, begin)
	f.p.at(f.to, end)
}

// clockFaults are those of one actor's clock, a server's or a client's. It goes right again at the end.
func clockFaults() []faultClass {
	return []faultClass{
		{"clock-drift", drawDrift}, {"clock-wander", drawWander}, {"clock-slew", drawSlew},
		{"clock-step", drawStep}, {"clock-strobe", drawStrobe}, {"clock-stop", drawStop},
		{"clock-late", drawLate},
	}
}

func drawDrift(f *fault) {
	rate := choose(f.pick(0, 6), int64(200_000), 500_000, 800_000, 1_250_000, 2_000_000, 3_000_000)
	f.during(SetClock{Actor: f.who, RatePPM: rate}, SetClock{Actor: f.who, RatePPM: trueRate})
}

func drawWander(f *fault) {
	most := choose(f.pick(0, 4), 200, 20_000, 100_000, 400_000)
	every := choose(f.pick(1, 3), 20*time.Millisecond, 100*time.Millisecond, 400*time.Millisecond)
	f.during(SetClock{Actor: f.who, Wander: most, Every: every}, SetClock{Actor: f.who, RatePPM: trueRate})
}

func drawSlew(f *fault) {
	pace := choose(f.pick(0, 3), ntpPace, 50_000, 500_000)
	size := duration(f.to-f.from) * time.Duration(pace) / perMillion
	f.p.at(f.from, SetClock{Actor: f.who, Slew: choose(f.pick(1, 2), size, -size), Pace: pace})
}

func drawStep(f *fault) {
	size := choose(f.pick(0, 4), 130*time.Millisecond, time.Second, 288*time.Second, time.Hour)
	f.p.at(f.from, SetClock{Actor: f.who, Jump: choose(f.pick(1, 2), size, -size)})
}

func drawStrobe(f *fault) {
	f.p.at(f.from, SetClock{
		Actor: f.who, Strobe: choose(f.pick(0, 4), 4*time.Millisecond, time.Second, -time.Second, 262*time.Second),
		Every: choose(f.pick(1, 3), time.Millisecond, 20*time.Millisecond, time.Second), For: duration(f.to - f.from),
	})
}

func drawStop(f *fault) {
	f.during(SetClock{Actor: f.who, Stop: true}, SetClock{Actor: f.who, RatePPM: trueRate})
}

func drawLate(f *fault) {
	late := SetClock{Actor: f.who, Coarse: choose(f.pick(0, 3), 0, time.Millisecond, 15*time.Millisecond)}
	late.Late = choose(f.pick(1, 3), time.Millisecond, 10*time.Millisecond, 60*time.Millisecond)
	f.during(late, SetClock{Actor: f.who, Timely: true})
}

// machineFaults are those that stop a server's process, or let its disk do what it should not. It runs
// when they begin, and again when they end.
func machineFaults() []faultClass {
	return []faultClass{
		{"suspend", drawSuspend}, {"disk-reorder", drawReorder}, {"disk-error", drawError},
		{"crash-writing", drawCrashWriting}, {"crash-keep", drawCrashKeep},
	}
}

func (f *fault) node() raft.ServerID { return f.who.Node() }

func drawSuspend(f *fault) {
	f.during(Suspend{Node: f.node(), ClockOn: f.pick(0, 3) == 0}, Resume{Node: f.node()})
}

func drawReorder(f *fault) {
	f.during(SetDisk{Node: f.who, Do: "reorder"}, SetDisk{Node: f.who, Do: "ok"})
}

// drawError lets the next write fail. A server that writes nothing meanwhile does not notice.
func drawError(f *fault) {
	f.p.at(f.from, SetDisk{Node: f.who, Do: "fail"})
	f.p.at(f.to, Crash{Node: f.who})
	f.p.at(f.to, Restart{Node: f.who})
}

func (f *fault) crash() Crash {
	c := Crash{Node: f.who, How: choose(f.pick(4, 5), "", "torn", "some", "all", "keep")}
	if c.How == "keep" {
		c.How, c.Keep = "", int(f.pick(5, 3))+1
	}
	return c
}

// drawCrashWriting takes the power away in the middle of a step.
func drawCrashWriting(f *fault) {
	cut := f.crash()
	cut.Writing = true
	f.p.at(f.from, cut)
	f.p.at(f.to, Crash{Node: f.who})
	f.p.at(f.to, Restart{Node: f.who})
}

// drawCrashKeep lets writes pile up, in order or not, and then takes the power away.
func drawCrashKeep(f *fault) {
	f.p.at(f.from, SetDisk{Node: f.who, Do: choose(f.pick(0, 2), "stall", "reorder")})
	f.p.at((f.from+f.to)/2, f.crash())
	f.p.at(f.to, Restart{Node: f.who})
}

// clockTrouble reports whether clocks go wrong again and again, as they do in a third of the harsh
// runs.
func (p *planner) clockTrouble() bool { return p.harsh && p.once(topicFault, 0, 0, 3) == 0 }

// clockTroubles draws them, for the servers and for those who use locks.
func (p *planner) clockTroubles() {
	if !p.clockTrouble() {
		return
	}
	who := p.users()
	for id := 1; id <= p.nodes; id++ {
		who = append(who, NodeActor(raft.ServerID(id)))
	}
	classes := clockFaults()
	defer p.from(0)
	for i, actor := range who {
		p.from(0)
		t := p.within(topicFault, i+1, 0, 100*trace.Millisecond, 3*trace.Second)
		for j := 1; t < chaosEnd; j++ {
			p.from(t)
			end := t + p.within(topicFault, i+1, j*4, 50*trace.Millisecond, 1500*trace.Millisecond)
			class := classes[p.pick(topicFault, i+1, j*4+1, int64(len(classes)))]
			class.draw(&fault{p: p, who: actor, from: t, to: min(end, chaosEnd)})
			t = end + p.within(topicFault, i+1, j*4+2, 50*trace.Millisecond, 3*trace.Second)
		}
	}
}

// machineTrouble reports whether disks and machines do worse than crash, pause and stall, as they do in
// a third of the harsh runs.
func (p *planner) machineTrouble() bool { return p.harsh && p.once(topicFault, 0, 1, 3) == 0 }

// trouble draws such a fault in place of another one, in half of all cases, and reports whether it did.
func (p *planner) trouble(id raft.ServerID, t, down trace.Time) bool {
	if !p.machineTrouble() {
		return false
	}
	f := &fault{p: p, who: NodeActor(id), from: t, to: t + down}
	if f.pick(8, 2) == 0 {
		return false
	}
	classes := machineFaults()
	classes[f.pick(9, int64(len(classes)))].draw(f)
	return true
}

// loses returns the server whose disk is lost in a run, and when; 0 for none. One of three is a
// minority. Where servers come and go, who is gone for good could be half of those who are left.
func (p *planner) loses() (raft.ServerID, trace.Time) {
	if !p.machineTrouble() || p.nodes < 3 || p.changesMembers() || p.once(topicFault, 0, 2, 2) == 0 {
		return 0, 0
	}
	id := raft.ServerID(p.once(topicFault, 0, 3, int64(p.nodes))) + 1
	return id, 2*trace.Second + trace.Time(p.once(topicFault, 0, 4, int64(chaosEnd-3*trace.Second)+1))
}
