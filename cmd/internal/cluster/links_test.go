package cluster

import (
	"net"
	"strings"
	"testing"
	"time"

	"ticketing/raft"
)

// A wire is two servers that say what they are told to, connected through Links.
type wire struct {
	t                *testing.T
	links            *Links
	opened, accepted net.Conn // server 1's end and server 2's
	listener         net.Listener
}

func newWire(t *testing.T) *wire {
	t.Helper()
	var listeners [2]net.Listener
	for i := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		listeners[i] = l
	}
	links, err := newLinks(map[raft.ServerID]string{
		1: listeners[0].Addr().String(), 2: listeners[1].Addr().String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(links.close)
	w := &wire{t: t, links: links, listener: listeners[1]}
	w.connect()
	return w
}

func (w *wire) connect() {
	w.t.Helper()
	var err error
	if w.opened, err = net.Dial("tcp", w.links.proxy("S1", "S2")); err != nil {
		w.t.Fatal(err)
	}
	if w.accepted, err = w.listener.Accept(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.opened.Close(); w.accepted.Close() })
}

func (w *wire) say(c net.Conn, text string) {
	w.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

// hear reads until the text has come, or for as long as that.
func (w *wire) hear(c net.Conn, text string, within time.Duration) string {
	w.t.Helper()
	heard, buffer := "", make([]byte, 100)
	c.SetReadDeadline(time.Now().Add(within))
	for !strings.HasSuffix(heard, text) || text == "" {
		n, err := c.Read(buffer)
		heard += string(buffer[:n])
		if err != nil {
			break
		}
	}
	return heard
}

const (
	soon  = 10 * time.Second       // what must come
	never = 150 * time.Millisecond // what must not
)

// What a link is about is whose messages they are, and not who has opened the connection.
func TestAHoldIsAboutOneDirectionOfEveryConnection(t *testing.T) {
	w := newWire(t)
	w.links.Hold("S1", "S2")
	w.say(w.opened, "request ")
	w.say(w.accepted, "question ")
	if heard := w.hear(w.opened, "question ", soon); heard != "question " {
		t.Errorf("server 1 hears %q", heard)
	}
	w.say(w.opened, "reply ")
	if heard := w.hear(w.accepted, "", never); heard != "" {
		t.Errorf("server 2 hears %q through a hold", heard)
	}
	if n := w.links.Kept("S1", "S2"); n != len("request reply ") {
		t.Errorf("%d bytes are kept", n)
	}
	w.links.Hold("S2", "S1")
	w.links.Release("S1", "S2")
	if heard := w.hear(w.accepted, "reply ", soon); heard != "request reply " {
		t.Errorf("after the release server 2 hears %q", heard)
	}
	w.say(w.accepted, "answer ")
	if heard := w.hear(w.opened, "", never); heard != "" {
		t.Errorf("server 1 hears %q through a hold", heard)
	}
}

func TestACutLosesWhatPassesAndWhatWaitsAndIsNotNoticed(t *testing.T) {
	w := newWire(t)
	w.links.Hold("S1", "S2")
	w.say(w.opened, "waits ")
	for w.links.Kept("S1", "S2") == 0 {
		time.Sleep(time.Millisecond)
	}
	w.links.Cut("S1", "S2")
	w.links.Release("S1", "S2")
	w.say(w.opened, "passes ")
	w.say(w.accepted, "the other way ")
	if heard := w.hear(w.opened, "way ", soon); heard != "the other way " {
		t.Errorf("server 1 hears %q", heard)
	}
	w.opened.Close()
	w.accepted.SetReadDeadline(time.Now().Add(never))
	if n, err := w.accepted.Read(make([]byte, 9)); n > 0 || !isTimeout(err) {
		t.Errorf("through a cut server 2 reads %d bytes, %v", n, err)
	}
	if n := w.links.Lost("S1", "S2"); n != len("waits passes ") {
		t.Errorf("%d bytes are lost", n)
	}
	old := w.accepted
	w.connect() // during the cut
	w.say(w.opened, "again ")
	if heard := w.hear(w.accepted, "", never); heard != "" {
		t.Errorf("on a new connection server 2 hears %q through a cut", heard)
	}
	w.links.Heal("S1", "S2")
	for _, c := range []net.Conn{old, w.accepted} { // what follows could not be understood
		c.SetReadDeadline(time.Now().Add(soon))
		if n, err := c.Read(make([]byte, 9)); n > 0 || err == nil || isTimeout(err) {
			t.Errorf("a connection that has lost something gives %d bytes, %v", n, err)
		}
	}
	w.connect()
	w.say(w.opened, "now ")
	if heard := w.hear(w.accepted, "now ", soon); heard != "now " {
		t.Errorf("after the cut server 2 hears %q", heard)
	}
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

func TestADelayKeepsTheOrder(t *testing.T) {
	w := newWire(t)
	w.links.Delay("S1", "S2", 100*time.Millisecond, 200*time.Millisecond)
	start := time.Now()
	w.say(w.opened, "a")
	time.Sleep(10 * time.Millisecond) // it must be a piece of its own
	w.say(w.opened, "b")
	if heard := w.hear(w.accepted, "b", soon); heard != "ab" {
		t.Errorf("server 2 hears %q", heard)
	}
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}

// A client that has joined has links of its own. One that has not goes to the servers past all
// proxies, even if all that it knows is a proxy's address.
func TestAClientThatHasJoinedHasLinks(t *testing.T) {
	w := newWire(t)
	server := w.links.servers["S2"]
	for _, known := range []string{server, w.links.proxy("S1", "S2")} {
		if addr := w.links.route("A", known); addr != server {
			t.Errorf("a client that knows %s dials %s, S2 is at %s", known, addr, server)
		}
	}
	if err := w.links.Join("A"); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", w.links.route("A", w.links.proxy("S1", "S2")))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if w.accepted, err = w.listener.Accept(); err != nil {
		t.Fatal(err)
	}
	defer w.accepted.Close()
	w.links.Hold("S2", "A")
	w.say(w.accepted, "answer ")
	if heard := w.hear(c, "", never); heard != "" {
		t.Errorf("A hears %q through a hold", heard)
	}
	w.links.Release("S2", "A")
	if heard := w.hear(c, "answer ", soon); heard != "answer " {
		t.Errorf("A hears %q", heard)
	}
}
