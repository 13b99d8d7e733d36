package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ticketing/fsm/trace"
)

// A letter names a message across runs: the nth on a link.
type letter struct {
	link string
	nth  int
}

// travels returns how long each message of a run took, and its copies; nothing for those that were
// lost. Messages at paused receivers or held in the network would count as slow ones.
func travels(run *trace.Trace) map[letter][]trace.Time {
	took := map[letter][]trace.Time{}
	sent := map[int64]letter{}
	count := map[string]int{}
	for _, e := range run.Events {
		if link := linkOf(&e); link != "" {
			count[link]++
			sent[e.ID] = letter{link, count[link]}
		}
		if l, ok := sent[e.Cause]; ok && (e.Kind == trace.KindReceive || e.Kind == trace.KindAnswer || e.Kind == trace.KindResource) {
			took[l] = append(took[l], e.At-run.Events[e.Cause-1].At)
		}
	}
	return took
}

// linkOf says over which link an event sends something, "" if it does not.
func linkOf(e *trace.Event) string {
	switch e.Kind {
	case trace.KindSend:
		return e.Message.From + ">" + e.Message.To
	case trace.KindRequest, trace.KindDisconnect:
		return e.Client.Client + ">" + e.Client.Server + opening(e)
	case trace.KindReply:
		return e.Client.Server + ">" + e.Client.Client + opening(e)
	}
	return ""
}

// opening sets the messages that begin sessions apart.
func opening(e *trace.Event) string {
	if e.Client.Op == "open" && e.Kind != trace.KindDisconnect {
		return " open"
	}
	return ""
}

const busyLines = `
	seed 5
	network delay=1ms..30ms tail=2%:200ms loss=1% duplicate=2%
	disk * sync=1ms..10ms
	timeout S1
	until leader S1
	at 700ms A: acquire door lease=1s
	at 750ms B: acquire door lease=1s
	at 760ms C: acquire gate lease=1s
	at 1200ms A: release door
	at 1500ms C: release gate
	at 2s B: release door
	run 400ms
	until in-flight S1->S2 append
	drop S1->S2 append
	run 10s
`

// What is taken away changes what follows from it, so what is sent may differ; how long the nth
// message on a link takes does not.
func TestTakingOneThingAwayLeavesAllOtherDrawsAsTheyWere(t *testing.T) {
	base := travels(played(t, busyLines).trace)
	for what, lines := range map[string]string{
		"a drop":              strings.Replace(busyLines, "drop S1->S2 append", "", 1),
		"a client":            dropLines(busyLines, " C: "),
		"a client's line":     dropLines(busyLines, "B: release"),
		"how sessions begin":  strings.Replace(busyLines, "at 700ms", "connect A B C\n\tconnect C\n\tat 700ms", 1),
		"no loss on a link":   strings.Replace(busyLines, "seed 5", "seed 5\nlink S1->S3 loss=0%", 1),
		"no copies on a link": strings.Replace(busyLines, "seed 5", "seed 5\nlink S2->S1 duplicate=0%", 1),
		"a crash":             busyLines + "crash S3\nrun 5s\n",
	} {
		t.Run(what, func(t *testing.T) {
			other := travels(played(t, lines).trace)
			compared := 0
			for l, took := range base {
				theirs := other[l]
				if len(theirs) == 0 || what == "no copies on a link" && l.link == "S2>S1" && len(took) > len(theirs) {
					continue
				}
				compared++
				if !slices.Equal(took, theirs) {
					t.Errorf("message %d on %s took %v, now %v", l.nth, l.link, took, theirs)
				}
			}
			if compared < 500 {
				t.Errorf("only %d messages are in both runs", compared)
			}
		})
	}
}

func dropLines(text, having string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, having) }), "\n")
}

// Otherwise the test above would see nothing.
func TestAnotherSeedDrawsOtherDelays(t *testing.T) {
	one := travels(played(t, busyLines).trace)
	two := travels(played(t, strings.Replace(busyLines, "seed 5", "seed 6", 1)).trace)
	same, compared := 0, 0
	for l, took := range one {
		if theirs := two[l]; theirs != nil {
			compared++
			if slices.Equal(took, theirs) {
				same++
			}
		}
	}
	if compared < 500 || same*100 > compared {
		t.Errorf("%d of %d messages took equally long", same, compared)
	}
}

// Copies made by hand, as well: the copy of the nth message on a link.
func TestACopyMadeByHandIsKeyedByItsLinkToo(t *testing.T) {
	run := func(more string) []trace.Time {
		w := played(t, `
			config election=1s prevote=off
			network delay=1ms..30ms
			timeout S1
			`+more+`
			until in-flight S1->S2 vote
			duplicate S1->S2 vote
			run 500ms`)
		return travels(w.trace)[letter{"S1>S2", 1}]
	}
	plain, busy := run(""), run("A: acquire door lease=1s")
	if len(plain) != 2 || cmp.Compare(plain[0], plain[1]) == 0 || !slices.Equal(plain, busy) {
		t.Error(fmt.Sprint("the vote and its copy took ", plain, ", with a client there ", busy))
	}
}
