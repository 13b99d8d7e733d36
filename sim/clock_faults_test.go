package sim

import (
	"slices"
	"testing"
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

func TestASlewedClockGainsSoMuchAndNeverJumps(t *testing.T) {
	for _, pace := range []int{1, 500, 33_333, 500_000} {
		for _, size := range []time.Duration{time.Millisecond, -time.Millisecond, -7 * time.Second, 2 * time.Hour} {
			w := newWorld(1, defaultConfig(), nil)
			k := &w.nodes[0].clock
			w.setClock(SetClock{Actor: "S1", RatePPM: 900_000}, false)
			w.setClock(SetClock{Actor: "S1", Slew: size, Pace: pace}, false)
			last, bends := k.at(0), 0
			for w.next(1 << 62) {
				if k.at(w.now) < last {
					t.Errorf("slew=%s: it goes back", size)
				}
				last = k.at(w.now)
				bends++
			}
			straight := clock{rate: 900_000}
			gained := duration(trace.Time(last - straight.at(w.now)))
			if off := gained - size; off < -2*time.Microsecond || off > 2*time.Microsecond {
				t.Errorf("slew=%s at %d ppm: it gained %s", size, pace, gained)
			}
			if k.rate != 900_000 || bends != 1 {
				t.Errorf("slew=%s: at the end its rate is %d, after %d bends", size, k.rate, bends)
			}
		}
	}
}

func TestANewSlewTakesTheOldOnesPlace(t *testing.T) {
	w := newWorld(1, defaultConfig(), nil)
	w.setClock(SetClock{Actor: "S1", Slew: time.Second, Pace: 100_000}, false) // until 10 s
	w.advance(5 * trace.Second)
	w.setClock(SetClock{Actor: "S1", Slew: time.Second, Pace: 100_000}, false) // until 15 s
	w.advance(20 * trace.Second)
	if ahead := w.nodes[0].clock.at(w.now) - raft.Time(w.now); ahead != raft.Time(1500*trace.Millisecond) {
		t.Errorf("it gained %d µs", ahead)
	}
}

// wandering is the rates of a clock that wanders, one a second.
func wandering(seed uint64, actor Actor, most int) (rates []int64) {
	w := newWorld(seed, defaultConfig(), []Actor{"A"})
	w.setClock(SetClock{Actor: actor, Wander: most, Every: time.Second}, false)
	k := w.actors[w.find(actor)].clockOf()
	for range 2000 {
		w.advance(w.now + trace.Second)
		rates = append(rates, k.rate)
	}
	w.setClock(SetClock{Actor: actor, RatePPM: trueRate / 2}, false)
	w.advance(w.now + 10*trace.Second)
	if k.rate != trueRate/2 {
		rates = nil // it wanders on
	}
	return rates
}

func TestAWanderingClockGoesUpAndDownAndNotTooFar(t *testing.T) {
	const most = 40_000
	for _, actor := range []Actor{"S1", "A"} {
		rates := wandering(1, actor, most)
		if len(rates) == 0 {
			t.Fatalf("%s: a rate that is set does not end it", actor)
		}
		before, up, down := int64(trueRate), 0, 0
		for _, rate := range rates {
			if rate < trueRate-most || rate > trueRate+most || rate-before > most/4 || before-rate > most/4 {
				t.Errorf("%s: %d comes after %d", actor, rate, before)
			}
			if rate > before {
				up++
			}
			if rate < before {
				down++
			}
			before = rate
		}
		if up < 600 || down < 600 || slices.Min(rates) > trueRate-most/2 || slices.Max(rates) < trueRate+most/2 {
			t.Errorf("%s: %d times up, %d down, from %d to %d", actor, up, down, slices.Min(rates), slices.Max(rates))
		}
		if !slices.Equal(rates, wandering(1, actor, most)) {
			t.Errorf("%s: the same seed gives other rates", actor)
		}
		if slices.Equal(rates, wandering(2, actor, most)) {
			t.Errorf("%s: another seed gives the same rates", actor)
		}
	}
	if slices.Equal(wandering(1, "S1", most), wandering(1, "S2", most)) {
		t.Error("two clocks wander alike")
	}
}

func TestAStrobeAndAJumpMoveTheWallClockAlone(t *testing.T) {
	w := newWorld(1, defaultConfig(), nil)
	k := &w.nodes[0].clock
	w.setClock(SetClock{Actor: "S1", Jump: time.Second}, false)
	w.setClock(SetClock{Actor: "S1", Strobe: time.Minute, Every: 10 * time.Millisecond, For: 35 * time.Millisecond}, false)
	for _, tt := range []struct{ at, ahead trace.Time }{
		{0, 61 * trace.Second}, {9_999, 61 * trace.Second}, {10_000, trace.Second}, {19_999, trace.Second},
		{20_000, 61 * trace.Second}, {34_999, trace.Second}, {35_000, trace.Second}, {45_000, trace.Second},
	} {
		if got := k.wallAt(tt.at) - tt.at; got != tt.ahead || k.at(tt.at) != raft.Time(tt.at) {
			t.Errorf("at %s the wall clock is %s ahead, want %s; the other one reads %d", tt.at, got, tt.ahead, k.at(tt.at))
		}
	}
}

func TestASleepingMachinesWallClockGoesOnAndTheOtherStands(t *testing.T) {
	k := newClock()
	k.own = 2 * trueRate
	k.bend(0)
	k.sleep(trace.Second)
	if k.at(5*trace.Second) != raft.Time(2*trace.Second) || k.wallAt(5*trace.Second) != 6*trace.Second {
		t.Errorf("asleep it reads %d, its wall clock %d", k.at(5*trace.Second), k.wallAt(5*trace.Second))
	}
	k.wake(5 * trace.Second)
	k.wake(6 * trace.Second) // it is awake
	if k.at(6*trace.Second) != raft.Time(4*trace.Second) || k.wallAt(6*trace.Second) != 8*trace.Second {
		t.Errorf("awake again it reads %d, its wall clock %d", k.at(6*trace.Second), k.wallAt(6*trace.Second))
	}
}

func TestCoarseTimersFireOnTicksAndLateOnesLater(t *testing.T) {
	coarse := lateTimers{coarse: 15_000}
	for local, want := range map[raft.Time]raft.Time{0: 0, 1: 15_000, 14_999: 15_000, 15_000: 15_000, 15_001: 30_000} {
		if got := coarse.tick(local); got != want {
			t.Errorf("a timer for %d fires at %d, want %d", local, got, want)
		}
	}
	late := lateTimers{late: 10_000}
	over, most := 0, trace.Time(0)
	for range 4000 {
		by := late.lateness(1, 1)
		if by > 10_000 {
			over++
		}
		most = max(most, by)
	}
	if over < 400 || over > 1600 || most <= 80_000 || most > 160_000 {
		t.Errorf("%d of 4000 are more than that late, one by %s", over, most)
	}
}

// A server's timers and a client's are late, and what a server does on time it does not count.
func TestTimersAreLateWhereALineSaysSo(t *testing.T) {
	const lines = `
		config election=1s heartbeat=50ms
		network delay=1ms..1ms
		timeout S1
		until leader S1
		run 2s`
	beats := func(setUp string) (n, late int64) {
		w := played(t, setUp+lines)
		for _, e := range w.trace.Events {
			if e.Kind == trace.KindHeartbeatTimeout && e.Node == "S1" {
				n++
			}
		}
		return n, w.counters[countTimersLate]
	}
	if n, late := beats("nodes 3"); n < 38 || late != 0 {
		t.Errorf("on time: %d heartbeats, %d of them late", n, late)
	}
	if n, late := beats("clock S1 coarse=80ms"); n > 26 || n < 20 || late == 0 {
		t.Errorf("on ticks of 80 ms: %d heartbeats, %d of them late", n, late)
	}
	if n, late := beats("clock S1 late=40ms"); n > 34 || n < 10 || late == 0 {
		t.Errorf("late: %d heartbeats, %d of them late", n, late)
	}
	attempts := func(line string) (n int) {
		w := played(t, line+`
			isolate S1
			cut A->S2
			cut A->S3
			A: acquire door lease=3s
			run 20s`)
		for _, e := range w.trace.Events {
			if e.Kind == trace.KindRequest {
				n++
			}
		}
		return n
	}
	onTime := attempts("clock A timely")
	for _, line := range []string{"clock A coarse=2s", "clock A late=2s"} {
		if late := attempts(line); onTime < 30 || late >= onTime/2 || late < 3 {
			t.Errorf("a client tries %d times, and with %q %d times", onTime, line, late)
		}
	}
}

// What reaches a machine that sleeps is lost; what reaches a process that stands still waits for it.
func TestASuspendedMachineMissesWhatAPausedProcessHears(t *testing.T) {
	for line, want := range map[string]string{"pause S2": "1,1", "suspend S2": "1", "suspend S2 clock=on": "1"} {
		w := played(t, `
			config election=1s
			timeout S1
			until leader S1
			until S2 durable.log=1
			run 100ms
			`+line+`
			run 200ms
			propose S1 x
			run 200ms
			cut S1->S2
			resume S2
			run 100ms
			expect S2 log=`+want)
		asleep := int64(0)
		for _, e := range w.trace.Events {
			if e.Kind == trace.KindLost && e.Text == "asleep" {
				asleep++
			}
		}
		if (asleep > 0) != (want == "1") || (w.counters[countSuspends] > 0) != (want == "1") {
			t.Errorf("%s: %d messages were lost to sleep, suspended %d times", line, asleep, w.counters[countSuspends])
		}
	}
	played(t, `
		suspend S2
		run 1s
		expect S2 ahead=-1s wall=0s
		crash S2
		restart S2
		run 1s
		expect S2 ahead=-1s wall=0s
		suspend S2 clock=on
		run 1s
		resume S2
		expect S2 ahead=-1s wall=0s`)
}
