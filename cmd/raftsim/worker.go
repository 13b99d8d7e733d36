package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
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
	Stacks   bool     `json:"stacks,omitempty"` // no job: say where the present one is
}

// said is what a worker says: one of the fields is there.
type said struct {
	Ready  bool          `json:"ready,omitempty"` // it waits for its first job
	Heap   uint64        `json:"heap,omitempty"`  // now and then: how many bytes are allocated
	Header *trace.Header `json:"header,omitempty"`
	Event  *trace.Event  `json:"event,omitempty"`
	Stacks string        `json:"stacks,omitempty"`
	Done   *outcome      `json:"done,omitempty"`
	Error  string        `json:"error,omitempty"` // there was nothing to run
}

// outcome is what came of a job.
type outcome struct {
	EndUS    int64            `json:"end_us"`
	Steps    int64            `json:"steps"`
	Counters map[string]int64 `json:"counters"`
	Violated []string         `json:"violated,omitempty"`
	Failure  string           `json:"failure,omitempty"`
	Verdict  string           `json:"verdict,omitempty"` // of one that did not hold
}

func (o *outcome) held() bool { return o.Failure == "" && len(o.Violated) == 0 }

const (
	heapEvery = 20 * time.Millisecond // how often a worker says how much is allocated
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

// work is the command of a worker: it carries out jobs until its input ends.
func work(_ context.Context, c *call) error {
	if c.screen == nil || len(c.args) > 0 {
		return misuse("worker is what raftsim starts by itself for -raft; it takes no arguments")
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent, which ends its workers
	w := &worker{out: json.NewEncoder(c.screen)}
	os.Stdout = os.Stderr // what the reader's code prints is not for the parent to decode
	debug.SetMaxStack(mostStack)
	jobs := make(chan job)
	go w.listen(jobs)
	go w.sayHeap()
	w.say(said{Ready: true})
	for j := range jobs {
		w.say(w.do(&j))
	}
	return nil
}

// listen reads jobs, and answers where the present one is even if that never ends.
func (w *worker) listen(jobs chan<- job) {
	defer close(jobs)
	in := json.NewDecoder(os.Stdin)
	for {
		var j job
		if err := in.Decode(&j); err != nil {
			if !errors.Is(err, io.EOF) {
				w.say(said{Error: "a job cannot be read: " + err.Error()})
			}
			return
		}
		if j.Stacks {
			text := make([]byte, 1<<16)
			w.say(said{Stacks: string(text[:runtime.Stack(text, true)])})
			continue
		}
		jobs <- j
	}
}

func (w *worker) sayHeap() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for range time.Tick(heapEvery) {
		metrics.Read(sample)
		w.say(said{Heap: sample[0].Value.Uint64()})
	}
}

func (w *worker) do(j *job) said {
	o := sim.Options{Seed: j.Seed, Without: j.Without}
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
	if j.Scenario == "" {
		return sim.Search{Faults: j.Faults, Nodes: j.Nodes, Without: j.Without}.Run(*j.Seed, o)
	}
	s, err := sim.Load(j.Scenario)
	if err != nil {
		return nil, err
	}
	return sim.Run(s, o)
}

// tell passes an event on before anything comes of it.
func (w *worker) tell(so *trace.Trace) {
	if len(so.Events) == 1 {
		w.say(said{Header: &so.Header})
	}
	w.say(said{Event: &so.Events[len(so.Events)-1]})
}

func outcomeOf(r *sim.Result, again string) *outcome {
	o := &outcome{EndUS: int64(r.End), Steps: r.Steps, Counters: map[string]int64{}}
	for _, name := range sim.CounterNames() {
		if n := r.Count(name); n != 0 {
			o.Counters[name] = n
		}
	}
	if r.Held() {
		return o
	}
	line := failureOf(r, again)
	o.Violated, o.Failure = line.Violated, line.Failure
	var text strings.Builder
	writeVerdict(&text, r, again)
	o.Verdict = text.String()
	return o
}
