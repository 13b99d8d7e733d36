package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"ticketing/fsm/trace"
	"ticketing/sim"
)

// crashKind says how the reader's code kept a run from its end.
type crashKind string

const (
	crashPanic  crashKind = "PANIC"
	crashLoop   crashKind = "LOOP"
	crashMemory crashKind = "MEMORY"
	crashExit   crashKind = "EXIT"
)

// crash is a run that came to no end.
type crash struct {
	kind   crashKind
	says   string
	frames []string // where it was, the innermost first
	steps  []string // the events that led to it
	last   *trace.Event
	untold bool   // one of many runs, of which no events are told
	once   bool   // it did not happen again when the seed was run once more
	again  string // the command that runs it again
}

// frame is two lines of a stack: a function, and where it is.
var frame = regexp.MustCompile(`(?m)^(` + modulePath + `/[^\s]+)\(.*\)$\n\t(.+:\d+)`)

// ending is the first line of what Go writes when a process ends badly.
var ending = regexp.MustCompile(`^(panic: |fatal error: |runtime: )`)

const mostFrames = 6

// framesIn finds the reader's functions in a stack, or if there are none those around.
func framesIn(stack string, places *strings.Replacer) (frames []string) {
	var around []string
	for _, m := range frame.FindAllStringSubmatch(stack, -1) {
		name := strings.TrimPrefix(m[1], modulePath+"/")
		line := fmt.Sprintf("%-44s %s", name, strings.TrimSuffix(places.Replace(m[2]+":"), ":"))
		if strings.HasPrefix(name, raftPackage+".") {
			frames = append(frames, line)
		}
		around = append(around, line)
	}
	if len(frames) == 0 {
		frames = around
	}
	return frames[:min(len(frames), mostFrames)]
}

// classify tells from what a dead process has written to its standard error what ended it.
func classify(stderr, status string) (kind crashKind, says string) {
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		switch {
		case strings.Contains(line, "stack overflow") || strings.Contains(line, "goroutine stack exceeds"):
			return crashMemory, fmt.Sprintf("a recursion without end: its stack has more than %d MB", mostStack>>20)
		case strings.Contains(line, "out of memory"):
			return crashMemory, "there is no more memory"
		case strings.HasPrefix(line, "panic: "):
			return crashPanic, strings.TrimSuffix(strings.TrimPrefix(line, "panic: "), " [recovered]")
		case strings.HasPrefix(line, "fatal error: "):
			return crashPanic, line
		}
	}
	return crashExit, "the process ended by itself: " + status
}

// watched takes what is told of a run, for its last steps.
type watched struct{ run trace.Trace }

func (w *watched) hear(s *said) {
	if s.Header != nil {
		w.run.Header = *s.Header
	}
	if s.Event != nil {
		w.run.Events = append(w.run.Events, *s.Event)
	}
}

// mostSteps is how many events are shown of those that led to something.
const mostSteps = 12

// addTo says which events led to a crash.
func (w *watched) addTo(c *crash) {
	n := len(w.run.Events)
	if n == 0 {
		return
	}
	c.last = &w.run.Events[n-1]
	c.steps = sim.LastSteps(&w.run, sim.Violation{Event: c.last.ID}, mostSteps)
}

// when says behind which event it happened.
func (c *crash) when() string {
	if c.last == nil {
		return "before the first event"
	}
	where := ""
	if c.last.Node != "" {
		where = " on " + c.last.Node
	}
	return fmt.Sprintf("in event %d, at %s%s: %s", c.last.ID, c.last.At, where, c.last.Kind)
}

// write says all that is known of it.
func (c *crash) write(out io.Writer, what string) {
	fmt.Fprintf(out, "%-7s %s: %s\n", c.kind, what, c.says)
	if c.once {
		fmt.Fprintln(out, "        the same seed alone ran to its end: the code does not do the same each time. It may look at")
		fmt.Fprintln(out, "        a clock, a random number or the order of a map, or keep something from one run to the next")
	} else if !c.untold {
		fmt.Fprintf(out, "        %s\n", c.when())
	}
	for _, f := range c.frames {
		fmt.Fprintln(out, "        "+f)
	}
	if len(c.steps) > 0 {
		fmt.Fprintln(out, "        the steps that led to it:")
		for _, line := range c.steps {
			fmt.Fprintln(out, "        "+line)
		}
	}
	fmt.Fprintf(out, "        again: %s\n", c.again)
}

// place is where it happened, by which crashes that are the same are told from others.
func (c *crash) place() string {
	where := ""
	if len(c.frames) > 0 {
		where = c.frames[0]
	}
	if c.kind == crashLoop {
		return string(c.kind) // a loop is stopped at any of its lines
	}
	return string(c.kind) + " " + where
}

// head keeps the beginning of what is written to it, and the last part: a stack's interesting lines
// are first, and what was printed before it may be long.
type head struct{ first, last []byte }

const headSize = 1 << 16

func (h *head) Write(b []byte) (int, error) {
	n := min(len(b), headSize-len(h.first))
	h.first = append(h.first, b[:n]...)
	h.last = append(h.last, b[n:]...)
	if over := len(h.last) - headSize; over > 0 {
		h.last = slices.Delete(h.last, 0, over)
	}
	return len(b), nil
}

func (h *head) String() string { return string(bytes.Join([][]byte{h.first, h.last}, nil)) }

func tooMuch(heap uint64) string {
	return fmt.Sprintf("more than %d MB are allocated", heap>>20)
}

func quiet(patience time.Duration) string {
	return fmt.Sprintf("no event for %s: something does not come to its end", patience)
}
