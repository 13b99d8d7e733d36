package sim

import (
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file is one run of an arm, and what its clients do.

// bench is one run of an arm.
type bench struct {
	*World
	watch    *watch
	unfenced bool
	programs []program
	highest  uint64 // the greatest token of any write that the resource has taken
	sum      Arm
}

// program is a client's: take the lock, look at the clock and write, a few times, give it back.
type program struct {
	c      *client
	due    trace.Time // when it does something next, if nothing happens before
	doing  string     // waits, works, paused, or rests
	tenure uint64     // its draws' ordinal
	writes int64      // that it has yet to do,
	pause  int64      // and which of them it is stopped before
}

func runArm(name string, seed uint64) (Arm, error) {
	b, err := newBench(name, seed)
	if err != nil {
		return Arm{}, err
	}
	if err := b.run(); err != nil {
		return Arm{}, err
	}
	b.sum.Grants, b.sum.Expires = b.counters[countGranted], b.counters[countExpireExisted]
	b.sum.Overlap = b.watch.overlap
	return b.sum, nil
}

func newBench(name string, seed uint64) (*bench, error) {
	config := defaultConfig()
	config.election, config.heartbeat = 300*trace.Millisecond, 100*trace.Millisecond
	clients := []Actor{"A", "B", "C"}
	setUp := drawnClocks(seed, armsDrift, append([]Actor{"S1", "S2", "S3"}, clients...))
	// One message in a hundred is slow, to the resource as well.
	slow := LinkSpec{
		DelaySet: true, DelayMin: time.Millisecond, DelayMax: 20 * time.Millisecond,
		TailSet: true, TailPPM: 10_000, Tail: 2 * time.Second,
	}
	setUp = append(setUp, SetNetwork{LinkSpec: slow})
	w, err := beginWorld(seed, config, "", clients, setUp...)
	if err != nil {
		return nil, err
	}
	if name == ArmLockDelay {
		(&door{delay: raft.Time(armsDelay)}).hang(w)
	}
	b := &bench{World: w, watch: newWatch(w, share(armsLease, armsMargin))}
	if name != ArmFencing {
		b.unfence()
	}
	for _, c := range w.clients {
		p := program{c: c}
		b.rest(&p)
		b.programs = append(b.programs, p)
	}
	return b, nil
}

// unfence lets the resource take every write, and the invariant that watches it be broken.
func (b *bench) unfence() {
	b.unfenced = true
	b.tolerate = map[string]bool{"fenced-writes": true}
}

// run lets programs and events take turns.
func (b *bench) run() error {
	end := b.now + armsEnd
	for b.now < end {
		p := b.earliest()
		limit := min(p.due, end)
		if len(b.queue) > 0 && b.queue[0].at <= limit {
			b.event(limit)
			if err := b.ended(); err != nil {
				return err
			}
			continue
		}
		b.advance(limit)
		if limit == p.due {
			if err := b.act(p); err != nil {
				return err
			}
			b.watch.look()
		}
	}
	return nil
}

func (b *bench) earliest() *program {
	first := &b.programs[0]
	for i := range b.programs {
		if b.programs[i].due < first.due {
			first = &b.programs[i]
		}
	}
	return first
}

// event carries out the next event, and sees what came of it.
func (b *bench) event(limit trace.Time) {
	if b.unfenced {
		clear(b.World.highest) // a resource without fencing remembers no token
	}
	taken, refused := b.counters[countWritten], b.counters[countRefused]
	b.next(limit)
	b.watch.look()
	b.sum.Refused += b.counters[countRefused] - refused
	if b.counters[countWritten] > taken {
		b.took(b.performed)
	}
	for i := range b.programs {
		b.heard(&b.programs[i])
	}
}

// took judges a write that the resource has taken.
func (b *bench) took(m *clientMessage) {
	b.sum.Taken++
	switch token := uint64(m.token); {
	case token < b.highest:
		b.sum.Stale++
	case m.token != b.ledger.holder[experimentKey]:
		b.sum.Late++
		fallthrough
	default:
		b.highest = token
	}
}

// heard lets a client that waits see its answer.
func (b *bench) heard(p *program) {
	if p.doing != "waits" || p.c.open {
		return
	}
	if p.c.state != stateGranted {
		b.rest(p) // it came too late
		return
	}
	p.tenure++
	p.doing = "works"
	p.writes = 1 + b.draw(p, 0, 6)
	p.pause = 0
	if b.draw(p, 1, armsPause) == 0 {
		p.pause = 1 + b.draw(p, 2, p.writes)
	}
	b.soon(p)
}

func (b *bench) draw(p *program, what uint64, n int64) int64 {
	return below(draw(b.seed, streamProgram, b.actors[p.c.index].key, p.tenure, what), n)
}

// soon is when a client that works looks at its clock next.
func (b *bench) soon(p *program) {
	p.due = b.now + armsLease/8 + trace.Time(b.draw(p, 16+uint64(p.writes), int64(armsLease/8)))
}

func (b *bench) rest(p *program) {
	p.doing = "rests"
	p.due = b.now + trace.Time(b.draw(p, 3, int64(armsLease/2)))
}

// act is a program's next step.
func (b *bench) act(p *program) error {
	key, name := experimentKey, p.c.name
	switch {
	case p.doing == "rests":
		p.doing, p.due = "waits", never
		return b.do(Acquire{Client: name, Key: key, Lease: duration(armsLease)})
	case p.doing == "paused":
		p.doing = "works"
		if b.watch.stop(p.c) <= b.now {
			b.sum.Overstays++
		}
		b.soon(p)
		return b.do(ClientDo{Client: name, Do: "resume"})
	case p.writes == 0 || b.watch.stop(p.c) <= b.now:
		b.rest(p)
		return b.do(ReleaseLock{Client: name, Key: key})
	}
	stopped := p.writes == p.pause
	p.writes--
	if !stopped {
		b.soon(p)
		return b.do(Write{Client: name, Key: key})
	}
	p.doing = "paused"
	p.due = b.now + trace.Time(b.draw(p, 4, int64(armsLongest)))
	b.sum.Pauses++
	if err := b.do(ClientDo{Client: name, Do: "pause"}); err != nil {
		return err
	}
	return b.do(Write{Client: name, Key: key}) // it has looked at its clock, and will
}
