package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"ticketing/fsm/trace"
	"ticketing/sim"
)

// printTrace is raftsim trace.
func printTrace(_ context.Context, c *call) error {
	var l look
	var draw bool
	var export exporting
	err := c.parse("trace", "[flags] FILE…", func(f *flag.FlagSet) {
		l.define(f)
		f.BoolVar(&draw, "draw", false, "draw the picture instead of printing every event")
		export.define(f)
	})
	if err == nil {
		err = export.check()
	}
	if err != nil {
		return err
	}
	if c.flags.NArg() == 0 {
		return misuse("trace takes the files that lockd -trace or raftsim run -json have written; " +
			"flags go before them")
	}
	run, skews, err := c.readTraces(c.flags.Args())
	if err != nil {
		return err
	}
	if export.format != "" {
		return export.write(c, run)
	}
	style := l.style(c)
	if draw {
		for _, line := range sim.Diagram(run, style) {
			fmt.Fprintln(c.out, line)
		}
	} else {
		fmt.Fprint(c.out, sim.Transcript(run, style))
	}
	for _, s := range skews {
		fmt.Fprintf(c.out, "\nclocks: that of %s's machine is behind that of %s's by more than %s ms. "+
			"What was received stands behind its sending all the same.\n", s.Early, s.Late, sim.Millis(s.By))
	}
	return nil
}

// readTraces reads files and, if real nodes wrote them, makes one trace of them.
func (c *call) readTraces(names []string) (*trace.Trace, []trace.Skew, error) {
	var all []*trace.Trace
	for _, name := range names {
		t, err := readTrace(name)
		if errors.Is(err, trace.ErrCut) {
			fmt.Fprintf(c.err, "raftsim: %v; the rest is shown\n", err)
		} else if err != nil {
			return nil, nil, err
		}
		if len(t.Events) == 0 {
			return nil, nil, fmt.Errorf("%s: there is no event in it", name)
		}
		all = append(all, t)
	}
	if len(all) == 1 && !all[0].Header.Real {
		return all[0], nil, nil
	}
	return trace.Merge(all)
}

func readTrace(name string) (*trace.Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := trace.Read(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return t, err
}
