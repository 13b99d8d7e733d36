package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ticketing/cmd/internal/cluster"
	"ticketing/raft"
	"ticketing/rpc"
)

// rolled is a lease that no round of stops and starts outlasts.
const rolled = 20 * time.Second

// worker is a client that takes a lock, extends it and gives it back, again and again, and must not
// fail at it. A request whose outcome is unknown it makes once more.
type worker struct {
	*stage
	client          *rpc.Client
	name, key       string
	rounds, retries *atomic.Int64
	resource        *resource
}

// insist makes a request until its outcome is known.
func (w *worker) insist(what string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if !errors.Is(err, rpc.ErrUnknownOutcome) || ctx.Err() != nil {
			return fmt.Errorf("%s: %s %q: %w", w.name, what, w.key, err)
		}
		w.retries.Add(1)
	}
}

func (w *worker) live(ctx context.Context) error {
	for ctx.Err() == nil {
		var lock *rpc.Lock
		err := w.insist("locking", func(ctx context.Context) (err error) {
			lock, err = w.history.Lock(ctx, w.client, w.name, w.key, rolled)
			return err
		})
		if err == nil {
			err = w.resource.write(lock.Token())
		}
		if err == nil {
			err = w.insist("extending", func(ctx context.Context) error { return lock.Extend(ctx, rolled) })
		}
		if err == nil {
			err = w.resource.write(lock.Token())
		}
		if err == nil {
			err = w.insist("unlocking", func(ctx context.Context) error {
				return w.history.Unlock(ctx, w.name, lock)
			})
		}
		if err != nil {
			return err
		}
		w.rounds.Add(1)
	}
	return nil
}

// Five servers are stopped, upgraded and started one by one; then two join and two leave, the leader
// among them. No client fails at a lock, and what it was told is what the log has.
func TestAClusterIsRolledUnderLoad(t *testing.T) {
	t.Parallel()
	s := start(t, cluster.Config{N: 5})
	next := filepath.Join(t.TempDir(), "lockd-next") // it has another name; the program is the same
	text, err := os.ReadFile(os.Getenv(binaryEnv))
	s.must(err)
	s.must(os.WriteFile(next, text, 0o700))
	s.Upgrade(next)
	s.leader()
	r := s.workers(12)
	turns := 1
	if long() {
		turns = 5
	}
	for range turns {
		for _, id := range s.IDs() {
			s.must(s.Signal(id, syscall.SIGTERM))
			s.must(s.ExitError(id))
			s.must(s.Restart(within(t), id))
			s.leader()
			r.goOn(t)
		}
		r.replace(t, s)
	}
	r.end(t)
	s.judge()
	t.Logf("%d servers in all; %d rounds, %d requests made once more as their outcome was unknown",
		5+2*turns, r.rounds.Load(), r.retries.Load())
}

// replace adds two servers, and removes the leader and the first of the others.
func (r *rolling) replace(t *testing.T, s *stage) {
	t.Helper()
	for range 2 {
		id, err := s.Join(within(t))
		s.must(err)
		s.must(s.client.Promote(within(t), id))
		r.goOn(t)
	}
	for i := range 2 {
		id := s.leader()
		if i > 0 {
			id = s.others(id)[0]
		}
		s.must(s.client.Remove(within(t), id))
		s.must(s.Leave(id))
		s.leader()
		r.goOn(t)
	}
	y, err := s.client.Members(within(t))
	s.must(err)
	var ids []raft.ServerID
	for _, m := range y.Members {
		if m.Voter {
			ids = append(ids, m.ID)
		}
	}
	if fmt.Sprint(ids) != fmt.Sprint(s.IDs()) {
		t.Errorf("servers %v vote, %v run", ids, s.IDs())
	}
}

// rolling is the workers together.
type rolling struct {
	rounds, retries atomic.Int64
	cancel          context.CancelFunc
	going           sync.WaitGroup
	failed          chan error
}

// workers lets n clients compete for half as many keys.
func (s *stage) workers(n int) *rolling {
	ctx, cancel := context.WithCancel(context.Background())
	r := &rolling{cancel: cancel, failed: make(chan error, n)}
	parts := make([]resource, n)
	for i := range n {
		name := fmt.Sprintf("worker %d", i)
		w := &worker{
			s, s.dial(name), name, fmt.Sprintf("part %d", i/2), &r.rounds, &r.retries, &parts[i/2],
		}
		r.going.Go(func() {
			if err := w.live(ctx); err != nil {
				r.failed <- err
			}
		})
	}
	s.t.Cleanup(func() {
		cancel()
		r.going.Wait()
	})
	return r
}

// goOn waits until the workers have done some more.
func (r *rolling) goOn(t *testing.T) {
	t.Helper()
	before := r.rounds.Load()
	eventually(t, "the workers go on", func() bool { return r.rounds.Load() >= before+50 })
}

func (r *rolling) end(t *testing.T) {
	t.Helper()
	r.cancel()
	r.going.Wait()
	close(r.failed)
	for err := range r.failed {
		t.Error(err)
	}
	if r.rounds.Load() == 0 {
		t.Error("nothing was done")
	}
}
