package cluster

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"ticketing/raft"
)

// Links is the network between servers, and clients that have joined it. A link is named by the
// direction in which messages travel, requests and replies alike: what S1 sends to S2 is its
// requests, on the connections that it has opened, and its replies, on the connections that S2 has
// opened. A cut or a hold of S1->S2 is about both and leaves alone what S2 sends.
type Links struct {
	servers map[string]string // where each is, by name
	working sync.WaitGroup

	mu        sync.Mutex
	behind    map[string]string // the server that a proxy stands for, by the proxy's address
	proxies   map[link]string
	listeners []net.Listener
	ways      map[link]*way
	pairs     map[*pair]bool
	closed    bool
}

type link struct{ from, to string }

// Name is how Links calls a server: S1, S2, …
func Name(id raft.ServerID) string { return fmt.Sprintf("S%d", id) }

func newLinks(addrs map[raft.ServerID]string) (*Links, error) {
	l := &Links{
		servers: map[string]string{}, behind: map[string]string{}, proxies: map[link]string{},
		ways: map[link]*way{}, pairs: map[*pair]bool{},
	}
	for id, addr := range addrs {
		l.servers[Name(id)] = addr
	}
	for from := range l.servers {
		if err := l.Join(from); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

// Join makes links between a client and all servers.
func (l *Links) Join(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for to, addr := range l.servers {
		if to == name {
			continue
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("listening for %s on its way to %s: %w", name, to, err)
		}
		k := link{name, to}
		there, back := l.way(k), l.way(link{to, name})
		l.listeners = append(l.listeners, listener)
		l.proxies[k] = listener.Addr().String()
		l.behind[l.proxies[k]] = to
		l.working.Go(func() { l.accept(listener, addr, there, back) })
	}
	return nil
}

// way returns what travels on a link, and makes it. The lock is held.
func (l *Links) way(k link) *way {
	w := l.ways[k]
	if w == nil {
		w = newWay()
		l.ways[k] = w
		l.working.Go(w.run)
	}
	return w
}

// proxy returns where one finds another.
func (l *Links) proxy(from, to string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.proxies[link{from, to}]
}

// route returns where a client has to dial to reach what is known by an address, be it a server's
// or a proxy's: the server itself if the client has not joined.
func (l *Links) route(client, addr string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	server, found := l.behind[addr]
	for name, real := range l.servers {
		if real == addr {
			server, found = name, true
		}
	}
	if !found {
		return addr
	}
	if proxy, joined := l.proxies[link{client, server}]; joined {
		return proxy
	}
	return l.servers[server]
}

func (l *Links) set(from, to string, change func(*way)) {
	l.mu.Lock()
	w := l.ways[link{from, to}]
	l.mu.Unlock()
	if w == nil {
		panic(fmt.Sprintf("cluster: there is no link from %s to %s", from, to))
	}
	w.set(change)
}

// Hold keeps back what travels and will travel from one to another.
func (l *Links) Hold(from, to string) { l.set(from, to, func(w *way) { w.held = true }) }

// Release lets what was kept back go, in order.
func (l *Links) Release(from, to string) { l.set(from, to, func(w *way) { w.held = false }) }

// Delay draws the time that each piece of data takes from the range; none overtakes another.
func (l *Links) Delay(from, to string, least, most time.Duration) {
	l.set(from, to, func(w *way) { w.least, w.most = least, most })
}

// Cut loses what travels and will travel from one to another. Connections stay open and new
// ones can be made, but nothing comes through, as when packets are dropped.
func (l *Links) Cut(from, to string) { l.set(from, to, func(w *way) { w.cut = true }) }

// Heal ends a cut. Connections that have lost something are closed, as nothing that follows on them
// could be understood; the servers make new ones.
func (l *Links) Heal(from, to string) {
	l.set(from, to, func(w *way) { w.cut = false })
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pairs {
		if p.hasLost() {
			p.close()
		}
	}
}

// Kept returns how many bytes wait on the way from one to another, and Lost how many a cut
// has swallowed there.
func (l *Links) Kept(from, to string) (n int) {
	l.set(from, to, func(w *way) { n = w.kept })
	return n
}

// Lost is described at Kept.
func (l *Links) Lost(from, to string) (n int) {
	l.set(from, to, func(w *way) { n = w.lost })
	return n
}

// accept makes connections to a server.
func (l *Links) accept(listener net.Listener, server string, there, back *way) {
	for {
		opened, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, most likely: it passes
			time.Sleep(10 * time.Millisecond)
			continue
		}
		onward, err := net.Dial("tcp", server)
		if err != nil { // the server is down, and whoever has called learns it
			opened.Close()
			continue
		}
		p := &pair{opened: opened, onward: onward}
		if !l.add(p) {
			p.close()
			return
		}
		var ends sync.WaitGroup
		ends.Go(func() { pump(there, p, opened, onward) })
		ends.Go(func() { pump(back, p, onward, opened) })
		l.working.Go(func() { ends.Wait(); l.remove(p) })
	}
}

func (l *Links) add(p *pair) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.pairs[p] = true
	return true
}

func (l *Links) remove(p *pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pairs, p)
}

// pump hands what one end writes to the way to the other end.
func pump(w *way, p *pair, from, to net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			w.put(parcel{to: to, pair: p, bytes: append([]byte(nil), buffer[:n]...)})
		}
		if err != nil {
			w.put(parcel{to: to, pair: p, end: true})
			return
		}
	}
}

// close ends all connections.
func (l *Links) close() {
	l.mu.Lock()
	l.closed = true
	for _, listener := range l.listeners {
		listener.Close()
	}
	for p := range l.pairs {
		p.close()
	}
	for _, w := range l.ways {
		w.set(func(w *way) { w.finished = true })
	}
	l.mu.Unlock()
	l.working.Wait()
}
