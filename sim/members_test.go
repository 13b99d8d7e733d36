package sim

import (
	"fmt"
	"strings"
	"testing"

	"ticketing/internal/planted"
	"ticketing/raft"
)

// A scenario that holds by the luck of its seed shows nothing.
func TestScenariosAboutMembersHoldOnManySeeds(t *testing.T) {
	ran := 0
	for _, s := range Library() {
		if !strings.HasPrefix(s.Name, "member-") {
			continue
		}
		ran++
		for seed := uint64(1); seed <= 40; seed++ {
			r, err := Run(s, Options{Seed: &seed, Deep: seed <= 4})
			if err != nil {
				t.Fatal(err)
			}
			learners := strings.Contains(s.Text, "learners") // who are there from the start
			if !r.Held() || r.Count("members.changed") == 0 && !learners {
				t.Errorf("%s, seed %d: %v, %v", s.Name, seed, r.Failure, r.Unexpected())
			}
		}
	}
	if ran < 13 {
		t.Errorf("there are only %d", ran)
	}
}

// In a share of the runs servers come and go; the others are as they were without.
func TestTheSearchDrawsWhoComesAndGoes(t *testing.T) {
	const runs = 400
	changing := 0
	for seed := uint64(1); seed <= runs; seed++ {
		s, err := Plan(seed, "harsh", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("plan.txt", s.String()); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		changes := 0
		for _, line := range s.Lines {
			if at, ok := line.Command.(At); ok {
				_, change := at.Command.(Change)
				changes += count01(change)
			}
		}
		changing += count01(changes > 0)
	}
	if changing < runs/2 || changing > 3*runs/4 {
		t.Errorf("servers come and go in %d of %d runs", changing, runs)
	}
}

// Short cuts that somebody could take, and which invariant finds them in random runs.
//
//spec:test Members.Append
//spec:test Members.Fallback
//spec:test Members.One
//spec:test Members.OwnTerm
//spec:test Members.Quorum
func TestTheSearchFindsServersThatAreChangedLightly(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ file, is, instead, finds string }{
		"a second change before the first is committed": {
			"membership.go", "last > c.commitIndex {", "last > c.commitIndex && false {", "one-change",
		},
		"before an entry of the own term is committed": {
			"membership.go", "if !c.ownTermCommitted() {", "if false {", "leader-waits",
		},
		"a change that was replaced still counts": {
			"membership.go", "	for keep > 1 && c.configurations[keep-1].index >= from {", "	for keep > 1 && keep < 0 && from > 0 {",
			"members-logged",
		},
		"a leader that does not vote counts itself": {
			"election.go", "count(c.voter, own)", "count(c.voter || c.role == Leader, own)", "commit-durable",
		},
		"learners are counted": {
			"election.go", "count(c.peers[i].voter, ask", "count(true, ask", "",
		},
		"a follower goes by a change when it is committed": {
			"membership.go", "		if e := c.log.slice(i, i)[0]; e.Members != nil {",
			"		if e := c.log.slice(i, i)[0]; e.Members != nil && i <= c.commitIndex {", "members-logged",
		},
	}
	for name, c := range some(t, cases, "a change that was replaced still counts", "learners are counted") {
		found := plantedInRaft(t, c.file, c.is, c.instead)
		t.Logf("%s: %s", name, found)
		if found == "nothing" || !strings.HasPrefix(found, c.finds) {
			t.Errorf("%s: the search finds %s", name, found)
		}
	}
}

// Those that need more than chance, and the scenario that is about them.
//
//spec:test Members.CaughtUp
//spec:test Members.Leave
func TestScenariosFindServersThatAreChangedLightly(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ file, is, instead, scenario, finds string }{
		"before the learner has caught up": {
			"membership.go", "m != nil && m.Voter && !c.caughtUp(p)", "m != nil && m.Voter && false", "member-too-early", "expected count members.refused",
		},
		"a leader stays though it is removed": {
			"membership.go", "if !c.voter && c.current().index <= c.commitIndex {", "if false {", "member-remove-leader", "for count members.left",
		},
		"a leader goes as soon as its removal is in its log": {
			"membership.go", "if !c.voter && c.current().index <= c.commitIndex {", "if !c.voter {", "member-remove-leader", "role=leader",
		},
		"what waited is not looked at again": {
			"membership.go", "	c.advanceCommit()\n	return index", "	return index", "member-remove", "expected S1 commit=4",
		},
		"a learner does not answer": {
			"election.go", "func (c *Core) receiveRequestVote(m Message, r RequestVote) {",
			"func (c *Core) receiveRequestVote(m Message, r RequestVote) {\n	if !c.voter {\n		return\n	}", "member-learner", "waited",
		},
		"those who hear a leader listen to others": {
			"checkquorum.go", "return c.config.CheckQuorum && !body.Transfer", "return body.Transfer && false", "member-removed-server", "expected count leaders",
		},
	}
	for name, c := range some(t, cases, "before the learner has caught up", "a leader stays though it is removed") {
		found := planted.Run(t, strings.Replace(plays, "NAME", c.scenario, 1), nil, inRaft(c.file, c.is, c.instead))
		t.Logf("%s: %s", name, found)
		if !strings.Contains(found, c.finds) {
			t.Errorf("%s: %s says %s", name, c.scenario, found)
		}
	}
}

// plays is a program that prints how a scenario ends.
const plays = `package main

import (
	"fmt"

	"ticketing/sim"
)

func main() {
	s, err := sim.Load("NAME")
	if err != nil {
		panic(err)
	}
	r, err := sim.Run(s, sim.Options{})
	fmt.Println(err, r.Failure, r.Unexpected())
}
`

// The bug of 2015, with nobody who refuses: both changes are made, and there are two majorities.
func TestWithoutAnEntryOfItsOwnALeaderChangesServersThatAreChangedElsewhere(t *testing.T) {
	t.Parallel()
	s, err := Load("member-own-term")
	if err != nil {
		t.Fatal(err)
	}
	program := fmt.Sprintf(`package main

import (
	"fmt"

	"ticketing/sim"
)

func main() {
	s, err := sim.Parse("own-term.txt", %q)
	if err != nil {
		panic(err)
	}
	r, err := sim.Run(s, sim.Options{})
	fmt.Println(err, r.Failure, r.Unexpected())
}
`, strings.NewReplacer("nodes 4\n", "nodes 4\nwithout noop-wait\n",
		"expect count members.refused = 1\nexpect S2 members=S1,S2,S3,S4+S5\n", "").Replace(s.Text))
	found := planted.Run(t, program, nil, inRaft("membership.go", "if !c.ownTermCommitted() {", "if false {"))
	t.Log(found)
	if !strings.Contains(found, "majorities-overlap") {
		t.Errorf("it ends with %s", found)
	}
}

func TestAServerThatIsNotAddedYetIsSwitchedOff(t *testing.T) {
	add := Change{Do: opAdd, Node: 4}
	w := prepared(t, scenario(t, add.String()))
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Command{Crash{Node: Everyone}, Restart{Node: Everyone}} {
		if err := w.do(c); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.nodes[3]; n.alive || n.boots != 0 {
		t.Errorf("S4 is alive: %v, after %d starts", n.alive, n.boots)
	}
	if err := w.do(add); err != nil {
		t.Fatal(err)
	}
	if n := w.nodes[3]; !n.alive || n.boots != 1 {
		t.Errorf("added, S4 is alive: %v, after %d starts", n.alive, n.boots)
	}
}

func TestAServerThatIsNotAddedYetCannotBeRestarted(t *testing.T) {
	r, err := Run(scenario(t, "at 10ms restart S1\nat 1s add S4\nrestart S4\n"), Options{})
	if err == nil && r.Failure == nil {
		t.Fatal("S4 was restarted")
	}
}

// Two logs that differ in who the servers are do not match.
func TestAChainHashCoversTheServers(t *testing.T) {
	seen := map[uint64]string{}
	for _, members := range []raft.Configuration{nil, set(1), set(2), set(1, 2), set(1, 2, 3), {{ID: 1}}, {{ID: 1, Voter: true}, {ID: 2}}} {
		hash := chain(7, raft.Entry{Index: 1, Term: 1, Members: members})
		if other, twice := seen[hash]; twice {
			t.Errorf("%s and %s have one hash", membersText(members), other)
		}
		seen[hash] = membersText(members)
	}
}

func TestChangesOfTheServersAreToldInWords(t *testing.T) {
	for _, tt := range []struct{ before, after, want string }{
		{"S1,S2,S3", "S1,S2,S3+S4", "adds S4 as a learner"},
		{"S1,S2,S3+S4", "S1,S2,S3,S4", "gives S4 a vote"},
		{"S1,S2,S3", "S1,S2+S3", "makes S3 a learner"},
		{"S1,S2,S3", "S2,S3", "removes S1"},
		{"S1,S2,S3+S4", "S1,S2,S3", "removes S4"},
		{"S1,S2,S3", "S4", ""},
		{"", "S1,S2", ""},
		{"S1", "S1", ""},
	} {
		if got := changeOf(tt.before, tt.after); got != tt.want {
			t.Errorf("from %s to %s: %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
}
