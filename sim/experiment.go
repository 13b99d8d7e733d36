package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// An experiment measures what a sentence about locks claims, over many seeds, and can come out
// against it. This file is what the three have in common: how seeds are shared out, how a world is
// set up, and how belief is watched.

// Seeds are those of an experiment, both included, and how many are run at a time; with 0, one for
// each core. What comes out does not depend on it.
type Seeds struct {
	From, To uint64
	Jobs     int
}

// overSeeds runs something for each seed. The results stand in the order of the seeds.
func overSeeds[T any](ctx context.Context, s Seeds, one func(seed uint64) (T, error)) ([]T, error) {
	return sideBySide(ctx, s.Jobs, int(s.To-s.From+1), func(_ context.Context, i int) (T, error) {
		seed := s.From + uint64(i)
		r, err := one(seed)
		if err != nil {
			err = fmt.Errorf("seed %d: %w", seed, err)
		}
		return r, err
	})
}

// objections are what speaks against a law.
type objections struct {
	about string // what all of them are about, if that is not the whole outcome
	wrong []error
}

// deny objects if that is so.
func (o *objections) deny(that bool, format string, args ...any) {
	if that {
		o.wrong = append(o.wrong, fmt.Errorf("%s%w", o.about, fmt.Errorf(format, args...)))
	}
}

func (o *objections) err() error { return errors.Join(o.wrong...) }

// never is later than everything.
const never = trace.Time(1) << 62

// share takes a part of a time, rounded down.
func share(t trace.Time, ppm int64) trace.Time { return t * trace.Time(ppm) / trueRate }

// experimentKey is the one key that clients of experiments are after.
const experimentKey = "door"

// beginWorld makes and starts a world from set-up commands, with its clients' sessions open and a
// leader that has applied its first entry: the one that is named, or with "" one that is drawn. If the
// messages of the drawn one are slow, another may be faster.
func beginWorld(
	seed uint64, config worldConfig, leader Actor, clients []Actor, setUp ...Command,
) (*World, error) {
	w := newWorld(seed, config, clients)
	w.maxSteps = 1_000_000
	for _, c := range setUp {
		if err := w.do(c); err != nil {
			return nil, err
		}
	}
	if err := w.start(); err != nil {
		return nil, err
	}
	first := leader.Node()
	var led Cond = CondLeader{Node: first}
	if first == 0 {
		led = CondCount{Name: "leaders", Op: ">=", N: 1}
		first = raft.ServerID(below(draw(seed, streamProgram, 0, 0, 0), int64(config.nodes))) + 1
	}
	for _, c := range []Command{
		Timeout{Node: first},
		Until{Cond: led},
		Until{Cond: CondCount{Name: "noops", Op: ">=", N: 1}},
		Connect{Clients: clients},
	} {
		if err := w.do(c); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// ended is why a world cannot go on, if it cannot. In an experiment all invariants are watched, and
// none may be broken that it is not about.
func (w *World) ended() error {
	if w.halted && w.failure == nil {
		return errors.New(w.broken[len(w.broken)-1].String())
	}
	return w.failure
}

// clockAt is a set-up line: how fast an actor's clock runs, as an error in parts per million.
func clockAt(a Actor, ppm int64) Command { return SetClock{Actor: a, RatePPM: trueRate + ppm} }

// drawnClocks gives each actor a clock whose rate is wrong by at most so many parts per million.
func drawnClocks(seed uint64, most int64, actors []Actor) (setUp []Command) {
	for _, a := range actors {
		ppm := below(draw(seed, streamProgram, nameKey(string(a)), 1, 0), 2*most+1) - most
		setUp = append(setUp, clockAt(a, ppm))
	}
	return setUp
}

// delays is a set-up line: how long messages take.
func delays(lo, hi time.Duration) Command {
	return SetNetwork{LinkSpec: LinkSpec{DelaySet: true, DelayMin: lo, DelayMax: hi}}
}

// A watch adds up for how long two clients believe at the same time to hold the key. A client
// believes from the answer that granted it the lock until it gives it back, hears that it is over,
// or sees its own clock at the lease's end, less its margin. One that is stopped sees nothing, and
// acts on its belief when it goes on: so it believes for as long as it is stopped.
type watch struct {
	w       *World
	margin  trace.Time // of each lease, on the client's clock
	seen    trace.Time // overlap is added up as far as here,
	faith   []faith    // and this is what the clients believe since
	overlap trace.Time
}

// faith is what a client believes, as far as can be said before the next event.
type faith struct {
	until  trace.Time
	parted fsm.Token // it has given this one back, whatever came of it
}

func newWatch(w *World, margin trace.Time) *watch {
	return &watch{w: w, margin: margin, seen: w.now, faith: make([]faith, len(w.clients))}
}

// look is called after every event.
func (b *watch) look() {
	first, second := trace.Time(0), trace.Time(0)
	for i := range b.faith {
		until := b.faith[i].until
		first, second = max(first, until), max(second, min(first, until))
	}
	if end := min(second, b.w.now); end > b.seen {
		b.overlap += end - b.seen
	}
	b.seen = b.w.now
	for i, c := range b.w.clients {
		b.faith[i].until = b.believes(c, &b.faith[i])
	}
}

// believes says until when a client believes if nothing happens; what is over counts for nothing.
func (b *watch) believes(c *client, was *faith) trace.Time {
	if c.paused {
		if was.until > b.w.now {
			return never
		}
		return 0
	}
	held := c.tokens[experimentKey]
	if c.request.Kind == fsm.Release && c.request.Token == held.token {
		was.parted = held.token
	}
	if held.deadline == 0 || held.token == was.parted {
		return 0
	}
	return b.stop(c)
}

// stop is the true time at which a client stops using what it was last granted, if it runs.
func (b *watch) stop(c *client) trace.Time {
	t, ok := c.clock.when(c.tokens[experimentKey].deadline - raft.Time(b.margin))
	if !ok {
		return never
	}
	return t
}

// run lets events happen up to a time, and looks after each.
func (b *watch) run(limit trace.Time) error {
	for b.w.next(limit) {
		b.look()
	}
	b.w.advance(limit)
	b.look()
	return b.w.ended()
}
