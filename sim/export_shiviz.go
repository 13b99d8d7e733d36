package sim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"

	"ticketing/fsm/trace"
)

// ShiVizExpression is the regular expression by which ShiViz reads what is exported for it: the one
// that it offers by itself.
const ShiVizExpression = `(?<event>.*)\n(?<host>\S*) (?<clock>{.*})`

// writeShiViz writes two lines for each step: what it was; where, with its vector clock. A clock
// counts its own host's steps from 1, and has of every other host the last step of which this one
// can know.
func writeShiViz(t *trace.Trace, to io.Writer) error {
	out := bufio.NewWriter(to)
	steps, _ := stepsOf(t)
	clocks := make([]map[string]int, len(steps))
	last := map[string]map[string]int{}
	for i := range steps {
		s := &steps[i]
		clock := maps.Clone(last[s.host])
		if clock == nil {
			clock = map[string]int{}
		}
		if s.from >= 0 {
			for host, n := range clocks[s.from] {
				clock[host] = max(clock[host], n)
			}
		}
		clock[s.host]++
		clocks[i], last[s.host] = clock, clock
		text, err := json.Marshal(clock) // sorts the hosts
		if err != nil {
			return fmt.Errorf("writing a clock: %w", err)
		}
		fmt.Fprintf(out, "%s %s\n%s %s\n", s.first().At, s.words(), s.host, text)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing for ShiViz: %w", err)
	}
	return nil
}
