package fsm

import (
	"fmt"
	"strings"
	"testing"

	"ticketing/raft"
)

// room lets a leader have so many bytes of commands in its log that are not committed.
func room(bytes int) func(*Config) {
	return func(c *Config) { c.Raft.MaxUncommitted = bytes }
}

// filler is a request with a long text, of more than 50 and less than 60 bytes in the log.
func filler() Request { return Request{Client: 9, Text: strings.Repeat("x", 40)} }

// filled is a leader whose log takes nothing more: its only entry that is not committed fills it.
func filled(t *testing.T, bytes int) *cluster {
	t.Helper()
	c := held1(t, Rules{}, room(bytes))
	c.ask(1, filler())
	c.held = func(m raft.Message) bool { return m.To == 1 }
	return c
}

// commits gives server 1 all messages that have come for it, and more inputs in the same moment.
func (c *cluster) commits(more ...func(*Replica)) {
	c.t.Helper()
	c.settle()
	var inputs []func(*Replica)
	for _, m := range c.wire {
		if m.To == 1 {
			inputs = append(inputs, func(r *Replica) {
				if err := r.Receive(m); err != nil {
					c.fatal("%v", err)
				}
			})
		}
	}
	c.drop(func(m raft.Message) bool { return m.To == 1 })
	c.do(1, append(inputs, more...)...)
}

// R15. Beyond the bound clients are told to ask again. A Grant that may wait, waits. When what was
// proposed is committed there is as much room as before, however often.
func TestAClientIsToldThatTooMuchIsNotCommittedAndMayAskAgain(t *testing.T) {
	c := filled(t, 50)
	for round := range 20 {
		waits := c.ask(1, acquire(2, fmt.Sprint("b", round)))
		var refused []uint64
		for _, q := range []Request{
			try(4, fmt.Sprint("c", round)), release(4, "none", 1), extend(4, "none", 1), {Kind: Open}, {Client: 4, Text: "y"},
		} {
			refused = append(refused, c.ask(1, q))
		}
		same(t, "refused", "busy, busy, busy, busy, busy", c.answers(refused...))
		same(t, "in the queue", "", c.answer(waits))
		c.commits()
		c.commits()
		same(t, "then", fmt.Sprintf("Granted{%d}", round+2), c.answer(waits))
		c.ask(1, filler())
	}
	c.ledgers()
}

// What a leader proposes by itself comes before what clients want, and who was put off before who
// comes later, as soon as there is room.
//
//spec:test L8
func TestWhatWasPutOffIsProposedBeforeWhatClientsWantThen(t *testing.T) {
	t.Run("a lease", func(t *testing.T) {
		c := filled(t, 50)
		c.tick(1, 10*second)
		if now := c.node(1).clock; c.node(1).Deadline() <= now {
			t.Errorf("at %d it does not sleep", now) // what makes room is a message, not time
		}
		n := len(c.node(1).proposed)
		more, ask := c.input(1, filler())
		c.commits(ask)
		same(t, "proposed", []string{"expire door 1 for lease"}, c.proposals(1, n))
		same(t, "the client", "busy", c.answer(more))
	})
	t.Run("a ghost", func(t *testing.T) {
		c := held1(t, Rules{}, room(50))
		c.disconnect(c.ask(1, acquire(2, "gate")))
		c.held = func(m raft.Message) bool { return m.To == 1 }
		n := len(c.node(1).proposed)
		more, ask := c.input(1, filler())
		c.commits(ask)
		same(t, "proposed", []string{"release gate 2 for cleanup"}, c.proposals(1, n))
		same(t, "the client", "busy", c.answer(more))
	})
	t.Run("one that waits", func(t *testing.T) {
		c := filled(t, 50)
		waits := c.ask(1, acquire(2, "gate"))
		n := len(c.node(1).proposed)
		more, ask := c.input(1, filler())
		c.commits(ask)
		same(t, "proposed", []string{"grant gate for client"}, c.proposals(1, n))
		c.commits()
		same(t, "answers", "Granted{2}, busy", c.answers(waits, more))
		c.ledgers()
	})
	t.Run("nothing small gets past something large", func(t *testing.T) {
		c := filled(t, 100)
		large := c.ask(1, acquire(2, strings.Repeat("k", 60)))
		small := c.ask(1, acquire(3, "gate"))
		for range 3 {
			c.commits()
		}
		same(t, "answers", "Granted{2}, Granted{3}", c.answers(large, small))
		c.ledgers()
	})
}

// A bound so low that it is met all the time, in any schedule.
func TestABoundOnWhatIsNotCommittedLosesNothingInAnySchedule(t *testing.T) {
	t.Parallel()
	counts, stolen := map[string]int{}, 0
	for seed := range uint64(schedules) {
		s := newSchedule(t, seed, Rules{}, room(60))
		s.beside = func() {
			if l := s.node(s.server()).leader; l != nil {
				counts["put off"] += len(l.ghosts) + len(l.touched)
			}
		}
		s.run(steps)
		s.calm()
		stolen += len(s.stolen)
		for _, call := range s.calls {
			if len(call.replies) > 0 && call.replies[0].Status == Busy {
				counts["busy"]++
			}
		}
		for name, n := range s.counts {
			counts[name] += n
		}
	}
	t.Log(counts)
	same(t, "stolen", 0, stolen)
	same(t, "rejected", 0, counts["GrantRejected"])
	atLeast(t, counts, "busy", schedules)
	atLeast(t, counts, "put off", schedules)
	atLeast(t, counts, "Granted", schedules)
	atLeast(t, counts, "Expired{true}", schedules)
}
