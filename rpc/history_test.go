package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// tenure is what a client knows of a lock that it was granted. All clocks of a bubble are one.
type tenure struct {
	owner, key string
	token      fsm.Token
	asked, got time.Time // when Lock was called, and when it returned
	until      time.Time // when the client did not count on it any more
	returned   bool      // the service has confirmed an Unlock
}

// history is what all clients have seen.
type history struct {
	mu      sync.Mutex
	tenures []tenure
	unknown int // requests of which the outcome is not known
}

func (h *history) add(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// happened is what there was in several runs: a test of nothing would hold as well.
type happened struct{ granted, unknown, expired, late, leaders, taken, installed int }

// Eight clients take, keep, overstay and give back three locks, while links are cut and held, disks
// are slow and servers crash. Afterwards a small rule judges what they saw by the log.
func TestWhatClientsSeeFitsTheLog(t *testing.T) {
	var all happened
	for seed := uint64(1); seed <= 8; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inBubble(t, slowSync, func(t *testing.T, c *cluster, _ raft.ServerID) {
				h := c.play(t, seed)
				all.add(t, h, committed(c.nodes[c.leader()]))
			})
		})
	}
	t.Logf("%+v", all)
	if all.granted < 300 || all.unknown < 20 || all.expired < 20 || all.leaders < 30 {
		t.Errorf("too little has happened: %+v", all)
	}
}

// play lets clients live in trouble, and waits until the servers agree again.
func (c *cluster) play(t *testing.T, seed uint64) *history {
	h, stop := &history{}, time.Now().Add(2*time.Minute)
	var clients sync.WaitGroup
	for i := range uint64(8) {
		k := c.client(t, fmt.Sprint("client", i))
		clients.Go(func() { h.use(k, rand.New(rand.NewPCG(seed, i)), stop) })
	}
	c.trouble(rand.New(rand.NewPCG(seed, 1000)), stop)
	clients.Wait()
	c.leader()
	time.Sleep(2*longest + c.lease()) // the last leases end
	unlock(t, lock(t, c.client(t, "last"), "key 0", time.Minute))
	time.Sleep(longest)
	c.sameTables(t)
	return h
}

// committed is a leader's log as far as it is committed. Nothing may have been cut off in front.
func committed(leader *Node) []raft.Entry {
	log, _ := look(leader, func(r *fsm.Replica) []raft.Entry {
		return slices.Clone(r.Core().Entries(1, r.Core().Status().CommitIndex))
	})
	return log
}

// add judges a run by what was committed in it.
func (a *happened) add(t *testing.T, h *history, log []raft.Entry) {
	spans, late := replayed(t, log)
	a.late += late
	a.expired += h.judge(t, spans)
	a.granted += len(h.tenures)
	a.unknown += h.unknown
	a.leaders += int(log[len(log)-1].Term)
}

// use is one client's life.
func (h *history) use(k *Client, r *rand.Rand, stop time.Time) {
	for time.Now().Before(stop) {
		key, lease := fmt.Sprint("key ", r.IntN(3)), 4*time.Second+rand8(r)
		ctx, cancel := context.WithTimeout(context.Background(), 2*rand8(r))
		n := tenure{owner: k.options.Owner, key: key, asked: time.Now()}
		l, err := k.Lock(ctx, key, lease)
		n.got = time.Now()
		cancel()
		if err != nil {
			h.add(func() {
				if errors.Is(err, ErrUnknownOutcome) {
					h.unknown++
				}
			})
			<-time.After(rand8(r) / 8)
			continue
		}
		n.token, n.until = l.Token(), l.Deadline()
		stay := time.Duration(r.Int64N(int64(lease / 4)))
		if r.IntN(3) == 0 { // to the last moment, so that the Release and the Expire meet
			stay = time.Until(l.Deadline()) - time.Millisecond
		}
		if r.IntN(6) > 0 {
			<-time.After(stay)
			n.until = earlier(time.Now(), n.until)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			err := l.Unlock(ctx)
			cancel()
			n.returned = err == nil
		} // or it leaves the lock to its lease
		h.add(func() { h.tenures = append(h.tenures, n) })
		<-time.After(rand8(r) / 16)
	}
}

// rand8 is a time of up to eight seconds.
func rand8(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(int64(8 * time.Second))) }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// trouble makes one or two faults at a time, and in the end repairs all.
func (c *cluster) trouble(r *rand.Rand, stop time.Time) {
	for time.Now().Before(stop) {
		for range 1 + r.IntN(2) {
			c.fault(r)
			time.Sleep(rand8(r) / 4)
		}
		for id, d := range c.disks {
			d.set(func(d *disk) { d.sync = slowSync })
			if c.nodes[id] == nil {
				c.restart(id)
			}
			pairs := both(name(id), others(id)...)
			for i := range 8 {
				pairs = append(pairs, both(name(id), fmt.Sprint("client", i))...)
			}
			c.net.set(func(w *wire) { w.cut, w.held = false, false }, pairs...)
		}
		time.Sleep(rand8(r) / 2)
	}
}

func (c *cluster) fault(r *rand.Rand) {
	id := raft.ServerID(1 + r.IntN(3))
	other := others(id)[r.IntN(2)]
	hold := func(w *wire) { w.held = true }
	cut := func(w *wire) { w.cut = true }
	switch r.IntN(8) {
	case 0:
		c.net.set(hold, [2]string{name(id), other})
	case 1:
		c.net.set(cut, both(name(id), others(id)...)...)
	case 2:
		c.net.set(hold, both(name(id), others(id)...)...)
	case 3:
		for i := range 8 {
			c.net.set(hold, [2]string{name(id), fmt.Sprint("client", i)})
		}
	case 4, 7:
		for _, d := range c.disks {
			d.set(func(d *disk) { d.sync = 300 * time.Millisecond })
		}
	case 5, 6:
		if c.nodes[id] != nil {
			c.crash(id)
		}
	}
}

// span is a tenure as the log tells it.
type span struct {
	key, owner string
	from, to   raft.Index // to is 0 while it lasts
	expired    bool
}

// replayed reads a committed log with a rule of its own: a Grant takes a free key and the
// next token, a Release or an Expire ends the tenure that it names. A request that is in the log again
// does nothing, and neither does one that its client has closed. It also counts the Expires that came
// when the key was another's.
func replayed(t *testing.T, log []raft.Entry) (spans map[fsm.Token]span, late int) {
	spans = map[fsm.Token]span{}
	holder, tokens := map[string]fsm.Token{}, fsm.Token(0)
	type request struct {
		client fsm.ClientID
		seq    uint64
	}
	granted, lowest := map[request]bool{}, map[fsm.ClientID]uint64{}
	for _, entry := range log {
		e, err := fsm.Decode(entry.Command)
		if err != nil {
			t.Fatal(err)
		}
		q := request{e.Client, e.Seq}
		lowest[q.client] = max(lowest[q.client], e.Lowest)
		again := q.client != 0 && (granted[q] || q.seq < lowest[q.client])
		token, held := holder[e.Key]
		switch {
		case e.Kind == fsm.Grant && !held && !again:
			granted[q] = true
			tokens++
			holder[e.Key] = tokens
			spans[tokens] = span{key: e.Key, owner: e.Owner, from: entry.Index}
		case (e.Kind == fsm.Release || e.Kind == fsm.Expire) && held && e.Token == token:
			delete(holder, e.Key)
			s := spans[token]
			s.to, s.expired = entry.Index, e.Kind == fsm.Expire
			spans[token] = s
		case e.Kind == fsm.Expire && held:
			late++
		}
	}
	return spans, late
}

// judge checks the tenures that were acknowledged. It returns how many a lease has ended.
func (h *history) judge(t *testing.T, spans map[fsm.Token]span) (expired int) {
	slices.SortFunc(h.tenures, func(a, b tenure) int { return cmp.Compare(a.token, b.token) })
	for i, n := range h.tenures {
		s, ok := spans[n.token]
		if !ok || s.key != n.key || s.owner != n.owner {
			t.Errorf("%+v was acknowledged; by the log it is %+v", n, s)
		}
		if n.returned && (s.to == 0 || s.expired) {
			t.Errorf("%+v was given back; by the log it is %+v", n, s)
		}
		if s.expired {
			expired++
		}
		for _, later := range h.tenures[i+1:] {
			h.judgePair(t, n, later)
		}
	}
	return expired
}

// judgePair checks two tenures, the first of which has the smaller token.
func (h *history) judgePair(t *testing.T, a, b tenure) {
	if a.token == b.token {
		t.Errorf("one token for two: %+v and %+v", a, b)
	}
	if b.got.Before(a.asked) {
		t.Errorf("%+v was granted before %+v was asked for, with a greater token", b, a)
	}
	// While clocks run alike, no two believe at the same time that they hold one key.
	if a.key == b.key && b.got.Before(a.until) && a.got.Before(b.until) {
		t.Errorf("%+v and %+v overlap", a, b)
	}
}
