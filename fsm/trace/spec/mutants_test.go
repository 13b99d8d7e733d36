package spec_test

import (
	"strings"
	"testing"

	"ticketing/internal/planted"
)

// hunter is a program that prints the first refusal in 200 runs.
const hunter = `package main

import (
	"fmt"

	"ticketing/fsm/trace/spec"
	"ticketing/sim"
)

func main() {
	for seed := uint64(1); seed <= 200; seed++ {
		r, err := sim.Search{Faults: "harsh"}.Run(seed, sim.Options{Record: true, KeepGoing: true})
		if err != nil {
			panic(err)
		}
		if _, err := spec.Check(r.Trace); err != nil {
			fmt.Printf("seed %d: %v\n", seed, err)
			return
		}
	}
}
`

// Raft with a mistake in it is refused, by the guard that the mistake is about.
func TestMistakesInFigure2AreRefused(t *testing.T) {
	for _, m := range []struct{ name, file, is, instead, want string }{
		{"entries of earlier terms are committed by counting", "replication.go",
			"n > c.commitIndex && t == c.currentTerm", "n > c.commitIndex && t > 0", "AdvanceCommitIndex"},
		{"an acknowledgement does not wait for the disk", "replication.go",
			"len(a.Entries) == 0, c.hold\n", "len(a.Entries) == 0, c.holdForTerm\n", "its disk has not all"},
		{"a vote for a log that is behind", "election.go",
			"\treturn c.upToDate(r.LastLogIndex, r.LastLogTerm)\n}\n\n// upToDate", "\treturn true\n}\n\n// upToDate", "vote"},
		{"two votes in a term", "election.go",
			"if c.votedFor != 0 && c.votedFor != m.From {", "if c.votedFor == m.From && m.From == 0 {", "vote"},
		{"a leader by less than a majority", "election.go", "return ahead > 0", "return ahead > -2", "BecomeLeader"},
		{"a vote of an earlier campaign is counted", "election.go",
			"c.role != Candidate || r.RequestTerm != c.currentTerm", "c.role != Candidate", "BecomeLeader"},
		{"commitIndex beyond what the message verified", "replication.go",
			"min(a.LeaderCommit, verified)", "min(a.LeaderCommit, c.log.lastIndex())", "commitIndex"},
		{"what was sent counts as what was acknowledged", "replication.go",
			"max(p.matchIndex, r.MatchIndex)", "max(p.matchIndex, p.nextIndex-1)", "AdvanceCommitIndex"},
		{"a candidate that hears the leader goes on", "replication.go",
			"\tif c.role != Follower {\n\t\tc.becomeFollower", "\tif c.role == Leader {\n\t\tc.becomeFollower", "candidate"},
		{"a commitIndex that is not the leader's", "replication.go",
			"LeaderCommit: c.commitIndex,", "LeaderCommit: c.log.lastIndex(),", "AppendEntries"},
	} {
		t.Run(m.name, func(t *testing.T) {
			if !long() && m.want != "AdvanceCommitIndex" && m.want != "its disk has not all" {
				t.Skip("set TICKETING_LONG=1 to plant all of them")
			}
			out := planted.Run(t, hunter, nil, planted.Mistake{File: "raft/" + m.file, Is: m.is, Instead: m.instead})
			if !strings.Contains(out, m.want) {
				t.Errorf("%q, want it refused for %q", out, m.want)
			}
			t.Log(out)
		})
	}
}
