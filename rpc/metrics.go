package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// metrics are what the loop counts. All grow from 0 when the process starts.
type metrics struct {
	granted, rejected uint64

	// By result and cause. A Release without a client's number is the leader's own, to clean up
	// after a client that has gone.
	released, releasedCleanup, notFound, notFoundCleanup uint64

	// An Expire finds the tenure that it names, or none, or a newer one: what the guard is for.
	expiresProposed, expired, expiredFree, expiredNewer uint64

	elections, clientsLost, writes, entries uint64
	acquire, save                           histogram

	// Of snapshots. The longest step is that of the loop while one is made.
	taken, installed, snapshotBytes uint64
	snapshotSave                    histogram
	longestStep                     time.Duration
}

// observe counts what a turn of the loop has brought.
func (m *metrics) observe(out *fsm.Output) {
	for _, p := range out.Proposed {
		if p.Cause == fsm.ForLease {
			m.expiresProposed++
		}
	}
	for _, a := range out.Applied {
		m.applied(a)
	}
}

func (m *metrics) applied(a fsm.Applied) {
	cleanup := a.Envelope.Client == 0
	count := new(uint64) // of what has no metric
	switch a.Envelope.Kind {
	case fsm.Grant:
		count = choose(a.Result.Kind == fsm.Granted, &m.granted, &m.rejected)
	case fsm.Release:
		count = choose(a.Result.Kind == fsm.Released,
			choose(cleanup, &m.releasedCleanup, &m.released),
			choose(cleanup, &m.notFoundCleanup, &m.notFound))
	case fsm.Expire:
		count = choose(a.Result.Existed, &m.expired,
			choose(a.Holder == 0, &m.expiredFree, &m.expiredNewer))
	}
	*count++
}

func choose[T any](first bool, a, b *T) *T {
	if first {
		return a
	}
	return b
}

func (m *metrics) saved(took time.Duration, entries int) {
	m.writes++
	m.entries += uint64(entries)
	m.save.add(took)
}

// snapshot is all that is told at one time.
type snapshot struct {
	metrics
	status        raft.Status
	held, waiters int
	tokens, floor fsm.Token
	hangs         bool
	voters        int
	learners      int
	removed       raft.Index
	census        census
	faults        [faults]uint64
	unsaved       int
	last          SnapshotInfo
	first         raft.Index
}

// snapshot asks the loop. It goes through the peers' door: it is told even when the disk hangs.
func (n *Node) snapshot(ctx context.Context) (snapshot, error) {
	found := make(chan snapshot, 1)
	n.enter(ctx, n.fromPeers, func() {
		s := snapshot{
			metrics: n.metrics, status: n.replica.Core().Status(), hangs: n.hangs(),
			held: n.replica.Table().Len(), tokens: n.replica.Table().Tokens(),
			floor: n.config.TokenFloor, unsaved: len(n.unfinished), removed: n.removed,
			last: n.lastSnapshot(), first: n.replica.Core().FirstIndex(),
		}
		for _, m := range n.members {
			*choose(m.Voter, &s.voters, &s.learners)++
		}
		for _, c := range n.callers {
			if c.kind == fsm.Grant {
				s.waiters++
			}
		}
		found <- s
	})
	select {
	case s := <-found:
		s.census, s.faults = n.visitors.census(), n.blames.counts()
		return s, nil
	case <-ctx.Done():
		return snapshot{}, fmt.Errorf("the server is busy: %w", context.Cause(ctx))
	case <-n.ctx.Done():
		return snapshot{}, errors.New("the server has ended")
	}
}

// Healthy returns nil if the server can be of use: it answers, its disk works, and it leads or
// knows who does. The error says what is missing.
func (n *Node) Healthy(ctx context.Context) error {
	s, err := n.snapshot(ctx)
	switch {
	case err != nil:
		return err
	case n.open.Err() != nil:
		return errors.New("the server is stopping")
	case s.removed != 0:
		return fmt.Errorf("this server was removed from the cluster at index %d; stop it", s.removed)
	case s.hangs:
		return errors.New("the disk hangs: a write has not ended in time")
	case s.status.Leader == 0:
		return fmt.Errorf("no leader is known in term %d: are most of the servers running, and can "+
			"they reach this one?", s.status.Term)
	}
	return nil
}

// WriteMetrics writes how the server is in the text format of Prometheus. No label holds anything
// that a client has chosen, so there are always as many lines.
func (n *Node) WriteMetrics(ctx context.Context, w io.Writer) error {
	s, err := n.snapshot(ctx)
	if err != nil {
		return err
	}
	var t exposition
	s.locks(&t)
	s.raft(&t)
	s.compaction(&t)
	s.host(&t)
	_, err = w.Write(t.Bytes())
	return err
}

// locks is about what clients ask for, as this server has applied it: it is the same on all servers
// that have run for as long, but for what only a leader sees.
func (s *snapshot) locks(t *exposition) {
	t.family("grants_total", "counter", "Grants applied. Rejected ones found the key held.")
	t.value(s.granted, "result", "granted")
	t.value(s.rejected, "result", "rejected")
	t.family("releases_total", "counter",
		"Releases applied, a client's or the leader's own to clean up after one that has gone.")
	t.value(s.released, "result", "released", "cause", "client")
	t.value(s.releasedCleanup, "result", "released", "cause", "cleanup")
	t.value(s.notFound, "result", "notfound", "cause", "client")
	t.value(s.notFoundCleanup, "result", "notfound", "cause", "cleanup")
	t.family("expires_proposed_total", "counter", "Expires that this server has proposed as leader.")
	t.value(s.expiresProposed)
	t.family("expires_applied_total", "counter", "Expires applied, by whether they removed the lock "+
		"that they name. Found says what the key was: one that found a newer lock came late, and "+
		"without the comparison of tokens it would have removed it.")
	t.value(s.expired, "existed", "true", "found", "same")
	t.value(s.expiredFree, "existed", "false", "found", "free")
	t.value(s.expiredNewer, "existed", "false", "found", "newer")
	t.family("tokens_issued_total", "counter", "Tokens given out since the cluster began.")
	t.value(uint64(s.tokens - s.floor))
	t.family("locks_held", "gauge", "Locks in the table.")
	t.value(uint64(s.held))
	t.family("waiters", "gauge", "Requests for locks that wait for an answer of this server.")
	t.value(uint64(s.waiters))
	t.family("client_lost_total", "counter", "Clients that left before they were answered.")
	t.value(s.clientsLost)
	t.histogram("acquire_seconds", "From the arrival of a request to its Grant.", &s.acquire)
}

// raft is about the log.
func (s *snapshot) raft(t *exposition) {
	flag := func(set bool) uint64 {
		if set {
			return 1
		}
		return 0
	}
	for _, g := range []struct {
		name, help string
		value      uint64
	}{
		{"is_leader", "1 if this server leads.", flag(s.status.Role == raft.Leader)},
		{"disk_hangs", "1 if a write has not ended in time.", flag(s.hangs)},
		{"term", "The current term.", uint64(s.status.Term)},
		{"commit_index", "The last entry that is known to be committed.", uint64(s.status.CommitIndex)},
		{"applied_index", "The last entry that is applied.", uint64(s.status.LastApplied)},
		{"last_index", "The last entry in the log.", uint64(s.status.LastIndex)},
	} {
		t.family(g.name, "gauge", g.help)
		t.value(g.value)
	}
	t.family("members", "gauge", "Servers of the cluster, by whether they vote.")
	t.value(uint64(s.voters), "vote", "yes")
	t.value(uint64(s.learners), "vote", "no")
	t.family("removed_at_index", "gauge", "The entry that has removed this server, 0 if none has.")
	t.value(uint64(s.removed))
	t.family("elections_total", "counter", "Elections in which this server stood.")
	t.value(s.elections)
	t.family("writes_total", "counter", "Writes to the log on disk, each with one fsync.")
	t.value(s.writes)
	t.family("entries_written_total", "counter", "Entries in these writes.")
	t.value(s.entries)
	t.histogram("write_seconds", "How long a write took, with its fsync.", &s.save)
}

// host is about connections and what came by them.
func (s *snapshot) host(t *exposition) {
	t.family("writes_unfinished", "gauge", "Writes that wait for the disk.")
	t.value(uint64(s.unsaved))
	t.family("connections", "gauge", "Connections that others have opened.")
	t.value(uint64(s.census.connections))
	t.family("connections_closed_total", "counter", "Idle connections that were closed for new ones.")
	t.value(s.census.closed)
	t.family("connections_refused_total", "counter", "Connections for which there was no room.")
	t.value(s.census.refused)
	t.family("requests_waiting", "gauge", "Clients' requests in this server that wait for anything.")
	t.value(uint64(s.census.waiting))
	t.family("refused_messages_total", "counter", "Messages that no correct peer sends, by reason.")
	for f := range firstConnection {
		t.value(s.faults[f], "reason", f.String())
	}
	t.family("refused_connections_total", "counter", "Connections that no correct peer makes, by reason.")
	for f := firstConnection; f < fault(faults); f++ {
		t.value(s.faults[f], "reason", f.String())
	}
}
