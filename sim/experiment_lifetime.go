package sim

import (
	"context"
	"errors"
	"fmt"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// Lifetime is the outcome of the experiment about leases and elections, a row for each number of
// elections within one lease.
type Lifetime struct {
	From  uint64        `json:"from"`
	To    uint64        `json:"to"`
	Lease trace.Time    `json:"lease_us"`
	Rows  []LifetimeRow `json:"rows"`
}

// LifetimeRow has the three policies side by side. Own is what fsm.Replica does, measured: each
// server counts on from its own apply. The two others are reckoned from the same runs' events.
type LifetimeRow struct {
	Elections int    `json:"elections"`      // within the lease,
	Held      int64  `json:"elections_held"` // and over all seeds
	Own       Policy `json:"own_remaining"`
	Restart   Policy `json:"restart_at_full"`
	Stale     Policy `json:"stale_checkpoint"`
}

// Policy is how long a lease lasted over all seeds, in parts per million of what it was granted for,
// and how often it was over before its holder's own clock said so.
type Policy struct {
	Shortest int64 `json:"shortest_ppm"`
	Mean     int64 `json:"mean_ppm"`
	Longest  int64 `json:"longest_ppm"`
	Early    int64 `json:"early_seeds"`
	sum      trace.Time
	seeds    int64
}

// MostElections is how many elections there are within the lease at most.
const MostElections = 50

const (
	lifeLease   = 60 * trace.Second
	lifeSpacing = lifeLease / (MostElections + 2) // from one election to the next
	lifeDrift   = 10_000                          // clocks are wrong by up to 1 %, and the holder keeps the law's margin
	lifeStep    = 10                              // elections from row to row
	// A checkpoint is written every so often. It is longer than from one election to the next, so that
	// what such a policy counts twice shows.
	lifeCheckpoint = lifeLease / 20
	// How much later than on the slowest clock the end may come: messages, a commit, an election.
	lifeSlack = lifeLease / 50
)

// life is one run: when the tenure began and ended, when its holder stopped, and who led from when
// on.
type life struct {
	granted, ended, stops trace.Time
	leaders               []reign
}

// A reign begins when a leader has applied the first entry of its term.
type reign struct {
	from trace.Time
	rate int64 // of its clock
}

// RunLifetime measures how long a lease lasts through many elections.
func RunLifetime(ctx context.Context, s Seeds) (*Lifetime, error) {
	all := &Lifetime{From: s.From, To: s.To, Lease: lifeLease}
	for elections := 0; elections <= MostElections; elections += lifeStep {
		lives, err := overSeeds(ctx, s, func(seed uint64) (*life, error) {
			return liveThrough(seed, elections)
		})
		if err != nil {
			return nil, fmt.Errorf("%d elections: %w", elections, err)
		}
		row := LifetimeRow{Elections: elections}
		for _, l := range lives {
			row.Held += int64(len(l.leaders)) - 1
			row.Own.add(l, l.ended)
			row.Restart.add(l, l.restartAtFull())
			row.Stale.add(l, l.staleCheckpoint())
		}
		all.Rows = append(all.Rows, row)
	}
	return all, nil
}

// add counts a lease that ended at a time.
func (p *Policy) add(l *life, ended trace.Time) {
	factor := int64((ended - l.granted) * trueRate / lifeLease)
	if p.seeds++; p.seeds == 1 {
		p.Shortest = factor
	}
	p.Shortest, p.Longest = min(p.Shortest, factor), max(p.Longest, factor)
	p.sum += ended - l.granted
	p.Mean = int64(p.sum * trueRate / lifeLease / trace.Time(p.seeds))
	if ended < l.stops {
		p.Early++
	}
}

// restartAtFull is when the lease would have ended if each leader gave it its full time again, as
// etcd and Consul do.
func (l *life) restartAtFull() trace.Time {
	for i, r := range l.leaders {
		end := r.from + lifeLease*trueRate/trace.Time(r.rate)
		if i+1 == len(l.leaders) || end <= l.leaders[i+1].from {
			return end
		}
	}
	return never
}

// staleCheckpoint is when the lease would have ended if leaders wrote what is left of it into the
// log now and then, and the next one went on from the last such checkpoint, less all the time that
// may have gone since it. So it is sure never to be late, and counts time twice.
func (l *life) staleCheckpoint() trace.Time {
	left := lifeLease
	for i, r := range l.leaders {
		end := r.from + left*trueRate/trace.Time(r.rate)
		if i+1 == len(l.leaders) || end <= l.leaders[i+1].from {
			return end
		}
		next := l.leaders[i+1].from
		passed := share(next-r.from, r.rate)
		left -= passed/lifeCheckpoint*lifeCheckpoint + lifeCheckpoint
		if left <= 0 {
			return next
		}
	}
	return never
}

// liveThrough grants a lease and has so many elections within it, each because the leader is cut
// off from the others.
func liveThrough(seed uint64, elections int) (*life, error) {
	l := &life{}
	setUp := drawnClocks(seed, lifeDrift, []Actor{"S1", "S2", "S3", "A"})
	w, err := beginWorld(seed, defaultConfig(), "", []Actor{"A"}, setUp...)
	if err != nil {
		return nil, err
	}
	l.reign(w, w.leader())
	w.checks.add(invariant{apply: l.follow})
	if err := w.do(Acquire{Client: "A", Key: experimentKey, Lease: duration(lifeLease)}); err != nil {
		return nil, err
	}
	if err := w.do(Until{Cond: CondClient{Client: "A", State: stateGranted}}); err != nil {
		return nil, err
	}
	l.leaders[0].from = l.granted // no leader before had a lease to count
	l.stops = newWatch(w, share(lifeLease, lawMargin(lifeDrift))).stop(w.client("A"))
	for i := range elections {
		w.advance(l.granted + trace.Time(i+1)*lifeSpacing)
		if err := l.elect(w); err != nil {
			return nil, fmt.Errorf("election %d: %w", i+1, err)
		}
	}
	for limit := w.now + 2*lifeLease; l.ended == 0 && w.next(limit); {
	}
	if err := w.ended(); err != nil {
		return nil, err
	}
	if l.ended == 0 {
		return nil, errors.New("the lease never ended")
	}
	return l, nil
}

// elect cuts the leader off until another has taken over.
func (l *life) elect(w *World) error {
	if l.ended != 0 {
		return fmt.Errorf("the lease is over, after %s", l.ended-l.granted)
	}
	reigns := len(l.leaders)
	if err := w.do(Isolate{Node: w.leader().id}); err != nil {
		return err
	}
	for limit := w.now + 4*lifeSpacing; len(l.leaders) == reigns && w.next(limit); {
	}
	if err := w.ended(); err != nil {
		return err
	}
	if len(l.leaders) == reigns {
		return errors.New("nobody took over")
	}
	return w.do(Heal{})
}

// follow sees what servers apply.
func (l *life) follow(w *World, n *node, a *fsm.Applied) string {
	switch first := int(a.Index) == w.ledger.applied+1; {
	case a.Envelope.Kind == fsm.Noop && n.status.Role == raft.Leader && a.Term == n.status.Term:
		if l.ended == 0 {
			l.reign(w, n)
		}
	case first && a.Result.Kind == fsm.Granted:
		l.granted = w.now
	case first && a.Result.Kind == fsm.Expired && a.Result.Existed:
		l.ended = w.now
	}
	return ""
}

func (l *life) reign(w *World, n *node) {
	l.leaders = append(l.leaders, reign{w.now, n.clock.rate})
}

// Check returns nil if the outcome is what the law says, and what is wrong with it otherwise.
func (f *Lifetime) Check() error {
	var o objections
	seeds := int64(f.To - f.From + 1)
	fastest := int64(trueRate) * trueRate / (trueRate + lifeDrift)
	slowest := int64(trueRate) * trueRate / (trueRate - lifeDrift)
	slack := int64(lifeSlack * trueRate / lifeLease)
	for _, r := range f.Rows {
		o.deny(r.Own.Early != 0,
			"own remaining time, %d elections: %d leases ended early", r.Elections, r.Own.Early)
		o.deny(r.Own.Shortest < fastest || r.Own.Longest > slowest+slack,
			"own remaining time, %d elections: a lease lasted %s to %s of what it was granted for, "+
				"more than clocks explain", r.Elections, percent(r.Own.Shortest), percent(r.Own.Longest))
		o.deny(r.Restart.Early != 0,
			"restart at full, %d elections: %d leases ended early", r.Elections, r.Restart.Early)
		o.deny(r.Held < int64(r.Elections)*seeds,
			"%d elections in %d runs, %d in each were wanted", r.Held, seeds, r.Elections)
	}
	last := f.Rows[len(f.Rows)-1]
	o.deny(last.Elections != MostElections, "there were %d elections", last.Elections)
	o.deny(last.Restart.Shortest < 2*trueRate-200_000,
		"restart at full: leases lasted only %s of a lease", percent(last.Restart.Shortest))
	o.deny(last.Stale.Early != seeds,
		"stale checkpoint: only %d of %d leases ended early", last.Stale.Early, seeds)
	return o.err()
}
