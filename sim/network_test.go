package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm"
	"ticketing/fsm/trace"
)

// postOffice is a world with clients A and B and the resource, between which post sends the
// simplest messages that there are: writes. No server runs.
func postOffice(t *testing.T, spec LinkSpec) *World {
	t.Helper()
	w := newWorld(7, defaultConfig(), []Actor{"A", "B"})
	w.trace = &trace.Trace{}
	for _, row := range w.links {
		for i := range row {
			row[i].set(spec)
		}
	}
	return w
}

func resource(w *World) int32 { return int32(len(w.actors)) - 1 }

func post(w *World, from Actor, token fsm.Token) {
	w.send(&flight{
		from: w.client(from).index, to: resource(w), kind: messageWrite,
		client: &clientMessage{request: fsm.Request{Key: "door"}, token: token},
	})
}

// posted is which writes have arrived, in order.
func posted(w *World) (tokens []uint64) {
	for _, e := range w.trace.Events {
		if e.Kind == trace.KindResource {
			tokens = append(tokens, e.Client.Token)
		}
	}
	return tokens
}

// delaysOf posts n messages and returns what each of those that arrive will take, sorted.
func delaysOf(w *World, n int) (delays []trace.Time) {
	for range n {
		post(w, "A", 1)
	}
	for len(w.queue) > 0 {
		delays = append(delays, w.queue.pop().at-w.now)
	}
	return delays
}

func delaySpec(lo, hi time.Duration) LinkSpec {
	return LinkSpec{DelaySet: true, DelayMin: lo, DelayMax: hi}
}

func TestDelaysFillTheirRangeEvenly(t *testing.T) {
	d := delaysOf(postOffice(t, delaySpec(5*time.Millisecond, 20*time.Millisecond)), 10_000)
	sum := trace.Time(0)
	for _, x := range d {
		sum += x
	}
	if lo, hi, mean := d[0], d[len(d)-1], sum/10_000; lo < 5*trace.Millisecond || lo > 5010 || hi > 20*trace.Millisecond || hi < 19_990 ||
		mean < 12_300 || mean > 12_700 {
		t.Errorf("delays of 5 to 20 ms are from %s to %s, %s on average", lo, hi, mean)
	}
}

func TestTheTailIsAShareOfTheMessages(t *testing.T) {
	spec := delaySpec(5*time.Millisecond, 20*time.Millisecond)
	spec.TailSet, spec.TailPPM, spec.Tail = true, 30_000, 1500*time.Millisecond
	d := delaysOf(postOffice(t, spec), 10_000)
	slow := 0
	for _, x := range d {
		if x > 20*trace.Millisecond {
			slow++
		}
	}
	if last := d[len(d)-1]; slow < 240 || slow > 360 || last > 1500*trace.Millisecond || last < 1400*trace.Millisecond {
		t.Errorf("3%% of 10,000 messages are %d, the slowest took %s of 1.5 s", slow, last)
	}
}

func TestLossesAndDuplicatesAreSharesOfTheMessages(t *testing.T) {
	loss, double := 100_000, 50_000
	w := postOffice(t, LinkSpec{LossPPM: &loss, DuplicatePPM: &double})
	arrivals := len(delaysOf(w, 10_000))
	lost, doubled := int(w.counters[countLost]), int(w.counters[countDuplicated])
	if lost < 900 || lost > 1100 || doubled < 380 || doubled > 520 || arrivals != 10_000-lost+doubled {
		t.Errorf("10%% and 5%% of 10,000 messages: %d lost, %d doubled, %d arrivals", lost, doubled, arrivals)
	}
	if sent := w.counters[countMessages]; sent != 10_000 {
		t.Errorf("%d messages were counted; a copy is none", sent)
	}
}

func TestACopyTakesItsOwnTime(t *testing.T) {
	all := 1_000_000
	w := postOffice(t, LinkSpec{DuplicatePPM: &all})
	post(w, "A", 1)
	if one, two := w.queue.pop(), w.queue.pop(); one.at == two.at {
		t.Errorf("message and copy both arrive at %s", one.at)
	}
}

func TestAMessageIsLostIfItsLinkIsCutWhenItIsSent(t *testing.T) {
	w := postOffice(t, LinkSpec{})
	w.links[w.client("A").index][resource(w)].cut = true
	post(w, "A", 1)
	w.links[w.client("A").index][resource(w)].cut = false
	w.advance(trace.Second)
	if got := posted(w); got != nil || w.counters[countLost] != 1 {
		t.Errorf("%v arrived, %d lost", got, w.counters[countLost])
	}
}

func TestAMessageIsLostIfItsLinkIsCutWhenItWouldArrive(t *testing.T) {
	w := postOffice(t, LinkSpec{})
	post(w, "A", 1)
	w.links[w.client("A").index][resource(w)].cut = true
	w.advance(trace.Second)
	if got := posted(w); got != nil || w.counters[countLost] != 1 {
		t.Errorf("%v arrived, %d lost", got, w.counters[countLost])
	}
}

func TestACutThatIsHealedBeforeArrivalDoesNothing(t *testing.T) {
	w := postOffice(t, LinkSpec{})
	post(w, "A", 1)
	w.links[w.client("A").index][resource(w)].cut = true
	w.advance(trace.Millisecond)
	w.links[w.client("A").index][resource(w)].cut = false
	w.advance(trace.Second)
	if diff := cmp.Diff([]uint64{1}, posted(w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDirectionsAndLinksAreApart(t *testing.T) {
	w := postOffice(t, LinkSpec{})
	a, r := w.client("A").index, resource(w)
	w.links[r][a].cut = true
	w.links[w.client("B").index][r].lossPPM = 1_000_000
	post(w, "A", 1)
	post(w, "B", 2)
	w.advance(trace.Second)
	if diff := cmp.Diff([]uint64{1}, posted(w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMessagesOvertakeOneAnother(t *testing.T) {
	w := postOffice(t, LinkSpec{})
	for i := range fsm.Token(20) {
		post(w, "A", i+1)
	}
	w.advance(trace.Second)
	if got := posted(w); len(got) != 20 || slices.IsSorted(got) {
		t.Errorf("20 messages arrived as %v", got)
	}
}

// Those on their way when the hold began, too.
func TestHeldMessagesComeOutInTheOrderOfSending(t *testing.T) {
	w := postOffice(t, LinkSpec{})
	held := Messages{From: "A"}
	var want []uint64
	for i := range fsm.Token(20) {
		if i == 10 {
			w.setHold(held, true)
		}
		post(w, "A", i+1)
		want = append(want, uint64(i+1))
	}
	w.advance(trace.Second)
	if got := posted(w); got != nil {
		t.Fatalf("%v arrived in spite of the hold", got)
	}
	w.setHold(held, false)
	w.advance(w.now)
	if diff := cmp.Diff(want, posted(w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAHoldIsForItsLinkAndKindAlone(t *testing.T) {
	w := postOffice(t, LinkSpec{})
	w.setHold(Messages{From: "A", Kind: "request"}, true)
	w.setHold(Messages{From: "B"}, true)
	post(w, "A", 1)
	post(w, "B", 2)
	w.advance(trace.Second)
	if diff := cmp.Diff([]uint64{1}, posted(w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASlotThatIsUsedAgainDeliversNothingStale(t *testing.T) {
	w := postOffice(t, LinkSpec{})
	post(w, "A", 1)
	stale := w.queue.pop()
	w.discard(stale.slot, "dropped")
	post(w, "A", 2)
	fresh := w.queue.pop()
	if stale.slot != fresh.slot {
		t.Fatalf("slots %d and %d: the test needs them to be equal", stale.slot, fresh.slot)
	}
	w.arrive(stale.slot, stale.gen)
	if got := posted(w); got != nil {
		t.Errorf("%v arrived too early", got)
	}
	w.arrive(fresh.slot, fresh.gen)
	if diff := cmp.Diff([]uint64{2}, posted(w)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
