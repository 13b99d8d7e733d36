package raft_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"ticketing/raft"
)

// R15: what is not committed has a bound; one command is always taken, and commits make room.
func TestWhatIsNotCommittedHasABound(t *testing.T) {
	config := setup{size: 3}.filled().config(1)
	config.MaxUncommitted = 10
	core, err := raft.New(config, state(0, 0), 0)
	if err != nil {
		t.Fatal(err)
	}
	step := func(m raft.Message) {
		if err := core.Receive(m); err != nil {
			t.Fatal(err)
		}
		core.Saved(core.Take().Write.Seq)
	}
	core.ElectionTimeout()
	core.Saved(core.Take().Write.Seq)
	step(vote(2, 1, true))
	for round := range raft.Index(3) {
		last := core.Status().LastIndex
		step(success(2, 1, last-1, last))
		for _, size := range []int{12, 1} {
			_, _, err := core.Propose(make([]byte, size))
			if large := size > 1; large != (err == nil) || err != nil && !errors.Is(err, raft.ErrBusy) {
				t.Errorf("round %d, %d bytes: %v", round, size, err)
			}
		}
		core.Saved(core.Take().Write.Seq)
	}
}

// What busy remembers is what one would count anew, whatever has happened to the log: commits, snapshots
// that cut it off, and another leader that has replaced its end.
func TestTheBacklogIsWhatIsInTheLog(t *testing.T) {
	const room = 100
	refused, taken, compacted, replaced := 0, 0, 0, 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := newCluster(t, setup{only: 1, room: room, states: map[raft.ServerID]raft.Durable{1: state(1, 0, 1)}})
		c.failure = fmt.Sprint("seed ", seed)
		c.leads()
		for range 200 {
			s := c.status(1)
			switch random.IntN(20) {
			case 0:
				if s.CommitIndex >= c.core(1).FirstIndex() {
					c.compact(1, s.CommitIndex)
					compacted++
				}
			case 1:
				term, _ := c.core(1).Term(s.CommitIndex)
				c.receive(appendEntries(s.Term+1, s.CommitIndex, term, s.CommitIndex, s.Term+1, s.Term+1))
				if s.CommitIndex+2 < s.LastIndex {
					replaced++
				}
				c.leads()
			case 2, 3:
				behind := raft.Index(random.Uint64N(uint64(s.LastIndex - s.CommitIndex + 1)))
				c.receive(success(2, s.Term, 0, s.LastIndex-behind))
			default:
				size := random.IntN(30)
				waiting := 0
				for _, e := range c.core(1).Entries(s.CommitIndex+1, s.LastIndex) {
					waiting += len(e.Command)
				}
				var err error
				c.input(c.node(1), func(core *raft.Core) { _, _, err = core.Propose(make([]byte, size)) })
				if busy := waiting > 0 && waiting+size > room; busy != errors.Is(err, raft.ErrBusy) {
					c.fatal("%d bytes wait, %d come: %v", waiting, size, err)
				} else if busy {
					refused++
				} else if waiting > 0 {
					taken++
				}
			}
		}
	}
	t.Logf("refused %d, taken %d, compacted %d, replaced %d", refused, taken, compacted, replaced)
	if min(refused, taken, compacted, replaced) < 100 {
		t.Error("something hardly happened")
	}
}
