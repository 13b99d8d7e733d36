package fsm

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"ticketing/raft"
)

// heap is what the program's memory holds, garbage collected.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one has only marked for its end
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A crowd is one server that leads a cluster of its own, to hold many locks with.
type crowd struct {
	*Replica
	t       testing.TB
	clock   raft.Time
	calls   uint64
	longest time.Duration // that a Tick and the Take after it took, or a Take after requests
	expired int
}

func newCrowd(t testing.TB, config Config) *crowd {
	t.Helper()
	r, err := New(config, raft.Durable{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{Replica: r, t: t}
	c.ElectionTimeout()
	c.settle()
	if !c.leader.ready {
		t.Fatal("it does not lead")
	}
	return c
}

// settle takes until there is nothing more to save.
func (c *crowd) settle() {
	c.t.Helper()
	for c.round() {
	}
}

// round is what a server's loop does between two looks at its inputs. It reports whether there is
// more.
func (c *crowd) round() bool {
	c.t.Helper()
	begin := time.Now()
	c.Tick(c.clock)
	out, err := c.Take()
	c.longest = max(c.longest, time.Since(begin))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, a := range out.Applied {
		if a.Result.Existed {
			c.expired++
		}
	}
	if out.Write.Seq == 0 {
		return false
	}
	c.Saved(out.Write.Seq)
	return true
}

// key numbers keys in 12 bytes.
func key(i int) string { return fmt.Sprintf("jobs/%07d", i) }

// hold grants n locks, a thousand at once, each for a lease that is told.
func (c *crowd) hold(n int, leaseMS func(i int) int64) {
	c.t.Helper()
	for i := range n {
		c.calls++
		c.Request(Request{Call: c.calls, Kind: Grant, Owner: "worker-3", Key: key(i), LeaseMS: leaseMS(i)})
		if i%1000 == 999 {
			c.settle()
		}
	}
	c.settle()
	same(c.t, "held", n, c.Table().Len())
}

// docs/locktable.md, "Sizes". The whole server: its log, the table, the countdowns, and what it
// remembers as leader. Then what a held lock takes of that in the table and the countdowns, since
// the log is as long as its history and not as there are locks. TICKETING_LONG=1 holds the million,
// else a tenth of it is held in a tenth of the memory.
func TestAMillionHeldLocksFitInAGigabyte(t *testing.T) {
	n, limit := 100_000, uint64(1<<30)/10
	if os.Getenv("TICKETING_LONG") != "" {
		n, limit = 1_000_000, 1<<30
	}
	before := heap()
	c := newCrowd(t, testConfig(1, 1))
	c.hold(n, func(int) int64 { return 10_000 })
	whole := heap() - before
	c.core, c.leader, c.out = nil, nil, Output{}
	locks := heap() - before
	t.Logf("%d locks with keys of %d bytes: %d B each in a server, %d B in its table and countdowns",
		n, len(key(0)), whole/uint64(n), locks/uint64(n))
	if whole > limit {
		t.Errorf("a server with %d locks takes %d B, more than %d", n, whole, limit)
	}
	if each := locks/uint64(n) - uint64(len(key(0))); each > 300 {
		t.Errorf("a held lock takes %d B besides its key", each)
	}
	if locks < uint64(n)*100 { // it cannot be: then what was held is not among what was counted
		t.Errorf("too tame: %d locks in %d B", n, locks)
	}
	runtime.KeepAlive(c)
}

// A Grant costs one entry, and so does whatever else a client asks for, waits and hand-overs
// included. What is refused costs none, nor does asking again while the first attempt is on its way.
func TestWhatAClientAsksForCostsOneEntry(t *testing.T) {
	c := leading(t, Rules{})
	const cycles = 100
	last := c.status(1).LastIndex
	cost := func(what string, want raft.Index) {
		t.Helper()
		c.settle()
		now := c.status(1).LastIndex
		same(t, "entries for "+what, want, now-last)
		last = now
	}
	token := Token(0)
	for range cycles {
		token++
		c.ask(1, acquire(1, "door"))
		c.settle()
		c.ask(1, release(1, "door", token))
		c.settle()
	}
	cost("Grants and Releases", 2*cycles)
	a := c.ask(1, acquire(1, "door"))
	c.ask(1, c.again(a))
	cost("a Grant that is asked for twice", 1)
	b := c.ask(1, c.again(c.ask(1, acquire(2, "door"))))
	c.ask(1, try(3, "door"))
	cost("a wait that is asked for twice, and a try", 0)
	c.ask(1, extend(1, "door", token+1))
	cost("an Extend", 1)
	c.sent = nil
	c.ask(1, release(1, "door", token+1))
	cost("a Release and the next one's Grant", 2)
	same(t, "in messages", []string{fmt.Sprintf("release door %d, grant door", token+1)}, c.batches(2))
	same(t, "B", fmt.Sprintf("Granted{%d}", token+2), c.answer(b))
	c.tick(1, 10*second)
	cost("the end of a lease", 1)
}

// Sessions are bounded in number and in size, so all of them together are.
func TestASessionIsSmallAndSoAreAllTogether(t *testing.T) {
	for _, row := range []struct{ sessions, open, limit uint64 }{
		{maxSessions, 0, 256}, {maxSessions, 1, 320}, {100, maxOpen, 300 + 48*maxOpen},
	} {
		before := heap()
		var table Table
		for i := range raft.Index(row.sessions) {
			table.Apply(i+1, openOne)
		}
		for i := range raft.Index(row.sessions) {
			for seq := range row.open {
				e := Envelope{Client: ClientID(i) + 1, Seq: seq + 1, Lowest: 1, Command: Command{Text: "x"}}
				table.Apply(maxSessions+i*maxOpen+raft.Index(seq), e)
			}
		}
		each := (heap() - before) / row.sessions
		t.Logf("%d requests open: %d B a session", row.open, each)
		if each > row.limit || each < 16 {
			t.Errorf("a session with %d requests open takes %d B, not up to %d", row.open, each, row.limit)
		}
		same(t, "results", int(row.open), len(table.sessions[1].done))
	}
}

// Of a million leases a thousand end in one moment, and then all others. The longest time that one
// Tick and Take take is what everything else in the server has to wait. (Alone on a machine: what is
// measured is this program's clock and not its share of a processor.)
func BenchmarkLongestRoundOfAMillionLocks(b *testing.B) {
	const n, due = 1_000_000, 1000
	for b.Loop() {
		c := newCrowd(b, testConfig(1, 1))
		c.hold(n, func(i int) int64 {
			if i%(n/due) == 0 {
				return 10_000
			}
			return 20_000
		})
		expire := func(most int, unit string) {
			c.longest = 0
			c.clock += 10 * second
			for c.expired < most {
				c.settle()
			}
			b.ReportMetric(float64(c.longest.Nanoseconds()), unit)
		}
		expire(due, "max-ns/thousand-due")
		expire(n, "max-ns/all-due")
	}
}
