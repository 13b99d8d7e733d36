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
	onStep, onChange, onAppend, onSend, onReceived []invariant
	onPropose, onApply, onFirstApply, onAnswer     []invariant
	onTook, onHeard, onStore, onBoot, onRead       []invariant
	onShown, onLanded, onSaves, onRestored, onEnd  []invariant
}

func newHooks() hooks {
	var h hooks
	for _, i := range invariants() {
		add := func(to *[]invariant, wanted bool) {
			if wanted {
				*to = append(*to, i)
			}
		}
		add(&h.onStep, i.step != nil)
		add(&h.onChange, i.change != nil)
		add(&h.onAppend, i.append != nil)
		add(&h.onSend, i.send != nil)
		add(&h.onReceived, i.received != nil)
		add(&h.onPropose, i.propose != nil)
		add(&h.onApply, i.apply != nil)
		add(&h.onFirstApply, i.firstApply != nil)
		add(&h.onTook, i.took != nil)
		add(&h.onAnswer, i.answer != nil)
		add(&h.onHeard, i.heard != nil)
		add(&h.onRead, i.read != nil)
		add(&h.onShown, i.shown != nil)
		add(&h.onLanded, i.landed != nil)
		add(&h.onSaves, i.saves != nil)
		add(&h.onRestored, i.restored != nil)
		add(&h.onStore, i.store != nil)
		add(&h.onBoot, i.restart != nil)
		add(&h.onEnd, i.end != nil)
	}
	return h
}

func (w *World) judge(i *invariant, n *node, problem string) {
	if problem != "" {
		w.violate(i.name, n.name, problem)
	}
}

func (h *hooks) step(w *World, n *node) {
	for i := range h.onStep {
		w.judge(&h.onStep[i], n, h.onStep[i].step(w, n))
	}
}

func (h *hooks) change(w *World, n *node, before, after *raft.Status) {
	for i := range h.onChange {
		w.judge(&h.onChange[i], n, h.onChange[i].change(w, n, before, after))
	}
}

func (h *hooks) append(w *World, n *node, before *raft.Status, entries []raft.Entry) {
	for i := range h.onAppend {
		w.judge(&h.onAppend[i], n, h.onAppend[i].append(w, n, before, entries))
	}
}

func (h *hooks) send(w *World, n *node, m *raft.Message) {
	for i := range h.onSend {
		w.judge(&h.onSend[i], n, h.onSend[i].send(w, n, m))
	}
}

func (h *hooks) received(w *World, n *node, m *raft.Message) {
	for i := range h.onReceived {
		w.judge(&h.onReceived[i], n, h.onReceived[i].received(w, n, m))
	}
}

func (h *hooks) propose(w *World, n *node, p *fsm.Proposed) {
	for i := range h.onPropose {
		w.judge(&h.onPropose[i], n, h.onPropose[i].propose(w, n, p))
	}
}

func (h *hooks) apply(w *World, n *node, a *fsm.Applied) {
	for i := range h.onApply {
		w.judge(&h.onApply[i], n, h.onApply[i].apply(w, n, a))
	}
}

func (h *hooks) firstApply(w *World, n *node, a *fsm.Applied) {
	for i := range h.onFirstApply {
		w.judge(&h.onFirstApply[i], n, h.onFirstApply[i].firstApply(w, n, a))
	}
}

func (h *hooks) took(w *World, n *node, out *fsm.Output) {
	for i := range h.onTook {
		w.judge(&h.onTook[i], n, h.onTook[i].took(w, n, out))
	}
}

func (h *hooks) heard(w *World, c *client, token fsm.Token) {
	for i := range h.onHeard {
		if problem := h.onHeard[i].heard(w, c, token); problem != "" {
			w.violate(h.onHeard[i].name, c.name, problem)
		}
	}
}

func (h *hooks) shown(w *World, key string, token fsm.Token, passes bool) {
	for i := range h.onShown {
		if problem := h.onShown[i].shown(w, key, token, passes); problem != "" {
			w.violate(h.onShown[i].name, Actor(key), problem)
		}
	}
}

func (h *hooks) landed(w *World, key string, token fsm.Token) {
	for i := range h.onLanded {
		if problem := h.onLanded[i].landed(w, key, token); problem != "" {
			w.violate(h.onLanded[i].name, Actor(key), problem)
		}
	}
}

func (h *hooks) answer(w *World, n *node, q *fsm.Request, y *fsm.Reply) {
	for i := range h.onAnswer {
		w.judge(&h.onAnswer[i], n, h.onAnswer[i].answer(w, n, q, y))
	}
}

func (h *hooks) read(w *World, n *node, r *openRead, y *fsm.Reply) {
	for i := range h.onRead {
		w.judge(&h.onRead[i], n, h.onRead[i].read(w, n, r, y))
	}
}

func (h *hooks) saves(w *World, n *node, s *raft.Snapshot) {
	for i := range h.onSaves {
		w.judge(&h.onSaves[i], n, h.onSaves[i].saves(w, n, s))
	}
}

func (h *hooks) restored(w *World, n *node, end raft.Index) {
	for i := range h.onRestored {
		w.judge(&h.onRestored[i], n, h.onRestored[i].restored(w, n, end))
	}
}

func (h *hooks) store(w *World, n *node) {
	for i := range h.onStore {
		w.judge(&h.onStore[i], n, h.onStore[i].store(w, n))
	}
}

func (h *hooks) restart(w *World, n *node) {
	for i := range h.onBoot {
		w.judge(&h.onBoot[i], n, h.onBoot[i].restart(w, n))
	}
}

// end is asked only if nothing else is broken.
func (h *hooks) end(w *World) {
	for i := range h.onEnd {
		if len(w.broken) > 0 {
			return
		}
		if problem := h.onEnd[i].end(w); problem != "" {
			w.violate(h.onEnd[i].name, "clients", problem)
		}
	}
}
