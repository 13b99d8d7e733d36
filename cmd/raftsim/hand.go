package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"ticketing/sim"
)

// This file is the parent's side of -raft: it gives jobs to a worker, watches it, and starts another
// one when it is gone.

// bounds are what the reader's code may take.
type bounds struct {
	patience time.Duration // without an event
	heap     uint64        // bytes
}

func usualBounds() bounds { return bounds{5 * time.Second, 1 << 30} }

// hand is one worker at a time, and what is needed to start the next.
type hand struct {
	b *built
	bounds
	cmd    *exec.Cmd
	jobs   io.WriteCloser
	said   chan said
	stderr *head
}

const beginning = 30 * time.Second // for a process to start on a machine that has much to do

// start brings a worker up. If none comes up, there is none.
func (h *hand) start(ctx context.Context) error {
	stderr := &head{}
	cmd := exec.CommandContext(ctx, h.b.path, "worker", strconv.FormatUint(h.heap, 10))
	cmd.Stderr = stderr
	// One processor for the code, one for who watches it.
	cmd.Env = append(cmd.Environ(), "GOMAXPROCS=2", "GOTRACEBACK=single")
	jobs, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting a worker: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting a worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting a worker: %w", err)
	}
	h.cmd, h.jobs, h.said, h.stderr = cmd, jobs, make(chan said), stderr
	go hear(out, h.said)
	for {
		select {
		case s, ok := <-h.said:
			if !ok {
				return fmt.Errorf("a worker did not come up: %v\n%s", h.end(), h.stderr)
			}
			if s.Ready {
				return nil
			}
		case <-time.After(beginning):
			h.end()
			return fmt.Errorf("a worker did not come up in %s; is the machine overloaded?", beginning)
		}
	}
}

// hear decodes what a worker says, until it is gone.
func hear(out io.Reader, to chan<- said) {
	defer close(to)
	in := json.NewDecoder(out)
	for {
		var s said
		if in.Decode(&s) != nil {
			return
		}
		to <- s
	}
}

// end ends a worker, if there is one, and returns how it ended.
func (h *hand) end() error {
	if h.cmd == nil {
		return nil
	}
	h.cmd.Process.Kill()
	for range h.said {
	}
	err := h.cmd.Wait()
	h.cmd = nil
	return err
}

// run does a job: first as fast as it goes; and if that comes to no end, once more under watch. It
// returns an outcome or a crash.
func (h *hand) run(ctx context.Context, j job) (*outcome, *crash, error) {
	o, c, err := h.ask(ctx, j)
	if c == nil {
		return o, nil, err
	}
	return h.watch(ctx, j, c)
}

// watch does a job again that came to no end, alone and event by event, to say where that was. It
// may come to its end after all: what is slow looks like a loop.
func (h *hand) watch(ctx context.Context, j job, first *crash) (*outcome, *crash, error) {
	j.Tell = true
	o, c, err := h.ask(ctx, j)
	switch {
	case err != nil:
		return nil, nil, err
	case c != nil:
		return nil, c, nil
	case first.kind == crashLoop:
		return o, nil, nil
	}
	first.once = true
	return nil, first, nil
}

// ask does a job once. After a crash the worker is gone, and the next call starts another.
func (h *hand) ask(ctx context.Context, j job) (*outcome, *crash, error) {
	return h.askWatched(ctx, j, &watched{})
}

// askWatched is ask, and w hears what is told of the run.
func (h *hand) askWatched(ctx context.Context, j job, w *watched) (*outcome, *crash, error) {
	if h.cmd == nil {
		if err := h.start(ctx); err != nil {
			return nil, nil, errors.Join(ctx.Err(), err)
		}
	}
	if json.NewEncoder(h.jobs).Encode(j) != nil {
		return h.died(ctx, j, w) // between two jobs
	}
	loops := time.NewTimer(h.patience)
	defer loops.Stop()
	for {
		select {
		case s, ok := <-h.said:
			w.hear(&s)
			switch {
			case !ok:
				return h.died(ctx, j, w)
			case s.Done != nil:
				return s.Done, nil, nil
			case s.Error != "":
				return nil, nil, s.err()
			case s.Event != nil || s.Tried:
				loops.Reset(h.patience)
			case s.Full:
				h.end()
				c := &crash{kind: crashMemory, says: tooMuch(h.heap), again: j.Again, frames: framesIn(s.Stacks, h.b.places)}
				w.addTo(c)
				return nil, c, ctx.Err()
			}
		case <-loops.C:
			return h.stop(ctx, w, &crash{kind: crashLoop, says: quiet(h.patience), again: j.Again})
		}
	}
}

// err is why there was nothing to run.
func (s *said) err() error {
	if s.Held {
		return fmt.Errorf("%w%s", sim.ErrHeld, strings.TrimPrefix(s.Error, sim.ErrHeld.Error()))
	}
	return errors.New(s.Error)
}

// died says why a worker is gone.
func (h *hand) died(ctx context.Context, j job, w *watched) (*outcome, *crash, error) {
	status := h.end()
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	c := &crash{again: j.Again}
	how := "exit status 0"
	if status != nil {
		how = status.Error()
	}
	text := h.stderr.String()
	c.kind, c.says = classify(text, how)
	c.frames = framesIn(text, h.b.places)
	w.addTo(c)
	return nil, c, nil
}

// stop ends a worker that does not end by itself, after it was asked where it is.
func (h *hand) stop(ctx context.Context, w *watched, c *crash) (*outcome, *crash, error) {
	if json.NewEncoder(h.jobs).Encode(job{Stacks: true}) == nil {
		c.frames = framesIn(h.stacks(w), h.b.places)
	}
	h.end()
	w.addTo(c)
	return nil, c, ctx.Err()
}

// stacks waits a moment for a worker to say where it is.
func (h *hand) stacks(w *watched) string {
	late := time.After(2 * time.Second)
	for {
		select {
		case s, ok := <-h.said:
			w.hear(&s)
			if !ok || s.Stacks != "" {
				return s.Stacks
			}
		case <-late:
			return ""
		}
	}
}
