package sim

import (
	"time"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// client is a user of locks with a clock of its own. It has one request at a time, finds the leader
// by itself unless told otherwise, and sends a request again when it hears nothing.
type client struct {
	index  int32 // in World.actors
	name   Actor
	clock  clock
	paused bool
	asleep bool      // with its machine: it is paused, and what is sent to it is lost
	inbox  []flight  // what arrived while it was paused,
	todo   []Command // and what it was told to do

	session    fsm.ClientID // 0 until it has opened one
	wanted     *fsm.Request // what it opens a session for, if for anything
	seq        uint64
	open       bool        // a request is not answered
	request    fsm.Request // the last one, answered or not
	via        raft.ServerID
	server     raft.ServerID // where it goes
	sentAt     []raft.Time   // when each attempt was first sent, by this client's clock
	unanswered int           // attempts since anyone answered anything

	state  string             // its last answer, as expect names it
	token  fsm.Token          // that came with it
	tokens map[string]holding // by key
	meant  map[uint64]fsm.Token

	timerGen uint32
}

// holding is what a client was last granted for a key.
type holding struct {
	token    fsm.Token
	deadline raft.Time // by its own clock, counted from before it sent the request
	parted   bool      // the client has asked to give it back
}

// Answers' names in "expect A …".
const (
	stateWaiting   = "waiting"
	stateGranted   = "granted"
	stateRejected  = "rejected"
	stateReleased  = "released"
	stateExtended  = "extended"
	stateConnected = "connected"
	stateNotFound  = "not-found"
	stateUnknown   = "unknown"
	stateForgotten = "forgotten"
	stateWritten   = "written"
	stateRead      = "read"
	stateChecked   = "checked" // of a call, not of a client
	stateRefused   = "refused"
	stateNotLeader = "not-leader"
	stateInvalid   = "invalid"
	stateLate      = "late"
	stateNothing   = "nothing"
)

// retryAfter is how long a client waits for an answer that cannot take a lease's time.
const retryAfter = raft.Time(500_000)

// acquire begins a new request.
func (w *World) acquire(c *client, a Acquire) {
	w.begins(c, fsm.Request{
		Kind: fsm.Grant, Key: a.Key, LeaseMS: leaseMS(a.Lease), Try: a.Try,
	}, a.Via)
}

// leaseMS rounds a lease up to whole milliseconds: a client must not be promised less than it asked
// for.
func leaseMS(lease time.Duration) int64 {
	ms := lease.Milliseconds()
	if lease > 0 && lease.Microseconds()%1000 > 0 {
		ms++
	}
	return ms
}

// release gives a lock back with the token that the client was given, unless one is named. A client
// that is still waiting for the lock gives up instead.
func (w *World) release(c *client, r ReleaseLock) {
	held := c.tokens[r.Key]
	if c.waitsFor(r.Key) {
		w.disconnect(c)
		return
	}
	if held.token == 0 && !r.TokenSet {
		c.state = stateNothing
		w.traceClient(c, trace.KindAnswer, trace.ClientRecord{Op: "release", Key: r.Key, Status: stateNothing})
		return
	}
	token := held.token
	if r.TokenSet {
		token = fsm.Token(r.Token)
	}
	w.begins(c, fsm.Request{Kind: fsm.Release, Key: r.Key, Token: token}, r.Via)
	if held.token == token {
		held.parted = true
		c.tokens[r.Key] = held
	}
	// What it means is the tenure that it was granted, whatever it sends (see removalMeant).
	if c.meant == nil {
		c.meant = map[uint64]fsm.Token{}
	}
	c.meant[c.seq] = held.token
	if r.TokenSet && r.Token != 0 {
		c.meant[c.seq] = fsm.Token(r.Token)
	}
}

// waitsFor reports whether a client waits for a lock, or for the session in which it will.
func (c *client) waitsFor(key string) bool {
	q := &c.request
	if q.Kind == fsm.Open && c.wanted != nil {
		q = c.wanted
	}
	return c.open && q.Kind == fsm.Grant && q.Key == key
}

// clientMeant returns the tenure that a client meant with a request, 0 for any. Its numbers go on
// from one of its sessions to the next.
func (w *World) clientMeant(e fsm.Envelope) fsm.Token {
	for _, c := range w.clients {
		if e.Client != 0 && string(c.name) == e.Owner {
			return c.meant[e.Seq]
		}
	}
	return 0
}

func (w *World) begins(c *client, q fsm.Request, via raft.ServerID) {
	if c.open {
		w.disconnect(c) // it turns to something else
	}
	c.seq++
	// It has one request at a time: all earlier ones are closed.
	q.Seq, q.Lowest, q.Owner = c.seq, c.seq, string(c.name)
	w.noteAsked(c, &q)
	c.via, c.open = via, true
	c.state, c.token = stateWaiting, 0
	if via != 0 {
		c.server = via
	}
	if c.session != 0 {
		w.pursue(c, q)
		return
	}
	c.wanted = &q
	w.pursue(c, fsm.Request{Kind: fsm.Open, Owner: q.Owner})
	w.comeUp()
}

// pursue sends a new request.
func (w *World) pursue(c *client, q fsm.Request) {
	q.Client = c.session
	c.request = q
	c.sentAt, c.unanswered = c.sentAt[:0], 0
	w.attempt(c)
}

// attempt sends the request, again or for the first time.
func (w *World) attempt(c *client) {
	c.request.Attempt = uint32(len(c.sentAt)) + 1
	c.sentAt = append(c.sentAt, c.clock.at(w.now))
	if c.unanswered >= 2 && c.via == 0 {
		w.elsewhere(c) // nobody there, it seems
	}
	c.unanswered++
	w.ask(c)
}

// ask sends the present attempt to the server that the client believes in.
func (w *World) ask(c *client) {
	if c.server == 0 {
		c.server = 1
	}
	n := w.node(c.server)
	m := &clientMessage{request: c.request}
	f := flight{from: c.index, to: n.index, kind: messageRequest, client: m}
	f.id = w.traceClientFlight(c, trace.KindRequest, &f)
	w.cause = f.id
	w.send(&f)
	w.armClient(c)
}

// armClient schedules the next attempt: a third of the lease for one that waits in a queue, which
// also tells the leader that it is still there, and less for what is answered at once.
func (w *World) armClient(c *client) {
	wait := retryAfter
	if c.request.Kind == fsm.Grant {
		wait = max(raft.Time(c.request.LeaseMS)*1000/3, 1000)
	}
	w.wakeClient(c, wait)
}

// wakeClient schedules the client's next attempt in place of any that was scheduled before.
func (w *World) wakeClient(c *client, wait raft.Time) {
	c.timerGen++
	if w.manual || !c.open {
		return
	}
	if t, ok := c.clock.when(c.clock.timers.tick(c.clock.at(w.now) + wait)); ok {
		t += c.clock.timers.lateness(w.seed, w.actors[c.index].key)
		w.schedule(event{at: t, kind: eventTimer, actor: c.index, gen: c.timerGen})
	}
}

func (w *World) clientTimer(c *client) {
	if c.open && !c.paused {
		w.steps++
		w.attempt(c)
	}
}

// elsewhere turns to the next server.
func (w *World) elsewhere(c *client) {
	for {
		c.server = c.server%raft.ServerID(len(w.nodes)) + 1
		if n := w.node(c.server); !n.joins || n.boots > 0 {
			return
		}
	}
}

// disconnect closes the client's connection. The server learns of it if the message gets there.
func (w *World) disconnect(c *client) {
	if !c.open {
		return
	}
	c.open = false
	c.state = stateUnknown
	c.timerGen++
	n := w.node(c.server)
	f := flight{from: c.index, to: n.index, kind: messageDisconnect, client: &clientMessage{request: c.request}}
	f.id = w.traceClientFlight(c, trace.KindDisconnect, &f)
	w.cause = f.id
	w.send(&f)
}

// retry sends the last request again, answered or not.
func (w *World) retry(c *client) {
	if c.seq == 0 {
		return
	}
	c.open, c.state = true, stateWaiting
	w.attempt(c)
}

// pauseClient and resumeClient stop a client and let it go on, with what has arrived and what it
// was told.
func (w *World) resumeClient(c *client) {
	c.paused, c.asleep = false, false
	c.clock.wake(w.now)
	inbox, todo := c.inbox, c.todo
	c.inbox, c.todo = nil, nil
	cause := w.cause
	for i := range inbox {
		w.cause = cause
		w.clientReceives(c, &inbox[i])
	}
	for _, command := range todo {
		w.cause = cause
		w.doClient(c, command)
	}
	if c.open {
		w.armClient(c)
	}
}

// stopOrGoOn carries out a line that does not wait until a client goes on, and reports whether it is
// one.
func (w *World) stopOrGoOn(c *client, do ClientDo) bool {
	switch do.Do {
	case "pause", "suspend":
		w.traceCommand(do)
		if do.Do == "suspend" && !c.asleep {
			w.counters[countSuspends]++
			c.asleep = true
			c.clock.sleep(w.now)
		}
		c.paused = true
	case "resume":
		w.traceCommand(do)
		if c.paused {
			w.resumeClient(c)
		}
	default:
		return false
	}
	return true
}

// doClient carries out a line about a client, or leaves it until the client goes on.
func (w *World) doClient(c *client, command Command) {
	if do, ok := command.(ClientDo); ok && w.stopOrGoOn(c, do) {
		return
	}
	if c.paused {
		c.todo = append(c.todo, command)
		return
	}
	switch command := command.(type) {
	case Acquire:
		w.acquire(c, command)
	case ReleaseLock:
		w.release(c, command)
	case Extend:
		w.extend(c, command)
	case Write:
		w.write(c, command)
	case Read:
		w.read(c, command.Key)
	case Connect:
		w.openSession(c)
	case ClientDo:
		if command.Do == "retry" {
			w.retry(c)
		} else {
			w.disconnect(c)
		}
	}
}
