package cluster

import (
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// way is what travels from one server to another: its requests, on connections that it has opened,
// and its replies, on connections that were opened to it. All of that leaves in the order in which
// it came, through one goroutine.
type way struct {
	mu       sync.Mutex
	changed  *sync.Cond
	parcels  []parcel
	cut      bool
	held     bool
	least    time.Duration // delay is drawn from here
	most     time.Duration // to here
	lastDue  time.Time     // nothing overtakes
	kept     int           // bytes that are in parcels
	lost     int           // bytes that a cut has swallowed
	finished bool
}

// parcel is bytes on their way, or the news that there will be no more.
type parcel struct {
	due   time.Time
	to    net.Conn
	pair  *pair
	bytes []byte
	end   bool
}

// pair is one connection from server to server: the two that the proxy has for it.
type pair struct {
	opened, onward net.Conn

	mu   sync.Mutex
	lost bool // a cut has swallowed part of it, so nothing that follows can be understood
}

func (p *pair) close() {
	p.opened.Close()
	p.onward.Close()
}

func (p *pair) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = true
}

func (p *pair) hasLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func newWay() *way {
	w := &way{}
	w.changed = sync.NewCond(&w.mu)
	return w
}

// set changes what happens on the way.
func (w *way) set(change func(*way)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
	if w.cut { // what is on the way is lost like what comes
		for _, p := range w.parcels {
			w.swallow(p)
		}
		w.parcels, w.kept = nil, 0
	}
	w.changed.Broadcast()
}

// swallow loses a parcel. Even the end of a connection goes unnoticed, as when packets are dropped.
func (w *way) swallow(p parcel) {
	w.lost += len(p.bytes)
	p.pair.lose()
}

// put hands a parcel over.
func (w *way) put(p parcel) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		w.swallow(p)
		return
	}
	p.due = time.Now().Add(w.least)
	if w.most > w.least {
		p.due = p.due.Add(rand.N(w.most - w.least))
	}
	if p.due.Before(w.lastDue) {
		p.due = w.lastDue
	}
	w.lastDue = p.due
	w.parcels = append(w.parcels, p)
	w.kept += len(p.bytes)
	w.changed.Broadcast()
}

// take waits for the next parcel that may leave. It returns false when there will be none.
func (w *way) take() (parcel, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if w.finished {
			return parcel{}, false
		}
		if len(w.parcels) == 0 || w.held {
			w.changed.Wait()
			continue
		}
		p := w.parcels[0]
		if wait := time.Until(p.due); wait > 0 {
			w.mu.Unlock()
			time.Sleep(wait) // what happens to the way meanwhile is looked at afterwards
			w.mu.Lock()
			continue
		}
		w.parcels = w.parcels[1:]
		w.kept -= len(p.bytes)
		return p, true
	}
}

// run delivers what may leave until the way is closed.
func (w *way) run() {
	for {
		p, ok := w.take()
		if !ok {
			return
		}
		if p.end {
			p.to.Close()
			continue
		}
		if _, err := p.to.Write(p.bytes); err != nil {
			p.to.Close() // whoever reads there gives up as well
		}
	}
}
