package raft_test

import (
	"testing"

	"ticketing/raft"
)

// Zoo 16 and 17. The timer starts anew for the current leader and for a granted vote, and for
// nothing else: a candidate that cannot win would keep those quiet who can.
//
//spec:test Followers.Timer
//spec:test Followers.2
func TestOnlyTheLeaderAndAGrantedVoteStartTheElectionTimerAnew(t *testing.T) {
	for name, row := range map[string]struct {
		message raft.Message
		anew    bool
	}{
		"heartbeat":                     {appendEntries(2, 0, 0, 0), true},
		"heartbeat that does not match": {appendEntries(2, 9, 2, 0), true},
		"heartbeat of a later term":     {appendEntries(3, 9, 2, 0), true},
		"heartbeat of an old term":      {appendEntries(1, 0, 0, 0), false},
		"vote granted":                  {requestVote(2, 2, 2, 1), true},
		"vote granted, later term":      {requestVote(2, 3, 2, 2), true},
		"vote refused, log too short":   {requestVote(2, 2, 0, 0), false},
		"vote refused, later term":      {requestVote(2, 3, 0, 0), false},
		"vote refused, old term":        {requestVote(2, 1, 0, 0), false},
		"some reply":                    {vote(2, 2, false), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := alone(t, 3, state(2, 0, 1))
			c.tick(1, electionTimeout/2)
			before := c.core(1).Deadline()
			c.receive(row.message)
			if anew := c.core(1).Deadline() != before; anew != row.anew {
				t.Errorf("started anew: %v", anew)
			}
			if row.anew && c.core(1).Deadline() < electionTimeout/2+electionTimeout {
				t.Errorf("it ends at %d, too early", c.core(1).Deadline())
			}
		})
	}
}

// A leader has no election timer, so one that is deposed must start it.
//
//spec:test Followers.2
func TestADeposedLeaderCampaignsAgainAfterSilence(t *testing.T) {
	c := in(t, raft.Leader)
	now := 10 * electionTimeout
	c.tick(1, now)
	c.outbox(1)
	c.receive(requestVote(2, 2, 0, 0)) // refused: it has no entry
	if due := c.core(1).Deadline(); due < now+electionTimeout || due >= now+2*electionTimeout {
		t.Fatalf("the election timer ends at %d, set at %d", due, now)
	}
	c.tick(1, c.core(1).Deadline())
	same(t, "rank", rank{raft.Candidate, 3, 0}, c.rank(1))
}

// E28 (openraft 4490c678).
//
//spec:test Followers.2
func TestAnElectionTimeoutMeansNothingToALeader(t *testing.T) {
	c := in(t, raft.Leader)
	before := c.status(1)
	c.timeout(1)
	same(t, "state", before, c.status(1))
	same(t, "messages", 0, len(c.outbox(1)))
	same(t, "writes", 0, len(c.newWrites(1)))
}

// P12, P13: each wait is drawn anew, by the next number, as follower and as candidate.
//
//spec:test Election.Random
func TestEachElectionTimeoutIsDrawnAnew(t *testing.T) {
	for _, role := range []raft.Role{raft.Follower, raft.Candidate} {
		var drawn []uint64
		config := setup{}.filled().config(1)
		config.Jitter = func(n uint64) raft.Time {
			drawn = append(drawn, n)
			return raft.Time(n * 7 % 10)
		}
		core, err := raft.New(config, raft.Durable{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		seen, now := map[raft.Time]bool{}, raft.Time(1000)
		for range 50 {
			seen[core.Deadline()-now-electionTimeout] = true
			if role == raft.Candidate {
				now = core.Deadline()
			} else {
				now++ // the leader speaks
			}
			core.Tick(now)
			if role == raft.Follower {
				if err := core.Receive(appendEntries(1, 0, 0, 0)); err != nil {
					t.Fatal(err)
				}
			}
			same(t, "role", role, core.Status().Role)
		}
		same(t, "different waits", 10, len(seen))
		for i, n := range drawn {
			same(t, "number", uint64(i), n)
		}
	}
}

// P14, P15: with timers of their own, five servers seldom time out within the same tenth of a
// timeout. B23 (hashicorp/raft#50): with the same one they split the vote for ever.
//
//spec:test Election.Random
func TestDifferentTimersKeepVotesFromSplitting(t *testing.T) {
	split := 0
	const rounds = 1000
	for n := range uint64(rounds) {
		first, second := 2*electionTimeout, 2*electionTimeout
		for id := range raft.ServerID(5) {
			switch wait := jitter(id + 1)(n); {
			case wait < first:
				first, second = wait, first
			case wait < second:
				second = wait
			}
		}
		if first/(electionTimeout/10) == second/(electionTimeout/10) {
			split++
		}
	}
	if split > rounds*3/10 {
		t.Errorf("%d of %d rounds have two servers in one tenth", split, rounds)
	}
	for name, row := range map[string]struct {
		jitter func(raft.ServerID) func(uint64) raft.Time
		leads  bool
	}{
		"each its own": {jitter, true},
		"all the same": {func(raft.ServerID) func(uint64) raft.Time { return jitter(1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, setup{size: 5, jitter: row.jitter})
			c.elapse(20 * electionTimeout)
			leader := c.leader()
			same(t, "has a leader", row.leads, leader != 0)
		})
	}
}

// A clock that stands, or goes back, or is read often, does not bring an election nearer (B54).
func TestTimeoutsMeasureElapsedTimeNotReadings(t *testing.T) {
	c := alone(t, 3, state(1, 0))
	due := c.core(1).Deadline()
	for range 1000 {
		c.tick(1, due-1)
	}
	c.tick(1, 5)
	same(t, "rank", rank{raft.Follower, 1, 0}, c.rank(1))
	c.receive(appendEntries(1, 0, 0, 0)) // at due-1, not at 5
	if next := c.core(1).Deadline(); next < due-1+electionTimeout {
		t.Errorf("the timer ends at %d", next)
	}
	c.tick(1, 100*due) // asleep for long: one election, not many
	same(t, "rank", rank{raft.Candidate, 2, 0}, c.rank(1))
}
