package main

import (
	"bytes"
	"strings"
	"testing"

	"ticketing/sim"
)

func TestExploreRunsSeedsTwiceWhenToldTo(t *testing.T) {
	for _, c := range []struct {
		flag, says string
		code       int
	}{
		{"-check-determinism", "        6 seeds, and each had the same trace again", exitHeld},
		{"-check-determinism=5", "        2 seeds, and each had the same trace again", exitHeld},
		{"-check-determinism=0", "expected a number from 1 up", exitUsage},
		{"-check-determinism=half", "expected a number from 1 up", exitUsage},
		{"-out=" + t.TempDir() + "/x -check-determinism", "give -check-determinism without -out", exitUsage},
	} {
		code, out, errs := try(append([]string{"explore", "-seeds", "5-10", "-faults", "mild"}, strings.Fields(c.flag)...)...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("%s: exit %d\n%s%s", c.flag, code, out, errs)
		}
	}
	if _, out, _ := try("explore", "-seeds", "5-10", "-faults", "mild"); strings.Contains(out, "Run twice") {
		t.Errorf("nobody asked for it:\n%s", out)
	}
}

func TestADivergenceIsPrintedEventByEvent(t *testing.T) {
	d := &sim.Divergence{
		Seed: 7, Hashes: [2]string{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"}, Event: 9,
		Common: []string{"{7}", "{8}"}, Lines: [2]string{"{nine}", ""},
	}
	var out bytes.Buffer
	c := &call{out: &out}
	c.printTwice(&searchFlags{faults: "harsh", nodes: 3}, &sim.Findings{Diverged: d})
	const want = `DIVERGED  two runs of seed 7 are the same up to event 8:
       7  {7}
       8  {8}
     one  {nine}
   other  (its trace has ended)
traces aaaaaaaaaaaa… and bbbbbbbbbbbb…; again: raftsim explore -check-determinism -seeds 7-7 -faults harsh -nodes 3
`
	if out.String() != want {
		t.Errorf("%s", &out)
	}
	d.Lines = [2]string{}
	out.Reset()
	c.printTwice(&searchFlags{}, &sim.Findings{Diverged: d})
	if !strings.Contains(out.String(), "the traces are the same to the end") {
		t.Errorf("%s", &out)
	}
}
