package sim

import (
	"strings"
	"testing"

	"ticketing/fsm/trace"
)

// Three writes of S2 are on their way, and what is left of them is what the line says.
func TestACrashKeepsOfUnsyncedWritesWhatTheLineSays(t *testing.T) {
	for line, want := range map[string]struct{ log, counter string }{
		"crash S2":        {"1", "crashes.kept-none"},
		"crash S2 keep=1": {"1,1", "crashes.kept-some"},
		"crash S2 keep=2": {"1,1,1", "crashes.kept-some"},
		"crash S2 keep=3": {"1,1,1,1", "crashes.kept-all"},
		"crash S2 keep=9": {"1,1,1,1", "crashes.kept-all"},
		"crash S2 all":    {"1,1,1,1", "crashes.kept-all"},
		"crash S2 torn":   {"1,1,1", "crashes.kept-some"},
		"crash S2 lost":   {"none", "crashes.kept-none"},
	} {
		w := played(t, `
			manual
			timeout S1
			deliver all
			disk S2 stall
			propose S1 a
			deliver S1->S2 append
			propose S1 b
			deliver S1->S2 append
			propose S1 c
			deliver S1->S2 append
			expect S2 durable.log=1 log=1,1,1,1
			`+line+`
			expect S2 durable.log=`+want.log+`
			expect count `+want.counter+` = 1`)
		kept := w.counters[countCrashesKeptAll] + w.counters[countCrashesKeptNone] + w.counters[countCrashesKeptSome]
		if kept != 1 {
			t.Errorf("%s: %d crashes are counted", line, kept)
		}
	}
	w := played(t, "timeout S1\nuntil converged\nrun 1s\ncrash S2\nrun 1s")
	if n := w.counters[countCrashesKeptNone]; n != 0 {
		t.Errorf("with nothing to lose %d crashes have lost all", n)
	}
}

// Nothing leaves a server whose power fails in the middle of a step, whatever its disk keeps, and the
// failure waits for a write.
func TestThePowerFailsInTheMiddleOfAStep(t *testing.T) {
	for how, log := range map[string]string{"": "1", "torn": "1", "all": "1,1", "keep=1": "1,1"} {
		w := played(t, `
			config election=1s
			timeout S1
			until converged
			run 300ms
			crash S1 writing `+how+`
			run 300ms
			expect leader S1
			propose S1 x
			expect S1 durable.log=`+log+`
			run 300ms
			expect S2 last=1
			expect count crashes.writing = 1
			crash S2 writing
			crash S2
			restart S2
			propose S3 y
			run 5s
			expect S2 role=follower
			expect count crashes = 2`)
		down := false
		for _, e := range w.trace.Events {
			if down && e.Node == "S1" && e.Kind != trace.KindLost && e.Kind != trace.KindSynced {
				t.Errorf("%q: a %s of S1, which is down", how, e.Kind)
			}
			down = down || e.Kind == trace.KindCrash
		}
	}
}

// A disk that reorders reports writes before earlier ones. The server must not count on them, and in
// the end all are there.
func TestADiskMayFinishWritesInAnyOrder(t *testing.T) {
	const lines = `
		config election=2s
		disk * sync=10ms..30ms
		network delay=1ms..1ms
		timeout S1
		until converged
		%s
		at 1001ms propose S1 a
		at 1002ms propose S1 b
		at 1003ms propose S1 c
		at 1004ms propose S1 d
		at 1005ms propose S1 e
		run 2s
		disk * ok
		expect converged within 1s
		expect S2 durable.log=1,1,1,1,1,1`
	for line, want := range map[string]bool{"disk S2 reorder": true, "disk S1 reorder": true, "disk S2 ok": false} {
		early := 0
		w := played(t, strings.ReplaceAll(lines, "%s", line))
		var last uint64
		for _, e := range w.trace.Events {
			if e.Kind == trace.KindSaved && line[:7] == "disk "+e.Node {
				if e.Write.Seq < last {
					early++
				}
				last = e.Write.Seq
			}
		}
		if (early > 0) != want || (w.counters[countReordered] > 0) != want {
			t.Errorf("%s: %d writes came late, %d are counted", line, early, w.counters[countReordered])
		}
	}
}

// A disk is lost only if a majority has all that is on it without it; or else the crash leaves it.
func TestADiskIsSparedIfAMajorityNeedsIt(t *testing.T) {
	for what, tt := range map[string]struct {
		lines        string
		lost, spared int64
	}{
		"all have all": {"crash S1 lost", 1, 0},
		"the others have all, and the first that is lost does not count": {"crash S1 lost\ncrash S2 lost", 1, 1},
		"an entry is on S1 and S2 alone":                                 {"crash S3\npropose S1 x\nuntil S1 commit=2\ncrash S2 lost", 0, 1},
		"nothing is on any disk, and two of three are to stay":           {"crash S1 lost\ncrash S2 lost", 1, 1},
		"an entry is on S1 alone":                                        {"disk S2 stall\ndisk S3 stall\npropose S1 x\nrun 100ms\ncrash S1 lost", 0, 1},
	} {
		begin := "config election=1s\ntimeout S1\nuntil converged\nrun 100ms\n"
		if strings.HasPrefix(what, "nothing") {
			begin = ""
		}
		w := played(t, begin+tt.lines)
		if lost, spared := w.counters[countDisksLost], w.counters[countDisksSpared]; lost != tt.lost || spared != tt.spared {
			t.Errorf("%s: %d disks are lost, %d spared", what, lost, spared)
		}
	}
}

func TestAServerWithoutItsDiskDoesNotComeBack(t *testing.T) {
	const begin = "config election=1s\ntimeout S1\nuntil converged\nrun 100ms\ncrash S1 lost\n"
	s := scenario(t, begin+"restart S1")
	r, err := Run(s, Options{})
	if err != nil || r.Failure == nil || !strings.Contains(r.Failure.Error(), "add another server in its place") {
		t.Errorf("%v, %v", err, r.Failure)
	}
	w := played(t, begin+"crash *\nrestart *\nrun 5s\nexpect converged")
	if w.nodes[0].alive || !w.nodes[1].alive || !w.nodes[2].alive {
		t.Error("all others start, and no more")
	}
}
