package sim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// played carries out a scenario, given without its title and indented as the test is, and returns
// its world.
func played(t *testing.T, text string) *World {
	t.Helper()
	return playedWith(t, text, Options{Record: true, Deep: true})
}

func playedWith(t *testing.T, text string, o Options) *World {
	t.Helper()
	s := scenario(t, text)
	w, err := prepareRun(s, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.play(s, o.KeepGoing); err != nil {
		t.Fatalf("%v %v", err, w.broken)
	}
	return w
}

func scenario(t *testing.T, text string) *Scenario {
	t.Helper()
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	s, err := Parse("test.txt", "# A test\n"+strings.Join(lines, "\n")+"\n")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inputsOf lists the inputs of a node from the first event of a kind on.
func inputsOf(w *World, node Actor, from trace.EventKind) (kinds []trace.EventKind) {
	for _, e := range w.trace.Events {
		switch e.Kind {
		case trace.KindElectionTimeout, trace.KindHeartbeatTimeout, trace.KindReceive, trace.KindSaved, trace.KindWake, trace.KindPause, trace.KindResume, trace.KindCrash, trace.KindRestart:
			if Actor(e.Node) == node && (e.Kind == from || kinds != nil) {
				kinds = append(kinds, e.Kind)
			}
		}
	}
	return kinds
}

func TestAPausedServerReadsItsClockBeforeWhatHasArrived(t *testing.T) {
	w := played(t, `
		config prevote=off checkquorum=off
		timeout S1
		until leader S1
		run 200ms
		pause S2
		run 325ms
		expect leader S1
		expect S2 role=follower term=1
		resume S2`)
	kinds := inputsOf(w, "S2", trace.KindPause)
	if len(kinds) < 6 || kinds[1] != trace.KindResume || kinds[2] != trace.KindElectionTimeout {
		t.Fatalf("its inputs since the pause: %v", kinds)
	}
	for _, k := range kinds[3:] {
		if k != trace.KindReceive {
			t.Errorf("its inputs since the pause: %v", kinds)
		}
	}
	if s := w.nodes[1].status; s.Term != 2 {
		t.Errorf("it campaigned in term %d, want 2", s.Term)
	}
}

func TestAPausedServersDiskGoesOn(t *testing.T) {
	w := played(t, `
		config election=1s
		disk * sync=30ms..30ms
		network delay=1ms..1ms
		timeout S1
		until leader S1
		run 200ms
		propose S1 one
		run 10ms
		pause S2
		expect S2 durable.log=1
		run 100ms
		expect S2 durable.log=1,1
		expect no in-flight S2->S1 append-reply
		resume S2`)
	kinds := inputsOf(w, "S2", trace.KindPause)
	if len(kinds) < 4 || kinds[2] != trace.KindWake || kinds[3] != trace.KindSaved {
		t.Errorf("its inputs since the pause: %v", kinds)
	}
}

func TestACrashWhilePausedForgetsWhatHadArrived(t *testing.T) {
	w := played(t, `
		config election=1s
		timeout S1
		until leader S1
		run 200ms
		pause S2
		run 200ms
		crash S2
		restart S2`)
	want := []trace.EventKind{trace.KindPause, trace.KindCrash, trace.KindRestart}
	if diff := cmp.Diff(want, inputsOf(w, "S2", trace.KindPause)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnAClockThatHasStoppedNoTimerRunsOut(t *testing.T) {
	played(t, `
		config prevote=off
		timeout S1
		until leader S1
		run 100ms
		clock S2 stop
		isolate S2
		run 10s
		expect S2 term=1 role=follower
		clock S2 rate=1
		until S2 term=2 within 300ms`)
}

func TestOnAClockThatIsFastTimersRunOutSooner(t *testing.T) {
	campaigns := func(rate string) int64 {
		w := played(t, `
			config prevote=off
			clock S2 rate=`+rate+`
			isolate S2
			clock S1 stop
			clock S3 stop
			run 60s`)
		return w.counters[countElections]
	}
	one, three := campaigns("1"), campaigns("3")
	if one < 200 || one > 400 || three < 3*one-50 || three > 3*one+50 {
		t.Errorf("%d campaigns in a minute, and %d on a clock three times as fast", one, three)
	}
}

func TestARestartedServerHasWhatItsDiskHasAndDrawsOtherTimeouts(t *testing.T) {
	w := played(t, `
		config election=1s
		timeout S1
		until leader S1
		propose S1 one
		run 500ms
		expect S2 commit=2 applied=2
		crash S2
		expect leader S1
		restart S2
		expect S2 role=follower term=1 vote=S1 log=1,1 commit=0 applied=0 leader=none
		until S2 applied=2`)
	n := w.nodes[1]
	drawn := map[raft.Time]bool{}
	for life := 3; life < 8; life++ {
		w.crash(n, false)
		if err := w.boot(n, trace.KindRestart); err != nil {
			t.Fatal(err)
		}
		drawn[n.replica.Deadline()-n.clock.at(w.now)] = true
	}
	if len(drawn) < 5 {
		t.Errorf("in five lives it drew the first timeouts %v", drawn)
	}
}

func TestTimersAndWritesOfAServerThatIsDownDoNothing(t *testing.T) {
	w := played(t, `
		config election=1s
		timeout S1
		until leader S1
		run 100ms
		propose S1 one
		run 15ms
		crash *
		run 10s
		expect no leader`)
	for _, k := range []Actor{"S1", "S2", "S3"} {
		if diff := cmp.Diff([]trace.EventKind{trace.KindCrash}, inputsOf(w, k, trace.KindCrash)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", k, diff)
		}
	}
}

func TestInAManualRunNothingHappensByItself(t *testing.T) {
	w := played(t, `
		manual
		config prevote=off
		run 1h
		timeout S1
		run 1h
		expect S1 role=candidate term=1 durable.term=1
		expect S2 term=0
		deliver S1->S2 vote
		deliver S2->S1
		expect leader S1`)
	if w.counters[countElections] != 1 || w.now != 2*3600*trace.Second {
		t.Errorf("%d elections by %s", w.counters[countElections], w.now)
	}
}
