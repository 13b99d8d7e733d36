package sim

import (
	"slices"

	"ticketing/fsm"
	"ticketing/raft"
)

// judge is the observer of an exhaustive search: it knows what commands do not say, and remembers
// what it needs to tell whether an invariant holds. It follows the one history that all servers
// share, along the first application of each entry. Every run of the simulator has invariants of
// the same names, which are written apart from these: a counterexample that is replayed there is
// judged by both.
type judge struct {
	broken  string
	happens uint8      // in this step: the noted bits below
	applied raft.Index // how far the history goes
	hashes  []uint64   // of the table after each of its entries; never written
	holder  fsm.Token  // of the key, after those
	since   raft.Index // the entry that last set its lease
	last    fsm.Token  // that was given out
	seen    uint64     // tokens that a client was told, a bit each
	cleaned uint64     // tokens of tenures that a clean-up has ended
	intents []intent   // of the entries behind; cloned by clone
	granted []grantOf  // what requests were granted; never written
}

// What a step may have had in it, by its bit.
const (
	notedLate   = iota // an Expire, or what stands for one, met a newer token
	notedAgain         // a duplicate was answered with what was told before
	notedSpent         // a duplicate was answered Noop
	notedExtend        // a lease was extended
	notedGhost         // a tenure was given back because its client had gone
	notedLagged        // a leader was elected that had not applied all that was
)

// intent is what the proposer of an entry had in mind.
type intent struct {
	index raft.Index
	term  raft.Term
	cause fsm.Cause
	meant fsm.Token
	since raft.Index // of the lease that ran out
}

type grantOf struct {
	user, number int
	token        fsm.Token
}

func (j *judge) clone() judge {
	k := *j
	k.happens = 0
	k.intents = slices.Clone(j.intents)
	return k
}

func (j *judge) violate(name string) {
	if j.broken == "" {
		j.broken = name
	}
}

func (j *judge) note(bit int) { j.happens |= 1 << bit }

// watch looks at what a replica has proposed and applied. It applies before it proposes.
func (j *judge) watch(c *cluster, t took) {
	for _, p := range t.proposed {
		i := intent{index: p.Index, term: p.Term, cause: p.Cause, meant: p.Meant}
		if p.Cause == fsm.ForLease {
			h, _ := c.nodes[t.node].Table().Holder(p.Envelope.Key)
			i.since = h.Since
		}
		j.intents = append(j.intents, i)
	}
	for i := range t.applied {
		j.apply(&t.applied[i])
	}
}

func (j *judge) apply(a *fsm.Applied) {
	if a.Index <= j.applied {
		if j.hashes[a.Index-1] != a.Hash {
			j.violate("state-machine-safety")
		}
		return
	}
	j.applied = a.Index
	j.hashes = append(slices.Clip(j.hashes), a.Hash)
	meant := j.intentOf(a)
	switch {
	case a.Result.Again:
		j.note(notedAgain)
	case a.Envelope.Client != 0 && a.Result.Kind == fsm.ResultNoop:
		j.note(notedSpent)
	case a.Result.Kind == fsm.Granted:
		j.grant(a)
	case a.Result.Kind == fsm.Extended:
		j.note(notedExtend)
		j.since = a.Index
	case removes(a.Result):
		j.remove(meant)
		j.holder = 0
	case meant.cause == fsm.ForLease && j.holder != 0 && j.holder != meant.meant:
		j.note(notedLate)
	}
}

// grant judges the beginning of a tenure.
func (j *judge) grant(a *fsm.Applied) {
	if j.holder != 0 {
		j.violate("one-holder")
	}
	if a.Result.Token <= j.last {
		j.violate("tokens-increase")
	}
	j.holder, j.last, j.since = a.Result.Token, a.Result.Token, a.Index
}

// remove judges the end of a tenure. That a leader believes its client gone is no reason to end one
// that the client was told of; and a lease that was extended since the leader looked has not run
// out.
func (j *judge) remove(i intent) {
	if i.cause == fsm.ForCleanup {
		j.note(notedGhost)
		j.cleaned |= 1 << j.holder
	}
	switch {
	case i.meant != 0 && i.meant != j.holder:
		j.violate("removal-meant")
	case i.cause == fsm.ForCleanup && j.seen&(1<<j.holder) != 0:
		j.violate("never-withdrawn")
	case i.cause == fsm.ForLease && i.since != j.since:
		j.violate("expire-earned")
	}
}

// intentOf returns what an entry's proposer had in mind, and forgets what is settled with it.
func (j *judge) intentOf(a *fsm.Applied) intent {
	var found intent
	j.intents = slices.DeleteFunc(j.intents, func(i intent) bool {
		if i.index == a.Index && i.term == a.Term {
			found = i
		}
		return i.index <= a.Index
	})
	return found
}

// forget drops the intents of entries that the one server which counts from now on does not have.
func (j *judge) forget(core *raft.Core) {
	j.intents = slices.DeleteFunc(j.intents, func(i intent) bool {
		term, ok := core.Term(i.index)
		return !ok || term != i.term
	})
}

// reply judges an answer: a request is granted one tenure, however often it is sent.
func (j *judge) reply(user, number int, y fsm.Reply) {
	if y.Status != fsm.Answered || y.Result.Kind != fsm.Granted {
		return
	}
	for _, g := range j.granted {
		if g.user == user && g.number == number {
			if g.token != y.Result.Token {
				j.violate("granted-once")
			}
			return
		}
	}
	j.granted = append(slices.Clip(j.granted), grantOf{user, number, y.Result.Token})
}

// heard notes that a client takes a lock for its own.
func (j *judge) heard(token fsm.Token) {
	j.seen |= 1 << token
	if j.cleaned&(1<<token) != 0 {
		j.violate("never-withdrawn")
	}
}

// appendState appends what the judge will decide by. Of indices only how they compare matters.
func (j *judge) appendState(b []byte) []byte {
	b = append(b, byte(j.holder), byte(j.last), byte(j.cleaned), byte(j.seen>>j.holder&1),
		byte(len(j.intents)), byte(len(j.granted)))
	for _, i := range j.intents {
		b = append(b, byte(i.index-j.applied), byte(i.term), byte(i.cause), byte(i.meant))
		b = appendFlags(b, i.cause == fsm.ForLease && i.since == j.since)
	}
	for _, g := range j.granted {
		b = append(b, byte(g.user), byte(g.number), byte(g.token))
	}
	return b
}
