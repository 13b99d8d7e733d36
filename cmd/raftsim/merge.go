package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"ticketing/sim"
)

// mergeResults adds up what the shards of one search came to.
func mergeResults(_ context.Context, c *call) error {
	var asJSON, all bool
	err := c.parse("merge", "[flags] FILE…", func(f *flag.FlagSet) {
		f.BoolVar(&asJSON, "json", false, "print the findings as one JSON object")
		f.BoolVar(&all, "require-all", false, "fail if something that a search should see has not happened")
	})
	if err != nil {
		return err
	}
	shards, err := readShards(c.flags.Args())
	if err != nil {
		return err
	}
	sum := &sim.Findings{First: shards[0].header.From}
	var failed []*failureLine
	for _, s := range shards {
		if err := sum.Include(s.findings, s.findings.Counters()); err != nil {
			return err
		}
		if s.failed != nil {
			failed = append(failed, s.failed)
		}
	}
	c.broken = len(failed) > 0 || all && len(sum.Unseen()) > 0
	if asJSON {
		return c.printMergedJSON(&shards[0].header, sum, failed)
	}
	c.printMerged(&shards[0].header, sum, failed, all)
	return nil
}

// shardFile is a results file among others.
type shardFile struct {
	results
	path string
}

// readShards reads files that are the shards of one search, all of them, each through and there once.
// They are returned in the order of their seeds.
func readShards(paths []string) ([]*shardFile, error) {
	if len(paths) == 0 {
		return nil, misuse("merge: which files? Those that 'raftsim explore -shard I/N -out FILE' has written")
	}
	byNumber := map[uint64]*shardFile{}
	var first *shardFile
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading results: %w", err)
		}
		r, err := parseResults(data)
		if err != nil {
			return nil, misuse("%s: %v", path, err)
		}
		s := &shardFile{*r, path}
		if first == nil {
			first = s
		}
		if what := first.header.differs(&s.header); what != "" {
			return nil, misuse("%s and %s are not of one search; the second differs from the first in %s", first.path, path, what)
		}
		if twin := byNumber[s.header.Shard]; twin != nil {
			return nil, misuse("%s and %s overlap: both have shard %s, the seeds %d-%d. Leave one out",
				twin.path, path, s.header.part(), s.first, s.last)
		}
		byNumber[s.header.Shard] = s
	}
	return inOrder(first, byNumber)
}

// inOrder looks whether all are there and through.
func inOrder(first *shardFile, byNumber map[uint64]*shardFile) ([]*shardFile, error) {
	var shards []*shardFile
	for i := uint64(1); i <= first.header.Shards; i++ {
		s := byNumber[i]
		if s == nil {
			part := shard{i, first.header.Shards}
			from, to, err := part.of(first.header.From, first.header.To)
			if err != nil {
				return nil, err
			}
			return nil, misuse("shard %s, the seeds %d-%d, is missing (%d of %d are here); make it with:\n  %s",
				part, from, to, len(byNumber), part.n, first.header.command(part, fmt.Sprintf("shard-%d.jsonl", i)))
		}
		if !s.done() {
			return nil, misuse("%s is not through: it ends before seed %d of %d-%d; go on with:\n  %s",
				s.path, s.next, s.first, s.last, s.header.command(s.header.part(), s.path))
		}
		shards = append(shards, s)
	}
	return shards, nil
}

func (c *call) printMerged(h *searchHeader, sum *sim.Findings, failed []*failureLine, all bool) {
	fmt.Fprintf(c.out, "seeds %d-%d, faults %s, %d shards: %d runs, %.1f cluster-hours simulated, %d events\n",
		h.From, h.To, h.Faults, h.Shards, sum.Seeds, float64(sum.SimTime)/3.6e9, sum.Steps)
	c.printCounts(sum)
	if len(failed) == 0 {
		c.printUnseen(sum)
		c.printHeld(sum, all)
		return
	}
	for _, f := range failed {
		what := f.Failure
		for _, name := range f.Violated {
			what = name + ": " + sentenceOf(name)
		}
		fmt.Fprintf(c.out, "BROKEN  seed %d: %s\n  again: %s\n", f.Seed, what, f.Replay)
	}
}

// sentenceOf is what an invariant says.
func sentenceOf(name string) string {
	for _, i := range sim.Invariants() {
		if i.Name == name {
			return i.Sentence
		}
	}
	return "an invariant that this raftsim does not have"
}

func (c *call) printMergedJSON(h *searchHeader, sum *sim.Findings, failed []*failureLine) error {
	return c.printAsJSON(map[string]any{
		"seeds": sum.Seeds, "first": h.From, "last": h.To, "faults": h.Faults, "nodes": h.Nodes,
		"without": h.Without, "shards": h.Shards, "simulated_us": int64(sum.SimTime), "events": sum.Steps,
		"counters": sum.Counters(), "unseen": names(sum.Unseen()), "held": len(failed) == 0,
		"failures": append([]*failureLine{}, failed...),
	})
}
