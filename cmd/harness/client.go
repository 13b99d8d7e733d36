package main

import (
	"context"
	"errors"
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
	"ticketing/rpc"
	"ticketing/sim"
)

// actor is a client of the scenario: it has one request at a time and uses the client library as
// any program would. What it is told and what it hears waits while it is paused.
type actor struct {
	name    sim.Actor
	clients map[raft.ServerID]*rpc.Client // by the server that it is sent to; 0 is for all
	answers chan answer

	seq    int // of its requests
	open   bool
	key    string
	grant  bool // the open request is for a lock
	cancel context.CancelFunc

	state  string               // its last answer, as expect names it
	token  fsm.Token            // that came with it
	tokens map[string]fsm.Token // by key; a client that goes wrong still uses an old one

	paused bool
	todo   []sim.Command
}

// answer is what came of a request.
type answer struct {
	seq   int
	key   string
	state string
	token fsm.Token
}

func newActor(name sim.Actor) *actor {
	return &actor{
		name: name, clients: map[raft.ServerID]*rpc.Client{},
		answers: make(chan answer, 64), tokens: map[string]fsm.Token{},
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
	return r.begin(a, c.Key, c.Via, true, func(ctx context.Context, k *rpc.Client) answer {
		lock := k.Lock
		if c.Try {
			lock = k.TryLock
		}
		l, err := lock(ctx, c.Key, c.Lease)
		if err != nil {
			return answer{state: stateOf(err)}
		}
		return answer{state: "granted", token: l.Token()}
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
	return r.begin(a, c.Key, c.Via, false, func(ctx context.Context, k *rpc.Client) answer {
		if err := k.Release(ctx, c.Key, token); err != nil {
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
	a *actor, key string, via raft.ServerID, grant bool,
	ask func(context.Context, *rpc.Client) answer,
) error {
	a.leave()
	k, err := r.library(a, via)
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

// library is the client library as that client has it: for all servers, or only for one.
func (r *replay) library(a *actor, via raft.ServerID) (*rpc.Client, error) {
	if k := a.clients[via]; k != nil {
		return k, nil
	}
	addrs := r.cluster.Addrs()
	if via != 0 {
		addrs = []string{r.cluster.Addr(via)}
	}
	ctx, cancel := context.WithTimeout(r.ctx, grace)
	defer cancel()
	k, err := rpc.Dial(ctx, addrs, rpc.Options{
		Owner: string(a.name), Dial: r.cluster.DialAs(string(a.name)),
	})
	if err != nil {
		return nil, fmt.Errorf("%s finds no server: %w", a.name, err)
	}
	a.clients[via] = k
	return k, nil
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
				a.tokens[y.key] = y.token
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
	k := a.clients[0]
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
