package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"ticketing/fsm/trace"
	"ticketing/sim"
)

// exporting says for which other program a trace is written, and where.
type exporting struct{ format, file string }

func (x *exporting) define(f *flag.FlagSet) {
	f.StringVar(&x.format, "export", "", "write the trace as `FORMAT`: "+strings.Join(sim.ExportFormats(), ", "))
	f.StringVar(&x.file, "o", "", "write what is exported to `FILE` instead of standard output")
}

func (x *exporting) check() error {
	known := sim.ExportFormats()
	switch {
	case x.format == "" && x.file != "":
		return misuse("-o is where -export writes: say in which format, one of %s", strings.Join(known, " "))
	case x.format != "" && !slices.Contains(known, x.format):
		return misuse("-export %q%s; expected one of %s", x.format, sim.Nearest(x.format, known), strings.Join(known, " "))
	}
	return nil
}

// write exports a trace.
func (x *exporting) write(c *call, t *trace.Trace) error {
	if x.file == "" {
		return sim.Export(t, x.format, c.out)
	}
	f, err := os.Create(x.file)
	if err != nil {
		return fmt.Errorf("exporting: %w; give -o a file in a directory that is there", err)
	}
	if err := sim.Export(t, x.format, f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("exporting: %w", err)
	}
	return nil
}
