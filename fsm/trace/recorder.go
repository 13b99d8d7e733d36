package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	maxWaiting = 1 << 16 // events that the file has not taken yet; some tens of megabytes
	closing    = time.Second
)

var errSlow = errors.New("the file takes events more slowly than they happen")

// Recorder writes what the nodes of one process do to a file. It may be used by several goroutines.
// A goroutine of its own does the writing, so that no node waits for the file.
type Recorder struct {
	out    io.Writer
	failed func(error) // is told once why the recording has ended early
	wake   chan struct{}
	done   chan struct{} // closed when no more is written

	mu      sync.Mutex
	header  *Header
	opened  bool    // the header was given
	waiting []Event // for the goroutine
	ids     int64   // the last one
	last    Time    // the latest At
	ended   bool    // by Close, or by err
	err     error
}

// NewRecorder returns a recorder. If something cannot be written, failed is told so once, and what
// happens after is not recorded; it must not call the recorder.
func NewRecorder(out io.Writer, failed func(error)) *Recorder {
	r := &Recorder{
		out: out, failed: failed, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go r.write()
	return r
}

// Open says whose events will come. The nodes of one process say the same, and the first one is
// heard.
func (r *Recorder) Open(nodes []string, cluster uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opened {
		return
	}
	h := NewHeader()
	h.Nodes, h.Real, h.Cluster = append(h.Nodes, nodes...), true, cluster
	r.header, r.opened = &h, true
	r.notify()
}

// Record takes a batch: what happened at one node at one time. It gives the events their numbers
// and the time; until then a Cause is a place in the batch, from 1. The events are the recorder's
// from now on.
func (r *Recorder) Record(batch []Event) {
	if !r.add(batch) {
		r.fail(errSlow)
	}
}

// add returns false if there is no room.
func (r *Recorder) add(batch []Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return true
	}
	if len(r.waiting)+len(batch) > maxWaiting {
		return false
	}
	r.last = max(r.last, Time(time.Now().UnixMicro())) // a wall clock may be set back
	for i := range batch {
		e := &batch[i]
		e.ID, e.At = r.ids+int64(i)+1, r.last
		if e.Cause != 0 {
			e.Cause += r.ids
		}
	}
	r.ids += int64(len(batch))
	r.waiting = append(r.waiting, batch...)
	r.notify()
	return true
}

// notify tells the goroutine that there is something to do. It knows already if it has been told
// and has not looked since.
func (r *Recorder) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// fail ends the recording and says why, if nothing has failed before.
func (r *Recorder) fail(err error) {
	r.mu.Lock()
	first := r.err == nil
	if first {
		r.ended, r.err, r.waiting = true, err, nil
		r.notify()
	}
	r.mu.Unlock()
	if first {
		r.failed(fmt.Errorf("the trace ends here: %w", err))
	}
}

// Close writes what is still to be written, and says what has gone wrong since the start. It waits
// a second at most. The file stays open: it is its owner's.
func (r *Recorder) Close() error {
	r.mu.Lock()
	r.ended = true
	r.notify()
	r.mu.Unlock()
	select {
	case <-r.done:
	case <-time.After(closing):
		return fmt.Errorf("closing the trace: %w", errSlow)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// write is the goroutine. What has come together is written together, and at once: a kill of the
// process loses what came since.
func (r *Recorder) write() {
	defer close(r.done)
	for {
		<-r.wake
		r.mu.Lock()
		header, events, ended := r.header, r.waiting, r.ended
		r.header, r.waiting = nil, nil
		r.mu.Unlock()
		if err := r.print(header, events); err != nil {
			r.fail(err)
			return
		}
		if ended {
			return
		}
	}
}

func (r *Recorder) print(header *Header, events []Event) error {
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	if header != nil {
		if err := enc.Encode(header); err != nil {
			return err
		}
	}
	for i := range events {
		if err := enc.Encode(&events[i]); err != nil {
			return err
		}
	}
	_, err := r.out.Write(lines.Bytes())
	return err
}
