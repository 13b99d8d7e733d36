package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/sim"
)

// verdict is what a run has come to.
type verdict struct {
	replay *replay
	trace  *trace.Trace
	broken []violation
	failed *failure
}

// run replays the scenario, from the start of the servers to their end, and judges.
func (r *replay) run(ctx context.Context) (v *verdict, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = r.startServers(ctx)
	defer func() { err = errors.Join(err, r.view.close()) }()
	if err == nil {
		r.introduce()
		err = r.play()
	}
	if err == nil {
		err = r.settle()
	}
	if err = errors.Join(err, r.end(cancel)); err != nil {
		return nil, err
	}
	v = &verdict{replay: r, failed: r.failed}
	v.trace, v.broken, err = r.judged()
	return v, err
}

// introduce prints what is run, on what.
func (r *replay) introduce() {
	r.out.printf("%s: %s\n", r.scenario.Name, r.scenario.Title)
	var servers []string
	for _, id := range r.view.ids() {
		servers = append(servers, fmt.Sprintf("%s %s", trace.NodeName(id), r.cluster.Addr(id)))
	}
	processes := fmt.Sprintf("%d real processes: %s", r.plan.n, strings.Join(servers, ", "))
	r.out.printf("%s\n", strings.Join(wrap(processes, narrow), "\n  "))
	if len(r.plan.without) > 0 {
		r.out.printf("WITHOUT %s\n", strings.Join(r.plan.without, ", "))
	}
	for _, note := range r.plan.notes {
		for i, line := range wrap(note, narrow-6) {
			r.out.printf("%-6s%s\n", []string{"note:", ""}[min(i, 1)], line)
		}
	}
	r.out.printf("%*s\n", indent-2, "ms")
}

// expected are the violations that the scenario is about.
func (v *verdict) expected(name string) bool {
	for _, line := range v.replay.scenario.Lines {
		var cond sim.Cond
		switch c := inner(line.Command).(type) {
		case sim.Expect:
			cond = c.Cond
		case sim.Until:
			cond = c.Cond
		}
		if c, ok := cond.(sim.CondViolated); ok && c.Invariant == name {
			return true
		}
	}
	return false
}

func (v *verdict) held() bool {
	unexpected := func(b violation) bool { return !v.expected(b.Invariant) }
	return v.failed == nil && !slices.ContainsFunc(v.broken, unexpected)
}

// print says what held and what did not, and how to see it again.
func (v *verdict) print(out io.Writer, again string) {
	r := v.replay
	fmt.Fprintln(out)
	for _, b := range v.broken {
		say(out, "BROKEN", "%s: %s", b.Invariant, sim.Sentence(b.Invariant))
		say(out, "", "at %.1f ms on %s: %s", r.sinceStart(v.trace, b.At), b.Node, b.Detail)
		v.printLog(out, &v.trace.Events[b.Event-2])
	}
	if v.failed != nil {
		word := "FAILED"
		missing := v.missing()
		if missing != "" {
			word = "INCONCLUSIVE"
		}
		say(out, word, "%s: %v", r.where(v.failed.line), v.failed.err)
		if missing != "" {
			say(out, "", "%s", missing)
		}
		if r.late > tardy && len(v.broken) == 0 {
			say(out, "", "This machine did %s %d ms too late: it may have missed the moment.",
				r.where(r.lateLine), r.late.Milliseconds())
		}
	}
	if v.held() {
		say(out, "held", "%s; %d entries committed, %d events judged by %d invariants",
			r.scenario.Name, r.view.counts.applied, len(v.trace.Events), len(invariantNames()))
		return
	}
	fmt.Fprintf(out, "again:  %s\n", again) // to be pasted: it is not broken
}

// say prints a word at the margin and a text beside it.
func say(out io.Writer, word, format string, args ...any) {
	for _, line := range wrap(fmt.Sprintf(format, args...), narrow-8) {
		if len(word) > 7 {
			fmt.Fprintln(out, word)
			word = ""
		}
		fmt.Fprintf(out, "%-8s%s\n", word, line)
		word = ""
	}
}

// missing says that what the scenario is about did not happen, if that is why it failed.
func (v *verdict) missing() string {
	c, ok := v.failed.cond.(sim.CondCount)
	wants := ok && slices.Contains([]string{"=", ">", ">="}, c.Op)
	if !wants || len(v.broken) > 0 || v.replay.view.counts.of[c.Name] >= c.N {
		return ""
	}
	return "The interesting thing did not happen, so this run shows nothing."
}

// sinceStart is a time of the merged trace, in milliseconds since the servers were ready.
func (r *replay) sinceStart(t *trace.Trace, at trace.Time) float64 {
	return float64(int64(at+t.Header.Zero)-r.start.UnixMicro()) / 1000
}

// printLog prints the entries up to the one that an event is about, with what they came to.
func (v *verdict) printLog(out io.Writer, culprit *trace.Event) {
	if culprit.Entry == nil {
		return
	}
	var applied []*trace.EntryRecord
	meant := map[position]uint64{}
	next := raft.Index(1)
	for i := range v.trace.Events {
		e := &v.trace.Events[i]
		switch {
		case e.Kind == trace.KindAppend && e.Entry.Meant != 0:
			meant[position{e.Entry.Index, e.Entry.Term}] = e.Entry.Meant
		case e.Kind == trace.KindApply && e.Entry.Index == next && next <= culprit.Entry.Index:
			next++
			applied = append(applied, e.Entry)
		}
	}
	say(out, "", "the log up to there:")
	for _, r := range applied[max(0, len(applied)-8):] {
		text := command(r)
		if m := meant[position{r.Index, r.Term}]; m != 0 {
			text += fmt.Sprintf(" (meant for #%d)", m)
		}
		fmt.Fprintf(out, "%12d  %-48s %s\n", r.Index, text, r.Result)
	}
}
