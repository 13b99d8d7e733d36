package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"ticketing/fsm"
	"ticketing/rpc"
)

// keep is the locks that were granted for ages and are not given back. They must be there in the
// end.
type keep struct {
	mu    sync.Mutex
	locks map[string]fsm.Token
}

func (k *keep) add(lock *rpc.Lock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locks == nil {
		k.locks = map[string]fsm.Token{}
	}
	k.locks[lock.Key()] = lock.Token()
}

func (k *keep) any() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.locks) > 0
}

// crowd is clients that take locks.
type crowd struct {
	cancel context.CancelFunc
	going  sync.WaitGroup
	seed   uint64
}

// crowd lets n clients compete for half as many keys, until it is stopped.
func (s *stage) crowd(n int) *crowd {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{cancel: cancel, seed: rand.Uint64()}
	s.t.Cleanup(c.stop)
	for i := range n {
		name := fmt.Sprintf("client %d", i)
		m := &member{s, s.dial(name), name, rand.New(rand.NewPCG(c.seed, uint64(i))), max(1, n/2)}
		c.going.Go(func() { m.live(ctx) })
	}
	return c
}

func (c *crowd) stop() {
	c.cancel()
	c.going.Wait()
}

// member is one client of a crowd.
type member struct {
	*stage
	client *rpc.Client
	name   string
	r      *rand.Rand
	keys   int
}

func (m *member) pause(ctx context.Context, most time.Duration) {
	select {
	case <-time.After(m.upTo(most)):
	case <-ctx.Done():
	}
}

func (m *member) upTo(most time.Duration) time.Duration {
	return time.Duration(m.r.Int64N(int64(most)))
}

func (m *member) live(ctx context.Context) {
	for turn := 0; ctx.Err() == nil; turn++ {
		key, length := fmt.Sprintf("key %d", m.r.IntN(m.keys)), lease+m.upTo(lease)
		keeps := m.r.IntN(20) == 0
		if keeps {
			key, length = fmt.Sprintf("%s, turn %d", m.name, turn), ages
		}
		ask := m.history.Lock
		if !keeps && m.r.IntN(8) == 0 {
			ask = m.history.TryLock
		}
		patience, cancel := context.WithTimeout(ctx, lease+m.upTo(lease))
		lock, err := ask(patience, m.client, m.name, key, length)
		cancel()
		switch {
		case err != nil:
			m.pause(ctx, 20*time.Millisecond)
		case keeps:
			m.kept.add(lock)
		case m.r.IntN(30) == 0: // left to its lease
			select {
			case <-lock.Done():
				m.tooLate(lock)
			case <-ctx.Done():
			}
		default:
			m.pause(ctx, 10*time.Millisecond)
			m.giveBack(lock)
		}
	}
}

// giveBack is not cut short when the crowd is stopped: what is known of it should be.
func (m *member) giveBack(lock *rpc.Lock) {
	ctx, cancel := context.WithTimeout(context.Background(), lease)
	defer cancel()
	_ = m.history.Unlock(ctx, m.name, lock) // what came of it is in the history
}

// tooLate gives back a lock whose lease is over, which somebody else may have by now.
func (m *member) tooLate(lock *rpc.Lock) {
	ctx, cancel := context.WithTimeout(context.Background(), lease)
	defer cancel()
	_ = m.history.Release(ctx, m.client, m.name, lock.Key(), lock.Token()) // as above
}
