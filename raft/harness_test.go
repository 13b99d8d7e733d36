package raft_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ticketing/raft"
)

// A cluster is a set of cores with a network and disks that do only what a test tells them to:
// messages lie in a queue for each link until they are delivered, dropped or delivered twice, and a
// write is complete at once unless the disk is slow. It uses the package's public face alone. After
// every input it asks raft.Check, raft.Delta and the observer (observer_test.go), so each test also
// is a test of everything that those know.
type cluster struct {
	t        testing.TB
	setup    setup
	nodes    []*node // the real servers, by rising id
	queues   map[link][]packet
	down     map[link]bool   // what is sent here is lost
	calls    uint64          // the last Message.Call given out
	waits    map[uint64]bool // the requests that may take until an election timeout is over
	clock    raft.Time       // the latest moment that a server has read
	trace    []string        // what happened, for the report of a failure
	failure  string          // how to run this again, printed with a failure
	observer observer
}

// setup says what a cluster starts from; a field's zero value means its default.
type setup struct {
	size          int           // its servers are 1 to size; 3
	joining       int           // and as many more, who know nobody at first
	only          raft.ServerID // the only real server, while the test plays the others; all
	states        map[raft.ServerID]raft.Durable
	careful       bool                                       // with PreVote and CheckQuorum
	batch, window int                                        // MaxBatch and Window; 64 and 4
	chunk         int                                        // ChunkSize
	largest       int                                        // MaxSnapshot
	room          int                                        // MaxUncommitted
	keep          raft.Index                                 // Keep
	jitter        func(raft.ServerID) func(uint64) raft.Time // Config's Jitter; each its own
}

type link struct{ from, to raft.ServerID }

// packet is a message on its way. Its entries share the sender's log, as they do in a real driver,
// so a copy from the moment of sending shows at delivery whether somebody wrote into them.
type packet struct {
	raft.Message
	entries []raft.Entry
	data    string // of a snapshot, for the same
}

// node is one server: its core, its disk and what it has done.
type node struct {
	id      raft.ServerID
	core    *raft.Core   // nil while it is down
	disk    raft.Durable // what a crash now would leave
	writes  []write      // begun and not part of disk yet, in order
	slow    bool         // its writes wait for save, its snapshots for saveSnapshot
	lazy    bool         // its outputs wait for take
	twin    *raft.Core   // if not nil: a clone that is given the same inputs and must do the same
	twins   bool
	seq     uint64           // the last write begun
	sent    []raft.Message   // since the last outbox
	begun   []raft.Write     // since the last newWrites
	applied []raft.Entry     // since it started; and what the snapshot stands for
	saving  *raft.Snapshot   // on its way to the disk
	files   []*raft.Snapshot // durable, and the last that is named by a write first
	seen    *raft.Snapshot   // by observeSnapshot
	reads   []raft.ReadState // answered since the last reads
	owed    map[uint64]int   // requests received and not answered yet, by Call
}

type write struct {
	raft.Write
	done bool
}

const (
	electionTimeout  raft.Time = 150_000
	heartbeatTimeout raft.Time = 50_000
)

// jitter spreads the election timeouts of a server evenly, and differently on each server.
func jitter(id raft.ServerID) func(uint64) raft.Time {
	return func(n uint64) raft.Time {
		return raft.Time(rand.NewPCG(uint64(id), n).Uint64() % uint64(electionTimeout))
	}
}

func (s setup) config(id raft.ServerID) raft.Config {
	c := raft.Config{
		ID: id, Jitter: s.jitter(id), MaxBatch: s.batch, Window: s.window,
		ElectionTimeout: electionTimeout, HeartbeatTimeout: heartbeatTimeout,
		PreVote: s.careful, CheckQuorum: s.careful, ChunkSize: s.chunk, Keep: s.keep,
		MaxSnapshot: s.largest, MaxUncommitted: s.room,
	}
	for other := range raft.ServerID(s.size) {
		if id <= raft.ServerID(s.size) {
			c.Voters = append(c.Voters, other+1)
		}
	}
	return c
}

// all is the id of the last server.
func (s setup) all() raft.ServerID { return raft.ServerID(s.size + s.joining) }

// filled replaces zero values by what they mean.
func (s setup) filled() setup {
	if s.size == 0 {
		s.size = 3
	}
	if s.batch == 0 {
		s.batch = 64
	}
	if s.window == 0 {
		s.window = 4
	}
	if s.jitter == nil {
		s.jitter = jitter
	}
	return s
}

func newCluster(t testing.TB, s setup) *cluster {
	t.Helper()
	s = s.filled()
	c := &cluster{t: t, setup: s, queues: map[link][]packet{}, down: map[link]bool{}, waits: map[uint64]bool{}}
	c.observer = newObserver()
	for id := raft.ServerID(1); id <= s.all(); id++ {
		if s.only == 0 || s.only == id {
			c.nodes = append(c.nodes, &node{id: id, disk: s.states[id]})
			c.restart(id)
		}
	}
	return c
}

// fatal ends the test with the last things that happened. It finds the test's line by itself:
// Helper in each of these functions would cost more than the cores that they drive.
func (c *cluster) fatal(format string, args ...any) {
	line := ""
	for skip := 1; ; skip++ {
		_, file, at, ok := runtime.Caller(skip)
		line = fmt.Sprintf("%s:%d", filepath.Base(file), at)
		if !ok || !strings.HasPrefix(line, "harness") {
			break
		}
	}
	from := max(0, len(c.trace)-30)
	c.t.Fatalf("%s: %s\n%s\nlast events:\n\t%s",
		line, fmt.Sprintf(format, args...), c.failure, strings.Join(c.trace[from:], "\n\t"))
}

// note adds a line to the trace. It is called so often that it forgets the old ones.
func (c *cluster) note(format string, args ...any) {
	if len(c.trace) > 1000 {
		c.trace = append(c.trace[:0], c.trace[900:]...)
	}
	c.trace = append(c.trace, fmt.Sprintf(format, args...))
}

func (c *cluster) node(id raft.ServerID) *node {
	for _, n := range c.nodes {
		if n.id == id {
			return n
		}
	}
	c.fatal("server %d is played by the test", id)
	return nil
}

func (c *cluster) core(id raft.ServerID) *raft.Core {
	if n := c.node(id); n.core != nil {
		return n.core
	}
	c.fatal("server %d is down", id)
	return nil
}

func (c *cluster) status(id raft.ServerID) raft.Status {
	return c.core(id).Status()
}

// log returns a server's whole log.
func (c *cluster) log(id raft.ServerID) []raft.Entry {
	return c.history(c.core(id)).all()
}

// logOf returns what a core has of its log.
func logOf(core *raft.Core) []raft.Entry {
	if last := core.Status().LastIndex; last >= core.FirstIndex() {
		return core.Entries(core.FirstIndex(), last)
	}
	return nil
}

// input gives a core one input, and compares before with after.
func (c *cluster) input(n *node, do func(*raft.Core)) {
	before := c.core(n.id).Clone()
	do(n.core)
	if n.twin != nil {
		do(n.twin)
	}
	c.check(n, before)
	if !n.lazy {
		c.take(n)
	}
}

// check asks everything that can be asked after an input.
func (c *cluster) check(n *node, before *raft.Core) {
	if err := raft.Check(n.core); err != nil {
		c.fatal("server %d: %v", n.id, err)
	}
	if err := raft.Delta(before, n.core); err != nil {
		c.fatal("server %d: %v", n.id, err)
	}
	if err := c.observe(n); err != nil {
		c.fatal("server %d: %v", n.id, err)
	}
	c.observer.met.observeChange(before, n.core)
	if was := before.Status(); was.LastIndex > 0 {
		if term, ok := n.core.Term(was.LastIndex); !ok || term != was.LastTerm {
			c.observer.met.replaced++
		}
	}
}

// take does what a driver does: it sends, applies and begins to save.
func (c *cluster) take(n *node) {
	before := c.core(n.id).Clone()
	out := n.core.Take()
	c.compareTwin(n, out)
	if w := out.Write; w.Seq != 0 {
		if n.seq++; w.Seq != n.seq {
			c.fatal("server %d: write %d after %d", n.id, w.Seq, n.seq-1)
		}
		w.Entries = slices.Clone(w.Entries)
		n.writes = append(n.writes, write{Write: w})
		n.begun = append(n.begun, w)
	}
	for _, m := range out.Messages {
		c.send(n, m)
	}
	n.reads = append(n.reads, out.Reads...)
	if s := out.Save; s != nil {
		if n.saving != nil {
			c.fatal("server %d: the snapshot of %d before that of %d is saved", n.id, s.LastIncludedIndex,
				n.saving.LastIncludedIndex)
		}
		n.saving = s
	}
	if out.Restore != nil {
		c.restore(n, out.Restore)
	}
	for _, e := range out.Committed {
		if e.Index != raft.Index(len(n.applied))+1 {
			c.fatal("server %d: applies entry %d after %d", n.id, e.Index, len(n.applied))
		}
		n.applied = append(n.applied, e)
	}
	c.check(n, before)
	if !n.slow {
		c.save(n.id)
		if n.saving != nil {
			c.saveSnapshot(n.id)
		}
	}
}

func (c *cluster) timeout(id raft.ServerID) {
	c.note("%d times out", id)
	c.input(c.node(id), (*raft.Core).ElectionTimeout)
}

func (c *cluster) heartbeat(id raft.ServerID) {
	c.note("%d beats", id)
	c.input(c.node(id), (*raft.Core).HeartbeatTimeout)
}

func (c *cluster) tick(id raft.ServerID, now raft.Time) {
	c.clock = max(c.clock, now)
	c.note("%d reads %d", id, now)
	c.input(c.node(id), func(core *raft.Core) { core.Tick(now) })
}

// elapse lets time pass on a network without delays: whoever is due acts, all at one moment before
// any message arrives, then everything is delivered.
func (c *cluster) elapse(until raft.Time) {
	for {
		due := until + 1
		for _, n := range c.nodes {
			if n.core != nil {
				due = min(due, n.core.Deadline())
			}
		}
		if due > until {
			return
		}
		for _, n := range c.nodes {
			if n.core == nil {
				continue
			}
			if c.tick(n.id, due); n.core.Deadline() <= due {
				c.fatal("server %d was due at %d and is still", n.id, n.core.Deadline())
			}
		}
		c.run()
	}
}

// now is the latest moment that a server has read.
func (c *cluster) now() raft.Time { return c.clock }

// passes lets server 1 read its clock at every moment at which it has something to do, for a while.
func (c *cluster) passes(d raft.Time) {
	for end := c.clock + d; c.clock < end; {
		c.tick(1, max(c.clock, min(end, c.core(1).Deadline())))
	}
}

// propose gives a leader a command and returns the index of its entry.
func (c *cluster) propose(id raft.ServerID, command string) (index raft.Index) {
	c.note("%d proposes %s", id, command)
	c.input(c.node(id), func(core *raft.Core) {
		var err error
		if index, _, err = core.Propose([]byte(command)); err != nil {
			c.fatal("server %d: propose: %v", id, err)
		}
	})
	return index
}

// leader is the server that leads the latest term, 0 if there is none.
func (c *cluster) leader() (leader raft.ServerID) {
	latest := raft.Term(0)
	for _, n := range c.nodes {
		if n.core == nil {
			continue
		}
		if s := n.core.Status(); s.Role == raft.Leader && s.Term > latest {
			leader, latest = n.id, s.Term
		}
	}
	return leader
}

// elect makes a server campaign and win. Of the others, those count that it can reach.
func (c *cluster) elect(id raft.ServerID) {
	c.timeout(id)
	c.run()
	if s := c.status(id); s.Role != raft.Leader {
		c.fatal("server %d is not elected: %+v", id, s)
	}
}

// outbox returns what a server has sent since the last call.
func (c *cluster) outbox(id raft.ServerID) []raft.Message {
	n := c.node(id)
	sent := n.sent
	n.sent = nil
	return sent
}

// newWrites returns the writes that a server has begun since the last call.
func (c *cluster) newWrites(id raft.ServerID) []raft.Write {
	n := c.node(id)
	begun := n.begun
	n.begun = nil
	return begun
}

// compareTwin checks that a clone did the same as its original, and makes a new one.
func (c *cluster) compareTwin(n *node, out raft.Output) {
	if n.twin != nil {
		if want := outline(out); want != outline(n.twin.Take()) {
			c.fatal("server %d's clone, after the same inputs, does not want to do %s", n.id, want)
		}
	}
	if n.twins {
		n.twin = n.core.Clone()
	}
}
