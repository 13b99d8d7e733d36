package sim

import (
	"errors"
	"fmt"
	"time"

	"ticketing/fsm/trace"
)

// This file is one run of the experiment about clocks.

const driftLease = 10 * trace.Second

// drifting is one run: A takes the lock and is not heard of again, B waits for it.
type drifting struct {
	seed    uint64
	margin  int64
	clocks  []Command
	leader  Actor
	delayed bool
	paused  bool
}

// overlap runs it, and returns for how long both believe to hold the lock.
func (d *drifting) overlap() (trace.Time, error) {
	config := defaultConfig()
	config.election, config.heartbeat = 4*trace.Second, trace.Second
	setUp := append([]Command{SetNodes{N: 3}}, d.clocks...)
	if d.delayed {
		// A slow answer costs the holder time, and must not cost anybody else any.
		slow := LinkSpec{DelaySet: true, DelayMax: 500 * time.Millisecond}
		setUp = append(setUp, SetNetwork{From: Everyone, To: "A", LinkSpec: slow})
	} else {
		setUp = append(setUp, delays(0, 0), SetDisk{Node: Everyone, SyncSet: true})
	}
	w, err := beginWorld(d.seed, config, d.leader, []Actor{"A", "B"}, setUp...)
	if err != nil {
		return 0, err
	}
	b := newWatch(w, share(driftLease, d.margin))
	if err := b.takes("A"); err != nil {
		return 0, err
	}
	if d.paused {
		err = d.pause(b)
	} else {
		err = w.do(Acquire{Client: "B", Key: experimentKey, Lease: duration(driftLease)})
	}
	if err == nil {
		err = b.run(w.now + 4*driftLease)
	}
	if err == nil && w.client("B").state != stateGranted {
		err = errors.New("the lock was never granted to B, so there was nothing to overlap")
	}
	return b.overlap, err
}

// takes lets a client take the lock, and waits until it has it.
func (b *watch) takes(name Actor) error {
	err := b.w.do(Acquire{Client: name, Key: experimentKey, Lease: duration(driftLease)})
	limit := b.w.now + driftLease
	for c := b.w.client(name); err == nil && c.state != stateGranted; err = b.w.ended() {
		if !b.w.next(limit) {
			return fmt.Errorf("%s did not get the lock", name)
		}
		b.look()
	}
	return err
}

// pause stops A at a drawn moment at which it believes, for a half to two and a half leases. B comes
// when the lease is over on anybody's clock, as one who had waited longer than what a great margin
// leaves of its lease would have no time for the lock.
func (d *drifting) pause(b *watch) error {
	a, now := b.w.client("A"), b.w.now
	asks := Acquire{Client: "B", Key: experimentKey, Lease: duration(driftLease)}
	pick := func(n uint64, most trace.Time) trace.Time {
		return trace.Time(below(draw(d.seed, streamProgram, 2, uint64(d.margin), n), int64(most)))
	}
	stopped := now + pick(1, b.stop(a)-now)
	resumed := stopped + driftLease/2 + pick(2, 2*driftLease)
	for _, c := range []At{
		{duration(stopped), ClientDo{Client: a.name, Do: "pause"}},
		{duration(resumed), ClientDo{Client: a.name, Do: "resume"}},
		{duration(now + driftLease*5/4), asks},
	} {
		if err := b.w.do(c); err != nil {
			return err
		}
	}
	return nil
}

// worstClocks are the fastest server, which leads, and the slowest client.
func worstClocks(ppm int64) []Command {
	return []Command{clockAt("S1", ppm), clockAt("S3", -ppm), clockAt("A", -ppm)}
}
