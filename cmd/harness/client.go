package main

import (
	"context"
	"errors"
	"fmt"

	"ticketing/fsm"
	"ticketing/rpc"
	"ticketing/sim"
)

// actor is a client of the scenario: it has one request at a time and uses the client library as
// any program would. What it is told and what it hears waits while it is paused.
type actor struct {
	name    sim.Actor
	client  *rpc.Client // nil until it is needed
	answers chan answer

	seq    int // of its requests
	open   bool
	key    string
	grant  bool // the open request is for a lock
	cancel context.CancelFunc

	state  string               // its last answer, as expect names it
	token  fsm.Token            // that came with it
	tokens map[string]fsm.Token // by key; a client that goes wrong still uses an old one
	locks  map[string]*rpc.Lock // by key: the last that it was granted

	paused bool
	todo   []sim.Command
}

// answer is what came of a request.
type answer struct {
	seq   int
	key   string
	state string
	token fsm.Token
	lock  *rpc.Lock
}

func newActor(name sim.Actor) *actor {
	return &actor{
		name:    name,
		answers: make(chan answer, 64), tokens: map[string]fsm.Token{}, locks: map[string]*rpc.Lock{},
	}
}

func (a *actor) String() string {
	state := a.state
	if state == "" {
		state = "idle"
	}
	if a.token != 0 {
		return fmt.Sprintf("%s is %s token=%d", a.name, state, a.token)
	}
	return fmt.Sprintf("%s is %s", a.name, state)
}

// doAs carries out a line about a client, or leaves it until the client goes on.
func (r *replay) doAs(name sim.Actor, command sim.Command) error {
	a := r.actors[name]
	if a == nil {
		a = newActor(name)
		r.actors[name] = a
	}
	if do, ok := command.(sim.ClientDo); ok && do.Do == "resume" {
		a.paused = false
		todo := a.todo
		a.todo = nil
		r.collect(a)
		for _, later := range todo {
			if err := r.doAs(name, later); err != nil {
				return err
			}
		}
		return nil
	}
	if a.paused {
		a.todo = append(a.todo, command)
		return nil
	}
	switch c := command.(type) {
	case sim.Acquire:
		return r.acquire(a, c)
	case sim.ReleaseLock:
		return r.release(a, c)
	case sim.Extend:
		return r.extend(a, c)
	case sim.Write:
		r.write(a, c.Key)
	case sim.ClientDo:
		if c.Do == "pause" {
			a.paused = true
		} else {
			a.leave()
		}
	}
	return nil
}

func (r *replay) acquire(a *actor, c sim.Acquire) error {
	return r.begin(a, c.Key, true, func(ctx context.Context, k *rpc.Client) answer {
		lock := k.Lock
		if c.Try {
			lock = k.TryLock
		}
		l, err := lock(ctx, c.Key, c.Lease)
		if err != nil {
			return answer{state: stateOf(err)}
		}
		return answer{state: "granted", token: l.Token(), lock: l}
	})
}

// connect opens the clients' sessions, one after the other.
func (r *replay) connect(c sim.Connect) error {
	for range c.Others {
		k, err := r.dial("")
		if err != nil {
			return err
		}
		err = k.Connect(r.ctx)
		k.Close()
		if err != nil {
			return fmt.Errorf("opening a session: %w", err)
		}
	}
	for _, name := range c.Clients {
		if r.actors[name] == nil {
			r.actors[name] = newActor(name)
		}
		k, err := r.caller(r.actors[name])
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.ctx, grace)
		err = k.Connect(ctx)
		cancel()
		if err != nil {
			return fmt.Errorf("%s opens no session: %w", name, err)
		}
		r.actors[name].state = "connected"
	}
	return nil
}

// extend asks for a new lease of what the client was last granted.
func (r *replay) extend(a *actor, c sim.Extend) error {
	l := a.locks[c.Key]
	if l == nil {
		a.state = "nothing"
		return nil
	}
	return r.begin(a, c.Key, false, func(ctx context.Context, _ *rpc.Client) answer {
		if err := l.Extend(ctx, c.Lease); err != nil {
			return answer{state: stateOf(err)}
		}
		return answer{state: "extended", token: l.Token()}
	})
}

// release gives a lock back with the token that the client was given, unless one is named. A client
// that still waits for the lock gives up instead.
func (r *replay) release(a *actor, c sim.ReleaseLock) error {
	token := a.tokens[c.Key]
	if c.TokenSet {
		token = fsm.Token(c.Token)
	}
	switch {
	case a.open && a.grant && a.key == c.Key:
		a.leave()
		return nil
	case token == 0:
		a.state = "nothing"
		return nil
	}
	l := a.locks[c.Key]
	return r.begin(a, c.Key, false, func(ctx context.Context, k *rpc.Client) answer {
		var err error
		if l != nil && l.Token() == token && l.Err() == nil {
			err = l.Unlock(ctx) // the client library counts it as held until then
		} else {
			err = k.Release(ctx, c.Key, token)
		}
		if err != nil {
			return answer{state: stateOf(err)}
		}
		return answer{state: "released"}
	})
}

// stateOf says what the client library's errors mean in a scenario.
func stateOf(err error) string {
	switch {
	case errors.Is(err, rpc.ErrHeld):
		return "rejected"
	case errors.Is(err, rpc.ErrNotHeld):
		return "not-found"
	case errors.Is(err, rpc.ErrInvalid):
		return "invalid"
	}
	return "unknown"
}

// begin sends a request and does not wait for it.
func (r *replay) begin(
	a *actor, key string, grant bool,
	ask func(context.Context, *rpc.Client) answer,
) error {
	a.leave()
	k, err := r.caller(a)
	if err != nil {
		return err
	}
	a.seq++
	a.open, a.key, a.grant, a.state, a.token = true, key, grant, "waiting", 0
	ctx, cancel := context.WithCancel(r.ctx)
	a.cancel = cancel
	seq := a.seq
	r.working.Go(func() {
		defer cancel()
		y := ask(ctx, k)
		y.seq, y.key = seq, key
		a.answers <- y
	})
	return r.arrive(a)
}

// caller is the client library as that client has it. It finds the leader by itself: a "via" in the
// scenario is no more than a hint where to look first, and not needed.
func (r *replay) caller(a *actor) (*rpc.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	k, err := r.dial(a.name)
	if err != nil {
		return nil, fmt.Errorf("%s finds no server: %w", a.name, err)
	}
	a.client = k
	return k, nil
}

func (r *replay) dial(name sim.Actor) (*rpc.Client, error) {
	ctx, cancel := context.WithTimeout(r.ctx, grace)
	defer cancel()
	return rpc.Dial(ctx, r.cluster.Addrs(), rpc.Options{
		Owner: string(name), Dial: r.cluster.DialAs(string(name)),
	})
}

// arrive lets a request get to the leader before the scenario goes on: it is there in a moment, and
// requests come in the order of their lines even if this machine is busy. It does not wait for one
// that cannot get there, and the scenario's clock does not wait at all.
func (r *replay) arrive(a *actor) error {
	l := r.view.leader()
	if r.joined[a.name] || l == nil || l.paused {
		return nil
	}
	before := r.arrived[a.name]
	_, _, err := r.wait(r.now()+arrival, func() bool { return r.arrived[a.name] > before || !a.open })
	return err
}

// leave gives up the open request, if there is one: the connection on which it waits is closed.
func (a *actor) leave() {
	if !a.open {
		return
	}
	a.cancel()
	a.open, a.state, a.token = false, "unknown", 0
}

// collect takes the answers that have come. A lock that came when the client had left already is
// given back.
func (r *replay) collect(a *actor) {
	for !a.paused {
		select {
		case y := <-a.answers:
			if !a.open || y.seq != a.seq {
				r.giveBack(a, y)
				continue
			}
			a.open, a.state, a.token = false, y.state, y.token
			if y.state == "granted" {
				a.tokens[y.key], a.locks[y.key] = y.token, y.lock
			}
		default:
			return
		}
	}
}

func (r *replay) giveBack(a *actor, y answer) {
	if y.state != "granted" {
		return
	}
	k := a.client
	r.working.Go(func() {
		// If this fails, the lease ends it.
		_ = k.Release(r.ctx, y.key, y.token)
	})
}

// write is a write to the fenced resource that a lock guards: it takes a write iff its token is at
// least the greatest that it has seen. The client does not look at its clock: one that does is
// still wrong when it is stopped right after looking.
func (r *replay) write(a *actor, key string) {
	token := a.tokens[key]
	if token == 0 {
		a.state = "nothing"
		return
	}
	a.token = token
	if a.state = "written"; uint64(token) < r.highest[key] {
		a.state = "refused"
	} else {
		r.highest[key] = uint64(token)
	}
	r.view.counts.of[a.state]++
}
