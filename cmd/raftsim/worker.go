package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"

	"ticketing/fsm/trace"
	"ticketing/sim"
)

// This file is the child's side of -raft. The reader's code runs in a process of its own, which may
// die, hang or fill its memory without harm to the search. Both sides speak JSON lines.

// job is what a worker is asked for: a scenario, or else a seed of the search.
type job struct {
	Scenario string   `json:"scenario,omitempty"` // a name or a file
	Seed     *uint64  `json:"seed,omitempty"`     // of the search, or instead of the scenario's
	Faults   string   `json:"faults,omitempty"`
	Nodes    int      `json:"nodes,omitempty"`
	Without  []string `json:"without,omitempty"`
	Again    string   `json:"again,omitempty"`  // the command that runs it again
	Tell     bool     `json:"tell,omitempty"`   // every event when it happens
	Whole    bool     `json:"whole,omitempty"`  // it does not end at what breaks
	Shrink   bool     `json:"shrink,omitempty"` // look for the shortest that breaks the same
	When     *asked   `json:"when,omitempty"`   // give it other futures
	Stacks   bool     `json:"stacks,omitempty"` // no job: say where the present one is
}

// said is what a worker says: one of the fields is there.
type said struct {
	Ready  bool          `json:"ready,omitempty"` // it waits for its first job
	Header *trace.Header `json:"header,omitempty"`
	Event  *trace.Event  `json:"event,omitempty"`
	Tried  bool          `json:"tried,omitempty"`  // a candidate that may be shorter, or another future
	Full   bool          `json:"full,omitempty"`   // too much is allocated, and it is about to end
	Stacks string        `json:"stacks,omitempty"` // with Full, too
	Done   *outcome      `json:"done,omitempty"`
	Error  string        `json:"error,omitempty"` // there was nothing to run
	Held   bool          `json:"held,omitempty"`  // with Error: since nothing breaks
}

// outcome is what came of a job.
type outcome struct {
	Title    string           `json:"title"`
	EndUS    int64            `json:"end_us"`
	Steps    int64            `json:"steps"`
	Counters map[string]int64 `json:"counters"`
	Violated []string         `json:"violated,omitempty"`
	First    *sim.Violation   `json:"first,omitempty"`
	Failure  string           `json:"failure,omitempty"`
	Verdict  string           `json:"verdict,omitempty"` // of one that did not hold, or was watched
	Shrunk   *sim.Shrunk      `json:"shrunk,omitempty"`  // Scenario has its Text alone
}

func (o *outcome) held() bool { return o.Failure == "" && len(o.Violated) == 0 }

const (
	heapEvery = 10 * time.Millisecond // how often a worker looks how much is allocated
	mostStack = 64 << 20              // bytes: a recursion that is deeper has no end
)

// worker writes what it says, from several goroutines.
type worker struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (w *worker) say(s said) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.out.Encode(s); err != nil {
		os.Exit(exitUsage) // nobody listens any more
	}
}

// work is the command of a worker: it carries out jobs until its parent is gone.
func work(_ context.Context, c *call) error {
	const usage = "worker is what raftsim starts by itself for -raft"
	if c.screen == nil || len(c.args) != 1 {
		return misuse(usage)
	}
	heap, err := strconv.ParseUint(c.args[0], 10, 64)
	if err != nil {
		return misuse(usage)
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent, which ends its workers
	w := &worker{out: json.NewEncoder(c.screen)}
	os.Stdout = os.Stderr // what the reader's code prints is not for the parent to decode
	debug.SetMaxStack(mostStack)
	jobs := make(chan job)
	go w.listen(jobs)
	go w.guard(heap)
	w.say(said{Ready: true})
	for {
		j := <-jobs
		w.say(w.do(&j))
	}
}

// listen reads jobs, and answers where the present one is even if that never ends. When the parent is
// gone, so is the process, whatever it does.
func (w *worker) listen(jobs chan<- job) {
	in := json.NewDecoder(os.Stdin)
	for {
		var j job
		if in.Decode(&j) != nil {
			os.Exit(exitUsage)
		}
		if j.Stacks {
			w.say(said{Stacks: stacks()})
			continue
		}
		jobs <- j
	}
}

// stacks says where all is.
func stacks() string {
	text := make([]byte, 1<<16)
	return string(text[:runtime.Stack(text, true)])
}

// guard ends the process when it has allocated more than it may. It does so itself, since what fills
// the memory does not wait.
func (w *worker) guard(most uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for range time.Tick(heapEvery) {
		if metrics.Read(sample); sample[0].Value.Uint64() > most {
			w.say(said{Full: true, Stacks: stacks()})
			os.Exit(exitBroken)
		}
	}
}

func (w *worker) do(j *job) said {
	switch {
	case j.Shrink:
		return w.shrink(j)
	case j.When != nil:
		return w.when(j)
	}
	o := sim.Options{Seed: j.Seed, Without: j.Without, KeepGoing: j.Whole}
	if j.Tell {
		o.Record, o.Tell = true, w.tell
	}
	r, err := j.run(o)
	if err == nil && !r.Held() && !o.Record {
		o.Record = true
		r, err = j.run(o) // the same run, with its trace
	}
	if err != nil {
		return said{Error: err.Error()}
	}
	return said{Done: outcomeOf(r, j.Again)}
}

// run carries a job out.
func (j *job) run(o sim.Options) (*sim.Result, error) {
	s, err := j.scenario()
	if err != nil {
		return nil, err
	}
	return sim.Run(s, o)
}

func (j *job) scenario() (*sim.Scenario, error) {
	if j.Scenario == "" {
		return sim.Plan(*j.Seed, j.Faults, j.Nodes)
	}
	return sim.Load(j.Scenario)
}

// shrink looks for the shortest scenario. Ctrl-C ends it with all else: what it has until then is in
// this process.
func (w *worker) shrink(j *job) said {
	s, err := j.scenario()
	if err != nil {
		return said{Error: err.Error()}
	}
	shrinking := sim.Shrink{Scenario: s, Seed: j.Seed, Without: j.Without, Progress: func(*sim.Shrunk) { w.say(said{Tried: true}) }}
	best, err := shrinking.Run(context.Background())
	if err != nil {
		return said{Error: err.Error(), Held: errors.Is(err, sim.ErrHeld)}
	}
	best.Scenario = &sim.Scenario{Text: best.Scenario.Text}
	return said{Done: &outcome{Shrunk: best}}
}

// tell passes an event on before anything comes of it.
func (w *worker) tell(so *trace.Trace) {
	if len(so.Events) == 1 {
		w.say(said{Header: &so.Header})
	}
	w.say(said{Event: &so.Events[len(so.Events)-1]})
}

func outcomeOf(r *sim.Result, again string) *outcome {
	o := &outcome{Title: r.Scenario.Title, EndUS: int64(r.End), Steps: r.Steps, Counters: map[string]int64{}}
	for _, name := range sim.CounterNames() {
		if n := r.Count(name); n != 0 {
			o.Counters[name] = n
		}
	}
	if r.Held() && r.Trace == nil {
		return o
	}
	line := failureOf(r, again)
	o.Violated, o.Failure = line.Violated, line.Failure
	if len(r.Violations) > 0 {
		o.First = &r.Violations[0]
	}
	var text strings.Builder
	writeVerdict(&text, r, again)
	o.Verdict = text.String()
	return o
}
