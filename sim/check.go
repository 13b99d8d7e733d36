package sim

import (
	"ticketing/fsm"
	"ticketing/raft"
)

// An invariant is a sentence that must be true after every event, and the code that watches it. One of
// them is about a whole run, and is asked at its end: that clients agree.
// Each has a file of its own, check_*.go. The fields are called when their moment comes, and return
// what is wrong, or "". An invariant that needs a memory keeps it in its closures, so that two
// worlds never share one.
type invariant struct {
	name     string
	sentence string

	step       func(w *World, n *node) string                             // a node took an input
	change     func(w *World, n *node, before, after *raft.Status) string // its Raft state changed
	append     func(w *World, n *node, before *raft.Status, entries []raft.Entry) string
	send       func(w *World, n *node, m *raft.Message) string // a message is about to leave
	received   func(w *World, n *node, m *raft.Message) string // a message was handled
	propose    func(w *World, n *node, p *fsm.Proposed) string
	apply      func(w *World, n *node, a *fsm.Applied) string  // on every node
	firstApply func(w *World, n *node, a *fsm.Applied) string  // once for each entry
	took       func(w *World, n *node, out *fsm.Output) string // all that followed from an input
	answer     func(w *World, n *node, q *fsm.Request, y *fsm.Reply) string
	read       func(w *World, n *node, r *openRead, y *fsm.Reply) string // a read of the table is over
	heard      func(w *World, c *client, token fsm.Token) string         // a client takes a lock for its own
	// A resource has compared a token, and then it has done what a write is for.
	shown  func(w *World, key string, token fsm.Token, passes bool) string
	landed func(w *World, key string, token fsm.Token) string

	saves    func(w *World, n *node, s *raft.Snapshot) string // a snapshot is about to be saved
	restored func(w *World, n *node, end raft.Index) string   // the table has become a snapshot's

	store   func(w *World, n *node) string // a disk's durable state changed
	restart func(w *World, n *node) string
	end     func(w *World) string // the run is over, and nothing is broken
}

// Names of invariants that are reported from elsewhere than a check_*.go file.
const (
	wellFormed  = "well-formed"
	readable    = "log-readable"
	coreState   = "core-state"
	logMatching = "log-matching"
	stormName   = "event-storm"

	snapshotCommitted = "snapshot-committed"
	snapshotDurable   = "snapshot-durable"
)

// invariants returns all of them, fresh.
func invariants() []invariant {
	return append([]invariant{
		electionSafety(), leaderQuorum(), voteOnce(), termMonotone(), leaderAuthentic(),
		persistBeforeSend(), leaderAppendOnly(), logMatchingCheck(), entryTerm(), matchSound(),
		commitMonotone(), commitAgreement(), commitDurable(), leaderCompleteness(), stateMachineSafety(),
		acknowledgedDurable(), tokensIncrease(), oneHolder(), grantedOnce(), removalMeant(), neverWithdrawn(),
		leaderWaits(), gateHolds(), oneExpire(), expireEarned(), ghostCleaned(),
		fencedWrites(), holderServed(), readsLinearizable(), clientsAgree(),
		membersLogged(), oneChange(), majoritiesOverlap(),
		snapshotAgreesCheck(), snapshotCommittedCheck(), snapshotDurableCheck(),
		{name: wellFormed, sentence: "no server gets a message that a correct peer cannot have sent"},
		{name: readable, sentence: "every committed command can be read"},
		{name: coreState, sentence: "each core's state is one that raft.Check and raft.Delta accept (watched in tests)"},
		eventStorm(),
	}, progressInvariants()...)
}

// Invariant is one of the sentences, for people.
type Invariant struct{ Name, Sentence string }

// Invariants lists the invariants that every run watches. What only tests look at, being slow, is
// not among them.
func Invariants() []Invariant {
	var list []Invariant
	for _, i := range invariants() {
		if i.name == coreState {
			continue
		}
		list = append(list, Invariant{i.name, i.sentence})
	}
	return list
}

// InvariantNames lists the names that "expect NAME violated" can use.
func InvariantNames() []string {
	var names []string
	for _, i := range Invariants() {
		names = append(names, i.Name)
	}
	return names
}

// hooks has the invariants sorted by the moments that they watch, so that an event costs only those
// that it can concern.
type hooks struct {
	onStep, onStore, onRestart []hook[func(*World, *node) string]
	onChange                   []hook[func(w *World, n *node, before, after *raft.Status) string]
	onAppend                   []hook[func(*World, *node, *raft.Status, []raft.Entry) string]
	onSend, onReceived         []hook[func(*World, *node, *raft.Message) string]
	onPropose                  []hook[func(*World, *node, *fsm.Proposed) string]
	onApply, onFirstApply      []hook[func(*World, *node, *fsm.Applied) string]
	onTook                     []hook[func(*World, *node, *fsm.Output) string]
	onAnswer                   []hook[func(*World, *node, *fsm.Request, *fsm.Reply) string]
	onRead                     []hook[func(*World, *node, *openRead, *fsm.Reply) string]
	onHeard                    []hook[func(*World, *client, fsm.Token) string]
	onShown                    []hook[func(w *World, key string, token fsm.Token, passes bool) string]
	onLanded                   []hook[func(w *World, key string, token fsm.Token) string]
	onSaves                    []hook[func(*World, *node, *raft.Snapshot) string]
	onRestored                 []hook[func(*World, *node, raft.Index) string]
	onEnd                      []hook[func(*World) string]
}

// hook is one moment of an invariant.
type hook[F any] struct {
	name string
	ask  F
}

func newHooks() (h hooks) {
	for _, i := range invariants() {
		h.add(i)
	}
	return h
}

func (h *hooks) add(i invariant) {
	hang(&h.onStep, i.name, i.step, i.step != nil)
	hang(&h.onChange, i.name, i.change, i.change != nil)
	hang(&h.onAppend, i.name, i.append, i.append != nil)
	hang(&h.onSend, i.name, i.send, i.send != nil)
	hang(&h.onReceived, i.name, i.received, i.received != nil)
	hang(&h.onPropose, i.name, i.propose, i.propose != nil)
	hang(&h.onApply, i.name, i.apply, i.apply != nil)
	hang(&h.onFirstApply, i.name, i.firstApply, i.firstApply != nil)
	hang(&h.onTook, i.name, i.took, i.took != nil)
	hang(&h.onAnswer, i.name, i.answer, i.answer != nil)
	hang(&h.onRead, i.name, i.read, i.read != nil)
	hang(&h.onHeard, i.name, i.heard, i.heard != nil)
	hang(&h.onShown, i.name, i.shown, i.shown != nil)
	hang(&h.onLanded, i.name, i.landed, i.landed != nil)
	hang(&h.onSaves, i.name, i.saves, i.saves != nil)
	hang(&h.onRestored, i.name, i.restored, i.restored != nil)
	hang(&h.onStore, i.name, i.store, i.store != nil)
	hang(&h.onRestart, i.name, i.restart, i.restart != nil)
	hang(&h.onEnd, i.name, i.end, i.end != nil)
}

func hang[F any](to *[]hook[F], name string, ask F, wanted bool) {
	if wanted {
		*to = append(*to, hook[F]{name, ask})
	}
}

func (w *World) judge(invariant string, where Actor, problem string) {
	if problem != "" {
		w.violate(invariant, where, problem)
	}
}

func (h *hooks) step(w *World, n *node) {
	for i := range h.onStep {
		w.judge(h.onStep[i].name, n.name, h.onStep[i].ask(w, n))
	}
}

func (h *hooks) change(w *World, n *node, before, after *raft.Status) {
	for i := range h.onChange {
		w.judge(h.onChange[i].name, n.name, h.onChange[i].ask(w, n, before, after))
	}
}

func (h *hooks) append(w *World, n *node, before *raft.Status, entries []raft.Entry) {
	for i := range h.onAppend {
		w.judge(h.onAppend[i].name, n.name, h.onAppend[i].ask(w, n, before, entries))
	}
}

func (h *hooks) send(w *World, n *node, m *raft.Message) {
	for i := range h.onSend {
		w.judge(h.onSend[i].name, n.name, h.onSend[i].ask(w, n, m))
	}
}

func (h *hooks) received(w *World, n *node, m *raft.Message) {
	for i := range h.onReceived {
		w.judge(h.onReceived[i].name, n.name, h.onReceived[i].ask(w, n, m))
	}
}

func (h *hooks) propose(w *World, n *node, p *fsm.Proposed) {
	for i := range h.onPropose {
		w.judge(h.onPropose[i].name, n.name, h.onPropose[i].ask(w, n, p))
	}
}

func (h *hooks) apply(w *World, n *node, a *fsm.Applied) {
	for i := range h.onApply {
		w.judge(h.onApply[i].name, n.name, h.onApply[i].ask(w, n, a))
	}
}

func (h *hooks) firstApply(w *World, n *node, a *fsm.Applied) {
	for i := range h.onFirstApply {
		w.judge(h.onFirstApply[i].name, n.name, h.onFirstApply[i].ask(w, n, a))
	}
}

func (h *hooks) took(w *World, n *node, out *fsm.Output) {
	for i := range h.onTook {
		w.judge(h.onTook[i].name, n.name, h.onTook[i].ask(w, n, out))
	}
}

func (h *hooks) heard(w *World, c *client, token fsm.Token) {
	for i := range h.onHeard {
		w.judge(h.onHeard[i].name, c.name, h.onHeard[i].ask(w, c, token))
	}
}

func (h *hooks) shown(w *World, key string, token fsm.Token, passes bool) {
	for i := range h.onShown {
		w.judge(h.onShown[i].name, Actor(key), h.onShown[i].ask(w, key, token, passes))
	}
}

func (h *hooks) landed(w *World, key string, token fsm.Token) {
	for i := range h.onLanded {
		w.judge(h.onLanded[i].name, Actor(key), h.onLanded[i].ask(w, key, token))
	}
}

func (h *hooks) answer(w *World, n *node, q *fsm.Request, y *fsm.Reply) {
	for i := range h.onAnswer {
		w.judge(h.onAnswer[i].name, n.name, h.onAnswer[i].ask(w, n, q, y))
	}
}

func (h *hooks) read(w *World, n *node, r *openRead, y *fsm.Reply) {
	for i := range h.onRead {
		w.judge(h.onRead[i].name, n.name, h.onRead[i].ask(w, n, r, y))
	}
}

func (h *hooks) saves(w *World, n *node, s *raft.Snapshot) {
	for i := range h.onSaves {
		w.judge(h.onSaves[i].name, n.name, h.onSaves[i].ask(w, n, s))
	}
}

func (h *hooks) restored(w *World, n *node, end raft.Index) {
	for i := range h.onRestored {
		w.judge(h.onRestored[i].name, n.name, h.onRestored[i].ask(w, n, end))
	}
}

func (h *hooks) store(w *World, n *node) {
	for i := range h.onStore {
		w.judge(h.onStore[i].name, n.name, h.onStore[i].ask(w, n))
	}
}

func (h *hooks) restart(w *World, n *node) {
	for i := range h.onRestart {
		w.judge(h.onRestart[i].name, n.name, h.onRestart[i].ask(w, n))
	}
}

// end is asked only if nothing else is broken.
func (h *hooks) end(w *World) {
	for i := range h.onEnd {
		if len(w.broken) > 0 {
			return
		}
		w.judge(h.onEnd[i].name, "clients", h.onEnd[i].ask(w))
	}
}
