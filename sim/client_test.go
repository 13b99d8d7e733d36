package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm/trace"
)

// said lists what a client sent and made of what came back, a short line each, but for how it came
// to its session.
func said(w *World, client Actor) []string { return lines(w, client, false) }

func lines(w *World, client Actor, opens bool) (lines []string) {
	for _, e := range w.trace.Events {
		if c := e.Client; c == nil || Actor(e.Node) != client || c.Op == "open" && !opens {
			continue
		}
		switch c := e.Client; e.Kind {
		case trace.KindRequest:
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %d.%d %s", c.Op, c.Seq, c.Attempt, c.Server)))
		case trace.KindAnswer:
			lines = append(lines, strings.TrimSpace("← "+e.Text+" "+c.Result))
		case trace.KindDisconnect:
			lines = append(lines, "disconnect "+c.Server)
		}
	}
	return lines
}

// steady is a cluster that S3 leads for good, with a delay of 10 ms everywhere.
const steady = `
	config election=1s
	network delay=10ms..10ms
	disk * sync=1ms..1ms
	timeout S3
	until leader S3
	run 200ms
`

func checkSaid(t *testing.T, text string, client Actor, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, said(played(t, steady+text), client)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", client, diff)
	}
}

func checkLines(t *testing.T, text string, client Actor, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, lines(played(t, steady+text), client, true)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", client, diff)
	}
}

func TestAClientFollowsTheHintToTheLeaderAndOpensASessionFirst(t *testing.T) {
	checkLines(t, `
		A: acquire door lease=2s
		until A granted token=1
		A: release door
		until A released`, "A",
		"open 0.1 S1", "← waiting", "open 0.1 S3", "← waiting Opened{2}",
		"grant 1.1 S3", "← granted Granted{1}", "release 2.1 S3", "← released Released")
}

func TestAClientThatIsToldToConnectOpensANewSessionEachTime(t *testing.T) {
	checkLines(t, `
		connect A
		connect A
		A: acquire door lease=2s
		until A granted token=1`, "A",
		"open 0.1 S1", "← waiting", "open 0.1 S3", "← connected Opened{2}", "open 0.1 S3", "← connected Opened{3}",
		"grant 1.1 S3", "← granted Granted{1}")
}

// A scheduled line cannot wait: what comes next goes on, and the client leaves what it waited for.
func TestAScheduledConnectLeavesWhatTheClientWaitedFor(t *testing.T) {
	checkLines(t, `
		connect A
		hold S3->A
		A: acquire door lease=9s
		at 800ms connect A
		run 900ms
		release S3->A
		until A connected`, "A",
		"open 0.1 S1", "← waiting", "open 0.1 S3", "← connected Opened{2}", "grant 1.1 S3", "disconnect S3", "open 0.1 S3",
		"← ignored Granted{1}", "← connected Opened{4}")
}

func TestAClientThatIsToldWhereToGoFollowsNoHint(t *testing.T) {
	checkSaid(t, `
		connect A
		A: acquire door lease=2s via=S2
		run 1s`, "A", "grant 1.1 S2", "← not-leader")
}

func TestAClientThatHearsNothingTriesTheNextServer(t *testing.T) {
	checkLines(t, `
		cut A->S1
		A: acquire door lease=3s
		run 900ms
		expect A waiting
		run 2s
		expect A granted`, "A",
		"open 0.1 S1", "open 0.2 S1", "open 0.3 S2", "← waiting", "open 0.3 S3", "← waiting Opened{2}",
		"grant 1.1 S3", "← granted Granted{1}")
}

func TestAClientThatWaitsAsksAgainAtAThirdOfItsLeaseAndTheNewestAttemptIsAnswered(t *testing.T) {
	checkSaid(t, `
		connect A B
		A: acquire door lease=2s
		until A granted
		B: acquire door lease=600ms via=S3
		run 450ms
		A: release door
		until B granted token=2`, "B",
		"grant 1.1 S3", "grant 1.2 S3", "← waiting", "grant 1.3 S3", "← waiting", "← granted Granted{2}")
}

// Its deadline runs from the attempt that the leader had when it proposed, here the second.
func TestTheLeaseOfAClientThatWaitedRunsFromItsNewestAttempt(t *testing.T) {
	w := played(t, steady+`
		connect A B
		A: acquire door lease=2s
		until A granted
		B: acquire door lease=600ms via=S3
		run 250ms
		A: release door
		until B granted token=2`)
	var sent []int64
	for _, e := range w.trace.Events {
		if e.Node != "B" || e.Client.Op == "open" {
			continue
		}
		if e.Kind == trace.KindRequest {
			sent = append(sent, int64(e.Local))
		}
		if e.Text == "granted" && (len(sent) != 2 || e.Client.Until != sent[1]+600_000) {
			t.Errorf("attempts at %v, until %d", sent, e.Client.Until)
		}
	}
}

func TestAGrantThatComesTooLateIsGivenBackWithItsToken(t *testing.T) {
	w := played(t, steady+`
		connect A
		hold S3->A
		A: acquire door lease=400ms via=S3
		run 390ms
		expect holder door A token=1
		clock S1 stop
		clock S2 stop
		clock S3 stop
		run 20ms
		release S3->A
		run 1ms
		clock S3 rate=1
		until count release.released = 1 within 100ms
		until free door within 2s`)
	if w.counters[countLateGrants] != 1 {
		t.Errorf("%d late grants", w.counters[countLateGrants])
	}
	// Its second attempt came after the Grant. It is the same request, so there is no other lock to
	// give back.
	var back []uint64
	for _, e := range w.trace.Events {
		if e.Kind == trace.KindRequest && e.Client.Op == "release" {
			back = append(back, e.Client.Token)
		}
	}
	if diff := cmp.Diff([]uint64{1}, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAClientThatLeavesBeforeItsAnswerLeavesNoGhost(t *testing.T) {
	w := played(t, steady+`
		connect A
		hold S3->S1
		hold S3->S2
		A: acquire door lease=10s via=S3
		run 50ms
		A: disconnect
		expect A unknown
		run 50ms
		release S3->*
		until count cleanups = 1 within 1s
		until free door within 1s
		until count release.released = 1`)
	if diff := cmp.Diff([]string{"grant 1.1 S3", "disconnect S3"}, said(w, "A")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The answer is on its way already when the client leaves.
func TestAnAnswerThatNobodyWaitsForIsIgnoredAndAGrantInItGivenBack(t *testing.T) {
	checkSaid(t, `
		connect A
		A: acquire door lease=10s via=S3
		until in-flight S3->A request-reply
		A: disconnect
		until count release.released = 1 within 1s`, "A",
		"grant 1.1 S3", "disconnect S3", "← ignored Granted{1}", "release 2.1 S3")
}

func TestAClientThatReleasesWhatItStillWaitsForGivesUp(t *testing.T) {
	checkSaid(t, `
		connect A B
		A: acquire door lease=10s via=S3
		until A granted
		B: acquire door lease=10s via=S3
		run 100ms
		B: release door
		run 100ms
		A: release door
		run 100ms
		expect free door`, "B", "grant 1.1 S3", "disconnect S3")
}

func TestARetryIsTheSameRequestInANewAttempt(t *testing.T) {
	checkSaid(t, `
		connect A
		A: acquire door lease=10s via=S3
		run 5ms
		A: retry
		until A granted token=1
		run 100ms
		expect count grant.granted = 1`, "A",
		"grant 1.1 S3", "grant 1.2 S3", "← waiting", "← granted Granted{1}")
}

func TestClientsConnectInASteppedRunToo(t *testing.T) {
	w := played(t, `
		manual
		timeout S1
		deliver all
		connect A B
		connect others=2
		expect count sessions = 4
		A: acquire door lease=1s
		deliver all
		expect A granted token=1
		expect B connected`)
	if n := w.nodes[0].replica.Table().Sessions(); n != 4 {
		t.Errorf("%d sessions", n)
	}
}

func TestOthersNeedALeaderToConnect(t *testing.T) {
	s, err := Parse("test.txt", "# T\nconnect others=2\n")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(s, Options{})
	if err != nil || r.Failure == nil || !strings.Contains(r.Failure.Error(), "no leader") {
		t.Errorf("%v, %v", r.Failure, err)
	}
}

// What no line has told anything yet connects when the first client wants something.
func TestClientsComeUpTogether(t *testing.T) {
	w := played(t, steady+`
		connect C
		A: acquire door lease=10s
		until A granted
		expect count sessions = 3
		B: acquire gate lease=10s
		until B granted within 100ms
		expect count sessions = 3`)
	if diff := cmp.Diff([]string{"grant 1.1 S3", "← granted Granted{2}"}, said(w, "B")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// It has no lock to extend yet, and goes on waiting; and one that has none at all sends nothing.
func TestAClientThatWaitsForALockHasNothingToExtend(t *testing.T) {
	checkSaid(t, `
		connect A B
		A: acquire door lease=10s
		until A granted
		B: extend door lease=10s
		expect B nothing
		B: acquire door lease=9s
		run 100ms
		B: extend door lease=10s
		expect B waiting
		A: release door
		until B granted token=2
		B: extend door lease=10s
		until B extended`, "B",
		"←", "grant 1.1 S3", "←", "← granted Granted{2}", "extend 2.1 S3", "← extended Extended")
}

// The new lease is counted from before the first sending, whichever attempt is answered.
func TestAnExtendedLeaseIsCountedFromTheFirstAttempt(t *testing.T) {
	w := played(t, steady+`
		connect A
		A: acquire door lease=3s
		until A granted token=1
		hold A->S3
		A: extend door lease=4s
		run 700ms
		release A->S3
		until A extended`)
	var sent []int64
	for _, e := range w.trace.Events {
		if e.Node != "A" || e.Client.Op != "extend" {
			continue
		}
		if e.Kind == trace.KindRequest {
			sent = append(sent, int64(e.Local))
		}
		if e.Text == "extended" && (len(sent) < 2 || e.Client.Until != sent[0]+4_000_000 || e.Client.Token != 1) {
			t.Errorf("attempts at %v, until %d, token %d", sent, e.Client.Until, e.Client.Token)
		}
	}
	if b := beliefs(w.trace); len(b) != 1 || b[0].to != trace.Time(sent[0]+4_000_000) {
		t.Errorf("it believes %+v", b)
	}
}

func TestAClientWhoseSessionIsOverBeginsANewOne(t *testing.T) {
	checkLines(t, `
		connect A
		connect others=4096
		expect count sessions.evicted = 1
		A: acquire door lease=10s
		until A forgotten
		A: acquire door lease=10s
		until A granted token=1`, "A",
		"open 0.1 S1", "← waiting", "open 0.1 S3", "← connected Opened{2}", "grant 1.1 S3", "← forgotten SessionUnknown",
		"open 0.1 S3", "← waiting Opened{4100}", "grant 2.1 S3", "← granted Granted{1}")
}

func TestAClientWithoutATokenHasNothingToRelease(t *testing.T) {
	checkSaid(t, `
		A: release door
		A: write door
		run 1s`, "A", "←", "←")
}

func TestAPausedClientDoesAndHearsNothingUntilItGoesOn(t *testing.T) {
	w := played(t, steady+`
		connect A
		A: acquire door lease=900ms via=S3
		run 5ms
		A: pause
		run 700ms
		expect A waiting
		expect holder door A token=1
		A: release door
		run 100ms
		expect holder door A token=1
		A: resume
		until A released`)
	want := []string{"grant 1.1 S3", "← granted Granted{1}", "release 2.1 S3", "← released Released"}
	if diff := cmp.Diff(want, said(w, "A")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATryIsAnsweredAtOnceWhenTheKeyIsHeld(t *testing.T) {
	checkSaid(t, `
		connect A B
		A: acquire door lease=10s via=S3
		until A granted
		B: acquire door lease=10s try via=S3
		until B rejected within 25ms`, "B", "grant 1.1 S3", "← rejected")
}

// A client that goes by its own slow clock believes too long; the resource knows better.
//
//spec:test Fence
func TestAResourceRefusesAnOlderTokenAndTakesTheSameAgain(t *testing.T) {
	w := played(t, steady+`
		A: acquire door lease=300ms via=S3
		until A granted token=1
		A: write door
		run 20ms
		A: write door
		run 20ms
		expect count written = 2
		B: acquire door lease=10s via=S3
		until B granted token=2
		A: write door
		run 20ms
		expect count written = 3
		B: write door
		run 20ms
		expect B written
		A: write door
		run 20ms
		expect A refused
		B: write door
		run 20ms
		expect B written`)
	if w.counters[countRefused] != 1 {
		t.Errorf("%d refused", w.counters[countRefused])
	}
}
