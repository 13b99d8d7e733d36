package agree

import (
	"strings"
	"testing"

	"ticketing/internal/planted"
)

func TestTwoJudgesAgreeOnEveryHistory(t *testing.T) {
	c := Ask(1, 10_000, None)
	t.Logf("%+v", c)
	if c.Differ != 0 || c.GaveUp != 0 {
		t.Errorf("they differ on %d histories, the first has seed %d; %d given up", c.Differ, c.First, c.GaveUp)
	}
	if c.Good < 5_000 || c.Bad < 1_500 || c.Unknown < 10_000 || c.Seen < 1_000 || c.Refused < 5_000 {
		t.Errorf("too little to judge: %+v", c)
	}
}

func TestAMistakeInTheModelShows(t *testing.T) {
	for _, mistake := range []Mistake{LeasesEarly, AnyMayRelease, NobodyLeaves} {
		if c := Ask(1, 1000, mistake); c.Differ == 0 {
			t.Errorf("the judges agree, though %s", mistake)
		}
	}
}

// asks is a program that prints on how many histories the judges differ.
const asks = `package main

import (
	"fmt"

	"ticketing/cmd/linearize/agree"
)

func main() {
	c := agree.Ask(1, 5000, agree.None)
	fmt.Println("differ", c.Differ > 0)
}
`

// The other judge is built with a mistake: the end of a lease, a reader, the search's short cuts.
func TestAMistakeInTheSearchShows(t *testing.T) {
	const model, search = "../../sim/linear/model.go", "../../sim/linear/search.go"
	for _, m := range []planted.Mistake{
		{File: model, Is: "s.until = s.begun + o.Lease", Instead: "s.until = s.begun"},
		{File: model, Is: " && s.owner == o.Owner"},
		{File: model, Is: "return s.token == o.Token", Instead: "return true"},
		{File: model, Is: "s.begun = max(s.begun, o.Call)", Instead: "s.begun = max(s.since, o.Call)"},
		{File: search, Is: "if !s.seesOther(o) {", Instead: "if true {"},
	} {
		if out := planted.Run(t, asks, nil, m); !strings.HasPrefix(out, "differ true") {
			t.Errorf("with %q in place of %q: %s", m.Instead, m.Is, out)
		}
	}
}
