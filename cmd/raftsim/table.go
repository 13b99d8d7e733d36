package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"ticketing/sim"
)

// table is raftsim table. It has nothing to say when it is interrupted.
func table(_ context.Context, c *call) error {
	var l look
	var asJSON bool
	var dir string
	var jobs int
	err := c.parse("table", "[flags]", func(f *flag.FlagSet) {
		l.define(f)
		f.StringVar(&dir, "write", "", "write every counterexample into `DIR`, as a scenario that run takes")
		f.BoolVar(&asJSON, "json", false, "print the verdicts as one JSON array")
		f.IntVar(&jobs, "j", 0, "how many searches at a time; 0 is one a core. The table does not depend on it")
	})
	if err != nil {
		return err
	}
	if c.flags.NArg() != 0 || jobs < 0 {
		return misuse("table takes flags only, and -j from 0 up; 'raftsim table -h' lists them")
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(100) // these searches keep what they allocate
	}
	if isTerminal(c) {
		fmt.Fprintln(c.err, "searching 64 combinations of defences, for half a minute or more …")
	}
	verdicts, err := sim.DefenceTable(context.Background(), jobs)
	if err != nil {
		return err
	}
	c.broken = guardsFail(verdicts)
	if dir != "" {
		if err := writeScenarios(dir, verdicts); err != nil {
			return err
		}
	}
	if asJSON {
		return printVerdicts(c, verdicts)
	}
	return c.printTable(verdicts, l.style(c), dir)
}

// printTable prints the table and the ways, and draws the most telling ones.
func (c *call) printTable(verdicts []sim.Verdict, style sim.Style, dir string) error {
	text := sim.DefenceText(verdicts) + "\n" + sim.DefenceScope() +
		"\nThe shortest ways to what is broken:\n" + sim.DefenceWays(verdicts)
	fmt.Fprint(c.out, text)
	for i := range verdicts {
		v := &verdicts[i]
		if v.Broken == "" || !telling(v) {
			continue
		}
		name, text, err := v.Scenario()
		if err != nil {
			return err
		}
		r, err := replayed(name, text)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "\n%s\n", style.Clean(r.Scenario.Title))
		for _, line := range sim.Diagram(r.Trace, style) {
			fmt.Fprintln(c.out, line)
		}
		c.broken = c.broken || !r.Held()
	}
	if dir == "" {
		fmt.Fprintln(c.out, "\n'raftsim table -write DIR' writes all of them as scenarios for 'raftsim run FILE'.")
		return nil
	}
	fmt.Fprintf(c.out, "\nAll of them are scenarios in %s now, for 'raftsim run FILE'.\n", style.Clean(dir))
	return nil
}

// guardsFail reports whether something breaks though the table's own guards are on: both tokens, and
// requests that are carried out once. All else may be off or on.
func guardsFail(verdicts []sim.Verdict) bool {
	for _, v := range verdicts {
		if v.Broken != "" && v.ExpireToken && v.ReleaseToken && v.RequestIDs {
			return true
		}
	}
	return false
}

// telling reports whether a counterexample is drawn: those in which one thing only is off.
func telling(v *sim.Verdict) bool {
	off := 0
	for _, on := range v.On() {
		if !on {
			off++
		}
	}
	return off == 1
}

// replayed runs a counterexample in the simulator.
func replayed(name, text string) (*sim.Result, error) {
	scenario, err := sim.Parse(name+".txt", text)
	if err != nil {
		return nil, fmt.Errorf("a counterexample is no scenario: %w", err)
	}
	return sim.Run(scenario, sim.Options{Record: true})
}

func writeScenarios(dir string, verdicts []sim.Verdict) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("writing the scenarios: %w", err)
	}
	for i := range verdicts {
		if verdicts[i].Broken == "" {
			continue
		}
		name, text, err := verdicts[i].Scenario()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text), 0o666); err != nil {
			return fmt.Errorf("writing the scenarios: %w", err)
		}
	}
	return nil
}

func printVerdicts(c *call, verdicts []sim.Verdict) error {
	type row struct {
		Defences map[string]bool `json:"defences"`
		Safe     bool            `json:"safe"`
		States   int             `json:"states"`
		Depth    int             `json:"depth"`
		Broken   string          `json:"broken,omitempty"`
		Steps    []string        `json:"steps,omitempty"`
		Scenario string          `json:"scenario,omitempty"`
	}
	var rows []row
	for i := range verdicts {
		v := &verdicts[i]
		r := row{map[string]bool{}, v.Broken == "", v.States, v.Depth, v.Broken, v.Steps, ""}
		for column, on := range v.On() {
			r.Defences[sim.DefenceNames()[column]] = on
		}
		if v.Broken != "" {
			r.Scenario = v.Name() + ".txt"
		}
		rows = append(rows, r)
	}
	return c.printAsJSON(rows)
}
