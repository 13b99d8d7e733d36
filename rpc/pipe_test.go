package rpc

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// room is how many bytes may be on the way, or lost, before a writer has to wait. Nothing here
// comes near unless nobody reads.
const room = 256 << 10

// stream is one direction of a connection.
type stream struct {
	link               *wire
	queue              []segment
	size               int       // bytes that were written and have not been read
	last               time.Time // when the last segment arrives
	lost               bool      // some bytes have vanished, so that nothing after them can be read
	deaf               bool      // the reader has closed: what is written is thrown away
	readBy, writeBy    time.Time
	readable, writable chan struct{}
}

// segment is what one Write has sent. The last one of a connection that was closed says so.
type segment struct {
	bytes []byte
	at    time.Time // when it arrives
	fin   bool
}

func (l *wire) stream() *stream {
	s := &stream{link: l, readable: make(chan struct{}, 1), writable: make(chan struct{}, 1)}
	l.streams[s] = true
	return s
}

// kick wakes the one who waits, or makes the next one who would wait look again.
func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pipe is one end of a connection. It has one reader and one writer at a time.
type pipe struct {
	n        *network
	in, out  *stream
	once     sync.Once
	closed   chan struct{}
	from, to string
}

func (p *pipe) Read(b []byte) (int, error) {
	for {
		p.n.mu.Lock()
		k, wait, err := p.in.read(b)
		p.n.mu.Unlock()
		if k > 0 || err != nil {
			return k, err
		}
		if err := p.wait(p.in.readable, wait); err != nil {
			return 0, err
		}
	}
}

// read takes what has arrived. If nothing has, it tells when to look again, 0 for when something
// happens.
func (s *stream) read(b []byte) (k int, wait time.Duration, err error) {
	if !s.readBy.IsZero() {
		if wait = time.Until(s.readBy); wait <= 0 {
			return 0, 0, os.ErrDeadlineExceeded
		}
	}
	if len(s.queue) == 0 || s.link.held {
		return 0, wait, nil
	}
	first := &s.queue[0]
	if late := time.Until(first.at); late > 0 {
		if wait == 0 || late < wait {
			wait = late
		}
		return 0, wait, nil
	}
	if first.fin {
		return 0, 0, io.EOF
	}
	k = copy(b, first.bytes)
	first.bytes = first.bytes[k:]
	s.size -= k
	if len(first.bytes) == 0 {
		s.queue = s.queue[1:]
	}
	kick(s.writable)
	return k, 0, nil
}

func (p *pipe) Write(b []byte) (int, error) {
	for {
		select {
		case <-p.closed:
			return 0, net.ErrClosed
		default:
		}
		p.n.mu.Lock()
		sent, wait, err := p.out.write(b)
		p.n.mu.Unlock()
		switch {
		case err != nil:
			return 0, err
		case sent:
			return len(b), nil
		}
		if err := p.wait(p.out.writable, wait); err != nil {
			return 0, err
		}
	}
}

func (s *stream) write(b []byte) (sent bool, wait time.Duration, err error) {
	if !s.writeBy.IsZero() {
		if wait = time.Until(s.writeBy); wait <= 0 {
			return false, 0, os.ErrDeadlineExceeded
		}
	}
	s.link.writes++
	if s.deaf {
		s.link.wasted++
		return true, 0, nil
	}
	if s.size > 0 && s.size+len(b) > room {
		return false, wait, nil
	}
	s.size += len(b)
	s.send(segment{bytes: slices.Clone(b)})
	return true, 0, nil
}

func (s *stream) send(g segment) {
	s.lost = s.lost || s.link.cut
	if s.lost {
		return
	}
	g.at = time.Now().Add(s.link.delay)
	if g.at.Before(s.last) {
		g.at = s.last
	}
	s.last = g.at
	s.queue = append(s.queue, g)
	kick(s.readable)
}

// wait waits for a kick, the end of the connection or, if it is not 0, some time.
func (p *pipe) wait(kicked chan struct{}, most time.Duration) error {
	var alarm <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-p.closed:
		return net.ErrClosed
	default:
	}
	select {
	case <-kicked:
	case <-alarm:
	case <-p.closed:
		return net.ErrClosed
	}
	return nil
}

// CloseWrite ends what is written, and leaves what can be read.
func (p *pipe) CloseWrite() error {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.out.send(segment{fin: true})
	return nil
}

func (p *pipe) Close() error {
	p.once.Do(func() {
		close(p.closed)
		p.n.mu.Lock()
		defer p.n.mu.Unlock()
		p.out.send(segment{fin: true})
		p.in.link.wasted += len(p.in.queue)
		p.in.deaf, p.in.queue = true, nil
		delete(p.in.link.streams, p.in)
		kick(p.in.writable)
	})
	return nil
}

func (p *pipe) SetReadDeadline(t time.Time) error {
	return p.set(p.in.readable, &p.in.readBy, t)
}

func (p *pipe) SetWriteDeadline(t time.Time) error {
	return p.set(p.out.writable, &p.out.writeBy, t)
}

func (p *pipe) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

func (p *pipe) set(waiter chan struct{}, deadline *time.Time, t time.Time) error {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	*deadline = t
	kick(waiter)
	return nil
}

func (p *pipe) LocalAddr() net.Addr  { return host(p.from) }
func (p *pipe) RemoteAddr() net.Addr { return host(p.to) }
