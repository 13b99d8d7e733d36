package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ticketing/fsm/trace"
	"ticketing/sim"
)

// asked is raftsim when, for a worker: how many futures, and how the answer is to look.
type asked struct {
	Futures int       `json:"futures"`
	Jobs    int       `json:"jobs"`
	Style   sim.Style `json:"style"`
}

// momentsOwn asks with the reader's package raft. It returns nothing if a run came to no end.
func (c *call) momentsOwn(
	ctx context.Context, q *sim.When, own *ownFlags, scenario string, style sim.Style,
) (string, error) {
	j := job{Scenario: scenario, Seed: q.Seed, Faults: q.Faults, Nodes: q.Nodes, Without: q.Without}
	j.When, j.Again = &asked{q.Futures, q.Jobs, style}, "raftsim when "+strings.Join(c.args, " ")
	o, crashed, err := c.askOwn(ctx, own, j, &watched{})
	if err != nil {
		return "", err
	}
	if crashed != nil {
		c.printCrash(crashed, "one of the futures that were tried", style)
		return "", nil
	}
	return o.Verdict, nil
}

// when is the worker's part. Each run that ends is told, so that one which does not is seen.
func (w *worker) when(j *job) said {
	q := sim.When{Seed: j.Seed, Faults: j.Faults, Nodes: j.Nodes, Without: j.Without, Futures: j.When.Futures, Jobs: j.When.Jobs}
	if j.Scenario != "" {
		s, err := j.scenario()
		if err != nil {
			return said{Error: err.Error()}
		}
		q.Scenario = s
	}
	q.Progress = func() { w.say(said{Tried: true}) }
	m, err := q.Ask(context.Background())
	if err != nil {
		return said{Error: err.Error(), Held: errors.Is(err, sim.ErrHeld)}
	}
	return said{Done: &outcome{Verdict: m.Text(j.When.Style)}}
}

// otherOwn is the second run of a comparison, with the reader's package raft. It returns nothing if
// that came to no end.
func (c *call) otherOwn(
	ctx context.Context, shared *searchFlags, names []string, o sim.Options, style sim.Style,
) (*sim.Result, error) {
	j := job{Seed: o.Seed, Faults: shared.faults, Nodes: shared.nodes, Without: o.Without, Whole: true, Tell: true}
	j.Scenario, j.Again = strings.Join(names, ""), "raftsim diff "+strings.Join(c.args, " ")
	var w watched
	came, crashed, err := c.askOwn(ctx, &shared.own, j, &w)
	if err != nil {
		return nil, err
	}
	if crashed != nil {
		c.printCrash(crashed, "the second run", style)
		return nil, nil
	}
	w.run.Header.Scenario += ", raft " + shared.own.dir
	r := &sim.Result{Trace: &w.run, End: trace.Time(came.EndUS)}
	if came.First != nil {
		r.Violations = []sim.Violation{*came.First}
	}
	if came.Failure != "" {
		r.Failure = errors.New(came.Failure)
	}
	return r, nil
}

// askOwn does one job with the reader's package raft.
func (c *call) askOwn(ctx context.Context, own *ownFlags, j job, w *watched) (*outcome, *crash, error) {
	b, err := own.build(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer b.remove()
	fmt.Fprintf(c.err, "package raft: %s\n", b.parts)
	h := &hand{b: b, bounds: usualBounds()}
	defer h.end()
	o, crashed, err := h.askWatched(ctx, j, w)
	if crashed != nil {
		crashed.untold = !j.Tell
	}
	return o, crashed, err
}
