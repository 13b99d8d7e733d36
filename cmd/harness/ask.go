package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
	"ticketing/rpc"
	"ticketing/sim"
)

// This file is what somebody asks of servers who runs a cluster: to let others in, to hand over, to
// take a snapshot, to tell who holds what. He stands beside the servers, as in the simulator, and
// uses the client library, as lockctl does.

// reading is an answer that is to be compared with what was so since the question.
type reading struct {
	server raft.ServerID
	floor  raft.Index // the last entry of which somebody outside may have known when it began
	locks  []rpc.Info
	until  time.Duration // when what the servers have done meanwhile is known for certain
}

// doAsked is what is asked of servers. But for a snapshot nobody waits for the answer.
func (r *replay) doAsked(command sim.Command) (string, error) {
	defer func() { r.due = r.now() }()
	switch c := command.(type) {
	case sim.Change:
		return "", r.change(c)
	case sim.Transfer:
		return "", r.transfer(c)
	case sim.ReadTable:
		return "", r.readTable(c.Node)
	case sim.Compact:
		return r.compact(c.Node)
	}
	panic(fmt.Sprintf("harness: nobody has refused %q", command))
}

// ask lets something be asked, and afterwards what that returns be done, when the run next looks.
func (r *replay) ask(do func(context.Context) func()) {
	r.working.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, patience)
		defer cancel()
		r.told <- do(ctx)
	})
}

// with connects a client to servers for one question.
func (r *replay) with(
	ctx context.Context, o rpc.Options, addrs []string, do func(*rpc.Client) error,
) error {
	o.Dial = r.cluster.Dial
	k, err := rpc.Dial(ctx, addrs, o)
	if err != nil {
		return err
	}
	defer k.Close()
	return do(k)
}

// at asks one server, and no other in its place.
func (r *replay) at(ctx context.Context, id raft.ServerID, do func(*rpc.Client) error) error {
	return r.with(ctx, rpc.Options{NoHints: true}, []string{r.cluster.Addr(id)}, do)
}

// change asks whoever leads for other servers. One that is new is started now, with nothing on its
// disk.
func (r *replay) change(c sim.Change) error {
	if c.Do == "add" && r.view.servers[c.Node] == nil {
		s := r.view.add(c.Node)
		s.joins = true
		if err := r.cluster.Enter(r.ctx, c.Node); err != nil {
			return r.harness(err)
		}
		if err := r.view.follow(c.Node, r.traceFile(c.Node)); err != nil {
			return r.harness(err)
		}
	}
	addrs := r.cluster.Addrs()
	r.ask(func(ctx context.Context) func() {
		err := r.with(ctx, rpc.Options{}, addrs, func(k *rpc.Client) error {
			switch c.Do {
			case "promote":
				return k.Promote(ctx, c.Node)
			case "remove":
				return k.Remove(ctx, c.Node)
			}
			err := k.Add(ctx, c.Node, r.cluster.Addr(c.Node))
			if err == nil && !c.Learner {
				err = k.Promote(ctx, c.Node)
			}
			return err
		})
		return func() { r.came(c, err, "members.refused", rpc.ErrMembers, rpc.ErrChanging) }
	})
	return nil
}

// transfer asks a server to hand its leadership to another.
func (r *replay) transfer(c sim.Transfer) error {
	if _, err := r.able(c.From); err != nil {
		return err
	}
	r.ask(func(ctx context.Context) func() {
		var next raft.ServerID
		err := r.at(ctx, c.From, func(k *rpc.Client) (err error) {
			next, _, err = k.Transfer(ctx, c.To)
			return err
		})
		return func() {
			switch {
			case err == nil && next == c.To:
				r.view.counts.of["transfers.done"]++
			case errors.Is(err, rpc.ErrTransfer):
				r.view.counts.of["transfers.given-up"]++
			}
			var elsewhere *rpc.NotLeaderError
			if errors.As(err, &elsewhere) {
				err = rpc.ErrInvalid // it has nothing to hand over
			}
			r.came(c, err, "transfers.refused", rpc.ErrInvalid)
		}
	})
	return nil
}

// came tells what has come of a question if that is not what was asked for, and counts refusals.
func (r *replay) came(c sim.Command, err error, counter string, refusals ...error) {
	if err == nil || r.ctx.Err() != nil {
		return
	}
	is := func(refusal error) bool { return errors.Is(err, refusal) }
	if slices.ContainsFunc(refusals, is) {
		r.view.counts.of[counter]++
	}
	r.note(trace.KindCommand, fmt.Sprintf("%s: %v", c, err))
	r.out.remark(r.now(), fmt.Sprintf("%s: %v", c, err))
}

// compact makes a server take a snapshot, and waits until it is on the disk.
func (r *replay) compact(id raft.ServerID) (string, error) {
	if _, err := r.able(id); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(r.ctx, grace)
	defer cancel()
	var taken rpc.SnapshotInfo
	err := r.at(ctx, id, func(k *rpc.Client) (err error) {
		taken, err = k.Snapshot(ctx, r.cluster.Addr(id))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("it takes no snapshot: %w", err)
	}
	return fmt.Sprintf("up to entry %d, %d bytes", taken.Index, taken.Bytes), nil
}

// readTable asks a server who holds what.
func (r *replay) readTable(id raft.ServerID) error {
	if _, err := r.able(id); err != nil {
		return err
	}
	floor := raft.Index(len(r.view.history))
	r.view.servers[id].read = "waiting"
	r.ask(func(ctx context.Context) func() {
		locks, err := r.locksAt(ctx, id)
		return func() {
			if err != nil {
				r.view.counts.of["reads.failed"]++
				r.view.servers[id].read = "failed"
				r.out.remark(r.now(), fmt.Sprintf("%s: the read fails: %v", trace.NodeName(id), err))
				return
			}
			r.readings = append(r.readings, reading{id, floor, locks, r.now() + grace})
		}
	})
	return nil
}

// locksAt asks one server for all locks, and again as long as that knows of no leader or is
// deposed, as the client library does with one server after the other.
func (r *replay) locksAt(ctx context.Context, id raft.ServerID) (locks []rpc.Info, err error) {
	for {
		err = r.at(ctx, id, func(k *rpc.Client) (err error) {
			locks, err = k.List(ctx)
			return err
		})
		var unknown *rpc.NotLeaderError
		if !errors.As(err, &unknown) && !errors.Is(err, rpc.ErrNoLeader) {
			return locks, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(again):
		}
	}
}

// compare looks whether what was read was so at some moment since the question. What a server has
// told may be a moment ahead of its trace; what was so at no moment by then is old.
func (r *replay) compare() error {
	var left []reading
	for _, a := range r.readings {
		right, err := r.view.everHeld(a.floor, a.locks)
		switch {
		case err != nil:
			return err
		case right:
			r.view.counts.of["reads"]++
			r.view.servers[a.server].read = "answered"
		case r.now() < a.until:
			left = append(left, a)
		default:
			r.view.servers[a.server].read = "stale"
			r.out.remark(r.now(), fmt.Sprintf("%s tells what was not so any more: %v",
				trace.NodeName(a.server), a.locks))
		}
	}
	r.readings = left
	return nil
}

// everHeld reports whether these were the locks after some entry from the floor on.
func (v *view) everHeld(floor raft.Index, locks []rpc.Info) (bool, error) {
	for i := floor; int(i) <= len(v.history); i++ {
		table, err := v.tableAt(i)
		if err != nil {
			return false, err
		}
		same := len(locks) == table.Len()
		for _, l := range locks {
			tenure, held := table.Holder(l.Key)
			same = same && held && tenure.Token == l.Token
		}
		if same {
			return true, nil
		}
	}
	return false, nil
}
