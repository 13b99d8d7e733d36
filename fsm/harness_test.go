package fsm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

const second = 1000 * millisecond

// A cluster drives replicas with a network, disks and clocks that do only what a test tells them
// to. Messages lie on the wire until they are delivered, a write is complete at once unless the
// disk is slow, and a clock stands still until it is ticked. After every input raft.Check and
// raft.Delta look at the core, and the audit looks at whatever comes out: so each test also is a
// test of all that those know.
type cluster struct {
	t       testing.TB
	failure string // how to run this again, printed with a failure
	nodes   []*node
	wire    []raft.Message            // sent and not delivered, oldest first
	held    func(m raft.Message) bool // what stays on the wire for now
	cut     map[raft.ServerID]bool    // whose messages are lost, in both directions
	calls   []*call                   // call n is calls[n-1]
	replied []uint64                  // the calls that were answered, in that order
	sent    []raft.Message            // all that was ever sent
	first   Table                     // what every server starts from
	lowest  map[ClientID]uint64       // the lowest number that a client has open, from 1
	audit
}

// A node is one server: a replica, its disk, its clock, and what it has done.
type node struct {
	*Replica // nil while it is down
	id       raft.ServerID
	config   Config
	disk     raft.Durable
	writes   []raft.Write   // begun and not on the disk, in order
	saving   *raft.Snapshot // begun and not on the disk; it waits for one of the next things to be done
	base     raft.Index     // where the table came from a snapshot, or 0; applied begins behind it
	slow     bool           // its writes wait for save
	clock    raft.Time
	applied  []Applied  // since it started
	proposed []Proposed // ever
}

// A call is a request at a server, and its answer.
type call struct {
	Request
	at      raft.ServerID
	term    raft.Term  // that the server was in
	before  int        // what the server had proposed
	gone    bool       // nobody waits for the answer
	deaf    bool       // the answer cannot be handed over, nobody knows yet
	again   bool       // a later call of the same request has come to the same server
	change  bool       // a ChangeMembers, and no request
	read    bool       // a Read, and no request
	floor   raft.Index // a Read: the last entry that was applied anywhere when it was asked
	late    bool       // a Read: this server had not applied it then
	replies []Reply
}

// testConfig has timeouts that no test's ticks reach: elections are told, not waited for.
func testConfig(id raft.ServerID, size int) Config {
	c := Config{Raft: raft.Config{
		ID: id, ElectionTimeout: 1 << 50, HeartbeatTimeout: 1 << 48,
		Jitter: func(uint64) raft.Time { return 0 }, MaxBatch: 64, Window: 4,
	}}
	for voter := range raft.ServerID(size) {
		c.Raft.Voters = append(c.Raft.Voters, voter+1)
	}
	return c
}

func newCluster(t testing.TB, size int, rules Rules, change ...func(*Config)) *cluster {
	t.Helper()
	first := testTable()
	c := &cluster{t: t, cut: map[raft.ServerID]bool{}, first: first, lowest: map[ClientID]uint64{}, audit: newAudit(first.Clone())}
	for id := range raft.ServerID(size) {
		config := testConfig(id+1, size)
		config.Rules = rules
		for _, f := range change {
			f(&config)
		}
		c.nodes = append(c.nodes, &node{id: id + 1, config: config})
		c.restart(id + 1)
	}
	return c
}

func grantOnApplied(c *Config) { c.GrantOnApplied = true }

// ways are those in which a leader may decide Grants.
var ways = map[string]func(*Config){
	"on the log":   func(*Config) {},
	"on the table": grantOnApplied,
}

func (c *cluster) fatal(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), c.failure)
}

func (c *cluster) node(id raft.ServerID) *node { return c.nodes[id-1] }

func (c *cluster) status(id raft.ServerID) raft.Status { return c.node(id).Core().Status() }

// restart starts a server with what is on its disk, and with a clock that reads anything.
func (c *cluster) restart(id raft.ServerID) {
	c.t.Helper()
	n := c.node(id)
	n.clock = raft.Time(1000 * id)
	disk := n.disk
	disk.Entries = slices.Clone(disk.Entries)
	r, err := New(n.config, disk, n.clock)
	if err != nil {
		c.fatal("restart of %d: %v", id, err)
	}
	n.Replica, n.applied, n.writes, n.saving, n.base = r, nil, nil, nil, 0
	c.audit.started(n)
	if disk.Snapshot == nil {
		r.table = c.first.Clone()
		return
	}
	c.counts["restarted behind a snapshot"]++
	c.restored(n, disk.Snapshot)
}

// restored notes that a server's table has become a snapshot's.
func (c *cluster) restored(n *node, s *raft.Snapshot) {
	n.applied, n.base = nil, s.LastIncludedIndex
	if err := c.audit.restored(n, s); err != nil {
		c.fatal("server %d restored a snapshot up to %d: %v", n.id, s.LastIncludedIndex, err)
	}
}

// crash stops a server. What was not on its disk is lost, and so are the calls.
func (c *cluster) crash(id raft.ServerID) {
	n := c.node(id)
	n.Replica, n.writes, n.saving = nil, nil, nil
	for _, call := range c.calls {
		call.gone = call.gone || call.at == id && len(call.replies) == 0
	}
}

// do gives inputs to a server and then takes its output, once, and what its disk makes of it.
func (c *cluster) do(id raft.ServerID, inputs ...func(*Replica)) {
	n := c.node(id)
	for _, input := range inputs {
		c.checked(n, func() { input(n.Replica) })
	}
	c.take(n)
}

func (c *cluster) checked(n *node, f func()) {
	before := n.Core().Clone()
	f()
	if err := raft.Check(n.Core()); err != nil {
		c.fatal("server %d: %v", n.id, err)
	}
	if err := raft.Delta(before, n.Core()); err != nil {
		c.fatal("server %d: %v", n.id, err)
	}
}

func (c *cluster) take(n *node) {
	var out *Output
	c.checked(n, func() {
		var err error
		if out, err = n.Take(); err != nil {
			c.fatal("server %d: %v", n.id, err)
		}
	})
	c.record(n, *out)
	if err := n.ledger(); err != nil {
		c.fatal("server %d: %v", n.id, err)
	}
	if out.Save != nil {
		n.saving = out.Save
	}
	if out.Write.Seq == 0 {
		return
	}
	n.writes = append(n.writes, out.Write)
	if !n.slow {
		c.save(n.id)
	}
}

// keep completes the snapshot that a server saves beside its writes. It is in use once a write says
// so.
func (c *cluster) keep(n *node) {
	s := n.saving
	n.saving = nil
	c.counts["snapshots saved"]++
	c.checked(n, func() { n.SnapshotSaved(s.LastIncludedIndex) })
	c.take(n)
}

// save completes all writes of a server.
func (c *cluster) save(id raft.ServerID) {
	n := c.node(id)
	for len(n.writes) > 0 {
		c.saveOne(n)
	}
	c.take(n)
}

func (c *cluster) saveOne(n *node) {
	w := n.writes[0]
	n.writes = n.writes[1:]
	n.disk.HardState = w.HardState
	if s := w.Snapshot; s != nil {
		n.disk.Snapshot = s
		i := slices.IndexFunc(n.disk.Entries, func(e raft.Entry) bool { return e.Index == s.LastIncludedIndex })
		if i < 0 || n.disk.Entries[i].Term != s.LastIncludedTerm {
			i = len(n.disk.Entries) - 1
		}
		n.disk.Entries = slices.Clone(n.disk.Entries[i+1:])
	}
	if len(w.Entries) > 0 {
		kept := slices.DeleteFunc(slices.Clone(n.disk.Entries), func(e raft.Entry) bool { return e.Index >= w.Entries[0].Index })
		n.disk.Entries = append(kept, w.Entries...)
	}
	c.checked(n, func() { n.Saved(w.Seq) })
}

// record keeps what came out of a server, puts its messages on the wire and shows all to the audit.
func (c *cluster) record(n *node, out Output) {
	for _, m := range out.Messages {
		c.sent = append(c.sent, m)
		if !c.cut[m.From] && !c.cut[m.To] {
			c.wire = append(c.wire, m)
		}
	}
	if out.Restored > 0 {
		c.counts["restored from a leader"]++
		c.restored(n, n.Core().Snapshot())
	}
	for _, a := range out.Applied {
		n.applied = append(n.applied, a)
		if err := c.audit.applied(n, a); err != nil {
			c.fatal("server %d applied %+v: %v", n.id, a, err)
		}
	}
	for _, p := range out.Proposed {
		n.proposed = append(n.proposed, p)
		if err := c.audit.proposed(n, p); err != nil {
			c.fatal("server %d proposed %+v: %v", n.id, p, err)
		}
	}
	if got, want := n.Core().Status().LastApplied, n.base+raft.Index(len(n.applied)); got != want {
		c.fatal("server %d: entries up to %d left raft, up to %d were applied", n.id, got, want)
	}
	for _, y := range out.Replies {
		if y.Call == 0 || y.Call > uint64(len(c.calls)) {
			c.fatal("server %d answers a call that nobody has made: %+v", n.id, y)
		}
		call := c.calls[y.Call-1]
		if call.gone || len(call.replies) > 0 || call.at != n.id {
			c.fatal("server %d answers %+v to %+v", n.id, y, call)
		}
		call.replies = append(call.replies, y)
		c.replied = append(c.replied, y.Call)
		if err := c.audit.replied(n, call, y); err != nil {
			c.fatal("server %d answers %+v to %+v: %v", n.id, y, call.Request, err)
		}
	}
}

// deliver hands the message at position i on the wire over.
func (c *cluster) deliver(i int) {
	m := c.wire[i]
	c.wire = slices.Delete(c.wire, i, i+1)
	if n := c.node(m.To); n.Replica == nil || c.cut[m.From] || c.cut[m.To] {
		return
	}
	c.do(m.To, func(r *Replica) {
		if err := r.Receive(m); err != nil {
			c.fatal("server %d: %v", m.To, err)
		}
	})
}

// settle delivers all messages that are not held, and those that come of it, in order.
func (c *cluster) settle() {
	free := func(m raft.Message) bool { return c.held == nil || !c.held(m) }
	for range 100_000 {
		for _, n := range c.nodes {
			if n.saving != nil && !n.slow {
				c.keep(n)
			}
		}
		i := slices.IndexFunc(c.wire, free)
		if i < 0 {
			return
		}
		c.deliver(i)
	}
	c.fatal("the messages do not come to an end")
}

// drop loses the messages on the wire.
func (c *cluster) drop(lost func(m raft.Message) bool) { c.wire = slices.DeleteFunc(c.wire, lost) }

// appends tells the AppendEntries, heartbeats included, that a server has sent.
func appends(from raft.ServerID) func(raft.Message) bool {
	return func(m raft.Message) bool {
		_, ok := m.Body.(raft.AppendEntries)
		return ok && m.From == from
	}
}

// carries tells the messages with an entry of a kind.
func carries(m raft.Message, kind Kind) bool {
	a, _ := m.Body.(raft.AppendEntries)
	return slices.ContainsFunc(a.Entries, func(entry raft.Entry) bool {
		e, err := Decode(entry.Command)
		return err == nil && e.Kind == kind
	})
}

// isolate cuts a server off, and loses what is on its way from and to it.
func (c *cluster) isolate(id raft.ServerID) {
	c.cut[id] = true
	c.drop(func(m raft.Message) bool { return m.From == id || m.To == id })
}

// heal ends holding and cutting.
func (c *cluster) heal() {
	clear(c.cut)
	c.held = nil
}

// campaign lets a server win an election, which takes more than one if others are in later terms.
// What it then sends as leader stays on the wire.
func (c *cluster) campaign(id raft.ServerID) {
	c.t.Helper()
	held := c.held
	c.held = func(m raft.Message) bool { return held != nil && held(m) || appends(id)(m) }
	for range 20 {
		c.do(id, (*Replica).ElectionTimeout)
		c.settle()
		if c.status(id).Role == raft.Leader {
			c.held = held
			return
		}
	}
	c.fatal("server %d is not elected", id)
}

// elect makes a server leader and lets it reach the others.
func (c *cluster) elect(id raft.ServerID) {
	c.t.Helper()
	c.campaign(id)
	c.settle()
}

// tick lets time pass on one server's clock.
func (c *cluster) tick(id raft.ServerID, d raft.Time) {
	n := c.node(id)
	n.clock += d
	c.do(id, func(r *Replica) { r.Tick(n.clock) })
}

// lapse declares a lease over at one server.
func (c *cluster) lapse(id raft.ServerID, key string, token Token) {
	c.audit.byHand(c.node(id), token)
	c.do(id, func(r *Replica) { r.LeaseTimeout(key, token) })
}

// input makes a call of a request: its number, and what to do for it at the server. A request
// without a Seq is a new one.
func (c *cluster) input(id raft.ServerID, q Request) (uint64, func(*Replica)) {
	q.Call = uint64(len(c.calls)) + 1
	if q.Seq == 0 {
		q.Seq = q.Call
	}
	q.Lowest = min(q.Seq, max(1, c.lowest[q.Client]))
	made := &call{Request: q, at: id, term: c.status(id).Term, before: len(c.node(id).proposed)}
	for _, before := range c.calls {
		before.again = before.again || before.at == id && q.Client != 0 && q.sameNumber(before.Request)
	}
	c.calls = append(c.calls, made)
	return q.Call, func(r *Replica) { r.Request(q) }
}

// ask makes a call.
func (c *cluster) ask(id raft.ServerID, q Request) uint64 {
	n, input := c.input(id, q)
	c.do(id, input)
	return n
}

// again makes another call of the same request.
func (c *cluster) again(call uint64) Request {
	q := c.calls[call-1].Request
	q.Attempt++
	return q
}

// gone is what to do when the caller of a call leaves.
func (c *cluster) gone(call uint64) func(*Replica) {
	made := c.calls[call-1]
	return func(r *Replica) {
		made.gone = true
		r.Disconnect(Request{Call: call, Key: made.Key})
	}
}

// lost is what to do when a reply cannot be handed over: its caller has gone.
func (c *cluster) lost(call uint64) func(*Replica) {
	made := c.calls[call-1]
	return func(r *Replica) { r.Undelivered(made.Request, made.replies[0]) }
}

func (c *cluster) disconnect(call uint64) {
	c.t.Helper()
	c.do(c.calls[call-1].at, c.gone(call))
}

// answer writes down the reply to a call; "" if there is none yet.
func (c *cluster) answer(call uint64) string {
	if len(c.calls[call-1].replies) == 0 {
		return ""
	}
	switch y := c.calls[call-1].replies[0]; y.Status {
	case Answered:
		return y.Result.String()
	case NotLeader:
		return fmt.Sprintf("not leader, ask %d", y.Leader)
	default:
		return y.Status.String()
	}
}

// granted is the reply to a call that was granted.
func granted(call uint64, token Token, attempt uint32) []Reply {
	return []Reply{{Call: call, Result: Result{Kind: Granted, Token: token}, Attempt: attempt}}
}

// replies are those to a call, but for where their entries stand.
func (c *cluster) replies(call uint64) []Reply {
	replies := slices.Clone(c.calls[call-1].replies)
	for i := range replies {
		replies[i].Index = 0
	}
	return replies
}

func (c *cluster) answers(calls ...uint64) string {
	var words []string
	for _, call := range calls {
		words = append(words, c.answer(call))
	}
	return strings.Join(words, ", ")
}

func acquire(client ClientID, key string) Request {
	return Request{Client: client, Kind: Grant, Key: key, LeaseMS: 10_000}
}

func try(client ClientID, key string) Request {
	q := acquire(client, key)
	q.Try = true
	return q
}

func release(client ClientID, key string, token Token) Request {
	return Request{Client: client, Kind: Release, Key: key, Token: token}
}

// history writes down what a server has applied: "grant door -> Granted{1}".
func (c *cluster) history(id raft.ServerID) []string {
	var lines []string
	for _, a := range c.node(id).applied {
		if len(a.Envelope.Key) > 0 {
			lines = append(lines, brief(a.Envelope)+" -> "+a.Result.String())
		}
	}
	return lines
}

// proposals writes down what a server has proposed since the first n, with its cause.
func (c *cluster) proposals(id raft.ServerID, n int) []string {
	var lines []string
	for _, p := range c.node(id).proposed[n:] {
		lines = append(lines, fmt.Sprintf("%s for %s", brief(p.Envelope), p.Cause))
	}
	return lines
}

func brief(e Envelope) string {
	s := e.Kind.String() + " " + e.Key
	if e.Kind != Grant {
		s += fmt.Sprint(" ", e.Token)
	}
	return s
}

// tables compares what all servers that are up hold with "door=2 gate=1".
func (c *cluster) tables(want string) {
	c.t.Helper()
	for _, n := range c.nodes {
		if n.Replica != nil {
			same(c.t, fmt.Sprintf("table of %d", n.id), want, holders(n.Table()))
		}
	}
}

// An audit knows what must be true of all servers together, whatever happens.
type audit struct {
	log    map[raft.Index]Applied // what was applied first at each index
	table  Table                  // after those
	meant  map[raft.Index]map[raft.Term]Proposed
	counts map[string]int // of results, each entry once

	seen map[Token]bool           // tokens that a client was told of
	once map[[2]uint64]raft.Index // by client and number, the requests that were carried out

	// stolen are the removals of a tenure that was not meant (I3). Not a failure here: some tests
	// take away what prevents them, to see them happen.
	stolen []string

	due    map[*node]map[Token]raft.Time          // when a lease is over on a server's clock (I9)
	since  map[*node]map[Token]raft.Index         // the entry that set it
	expiry map[*node]map[raft.Term]map[Token]bool // which Expires a leader has proposed (L3)
}

// testTable has the sessions of the clients in tests: they begin before the log does, so that the
// log holds what a test is about and nothing else.
func testTable() Table {
	t := Table{sessions: map[ClientID]session{}}
	for id := range ClientID(99) {
		t.sessions[id+1] = session{}
		t.silences = append(t.silences, silence{id + 1, 0})
		t.sum += hashSession(id+1, session{})
	}
	return t
}

// ledger compares what a leader counts with what there is.
func (n *node) ledger() error {
	l := n.leader
	if l == nil {
		return nil
	}
	waiters := 0
	for key, queue := range l.waiting {
		waiters += len(queue)
		inTurn := slices.IsSortedFunc(queue, func(a, b waiter) int { return int(a.turn) - int(b.turn) })
		if len(queue) == 0 || !inTurn {
			return fmt.Errorf("the queue of %s is %+v", key, queue)
		}
	}
	ending, extending := map[tenureOf]int{}, map[tenureOf]int{}
	for i := n.Core().Status().LastApplied + 1; i <= n.Core().Status().LastIndex; i++ {
		e, err := Decode(n.Core().Entries(i, i)[0].Command)
		switch {
		case err != nil: // it stops the server once it is committed
		case e.Kind == Expire:
			ending[tenureOf{e.Key, e.Token}]++
		case e.Kind == Extend:
			extending[tenureOf{e.Key, e.Token}]++
		}
	}
	if n.config.Rules.NoExpireToken {
		ending = l.ending
	}
	return errors.Join(differ("waiters", waiters, l.waiters), differ("Expires in the log", ending, l.ending),
		differ("Extends in the log", extending, l.extending))
}

func differ[T any](what string, want, got T) error {
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(tenureOf{})); diff != "" {
		return fmt.Errorf("%s (-there +counted):\n%s", what, diff)
	}
	return nil
}

func newAudit(first Table) audit {
	return audit{
		table: first, seen: map[Token]bool{}, once: map[[2]uint64]raft.Index{},
		log: map[raft.Index]Applied{}, meant: map[raft.Index]map[raft.Term]Proposed{},
		counts: map[string]int{}, due: map[*node]map[Token]raft.Time{},
		since:  map[*node]map[Token]raft.Index{},
		expiry: map[*node]map[raft.Term]map[Token]bool{},
	}
}

func (a *audit) started(n *node) {
	a.due[n], a.since[n] = map[Token]raft.Time{}, map[Token]raft.Index{}
}

// restored compares a snapshot with the table that whoever came there first has had, and notes the
// leases that count anew from now. Those that this server counts already go on.
func (a *audit) restored(n *node, s *raft.Snapshot) error {
	table, err := DecodeTable(s.Data, s.LastIncludedIndex)
	if err != nil {
		return err
	}
	if want := a.log[s.LastIncludedIndex].Hash; table.Hash() != want {
		return fmt.Errorf("hash %x, not %x", table.Hash(), want)
	}
	for _, tenure := range table.Tenures() {
		if since, ok := a.since[n][tenure.Token]; ok && since == tenure.Since {
			a.counts["went on counting"]++
			continue
		}
		a.due[n][tenure.Token] = n.clock + raft.Time(tenure.LeaseMS)*millisecond
		a.since[n][tenure.Token] = tenure.Since
		a.counts["counted anew"]++
	}
	return nil
}

func (a *audit) byHand(n *node, token Token) { a.due[n][token] = 0 }

func (a *audit) proposed(n *node, p Proposed) error {
	entry := n.Core().Entries(p.Index, p.Index)[0]
	if p.Members != nil && entry.Term == p.Term && cmp.Equal(p.Members, entry.Members) {
		return nil // what it takes to change members is raft's to know
	}
	if entry.Term != p.Term || string(entry.Command) != p.Envelope.String() {
		return fmt.Errorf("but the log has %q of term %d there", entry.Command, entry.Term)
	}
	if a.meant[p.Index] == nil {
		a.meant[p.Index] = map[raft.Term]Proposed{}
	}
	if other, ok := a.meant[p.Index][p.Term]; ok {
		return fmt.Errorf("after %+v", other)
	}
	a.meant[p.Index][p.Term] = p
	if k := p.Envelope.Kind; p.Meant != 0 && k != Release && k != Expire && k != Extend {
		return fmt.Errorf("it is meant for a tenure")
	}
	if err := a.crossed(n, p); err != nil {
		return err
	}
	if p.Cause != ForLease {
		return nil
	}
	// I9: a leader has measured the lease on its own clock, since it applied the Grant, or the last
	// Extend, itself.
	if due, ok := a.due[n][p.Meant]; !ok || n.clock < due {
		return fmt.Errorf("at %d, its lease is over at %d (%v)", n.clock, due, ok)
	}
	terms := a.expiry[n]
	if terms == nil {
		terms = map[raft.Term]map[Token]bool{}
		a.expiry[n] = terms
	}
	if terms[p.Term] == nil {
		terms[p.Term] = map[Token]bool{}
	}
	if terms[p.Term][p.Meant] {
		return fmt.Errorf("for the second time in its term")
	}
	terms[p.Term][p.Meant] = true
	return nil
}

// crossed looks for an Extend behind an Expire of the same tenure that is not applied, and for the
// reverse (L6). Those behind a bare Release in an Expire's place are not recognised.
func (a *audit) crossed(n *node, p Proposed) error {
	other := map[Kind]Kind{Extend: Expire, Expire: Extend}[p.Envelope.Kind]
	for i := n.Core().Status().LastApplied + 1; other != Noop && i < p.Index; i++ {
		e, err := Decode(n.Core().Entries(i, i)[0].Command)
		if err != nil {
			return err
		}
		if e.Kind == other && e.Key == p.Envelope.Key && e.Token == p.Envelope.Token {
			return fmt.Errorf("behind %s at %d", e, i)
		}
	}
	return nil
}

func (a *audit) applied(n *node, x Applied) error {
	if x.Index != n.base+raft.Index(len(n.applied)) {
		return fmt.Errorf("as number %d behind %d", len(n.applied), n.base)
	}
	set := map[ResultKind]Token{Granted: x.Result.Token, Extended: x.Envelope.Token}[x.Result.Kind]
	if set != 0 && !x.Result.Again {
		a.due[n][set] = n.clock + raft.Time(x.Envelope.LeaseMS)*millisecond
		a.since[n][set] = x.Index
	}
	if first, ok := a.log[x.Index]; ok {
		if !cmp.Equal(first, x) { // I5
			return fmt.Errorf("another server did otherwise (-it +this):\n%s", cmp.Diff(first, x))
		}
		return nil
	}
	a.log[x.Index] = x
	before, _ := a.table.Holder(x.Envelope.Key)
	last := a.table.tokens
	if want := a.table.Apply(x.Index, x.Envelope); want != x.Result || a.table.Hash() != x.Hash {
		return fmt.Errorf("want %v, hash %x", want, a.table.Hash())
	}
	if x.Result.Kind == Granted && !x.Result.Again && x.Result.Token <= last { // I2
		return fmt.Errorf("after token %d", last)
	}
	after, _ := a.table.Holder(x.Envelope.Key)
	if x.Result.Again && (a.table.tokens != last || after != before) {
		return fmt.Errorf("again, and it did something")
	}
	if err := a.carriedOut(x); err != nil {
		return err
	}
	removed := (x.Result.Kind == Released || x.Result.Existed) && !x.Result.Again
	if p := a.meant[x.Index][x.Term]; removed && p.Cause == ForCleanup && p.Meant == before.Token &&
		a.seen[before.Token] {
		return fmt.Errorf("WITHDRAWN: a client has been told of token %d", before.Token)
	}
	if p := a.meant[x.Index][x.Term]; removed && p.Meant != 0 && p.Meant != before.Token {
		a.stolen = append(a.stolen, fmt.Sprintf("%s for %s, meant for %d, removed %d",
			brief(x.Envelope), p.Cause, p.Meant, before.Token))
	}
	name, _, _ := strings.Cut(strings.TrimSuffix(x.Result.String(), " again"), "{")
	switch {
	case x.Result.Kind == Expired:
		name = x.Result.String()
	case x.Result.Again:
		name += " again"
	case x.Result.Kind == ResultNoop && x.Envelope.Kind != Noop:
		name = "Noop to a request"
	}
	a.counts[name]++
	return nil
}

// carriedOut notes that a client's request was, which may be once (I4).
func (a *audit) carriedOut(x Applied) error {
	e, k := x.Envelope, x.Result.Kind
	switch {
	case e.Client == 0 || x.Result.Again:
		return nil
	case k != Granted && k != Released && k != Extended:
		return nil
	}
	if first, ok := a.once[[2]uint64{uint64(e.Client), e.Seq}]; ok {
		return fmt.Errorf("a second time, after entry %d", first)
	}
	a.once[[2]uint64{uint64(e.Client), e.Seq}] = x.Index
	return nil
}

// replied compares what a reply says about the log with what was proposed.
func (a *audit) replied(n *node, call *call, y Reply) error {
	if call.read {
		return a.read(n, call, y)
	}
	if call.change {
		return nil
	}
	proposed, since := false, false // for an earlier attempt perhaps, for this one
	for i, p := range n.proposed {
		rejected := a.log[p.Index].Term == p.Term && a.log[p.Index].Result.Kind == GrantRejected
		e := p.Envelope
		its := e.Client == call.Client && e.Seq == call.Seq || n.config.Rules.NoRequestIDs &&
			y.Status == Unknown && e.Kind == call.Kind
		if p.Term >= call.term && its && !rejected &&
			(y.Status == Unknown || e.Key == call.Key) {
			proposed, since = true, since || i >= call.before
		}
	}
	switch y.Status {
	case Answered:
		if y.Result.Kind == Granted && !call.deaf {
			a.seen[y.Result.Token] = true
		}
	case NotLeader, Held, Full, Busy:
		if since && !call.again {
			return fmt.Errorf("but it was proposed")
		}
	case Unknown:
		if !proposed {
			return fmt.Errorf("but nothing was proposed")
		}
	case Invalid:
		if !errors.Is(y.Err, ErrReused) {
			return fmt.Errorf("a bad request")
		}
		a.counts["ErrReused"]++
	}
	return nil
}
