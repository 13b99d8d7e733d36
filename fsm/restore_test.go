package fsm

import (
	"testing"

	"ticketing/raft"
)

// compacting lets a server take a snapshot every few entries, keep hardly any others, and send them in
// small pieces. A piece that is lost is sent again after an election timeout, so there is one.
func compacting(every raft.Index) func(*Config) {
	return func(c *Config) {
		c.SnapshotEvery = every
		c.Raft.ChunkSize, c.Raft.Keep = 2000, every/4
		c.Raft.ElectionTimeout, c.Raft.HeartbeatTimeout = 2500*millisecond, second
	}
}

// newCompacting is a schedule with snapshots beside all that happens else: some are asked for and
// then written in small parts, each is on the disk at another moment.
func newCompacting(t testing.TB, seed uint64, rules Rules, change ...func(*Config)) *schedule {
	t.Helper()
	s := newSchedule(t, seed, rules, append(change, compacting(raft.Index(2+seed%8)))...)
	s.beside = func() {
		n := s.node(s.server())
		switch {
		case n.saving != nil && s.random.IntN(3) > 0:
			s.keep(n)
		case s.random.IntN(3) == 0:
			s.do(n.id, func(r *Replica) {
				if r.Compact() == nil {
					r.snapshots.taking.most = 100
				}
			})
		case n.snapshots.taking != nil:
			s.counts["under way"]++
			if n.Deadline() != n.now {
				s.fatal("server %d waits with a snapshot under way", n.id)
			}
			s.take(n)
		}
	}
	return s
}

// With snapshots all is as without them: the audit compares what every server applies, answers and
// restores with what the others have.
//
//spec:test Snapshot.Table
//spec:test Snapshot.Lease
func TestSnapshotsChangeNothingInAnySchedule(t *testing.T) {
	t.Parallel()
	for name, change := range ways {
		counts, stolen := runAll(t, Rules{}, change, newCompacting)
		if len(stolen) > 0 {
			t.Error(name, stolen)
		}
		same(t, name+": rejected Grants", 0, counts["GrantRejected"])
		atLeast(t, counts, "Granted", 3*schedules)
		atLeast(t, counts, "Granted again", schedules/20)
		atLeast(t, counts, "Expired{true}", schedules)
		atLeast(t, counts, "snapshots saved", 5*schedules)
		atLeast(t, counts, "restored from a leader", schedules/4)
		atLeast(t, counts, "restarted behind a snapshot", schedules/2)
		atLeast(t, counts, "under way", schedules)
		atLeast(t, counts, "went on counting", schedules/20)
		atLeast(t, counts, "counted anew", schedules/4)
	}
}
