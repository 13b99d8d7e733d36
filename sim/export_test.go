package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm/trace"
)

// exported are runs to export: the library and some of the search.
func exported(t *testing.T) (runs []*trace.Trace) {
	t.Helper()
	for _, s := range Library() {
		r, err := Run(s, Options{Record: true})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r.Trace)
	}
	for seed := uint64(1); seed <= wide(4, 60); seed++ {
		r, err := Search{Faults: "harsh"}.Run(seed, Options{Record: true})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r.Trace)
	}
	return runs
}

func exportedAs(t *testing.T, run *trace.Trace, format string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Export(run, format, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// shivizLog reads a log as ShiViz does, and refuses what ShiViz refuses: a host counts its own events
// from 1 without gaps, knows never less than before, and only of events that there are, together with
// all that those knew. It returns how many events learned something from another host.
func shivizLog(text string) (learned int, err error) {
	matches := regexp.MustCompile(ShiVizExpression).FindAllStringSubmatch(text, -1)
	clocks := map[string][]map[string]int{}
	read := 0
	for _, m := range matches {
		read += len(m[0]) + 1
		host := m[2]
		var clock map[string]int
		if err := json.Unmarshal([]byte(m[3]), &clock); err != nil {
			return 0, err
		}
		own := clocks[host]
		if clock[host] != len(own)+1 {
			return 0, fmt.Errorf("%s counts %d after %d events", host, clock[host], len(own))
		}
		before := map[string]int{}
		if len(own) > 0 {
			before = own[len(own)-1]
		}
		news := false
		for other, n := range before {
			if clock[other] < n {
				return 0, fmt.Errorf("%s forgot event %d of %s", host, n, other)
			}
		}
		for other, n := range clock {
			if other == host {
				continue
			}
			if n < 1 || n > len(clocks[other]) {
				return 0, fmt.Errorf("%s knows event %d of %s, which has not happened", host, n, other)
			}
			news = news || n > before[other]
			for third, known := range clocks[other][n-1] {
				if clock[third] < known {
					return 0, fmt.Errorf("%s knows event %d of %s, and not what that knew of %s", host, n, other, third)
				}
			}
		}
		if news {
			learned++
		}
		clocks[host] = append(own, clock)
	}
	if read != len(text) || len(matches) == 0 {
		return 0, fmt.Errorf("%d events are %d of %d bytes", len(matches), read, len(text))
	}
	return learned, nil
}

// pastOf counts, by host, the steps that happened before each step or are it: what its clock says, by
// the definition and not by adding up clocks.
func pastOf(steps []step) (past []map[string]int) {
	before := make([]map[int]bool, len(steps))
	last := map[string]int{}
	for i, s := range steps {
		before[i] = map[int]bool{i: true}
		if own, ok := last[s.host]; ok {
			maps.Copy(before[i], before[own])
		}
		if s.from >= 0 {
			maps.Copy(before[i], before[s.from])
		}
		last[s.host] = i
		counts := map[string]int{}
		for b := range before[i] {
			counts[steps[b].host]++
		}
		past = append(past, counts)
	}
	return past
}

func TestShiVizReadsWhatIsWrittenForIt(t *testing.T) {
	t.Parallel()
	all, compared := 0, 0
	for _, run := range exported(t) {
		text := string(exportedAs(t, run, "shiviz"))
		learned, err := shivizLog(text)
		if err != nil {
			t.Errorf("%s, seed %d: %v", run.Header.Scenario, run.Header.Seed, err)
		}
		all += learned
		steps, _ := stepsOf(run)
		if len(steps) > 400 {
			continue // each past is a set of its own
		}
		compared++
		var got []map[string]int
		for _, m := range regexp.MustCompile(ShiVizExpression).FindAllStringSubmatch(text, -1) {
			var clock map[string]int
			if err := json.Unmarshal([]byte(m[3]), &clock); err != nil {
				t.Fatal(err)
			}
			got = append(got, clock)
		}
		if diff := cmp.Diff(pastOf(steps), got); diff != "" {
			t.Errorf("%s (-past +clocks):\n%s", run.Header.Scenario, diff)
		}
	}
	if all < 1000 || compared < 50 {
		t.Errorf("%d arrows in all, %d runs compared", all, compared)
	}
}

// What follows from an input is in its step, and what arrives follows from where it was sent.
func TestAStepIsAnInputAndWhatFollowsFromIt(t *testing.T) {
	t.Parallel()
	inputs := []trace.EventKind{
		trace.KindReceive, trace.KindSaved, trace.KindWake, trace.KindElectionTimeout, trace.KindHeartbeatTimeout,
		trace.KindCrash, trace.KindRequest, trace.KindAnswer, trace.KindResource,
	}
	arrivals := 0
	for _, run := range exported(t) {
		steps, at := stepsOf(run)
		for i := range steps {
			for _, e := range steps[i].events {
				if hostOf(e) != steps[i].host || at[e.ID] != i || e.Kind == trace.KindLost || e != steps[i].first() && slices.Contains(inputs, e.Kind) {
					t.Fatalf("%s: event %d, %s, is in a step of %s", run.Header.Scenario, e.ID, e.Kind, steps[i].host)
				}
			}
			first := steps[i].first()
			if first.Cause == 0 || at[first.Cause] < 0 {
				continue
			}
			cause := &run.Events[first.Cause-1]
			if hostOf(cause) != hostOf(first) {
				arrivals++
				if steps[i].from < 0 || !slices.Contains(steps[steps[i].from].events, cause) {
					t.Fatalf("%s: event %d does not follow from %d", run.Header.Scenario, first.ID, cause.ID)
				}
			}
		}
	}
	if arrivals < 1000 {
		t.Errorf("%d arrivals", arrivals)
	}
}

func TestALogThatShiVizRefusesIsNoticed(t *testing.T) {
	for _, bad := range []string{
		"", "a\nS1 {\"S1\":2}\n", "a\nS1 {\"S1\":1}\nb\nS1 {\"S1\":1}\n", "a\nS1 {\"S1\":1,\"S2\":1}\n",
		"a\nS1 {\"S1\":1}\nb\nS2 {\"S1\":1,\"S2\":1}\nc\nS3 {\"S2\":1,\"S3\":1}\n",
		"a\nS2 {\"S2\":1}\nb\nS1 {\"S1\":1,\"S2\":1}\nc\nS1 {\"S1\":2}\n", "a\nS1 {\"S1\":1}\nb\n",
	} {
		if _, err := shivizLog(bad); err == nil {
			t.Errorf("taken: %q", bad)
		}
	}
	if n, err := shivizLog("a\nS1 {\"S1\":1}\nb\nS2 {\"S1\":1,\"S2\":1}\n"); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// perfettoEvent is an event as the Trace Event Format has it: what is required is no pointer.
type perfettoEvent struct {
	Name, Cat, Ph, S, Bp string
	Ts                   *int64
	Dur                  *int64
	Pid, Tid             *int
	ID                   int64
	Args                 map[string]any
}

type track struct{ pid, tid int }

func (e *perfettoEvent) track() track { return track{*e.Pid, *e.Tid} }

// perfettoTrace reads a trace and refuses what breaks the format: an event lacks what its phase needs,
// two slices of a track overlap without one being in the other, a flow has no beginning, comes before
// it, or touches no slice, or a track has no name.
func perfettoTrace(text []byte) (events []perfettoEvent, err error) {
	var file struct {
		DisplayTimeUnit string
		OtherData       map[string]string
		TraceEvents     []perfettoEvent
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&file); err != nil {
		return nil, err
	}
	if _, err := in.Token(); err != io.EOF || file.DisplayTimeUnit != "ms" {
		return nil, fmt.Errorf("more behind it, or times in %q", file.DisplayTimeUnit)
	}
	slices_ := map[track][]perfettoEvent{}
	named, flows := map[track]bool{}, map[int64]perfettoEvent{}
	for _, e := range file.TraceEvents {
		if e.Name == "" || e.Ts == nil || e.Pid == nil || e.Tid == nil {
			return nil, fmt.Errorf("it lacks something: %+v", e)
		}
		switch e.Ph {
		case "X":
			if e.Dur == nil || *e.Dur < 0 {
				return nil, fmt.Errorf("a slice lasts %v: %+v", e.Dur, e)
			}
			slices_[e.track()] = append(slices_[e.track()], e)
		case "M":
			if e.Name == "thread_name" && e.Args["name"] != "" {
				named[e.track()] = true
			}
		case "i":
			if !slices.Contains([]string{"g", "p", "t"}, e.S) {
				return nil, fmt.Errorf("an instant of scope %q", e.S)
			}
		case "s":
			flows[e.ID] = e
		case "f":
			from, ok := flows[e.ID]
			if !ok || e.ID == 0 || *from.Ts > *e.Ts || from.Name != e.Name || from.Cat != e.Cat || e.Bp != "e" {
				return nil, fmt.Errorf("a flow from %+v to %+v", from, e)
			}
		default:
			return nil, fmt.Errorf("a phase %q", e.Ph)
		}
	}
	return file.TraceEvents, perfettoTracks(file.TraceEvents, slices_, named)
}

func perfettoTracks(events []perfettoEvent, on map[track][]perfettoEvent, named map[track]bool) error {
	type place struct {
		track
		ts  int64
		cat string
	}
	begins := map[place]bool{}
	for at, all := range on {
		if !named[at] {
			return fmt.Errorf("the track %v has no name", at)
		}
		var open []int64 // ends
		for _, e := range all {
			for len(open) > 0 && open[len(open)-1] <= *e.Ts {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && *e.Ts+*e.Dur > open[len(open)-1] {
				return fmt.Errorf("on %v two slices overlap at %d: %+v", at, *e.Ts, e)
			}
			open = append(open, *e.Ts+*e.Dur)
			begins[place{at, *e.Ts, e.Cat}] = true
		}
	}
	for _, e := range events {
		if (e.Ph == "s" || e.Ph == "f") && !begins[place{e.track(), *e.Ts, e.Cat}] {
			return fmt.Errorf("a flow touches no slice: %+v", e)
		}
	}
	return nil
}

func TestPerfettoReadsWhatIsWrittenForIt(t *testing.T) {
	t.Parallel()
	flows, locks, downs := 0, 0, 0
	for _, run := range exported(t) {
		events, err := perfettoTrace(exportedAs(t, run, "perfetto"))
		if err != nil {
			t.Errorf("%s, seed %d: %v", run.Header.Scenario, run.Header.Seed, err)
			continue
		}
		arrived := map[int64]bool{}
		for i := range run.Events {
			e := &run.Events[i]
			if (e.Message != nil || e.Client != nil) && e.Cause > 0 && run.Events[e.Cause-1].Node != e.Node && e.Kind != trace.KindLost {
				arrived[e.ID] = true
			}
		}
		for i := range events {
			e := &events[i]
			switch {
			case e.Ph == "f":
				delete(arrived, e.ID)
				flows++
			case e.Cat == "lock":
				locks++
			case e.Name == "down":
				downs++
			}
		}
		if len(arrived) > 0 {
			t.Errorf("%s, seed %d: %d messages arrived and have no flow: %v", run.Header.Scenario, run.Header.Seed, len(arrived), arrived)
		}
		checkRoles(t, run, events)
		checkLocks(t, run, events)
	}
	if flows < 1000 || locks < 50 || downs < 10 {
		t.Errorf("%d flows, %d holdings of locks, %d times that a server was down", flows, locks, downs)
	}
}

// checkRoles asks of every state event whether the slice there says so.
func checkRoles(t *testing.T, run *trace.Trace, events []perfettoEvent) {
	t.Helper()
	begun := map[string]bool{}
	last := map[int]int64{} // the end of the role before, by process
	pids := map[string]int{}
	for _, e := range events {
		if e.Name == "process_name" {
			pids[e.Args["name"].(string)] = *e.Pid
		}
	}
	for _, e := range events {
		if e.Cat != "role" {
			continue
		}
		if end, ok := last[*e.Pid]; ok && end != *e.Ts {
			t.Errorf("%s: a role ends at %d and the next begins at %d", run.Header.Scenario, end, *e.Ts)
		}
		last[*e.Pid] = *e.Ts + *e.Dur
		begun[fmt.Sprint(*e.Pid, " ", *e.Ts, " ", e.Name)] = true
	}
	before := map[string]string{}
	for i := range run.Events {
		e := &run.Events[i]
		if e.Kind == trace.KindCrash || e.Kind == trace.KindStop {
			before[e.Node] = "down"
		}
		if e.State == nil {
			continue
		}
		name := fmt.Sprintf("%s, term %d", e.State.Role, e.State.Term)
		if name != before[e.Node] && !begun[fmt.Sprint(pids[e.Node], " ", int64(e.At), " ", name)] {
			t.Errorf("%s, seed %d: %s is %s at %d, and no slice begins", run.Header.Scenario, run.Header.Seed, e.Node, name, e.At)
		}
		before[e.Node] = name
	}
}

// checkLocks compares holdings with the results of entries, each when the first server applies it.
func checkLocks(t *testing.T, run *trace.Trace, events []perfettoEvent) {
	t.Helper()
	var want, got []string
	applied := map[int64]bool{}
	var ends, over []int64
	for i := range run.Events {
		e := &run.Events[i]
		if e.Kind != trace.KindApply || applied[int64(e.Entry.Index)] {
			continue
		}
		applied[int64(e.Entry.Index)] = true
		result := e.Entry.Result
		if token, ok := strings.CutPrefix(result, "Granted{"); ok && !strings.HasSuffix(result, "again") {
			want = append(want, fmt.Sprint(int64(e.At), " #", strings.TrimSuffix(token, "}")))
		}
		if result == "Released" || result == "Expired{true}" {
			ends = append(ends, int64(e.At))
		}
	}
	end := int64(run.Events[len(run.Events)-1].At)
	for _, e := range events {
		if e.Cat == "lock" {
			got = append(got, fmt.Sprint(*e.Ts, " ", e.Name[strings.LastIndex(e.Name, "#"):]))
			over = append(over, *e.Ts+*e.Dur)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	for len(ends) < len(over) {
		ends = append(ends, end) // held to the last
	}
	slices.Sort(ends)
	slices.Sort(over)
	if diff := cmp.Diff(want, got) + cmp.Diff(ends, over); diff != "" {
		t.Errorf("%s, seed %d (-granted and ended +held):\n%s", run.Header.Scenario, run.Header.Seed, diff)
	}
}

func TestATraceThatBreaksTheFormatIsNoticed(t *testing.T) {
	const head, name = `{"displayTimeUnit":"ms","traceEvents":[`, `{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":1,"args":{"name":"x"}},`
	slice := func(ts, dur int) string {
		return fmt.Sprintf(`{"name":"a","cat":"c","ph":"X","ts":%d,"dur":%d,"pid":1,"tid":1}`, ts, dur)
	}
	flow := func(ph string, ts int) string {
		return fmt.Sprintf(`{"name":"m","cat":"c","ph":%q,"ts":%d,"pid":1,"tid":1,"id":4,"bp":"e"}`, ph, ts)
	}
	for _, bad := range []string{
		"", head, head + "]}x", head + slice(1, 1) + "]}", head + name + slice(1, -1) + "]}", head + `{"name":"a","ph":"X","dur":1,"pid":1,"tid":1}]}`,
		head + name + slice(1, 5) + "," + slice(3, 9) + "]}", head + name + slice(1, 1) + "," + flow("f", 1) + "]}",
		head + name + slice(1, 1) + "," + flow("s", 2) + "]}", head + `{"name":"a","ph":"Q","ts":1,"pid":1,"tid":1}]}`,
		head + `{"name":"a","ph":"i","ts":1,"pid":1,"tid":1,"s":"z"}]}`,
	} {
		if _, err := perfettoTrace([]byte(bad)); err == nil {
			t.Errorf("taken: %s", bad)
		}
	}
	good := head + name + slice(1, 5) + "," + flow("s", 1) + "," + slice(2, 4) + "," + flow("f", 2) + "]}"
	if _, err := perfettoTrace([]byte(good)); err != nil {
		t.Errorf("refused: %v", err)
	}
}

func TestJSONLinesAreTheTraceItself(t *testing.T) {
	r, err := Run(Library()[0], Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	again, err := trace.Read(bytes.NewReader(exportedAs(t, r.Trace, "jsonl")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.Trace, again); diff != "" {
		t.Errorf("(-run +read):\n%s", diff)
	}
	if err := Export(r.Trace, "perfeto", io.Discard); err == nil || !strings.Contains(err.Error(), `"perfetto"`) {
		t.Error(err)
	}
}
