package sim

import (
	"fmt"
	"strings"
	"testing"

	"ticketing/internal/planted"

	"github.com/google/go-cmp/cmp"
)

// judges is a program that prints how the scenarios named late-expire… and 1,000 random runs end.
// It is the test's own verdict, below, from outside, so that it can be built over another table.
const judges = `package main

import (
	"fmt"
	"strings"

	"ticketing/sim"
)

func main() {
	for _, s := range sim.Library() {
		if strings.HasPrefix(s.Name, "late-expire") {
			fmt.Println(verdict(sim.Run(s, sim.Options{})))
		}
	}
	for seed := uint64(1); seed <= 1000; seed++ {
		fmt.Println(verdict(sim.Search{Faults: "harsh"}.Run(seed, sim.Options{})))
	}
}

func verdict(r *sim.Result, err error) string {
	if err != nil {
		panic(err)
	}
	for _, v := range r.Violations {
		return fmt.Sprint(r.Scenario.Name, ": ", v.Invariant, " on ", v.Node, " at ", v.At)
	}
	return fmt.Sprint(r.Scenario.Name, ": held ", r.Held())
}
`

func verdict(t *testing.T, r *Result, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		return fmt.Sprint(r.Scenario.Name, ": ", v.Invariant, " on ", v.Node, " at ", v.At)
	}
	return fmt.Sprint(r.Scenario.Name, ": held ", r.Held())
}

// The story ends by asking its readers to delete the comparison in Table.Apply and to run again.
// They see what -without expire-token shows: the same violation at the same moment.
//
//spec:test Expire.Token
func TestATableWithoutTheComparisonEndsAsARunWithoutTheRuleDoes(t *testing.T) {
	t.Parallel()
	without := []string{"expire-token"}
	var want []string
	for _, s := range Library() {
		if !strings.HasPrefix(s.Name, "late-expire") {
			continue
		}
		r, err := Run(s, Options{Without: without})
		want = append(want, verdict(t, r, err))
		if !strings.Contains(want[len(want)-1], "removal-meant") {
			t.Errorf("without %s, %s", without, want[len(want)-1])
		}
	}
	broken := 0
	for seed := uint64(1); seed <= 1000; seed++ {
		r, err := Search{Faults: "harsh", Without: without}.Run(seed, Options{})
		want = append(want, verdict(t, r, err))
		broken += len(r.Violations)
	}
	if len(want) < 103 || broken < 10 {
		t.Errorf("%d verdicts, %d seeds broken: too few to compare", len(want), broken)
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(judged(t)), "\n")); diff != "" {
		t.Errorf("(-without the rule +without the comparison):\n%s", diff)
	}
}

// judged builds judges over a table without the comparison, and runs it.
func judged(t *testing.T) string {
	t.Helper()
	const guard = "\t\texisted = existed && tenure.Token == e.Token\n"
	return planted.Run(t, judges, nil, planted.Mistake{File: "fsm/table.go", Is: guard})
}
