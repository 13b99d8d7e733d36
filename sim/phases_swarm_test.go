package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ticketing/internal/planted"
)

// The servers may be others by then, and not all know it.
func TestTheMajorityIsOneOfEverySetThatCounts(t *testing.T) {
	t.Parallel()
	changed := 0
	for seed := uint64(1); seed <= 60; seed++ {
		s := swarmPlan(t, seed)
		s.Lines = s.Lines[:len(s.Lines)-1] // until it recovers
		w := worldOf(t, s)
		if w.counters[countMembersChanged] > 0 {
			changed++
		}
		core := w.drawCore()
		for _, n := range w.nodes {
			if n.boots == 0 || n.members().index < w.ledger.sets[len(w.ledger.sets)-1].index {
				continue
			}
			if in, of := w.quorumOf(n.members().members, func(n *node) bool { return slices.Contains(core, n) }); of > 0 && in < majority(of) {
				t.Errorf("seed %d: %d of the %d that S%d counts heal", seed, in, of, n.id)
			}
		}
	}
	if changed < 10 {
		t.Errorf("in only %d runs the servers changed", changed)
	}
}

// The bounds are far enough from what a search sees that a run which misses one has another reason.
func TestAMajorityThatHealsKeepsItsBoundsByFar(t *testing.T) {
	t.Parallel()
	most := map[string]int64{}
	seeds := wide(300, 20_000)
	for seed := uint64(1); seed <= seeds; seed++ {
		r, err := Search{Faults: "swarm"}.Run(seed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Held() {
			t.Errorf("seed %d: %v, %v", seed, r.Unexpected(), r.Failure)
		}
		for name, tenths := range r.slowest {
			most[name] = max(most[name], tenths)
		}
	}
	t.Logf("in %d runs, in tenths of an election timeout: %v", seeds, most)
	for name, within := range map[string]int64{
		progressLeader: leaderWithin, progressCommit: commitWithin, progressRead: readWithin,
		progressExpire: expireWithin, progressConverge: convergeWithin,
	} {
		if n := most[name]; n == 0 || n > within*10*3/4 {
			t.Errorf("%s: at most %d tenths of an election timeout, and %d are allowed", name, n, within*10)
		}
	}
}

// stuck is a program that looks for the first seeds that break something, and shrinks one.
const stuck = `package main

import (
	"context"
	"fmt"

	"ticketing/sim"
)

func main() {
	shrunk := false
	for seed := uint64(1); seed <= 120; seed++ {
		s, err := sim.Plan(seed, "swarm", 0)
		if err != nil {
			panic(err)
		}
		r, err := sim.Run(s, sim.Options{})
		if err != nil {
			panic(err)
		}
		if r.Failure != nil {
			fmt.Println(seed, r.Failure, 0)
		}
		if len(r.Violations) == 0 {
			continue
		}
		left := 0
		if !shrunk {
			short, err := sim.Shrink{Scenario: s}.Run(context.Background())
			if err != nil {
				panic(err)
			}
			shrunk, left = true, short.After
		}
		fmt.Println(seed, r.Violations[0].Invariant, left)
	}
}
`

// What stops a cluster for ever breaks no invariant of safety. It is found in the second phase, under a
// name, and shrinks.
func TestMistakesThatOnlyStopProgressAreFound(t *testing.T) {
	t.Parallel()
	for _, bug := range []struct {
		name, file, is, instead string
		want                    string
	}{
		{"what was lost is not sent again", "raft/replication.go",
			"if p.sending != nil || r.PrevLogIndex <= p.matchIndex", "if !p.probing || p.sending != nil || r.PrevLogIndex <= p.matchIndex",
			progressConverge},
		{"a candidate campaigns once", "raft/election.go",
			"case !c.mayCampaign():", "case !c.mayCampaign() || c.role == Candidate:", progressLeader},
		{"a term does not begin with an entry of its leader", "raft/election.go",
			"\tc.log.append(Entry{Term: c.currentTerm})\n\tc.heartbeatDue", "\tc.heartbeatDue", progressCommit},
		{"heartbeats do not confirm reads", "raft/replication.go", "max(p.round, r.Round)", "p.round", progressRead},
		{"a leader leaves to its predecessor what that has granted", "fsm/leader.go",
			"if r.leader.expiring[o.token] {", "if r.leader.expiring[o.token] || o.since < r.leader.start {", progressExpire},
	} {
		if !long() && bug.want != progressExpire {
			continue // the long form plants all
		}
		t.Run(bug.name, func(t *testing.T) {
			out := planted.Run(t, stuck, nil, planted.Mistake{File: bug.file, Is: bug.is, Instead: bug.instead})
			found, left := map[string]int{}, 0
			for line := range strings.Lines(out) {
				var seed, after int
				var invariant string
				if _, err := fmt.Sscan(line, &seed, &invariant, &after); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				found[invariant]++
				left = max(left, after)
			}
			t.Logf("of 120 seeds %v; the first shrinks to %d actions", found, left)
			if found[bug.want] == 0 || left == 0 {
				t.Errorf("%s is not found, or does not shrink", bug.want)
			}
			for name := range found {
				if !strings.HasPrefix(name, "progress-") {
					t.Errorf("it breaks %s, too", name)
				}
			}
		})
	}
}
