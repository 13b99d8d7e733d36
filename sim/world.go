package sim

import (
	"fmt"
	"time"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// World is one simulated cluster with its network, disks, clocks, clients and resources. It runs in
// one goroutine and depends on its seed and its commands alone: the same ones give the same trace,
// byte for byte, on every machine.
type World struct {
	seed     uint64
	fork     *fork // when another seed takes its place
	now      trace.Time
	order    uint64 // of scheduling and sending
	queue    queue
	manual   bool
	steps    int64 // events that did something,
	maxSteps int64 // and the most that there may be; 0 for no limit
	actors   []actor
	nodes    []*node // by rising id; also in actors
	clients  []*client
	links    [][]link
	config   worldConfig

	flights   []flight
	freeSlots []uint32
	highest   map[string]fsm.Token // fenced resources, by key: the greatest token seen,
	mistakes  map[string]string    // and what is wrong with those that have a mistake
	performed *clientMessage       // the last write that a resource has carried out

	counters  counters
	checks    hooks
	ledger    ledger
	history   history
	broken    []Violation
	door      *door           // of the lock-delay, in the one experiment that compares with it
	tolerate  map[string]bool // invariants whose violation does not end the run; nil ends at the first
	halted    bool
	told      raft.Index // the last entry of which somebody outside knows what it came to
	firstTerm raft.Term  // the highest of the states that the run starts from

	waiting    []*waiting            // for a moment
	recovering bool                  // nothing is broken from now on
	lasting    tenancy               // of whoever leads while it recovers
	slowest    map[string]trace.Time // how long what must follow took, by invariant

	effects  *[]effect             // what the network did by chance, if somebody asks for it
	lenient  *[]int                // see Options
	coverage *coverage             // the shapes of states, if somebody asks for them
	trace    *trace.Trace          // nil when nobody looks
	tell     func(so *trace.Trace) // of each event of the trace; may be nil
	cause    int64                 // the event that is being handled
	deep     bool                  // run raft.Check and raft.Delta after every input
	commands []Command             // scheduled by at
	pending  int                   // of them, not yet carried out
	joining  []raft.ServerID       // servers that whoever adds them looks after
	failure  error                 // of a scheduled command
}

// actor is whatever messages travel between: a node, a client, or a resource (the last, and
// nameless: every client reaches every resource over one link).
type actor struct {
	name   Actor
	key    uint64 // in draws
	node   *node
	client *client
}

// worldConfig is what set-up lines decide.
type worldConfig struct {
	nodes               int // that vote from the start on
	learners, joiners   int // behind them: those who do not, and those who are added later
	election, heartbeat trace.Time
	batch, window       int
	preVote             bool
	checkQuorum         bool
	grantOnApplied      bool
	snapshotEvery, keep raft.Index
	chunk               int
	rules               fsm.Rules
	without             []string
}

func defaultConfig() worldConfig {
	return worldConfig{
		nodes: 3, election: 150 * trace.Millisecond, heartbeat: 50 * trace.Millisecond, batch: 64, window: 16,
		preVote: true, checkQuorum: true,
	}
}

// replica is what a server's replica is told.
func (c *worldConfig) replica(id raft.ServerID, jitter func(uint64) raft.Time) fsm.Config {
	var voters []raft.ServerID
	for i := range c.nodes {
		if int(id) <= c.nodes { // the others learn from the log who the servers are
			voters = append(voters, raft.ServerID(i+1))
		}
	}
	return fsm.Config{
		Raft: raft.Config{
			ID: id, Voters: voters,
			ElectionTimeout: raft.Time(c.election), HeartbeatTimeout: raft.Time(c.heartbeat),
			Jitter: jitter, MaxBatch: c.batch, Window: c.window,
			PreVote: c.preVote, CheckQuorum: c.checkQuorum,
			ChunkSize: c.chunk, Keep: c.keep,
		},
		SnapshotEvery:  c.snapshotEvery,
		GrantOnApplied: c.grantOnApplied,
		Rules:          c.rules,
	}
}

// Defaults of links and disks, when no line says otherwise.
const (
	defaultDelayMin, defaultDelayMax = 5 * trace.Millisecond, 20 * trace.Millisecond
	defaultSyncMin, defaultSyncMax   = 2 * trace.Millisecond, 8 * trace.Millisecond
)

func micros(d time.Duration) trace.Time { return trace.Time(d / time.Microsecond) }

// newWorld makes the actors. Nodes are not yet running: clocks, disks and links may still be
// changed.
func newWorld(seed uint64, config worldConfig, clients []Actor) *World {
	w := &World{seed: seed, config: config, highest: map[string]fsm.Token{}, mistakes: map[string]string{}}
	w.slowest = map[string]trace.Time{}
	for id := raft.ServerID(1); int(id) <= config.nodes+config.learners+config.joiners; id++ {
		n := &node{
			id: id, index: int32(len(w.actors)), name: NodeActor(id),
			clock: newClock(), voted: trace.Votes{},
			disk:  disk{syncMin: defaultSyncMin, syncMax: defaultSyncMax},
			joins: int(id) > config.nodes+config.learners,
		}
		w.nodes = append(w.nodes, n)
		w.actors = append(w.actors, actor{name: n.name, key: uint64(id), node: n})
	}
	for _, name := range clients {
		c := &client{
			index: int32(len(w.actors)), name: name,
			clock: newClock(), tokens: map[string]holding{},
		}
		w.clients = append(w.clients, c)
		w.actors = append(w.actors, actor{name: name, key: nameKey(string(name)), client: c})
	}
	w.actors = append(w.actors, actor{key: nameKey("resource")})
	w.links = make([][]link, len(w.actors))
	for i := range w.links {
		w.links[i] = make([]link, len(w.actors))
		for j := range w.links[i] {
			w.links[i][j] = link{delayMin: defaultDelayMin, delayMax: defaultDelayMax}
		}
	}
	w.checks = newHooks()
	w.history.clock.rate = trueRate
	w.ledger.sets = []effective{{members: config.first()}}
	return w
}

// start brings all nodes up.
func (w *World) start() error {
	w.startLearners()
	w.startHistory()
	for _, n := range w.nodes {
		if n.joins {
			continue
		}
		w.cause = 0
		if err := w.boot(n, trace.KindStart); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) node(id raft.ServerID) *node {
	if id < 1 || int(id) > len(w.nodes) {
		return nil
	}
	return w.nodes[id-1]
}

func (w *World) client(name Actor) *client {
	for _, c := range w.clients {
		if c.name == name {
			return c
		}
	}
	return nil
}

// find returns the index of an actor by name, -1 if there is none.
func (w *World) find(name Actor) int {
	for i := range w.actors {
		if w.actors[i].name == name && name != "" {
			return i
		}
	}
	return -1
}

// schedule puts an event into the queue.
func (w *World) schedule(e event) {
	w.order++
	e.order = w.order
	w.queue.push(e)
}

// next carries out the next event if it is due by limit, and reports whether there was one.
func (w *World) next(limit trace.Time) bool {
	if w.halted || len(w.queue) == 0 || w.queue[0].at > limit {
		return false
	}
	if w.maxSteps > 0 && w.steps > w.maxSteps {
		w.failure = fmt.Errorf("stopped after %d events, at %s: a run keeps them all in memory", w.steps, w.now)
		w.halted = true
		return false
	}
	e := w.queue.pop()
	w.pass(e.at)
	w.cause = 0
	switch e.kind {
	case eventDeliver:
		w.arrive(e.slot, e.gen)
	case eventTimer:
		w.timer(e.actor, e.gen)
	case eventSaved:
		w.synced(w.actors[e.actor].node, e.gen, uint64(e.slot))
	case eventFile:
		w.fileIsDue(w.actors[e.actor].node, e.gen, uint64(e.slot))
	case eventJoin:
		w.join(raft.ServerID(e.slot))
	case eventClock:
		w.clockEvent(e)
	case eventCommand:
		w.pending--
		w.doInTime(int(e.slot))
	}
	return true
}

// advance lets true time pass up to t.
func (w *World) advance(t trace.Time) {
	for w.next(t) {
	}
	if !w.halted {
		w.pass(max(w.now, t))
	}
}

// pass lets it be t. From a fork on, all draws are others; what was drawn before stays.
func (w *World) pass(t trace.Time) {
	w.now = t
	if w.fork.before(t) {
		w.seed = w.fork.seed
	}
}

// timer is an actor's deadline, as scheduled by arm.
func (w *World) timer(index int32, gen uint32) {
	a := &w.actors[index]
	switch {
	case a.node != nil && a.node.timerGen == gen:
		w.nodeTimer(a.node)
	case a.client != nil && a.client.timerGen == gen:
		w.clientTimer(a.client)
	}
}

// violate ends the run because of a violation, unless it is one that the run is about.
func (w *World) violate(invariant string, where Actor, detail string) {
	for _, v := range w.broken {
		if v.Invariant == invariant {
			return
		}
	}
	w.counters[countViolations]++
	v := Violation{Invariant: invariant, At: w.now, Node: where, Detail: detail}
	v.Event = w.traceViolation(v)
	w.broken = append(w.broken, v)
	if !w.tolerate[invariant] && !w.tolerate["*"] || invariant == stormName {
		w.halted = true
	}
}

// Violation is an invariant that was broken: which, when, where and how.
type Violation struct {
	Invariant string
	At        trace.Time
	Node      Actor
	Detail    string
	Event     int64 // in the trace, if there is one
}

func (v Violation) String() string {
	return fmt.Sprintf("%s broken at %s on %s: %s", v.Invariant, v.At, v.Node, v.Detail)
}
