package fsm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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

// Which session has to go is not written, and yet known: by when each was last heard.
func TestATableThatIsReadForgetsTheSameSessions(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	var table Table
	for index := range raft.Index(maxSessions + 500) {
		table.Apply(index+1, openOne)
	}
	index := raft.Index(maxSessions + 500)
	speak := func(t *Table, n uint64, index raft.Index) {
		client := ClientID(501 + n%maxSessions)
		t.Apply(index, Envelope{Client: client, Seq: n % 7, Command: Command{Text: "x"}})
	}
	for range 3000 {
		index++
		speak(&table, random.Uint64(), index)
	}
	read, err := DecodeTable(table.Encode(), index)
	if err != nil {
		t.Fatal(err)
	}
	first := table.silences[0].client
	same(t, "hash", table.Hash(), read.Hash())
	moved := 0
	for range 3000 {
		index += 2
		n := random.Uint64()
		if table.silences[0].last != table.sessions[table.silences[0].client].last {
			moved++
		}
		for _, x := range []*Table{&table, &read} {
			x.Apply(index-1, openOne)
			speak(x, n, index)
		}
		if table.Hash() != read.Hash() {
			t.Fatalf("entry %d: they have forgotten different sessions", index)
		}
	}
	if moved < 100 || table.silences[0].client == first {
		t.Errorf("too tame: %d that had spoken", moved)
	}
}

// behind is a cluster whose server 3 has missed what the leader, server 1, has in a snapshot and no
// longer in its log: door is held under token 1 by client 1, whose request was number 1, and since
// then it was extended; gate was granted and released. Server 3 has applied the Grant of the door,
// and half a second has passed on its clock.
func behind(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, 3, Rules{}, compacting(0))
	c.elect(1)
	same(t, "door", "Granted{1}", c.settled(acquire(1, "door")))
	c.do(1, (*Replica).HeartbeatTimeout)
	c.settle()
	c.tick(3, second/2)
	c.isolate(3)
	q := release(1, "door", 1)
	q.Kind, q.LeaseMS = Extend, 10_000
	same(t, "extended", "Extended", c.settled(q))
	same(t, "gate", "Granted{2}", c.settled(acquire(2, "gate")))
	same(t, "and back", "Released", c.settled(release(2, "gate", 2)))
	c.do(1, func(r *Replica) {
		if err := r.Compact(); err != nil {
			t.Fatal(err)
		}
		if err := r.Compact(); !errors.Is(err, ErrNoSnapshot) {
			t.Errorf("with one under way: %v", err)
		}
	})
	if err := c.node(1).Compact(); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("with one being saved: %v", err)
	}
	c.settle()
	if err := c.node(1).Compact(); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("with nothing new: %v", err)
	}
	return c
}

// settled asks the leader, server 1, and returns the answer.
func (c *cluster) settled(q Request) string {
	c.t.Helper()
	call := c.ask(1, q)
	c.settle()
	return c.answer(call)
}

// L12 and L13: after a leader's snapshot a server has its table, tokens and sessions. What a client
// asks again is told again and not done again; the next token is the next; the lease that was extended
// meanwhile counts from now. What the server was writing itself is of no use any more, and whoever
// waits to read is answered.
//
//spec:test Snapshot.Table
//spec:test Snapshot.Lease
func TestAServerThatWasFarBehindGoesOnFromTheLeadersSnapshot(t *testing.T) {
	c := behind(t)
	three := c.node(3)
	if err := three.Compact(); err != nil {
		t.Fatal(err)
	}
	three.snapshots.taking.most = 1
	c.take(three)
	same(t, "still under way", true, three.snapshots.taking != nil)
	c.heal()
	c.do(1, (*Replica).HeartbeatTimeout)
	c.settle()
	same(t, "restored", 1, c.counts["restored from a leader"])
	same(t, "counted anew", 1, c.counts["counted anew"])
	same(t, "under way", true, three.snapshots.taking == nil)
	same(t, "table", string(c.node(1).Table().Encode()), string(three.Table().Encode()))
	left, _ := three.LeaseTimes(9)
	same(t, "leases", []LeaseTime{{"door", 1, 10 * second}}, left)
	c.elect(3)
	again := c.calls[0].Request
	call := c.ask(3, again)
	lift := c.ask(3, acquire(4, "lift"))
	c.settle()
	same(t, "asked again, and the next", "Granted{1} again, Granted{3}", c.answers(call, lift))
	read := uint64(len(c.calls)) << 20
	three.Read(read)
	c.do(3, (*Replica).HeartbeatTimeout)
	for len(c.wire) > 0 {
		m := c.wire[0]
		c.wire = c.wire[1:]
		_ = c.node(m.To).Receive(m)
		out, err := c.node(m.To).Take()
		if err != nil {
			t.Fatal(err)
		}
		c.wire = append(c.wire, out.Messages...)
		if slices.ContainsFunc(out.Replies, func(y Reply) bool { return y.Call == read && y.Status == Answered }) {
			return
		}
	}
	t.Error("the read is not answered")
}

// A snapshot from a leader that this server cannot read stops it, and so does one from below its
// floor: to go on without it would be to differ from all others.
func TestASnapshotThatCannotBeReadStopsTheServer(t *testing.T) {
	for name, row := range map[string]struct {
		floor  Token
		change func(data []byte)
		want   string
	}{
		"as it is":        {0, func([]byte) {}, "<nil>"},
		"another version": {0, func(data []byte) { data[len("table ")] = '7' }, "not a snapshot of a lock table: line 1"},
		"another floor":   {1000, func([]byte) {}, "its last token is 2 and the cluster's floor is 1000"},
	} {
		c := behind(t)
		c.heal()
		three := c.node(3)
		three.Replica.config.TokenFloor = row.floor
		c.held = func(m raft.Message) bool { _, ok := m.Body.(raft.InstallSnapshot); return ok }
		c.do(1, (*Replica).HeartbeatTimeout)
		c.settle()
		if len(c.wire) != 1 {
			t.Fatalf("%s: on the wire are %v", name, c.wire)
		}
		m := c.wire[0]
		chunk := m.Body.(raft.InstallSnapshot)
		chunk.Data = slices.Clone(chunk.Data)
		row.change(chunk.Data)
		m.Body = chunk
		if err := three.Receive(m); err != nil || !chunk.Done {
			t.Fatal(err, chunk.Done)
		}
		out, err := three.Take()
		if err != nil || out.Save == nil {
			t.Fatalf("%s: nothing to save, %v", name, err)
		}
		three.SnapshotSaved(out.Save.LastIncludedIndex)
		out, err = three.Take()
		if !strings.Contains(fmt.Sprint(err), row.want) || fmt.Sprint(three.Failed()) != fmt.Sprint(err) {
			t.Errorf("%s: error %v, failed %v, want %q", name, err, three.Failed(), row.want)
		}
		if restored := out.Restored > 0; restored != (err == nil) {
			t.Errorf("%s: restored up to %d", name, out.Restored)
		}
	}
}

// How long a million locks take a server that starts from their snapshot, and how long they keep it
// from everything else then, until all their leases are counted.
func BenchmarkRestoreAMillionLocks(b *testing.B) {
	c := newCrowd(b, testConfig(1, 1))
	c.hold(1_000_000, func(int) int64 { return 3_600_000 })
	durable := c.compacted()
	for b.Loop() {
		r, err := New(testConfig(1, 1), durable, 0)
		if err != nil || r.Table().Len() != 1_000_000 {
			b.Fatal(err)
		}
		restarted := &crowd{Replica: r, t: b}
		for r.Recounting() {
			restarted.round()
		}
		b.ReportMetric(float64(restarted.longest.Microseconds())/1000, "ms/longest")
	}
}

// While a snapshot is being saved no other is begun, however many entries come: the work would be in
// vain, and the server would not rest until the disk is done.
func TestAServerRestsWhileItsSnapshotIsBeingSaved(t *testing.T) {
	config := testConfig(1, 1)
	config.SnapshotEvery = 1000
	c := newCrowd(t, config)
	c.hold(20_000, func(int) int64 { return 3_600_000 }) // the first is taken at once, and not saved
	same(t, "being saved", true, c.snapshots.saving > 0)
	for range 10 {
		c.round()
		if c.Deadline() <= c.now {
			t.Error("it does not rest")
		}
	}
	c.SnapshotSaved(c.snapshots.saving)
	c.round()
	if c.snapshots.taking == nil || c.Deadline() != c.now {
		t.Error("too tame: there was nothing to do")
	}
}

// What a driver has read of a snapshot beside the replica becomes the table, as if it had been read here,
// and is not kept for the next one if it was not needed.
func TestATableThatWasReadBesideIsTheSnapshots(t *testing.T) {
	c := newCrowd(t, testConfig(1, 1))
	c.hold(100, func(int) int64 { return 10_000 })
	durable := c.compacted()
	read, err := testConfig(1, 1).ReadSnapshot(durable.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	c.SnapshotRead(read) // of one that this server has all of
	c.settle()
	if c.snapshots.read != nil {
		t.Error("it waits for another snapshot")
	}

	config := testConfig(1, 2)
	r, err := New(config, raft.Durable{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := *durable.Snapshot
	s.Members = raft.Configuration{{ID: 1, Voter: true}, {ID: 2, Voter: true}}
	err = r.Receive(raft.Message{From: 2, To: 1, Term: 9, Body: raft.InstallSnapshot{
		LastIncludedIndex: s.LastIncludedIndex, LastIncludedTerm: s.LastIncludedTerm, Members: s.Members,
		Data: s.Data, Done: true,
	}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Take()
	if err != nil || out.Save == nil {
		t.Fatalf("nothing is to be saved: %+v, %v", out, err)
	}
	r.SnapshotRead(read)
	out.Save.Data = nil // it is not read again
	r.SnapshotSaved(out.Save.LastIncludedIndex)
	out, err = r.Take()
	if err != nil || out.Restored != s.LastIncludedIndex || r.Table().Hash() != c.Table().Hash() {
		t.Errorf("up to %d is restored, and it has %d locks; %v", out.Restored, r.Table().Len(), err)
	}
	same(t, "leases that are counted", 100, len(r.leases.running))
}
