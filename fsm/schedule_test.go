package fsm

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

// A schedule is a random run: clients that acquire, ask again, release late and leave; a network
// that loses, repeats and reorders; clocks that jump; servers that crash, with disks that are slow;
// elections at any moment.
type schedule struct {
	*cluster
	random *rand.Rand
	stable bool // no elections and no crashes: server 1 leads throughout
	ids    [clients]ClientID
	opens  []uint64 // calls that open a session
	crowd  bool     // sessions come and go
	lostN  int      // answers that were said to be lost
	beside func()   // what happens beside all that, nil for nothing
}

const (
	clients = 4
	keys    = 2
)

// crowded leaves room for few sessions: all others have spoken just now, and will for ever. So one
// that opens ends one that a test is about.
func crowded() Table {
	const few = clients + 2
	t := Table{sessions: map[ClientID]session{}}
	for id := range ClientID(maxSessions) {
		last := raft.Index(id)
		if id >= few {
			last = 1<<40 + raft.Index(id)
		}
		t.sessions[1<<50+id] = session{last: last}
		t.sum += hashSession(1<<50+id, session{last: last})
		t.silences = append(t.silences, silence{1<<50 + id, last})
	}
	return t
}

func newSchedule(t testing.TB, seed uint64, rules Rules, change ...func(*Config)) *schedule {
	t.Helper()
	s := &schedule{cluster: newCluster(t, 3, rules, change...), random: rand.New(rand.NewPCG(seed, 0))}
	for i := range s.ids {
		s.ids[i] = ClientID(1 + i)
	}
	s.failure = fmt.Sprintf("seed %d, %+v", seed, s.node(1).config.Rules)
	return s
}

// crowded is a schedule in which sessions come and go.
func newCrowded(t testing.TB, seed uint64, rules Rules, change ...func(*Config)) *schedule {
	t.Helper()
	s := newSchedule(t, seed, rules, change...)
	s.first, s.crowd = crowded(), true
	s.audit.table = s.first.Clone()
	for i, n := range s.nodes {
		n.table = s.first.Clone()
		s.ids[i%clients] = 1<<50 + ClientID(i%clients)
	}
	s.ids[clients-1] = 1<<50 + clients - 1
	return s
}

func (s *schedule) key() string { return [keys]string{"door", "gate"}[s.random.IntN(keys)] }

// server is a server that is up, most often the leader of the latest term.
func (s *schedule) server() raft.ServerID {
	best := s.nodes[s.random.IntN(len(s.nodes))]
	if s.random.IntN(4) > 0 {
		for _, n := range s.nodes {
			if n.Replica != nil && s.status(n.id).Role == raft.Leader &&
				(best.Replica == nil || s.status(n.id).Term >= s.status(best.id).Term) {
				best = n
			}
		}
	}
	for best.Replica == nil {
		best = s.nodes[s.random.IntN(len(s.nodes))]
	}
	return best.id
}

// step does one thing.
func (s *schedule) step() {
	if s.beside != nil && s.random.IntN(6) == 0 {
		s.beside()
	}
	switch p := s.random.IntN(100); {
	case p < 50:
		s.network()
	case p < 80:
		s.client()
	case p < 89 || s.stable:
		s.clock()
	case p < 90:
		s.do(s.server(), (*Replica).ElectionTimeout)
	case p < 94:
		s.do(s.server(), (*Replica).HeartbeatTimeout)
	default:
		s.fault()
	}
}

func (s *schedule) network() {
	if len(s.wire) == 0 {
		return
	}
	i := 0
	if s.random.IntN(4) == 0 {
		i = s.random.IntN(len(s.wire))
	}
	switch p := s.random.IntN(30); {
	case p == 0:
		s.wire = slices.Delete(s.wire, i, i+1)
	case p == 1:
		s.wire = append(s.wire, s.wire[i])
	default:
		s.deliver(i)
	}
}

func (s *schedule) client() {
	which := s.random.IntN(clients)
	client := s.ids[which]
	switch p := s.random.IntN(26); {
	case p >= 25 && s.crowd: // a session, and another's end
		s.opens = append(s.opens, s.ask(s.server(), Request{Kind: Open}))
		if opened := s.calls[s.opens[0]-1]; len(opened.replies) > 0 && opened.replies[0].Result.Kind == Opened {
			s.ids[which] = opened.replies[0].Result.Client
			s.opens = s.opens[1:]
		}
	case p >= 23: // the answer was lost
		s.askAgain()
	case p >= 20:
		if held := s.grants(); len(held) > 0 {
			call := s.calls[held[len(held)-1-s.random.IntN(min(3, len(held)))]-1]
			q := release(call.Client, call.Key, call.replies[0].Result.Token)
			q.Kind, q.LeaseMS = Extend, 1000*int64(1+s.random.IntN(3))
			s.ask(s.server(), q)
		}
	case p < 9:
		q := acquire(client, s.key())
		q.Try = s.random.IntN(5) == 0
		q.LeaseMS = 1000 * int64(1+s.random.IntN(3))
		call := s.ask(s.server(), q)
		made := s.calls[call-1]
		made.deaf = s.random.IntN(6) == 0 && len(made.replies) == 0
	case p < 12: // again, somewhere
		if call := s.open(); call > 0 && s.calls[call-1].Kind == Grant {
			s.ask(s.server(), s.again(call))
		}
	case p < 14: // leave
		if call := s.open(); call > 0 {
			s.disconnect(call)
		}
	case p < 15:
		s.ask(s.server(), Request{Client: client, Text: "x"})
	case p < 16:
		s.ask(s.server(), release(client, s.key(), 0))
	default: // give back what was granted, perhaps long ago
		if held := s.grants(); len(held) > 0 {
			back := len(held) - 1 - min(s.random.IntN(3), len(held)-1)
			call := s.calls[held[back]-1]
			s.ask(s.server(), release(call.Client, call.Key, call.replies[0].Result.Token))
		}
	}
}

// askAgain sends a request again, answered or not, whose first answer may be lost: its client may
// even have been told, or another's number be used.
func (s *schedule) askAgain() {
	if len(s.calls) == 0 {
		return
	}
	call := s.calls[len(s.calls)-1-s.random.IntN(min(20, len(s.calls)))]
	if call.Client == 0 {
		return
	}
	q := s.again(call.Call)
	if s.random.IntN(8) == 0 {
		q.Key = s.key()
	}
	if s.random.IntN(8) == 0 {
		s.lowest[q.Client] = max(s.lowest[q.Client], q.Seq)
	}
	s.ask(s.server(), q)
	if len(call.replies) > 0 && call.deaf && s.nodes[call.at-1].Replica != nil {
		s.do(call.at, s.lost(call.Call))
		call.deaf = false
		s.lostN++
	}
}

// open is a recent call that is not answered, 0 if there is none.
func (s *schedule) open() uint64 {
	for i := len(s.calls); i > 0 && i > len(s.calls)-20; i-- {
		if call := s.calls[i-1]; !call.gone && len(call.replies) == 0 && s.random.IntN(3) == 0 {
			return call.Call
		}
	}
	return 0
}

// grants are the calls that were granted, in the order of their making.
func (s *schedule) grants() []uint64 {
	var calls []uint64
	for _, call := range s.calls {
		if len(call.replies) > 0 && call.replies[0].Result.Kind == Granted {
			calls = append(calls, call.Call)
		}
	}
	return calls
}

func (s *schedule) clock() {
	id := s.server()
	if s.random.IntN(3) > 0 {
		s.tick(id, raft.Time(s.random.Int64N(int64(second))))
		return
	}
	if keys := s.node(id).Table().Keys(); len(keys) > 0 {
		key := keys[s.random.IntN(len(keys))]
		tenure, _ := s.node(id).Table().Holder(key)
		s.lapse(id, key, tenure.Token)
	}
}

// fault lets something happen to a server: a crash, a restart, a slow disk, a quick one.
func (s *schedule) fault() {
	n := s.nodes[s.random.IntN(len(s.nodes))]
	switch {
	case n.Replica == nil:
		s.restart(n.id)
	case s.random.IntN(6) == 0:
		s.crash(n.id)
	case len(n.writes) > 0:
		s.saveOne(n)
		s.take(n)
	default:
		n.slow = !n.slow
	}
	if s.up() == 0 {
		s.restart(n.id)
	}
}

func (s *schedule) up() int {
	up := 0
	for _, n := range s.nodes {
		if n.Replica != nil {
			up++
		}
	}
	return up
}

// run begins with a leader and does n things.
func (s *schedule) run(n int) {
	s.t.Helper()
	s.elect(1)
	for range n {
		s.step()
	}
}

// finished reports whether all calls are answered and all tables equal and empty.
func (s *schedule) finished() bool {
	for _, n := range s.nodes {
		if n.Table().Len() > 0 || n.reached != raft.Index(len(s.audit.log)) {
			return false
		}
	}
	open := func(c *call) bool { return !c.gone && !c.read && len(c.replies) == 0 }
	return !slices.ContainsFunc(s.calls, open)
}

// calm ends all faults. Clients do nothing more; what they have asked for is answered, and what
// they hold comes to its end.
func (s *schedule) calm() {
	s.t.Helper()
	for _, n := range s.nodes {
		n.slow = false
		if n.Replica == nil {
			s.restart(n.id)
		}
		s.save(n.id)
	}
	s.drop(func(raft.Message) bool { return s.random.IntN(2) == 0 })
	s.settle() // a leader that was deposed knows it now
	id := raft.ServerID(1)
	if !s.stable {
		id += raft.ServerID(s.random.IntN(len(s.nodes)))
	}
	for range len(s.calls) + 8 { // a round for each, and some to catch up
		if s.finished() {
			break
		}
		for s.status(id).Role != raft.Leader && !s.wins(id) { // one may hear of a later term only now
			id = id%raft.ServerID(len(s.nodes)) + 1
		}
		s.do(id, (*Replica).HeartbeatTimeout)
		s.settle()
		s.tick(id, 3*second)
		s.settle()
	}
	s.tables("")
	for _, call := range s.calls {
		if !call.gone && !call.read && len(call.replies) == 0 {
			s.fatal("a call at server %d without an answer: %+v", call.at, call.Request)
		}
	}
	for _, n := range s.nodes {
		if l := n.leader; l != nil && len(l.early)+len(l.proposals)+len(l.ahead)+len(l.waiting)+
			len(l.expiring)+len(l.touched)+len(l.ending)+len(l.extending)+len(l.retold)+len(l.ghosts)+
			l.waiters > 0 {
			s.fatal("server %d keeps %+v", n.id, *l)
		}
		if len(n.leases.running)+n.leases.over > 0 {
			s.fatal("server %d counts %+v", n.id, n.leases)
		}
	}
}

// wins reports whether a server is elected now.
func (s *schedule) wins(id raft.ServerID) bool {
	s.t.Helper()
	for range 12 {
		s.do(id, (*Replica).ElectionTimeout)
		s.settle()
		if s.status(id).Role == raft.Leader {
			return true
		}
	}
	return false
}

const (
	schedules = 200
	steps     = 400
)

// runSchedules runs many and adds up what happened.
func runSchedules(t *testing.T, rules Rules, change func(*Config)) (map[string]int, []string) {
	t.Helper()
	return runAll(t, rules, change, newSchedule)
}

func runAll(t *testing.T, rules Rules, change func(*Config),
	begin func(testing.TB, uint64, Rules, ...func(*Config)) *schedule) (map[string]int, []string) {
	t.Helper()
	counts, stolen := map[string]int{}, []string{}
	for seed := range uint64(schedules) {
		s := begin(t, seed, rules, change)
		s.run(steps)
		s.calm()
		for name, n := range s.counts {
			counts[name] += n
		}
		counts["lost"] += s.lostN
		for _, line := range s.stolen {
			stolen = append(stolen, fmt.Sprintf("seed %d: %s", seed, line))
		}
	}
	t.Log(counts, len(stolen))
	return counts, stolen
}

func atLeast(t *testing.T, counts map[string]int, name string, n int) {
	t.Helper()
	if counts[name] < n {
		t.Errorf("too tame: %s was seen %d times, want %d", name, counts[name], n)
	}
}

// Every call has at most one answer and, unless its client has left or its server has crashed,
// exactly one once things settle; all tables are equal, tokens grow, locks do not outlive their
// leases, no tenure is removed by a command that was meant for another. The cluster's audit, and
// calm, look at each.
//
//spec:test L5
func TestEveryCallIsAnsweredOnceAndNothingIsStolenInAnySchedule(t *testing.T) {
	t.Parallel()
	counts, stolen := runSchedules(t, Rules{}, func(*Config) {})
	if len(stolen) > 0 {
		t.Error(strings.Join(stolen, "\n"))
	}
	// With the gate, a leader decides on all that is in its log, so nothing that it proposes is
	// ever rejected, whoever leads and however often that changes.
	same(t, "rejected Grants", 0, counts["GrantRejected"])
	atLeast(t, counts, "Granted", 5*schedules)
	atLeast(t, counts, "Expired{true}", schedules)
	atLeast(t, counts, "Expired{false}", schedules/4)
	atLeast(t, counts, "NotFound", schedules)
}

// As above with one precaution less each, but for the two that are comparisons in the table: those
// alone suffice, for anything that is proposed. (Hazard 2.)
func TestTheTokensAloneSufficeInAnySchedule(t *testing.T) {
	for name, row := range map[string]struct {
		rules  Rules
		change func(*Config)
	}{
		"no gate":                   {Rules{NoGate: true}, func(*Config) {}},
		"no wait":                   {Rules{NoNoopWait: true}, func(*Config) {}},
		"neither":                   {Rules{NoGate: true, NoNoopWait: true}, func(*Config) {}},
		"neither, on the table":     {Rules{NoGate: true, NoNoopWait: true}, grantOnApplied},
		"all, decided on the table": {Rules{}, grantOnApplied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts, stolen := runSchedules(t, row.rules, row.change)
			if len(stolen) > 0 {
				t.Error(strings.Join(stolen, "\n"))
			}
			atLeast(t, counts, "Expired{true}", schedules)
			if row.rules.NoGate {
				atLeast(t, counts, "GrantRejected", schedules)
			}
		})
	}
}

// The vacuous configuration: Grants decided on the table, the gate and the wait on. No Expire is
// ever late, so leaving its token out harms nobody, and a demonstration run so would show nothing.
func TestOnTheTableWithGateAndWaitTheExpireTokenIsRedundant(t *testing.T) {
	t.Parallel()
	counts, stolen := runSchedules(t, Rules{NoExpireToken: true}, grantOnApplied)
	if len(stolen) > 0 {
		t.Error(strings.Join(stolen, "\n"))
	}
	same(t, "Expires by that name", 0, counts["Expired{true}"]+counts["Expired{false}"])
	atLeast(t, counts, "Released", 4*schedules)
}

// And where it is not redundant, schedules as random as those show it. So the silence above means
// something. (Not so with Grants on the table, the gate on and the wait off: that takes a leader
// which lags behind its own log, and chance did not find one. See
// TestWithoutTheWaitALaggingLeaderProposesALateExpire.)
func TestWithoutTheTokensRandomSchedulesStealLocks(t *testing.T) {
	lease, release := []string{"lease"}, []string{"client", "cleanup"}
	for name, row := range map[string]struct {
		rules Rules
		way   string
		by    []string
	}{
		"expire":          {Rules{NoExpireToken: true}, "on the log", lease},
		"expire, no gate": {Rules{NoExpireToken: true, NoGate: true}, "on the table", lease},
		"release":         {Rules{NoReleaseToken: true}, "on the log", release},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, stolen := runSchedules(t, row.rules, ways[row.way])
			found := map[string]int{}
			for _, line := range stolen {
				for _, by := range row.by {
					if strings.Contains(line, "for "+by) {
						found[by]++
					}
				}
			}
			for _, by := range row.by {
				atLeast(t, found, by, 5)
			}
		})
	}
}

// A stable leader, a lossy network, any clock. (Hazard 9.)
func TestUnderAStableLeaderNoGrantIsRejected(t *testing.T) {
	t.Parallel()
	for _, change := range ways {
		rejected, granted := 0, 0
		for seed := range uint64(schedules / 2) {
			s := newSchedule(t, seed, Rules{}, change)
			s.stable = true
			s.run(steps)
			s.calm()
			rejected += s.counts["GrantRejected"]
			granted += s.counts["Granted"]
			same(t, s.failure+": terms", 1, s.status(1).Term)
		}
		same(t, "rejected", 0, rejected)
		if granted < 10*schedules {
			t.Errorf("too tame: %d granted", granted)
		}
	}
}

// dump writes down all that is in a replica, addresses aside.
func dump(r *Replica) string {
	s := r.core.Status()
	text := fmt.Sprintf("%+v %d %v\n%v\n", s, r.now, r.failed, r.core.Entries(r.core.FirstIndex(), s.LastIndex))
	flat := r.table
	flat.held = tenures{} // Encode has them
	text += fmt.Sprintf("%s%+v\n%v %d\n%+v\n", r.table.Encode(), flat, r.leases.lapsed, r.leases.over, r.reads)
	text += fmt.Sprintf("%+v %d %d %d\n", r.changes, r.reached, r.snapshots.last, r.snapshots.saving)
	if e := r.snapshots.taking; e != nil {
		text += fmt.Sprintf("%d %s %d\n", e.index, e.parts, len(e.locks.to))
	}
	for _, key := range slices.Sorted(maps.Keys(r.leases.running)) {
		text += fmt.Sprintf("%+v\n", *r.leases.running[key])
	}
	if l := r.leader; l != nil {
		flat := *l
		flat.ahead = nil
		text += fmt.Sprintf("%+v\n", flat)
		for _, key := range slices.Sorted(maps.Keys(l.ahead)) {
			text += fmt.Sprintf("%s: %+v\n", key, *l.ahead[key])
		}
	}
	return text + fmt.Sprintf("%+v", r.out)
}

// feed gives a replica random inputs and returns what comes out, as text since an Output is valid
// only until the next Take. Two that are fed by equal random numbers are fed the same.
func feed(s *schedule, r *Replica, id raft.ServerID, random *rand.Rand) []string {
	var outs []string
	seq, call := uint64(0), uint64(1<<40)
	for range 40 {
		switch random.IntN(10) {
		case 0:
			s.node(id).clock += raft.Time(random.Int64N(int64(second)))
			r.Tick(s.node(id).clock)
		case 1, 2, 3:
			call++
			key := [keys]string{"door", "gate"}[random.IntN(keys)]
			q := acquire(ClientID(1+random.IntN(clients)), key)
			q.Call, q.Seq, q.Try = call, 1+random.Uint64N(uint64(len(s.calls))), random.IntN(3) == 0
			if random.IntN(2) == 0 {
				q.Kind, q.Token = Release, Token(random.IntN(9))
			}
			r.Request(q)
		case 4:
			gone := s.calls[random.IntN(len(s.calls))].Request
			r.Disconnect(gone)
			r.Read(call << 20)
		case 5:
			for _, key := range r.Table().Keys() {
				tenure, _ := r.Table().Holder(key)
				r.LeaseTimeout(key, tenure.Token)
			}
		case 6, 7:
			if len(s.wire) > 0 {
				m := s.wire[random.IntN(len(s.wire))]
				m.To = id
				outs = append(outs, fmt.Sprint(r.Receive(m)))
			}
		default:
			out, err := r.Take()
			outs = append(outs, fmt.Sprintf("%+v %v", out, err))
			if out.Write.Seq > 0 {
				seq = out.Write.Seq
			}
			if seq > 0 && random.IntN(2) == 0 {
				r.Saved(seq)
			}
		}
	}
	return outs
}

// A clone and its original are two servers from then on. Fed the same, they do the same.
func TestACloneIsIndependentAndDoesTheSame(t *testing.T) {
	leaders, proposals := 0, 0
	for seed := range uint64(400) {
		s := newSchedule(t, seed, Rules{NoGate: seed%4 == 0})
		s.run(60 + s.random.IntN(60))
		n := s.node(s.server())
		r, before := n.Replica, dump(n.Replica)
		if r.leader != nil {
			leaders++
			proposals += len(r.leader.proposals)
		}
		clock := n.clock
		again := func(x *Replica, stream uint64) []string {
			n.clock = clock
			return feed(s, x, n.id, rand.New(rand.NewPCG(seed, stream)))
		}
		a, b, c := r.Clone(), r.Clone(), r.Clone()
		same(t, s.failure+": clone", before, dump(a))
		outA := again(a, 1)
		same(t, s.failure+": original, after a clone was fed", before, dump(r))
		fed := dump(a)
		again(r, 2)
		same(t, s.failure+": clone, after the original was fed", fed, dump(a))
		same(t, s.failure+": another clone, after both were fed", before, dump(b))
		same(t, s.failure+": outputs of two clones", outA, again(b, 1))
		same(t, s.failure+": two clones that were fed the same", fed, dump(b))
		d := c.Clone()
		same(t, s.failure+": outputs of a clone of a clone", outA, again(d, 1))
		if t.Failed() {
			return
		}
	}
	if leaders < 100 || proposals < 100 {
		t.Errorf("too tame: %d leaders with %d proposals", leaders, proposals)
	}
}

// memory lists where the slices and maps of a value lie. What has no room to write into may be
// shared.
func memory(v reflect.Value, path string, at map[uintptr]string) {
	switch v.Kind() {
	case reflect.Pointer:
		switch v.Type() {
		case reflect.TypeFor[*raft.Core](): // it sees to its own
			return
		case reflect.TypeFor[*branch](): // it is never written, as the tests of snapshots show
			return
		}
		if !v.IsNil() {
			at[v.Pointer()] = path
			memory(v.Elem(), path, at)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if v.Type() == reflect.TypeFor[encoding]() && (name == "sessions" || name == "whole") {
				continue // the one is only read, the other has no room in a clone
			}
			if name != "config" && name != "done" { // they are never written
				memory(v.Field(i), path+"."+name, at)
			}
		}
	case reflect.Slice:
		if v.Cap() > 0 {
			at[v.Pointer()] = path
		}
	case reflect.Map:
		if !v.IsNil() {
			at[v.Pointer()] = path
			for _, key := range v.MapKeys() {
				memory(v.MapIndex(key), fmt.Sprintf("%s[%v]", path, key), at)
			}
		}
	}
}

// Not all that is shared does harm soon enough to be seen. Here all that can be in use is.
func TestACloneSharesNoMemoryThatIsWritten(t *testing.T) {
	c := held1(t, Rules{})
	c.ask(1, acquire(3, "lift"))
	c.settle()
	c.ask(1, acquire(2, "door"))
	c.lapse(1, "door", 1)
	r := c.node(1).Replica
	r.leader.early = append(r.leader.early, Request{})
	r.leader.touched = append(r.leader.touched, "door")
	r.leader.ghosts = append(r.leader.ghosts, ghost{})
	r.Read(1 << 20)
	r.changes = append(r.changes, change{})
	r.reads.confirmed = append(r.reads.confirmed, confirmed{})
	r.leader.retold["door"] = 1
	r.leader.waiting["gate"] = append(r.leader.waiting["gate"], waiter{})
	r.snapshots.taking = newEncoding(&r.table, r.reached)
	r.snapshots.taking.whole = make([]byte, 1, 2)
	r.out.Replies = append(r.out.Replies, Reply{})
	r.out.Proposed = append(r.out.Proposed, Proposed{})
	r.out.Applied = append(r.out.Applied, Applied{})
	r.taken = Output{} // a clone has nothing of what was taken
	theirs, ours := map[uintptr]string{}, map[uintptr]string{}
	memory(reflect.ValueOf(r), "replica", ours)
	memory(reflect.ValueOf(r.Clone()), "replica", theirs)
	for p, path := range theirs {
		if shared, ok := ours[p]; ok {
			t.Errorf("the clone's %s is the original's %s", path, shared)
		}
	}
	same(t, "places", slices.Sorted(maps.Values(ours)), slices.Sorted(maps.Values(theirs)))
	if len(ours) < 20 {
		t.Errorf("too tame: only %v", slices.Sorted(maps.Values(ours)))
	}
}

// sameText takes two errors for equal that say the same.
var sameText = cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })

// What a server has done depends on nothing but its inputs: the same schedule twice is the same
// twice.
func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	run := func(seed uint64) ([]raft.Message, []*call, []uint64) {
		s := newSchedule(t, seed, Rules{})
		s.run(steps)
		s.calm()
		return s.sent, s.calls, s.replied
	}
	for seed := range uint64(20) {
		sent1, calls1, replied1 := run(seed)
		sent2, calls2, replied2 := run(seed)
		same(t, fmt.Sprint("seed ", seed, ": order of replies"), replied1, replied2)
		if diff := cmp.Diff(sent1, sent2); diff != "" {
			t.Fatalf("seed %d, messages:\n%s", seed, diff)
		}
		options := cmp.Options{cmp.AllowUnexported(call{}), sameText}
		if diff := cmp.Diff(calls1, calls2, options); diff != "" {
			t.Fatalf("seed %d, calls:\n%s", seed, diff)
		}
	}
}
