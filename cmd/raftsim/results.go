package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"ticketing/fsm/trace"
	"ticketing/sim"
)

// This file is the format of a search's results: JSON lines. The first says what is searched, then comes
// a line for every chunk of seeds that is through, and at most one for a seed that failed, which ends it.
// A chunk's bounds depend on the search alone, so a file that was begun, cut off and gone on with has the
// same bytes as one that was written in one go.

const (
	resultsFormat  = "raftsim search"
	resultsVersion = 1
	chunkSize      = 100 // seeds: what a cut costs at most
)

// searchHeader is what is searched, and by what.
type searchHeader struct {
	Format  string   `json:"format"`
	Version int      `json:"version"`
	From    uint64   `json:"from"` // of the whole search,
	To      uint64   `json:"to"`
	Shard   uint64   `json:"shard"` // of which this is one part
	Shards  uint64   `json:"shards"`
	Faults  string   `json:"faults"`
	Nodes   int      `json:"nodes"`
	Without []string `json:"without"`
	Chunk   uint64   `json:"chunk"`
	Plans   string   `json:"plans"` // a hash of what the seeds mean, and of what is counted and watched
}

// chunkLine is what some seeds, one after another, came to.
type chunkLine struct {
	From        uint64           `json:"from"`
	To          uint64           `json:"to"`
	SimulatedUS int64            `json:"simulated_us"`
	Events      int64            `json:"events"`
	Counters    map[string]int64 `json:"counters"` // those that are not 0
}

// failureLine is a seed that failed.
type failureLine struct {
	Seed     uint64   `json:"seed"`
	Violated []string `json:"violated"`
	Failure  string   `json:"failure,omitempty"`
	Replay   string   `json:"replay"`
}

// resultLine is any line: one of the fields is there.
type resultLine struct {
	Search *searchHeader `json:"search,omitempty"`
	Chunk  *chunkLine    `json:"chunk,omitempty"`
	Failed *failureLine  `json:"failed,omitempty"`
}

func (l resultLine) encode() ([]byte, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("writing a line of results: %w", err)
	}
	return append(data, '\n'), nil
}

// headerOf describes a search of which this is a shard.
func headerOf(search sim.Search, from, to uint64, part shard) (searchHeader, error) {
	sum := fnv.New64a()
	for _, seed := range []uint64{from, to} {
		plan, err := sim.Plan(seed, search.Faults, search.Nodes)
		if err != nil {
			return searchHeader{}, err
		}
		fmt.Fprintln(sum, plan.String())
	}
	fmt.Fprintln(sum, sim.CounterNames(), sim.InvariantNames())
	without := append([]string{}, search.Without...)
	slices.Sort(without)
	return searchHeader{
		Format: resultsFormat, Version: resultsVersion, From: from, To: to, Shard: part.i, Shards: part.n,
		Faults: search.Faults, Nodes: search.Nodes, Without: slices.Compact(without), Chunk: chunkSize,
		Plans: fmt.Sprintf("%016x", sum.Sum64()),
	}, nil
}

func (h *searchHeader) part() shard { return shard{h.Shard, h.Shards} }

// command makes the search, or this part of it, with its results in a file.
func (h *searchHeader) command(part shard, file string) string {
	words := fmt.Sprintf("raftsim explore -seeds %d-%d -faults %s", h.From, h.To, h.Faults)
	if h.Nodes != 0 {
		words += fmt.Sprintf(" -nodes %d", h.Nodes)
	}
	if len(h.Without) > 0 {
		words += " -without " + strings.Join(h.Without, ",")
	}
	if part.n > 1 {
		words += " -shard " + part.String()
	}
	return words + " -out " + quoted(file)
}

// differs says in what another search is not this one, or "". Which shard it is does not matter.
func (h *searchHeader) differs(other *searchHeader) string {
	for _, field := range []struct {
		name        string
		mine, yours any
	}{
		{"seeds", fmt.Sprintf("%d-%d", h.From, h.To), fmt.Sprintf("%d-%d", other.From, other.To)},
		{"number of shards", h.Shards, other.Shards},
		{"faults", h.Faults, other.Faults},
		{"number of servers (-nodes)", h.Nodes, other.Nodes},
		{"rules taken away (-without)", fmt.Sprint(h.Without), fmt.Sprint(other.Without)},
		{"number of seeds in a line", h.Chunk, other.Chunk},
	} {
		if field.mine != field.yours {
			return fmt.Sprintf("the %s, %v and not %v", field.name, field.yours, field.mine)
		}
	}
	if h.Plans != other.Plans {
		return "the version of raftsim, whose plans, counters or invariants are others"
	}
	return ""
}

// results is what a results file says.
type results struct {
	header   searchHeader
	first    uint64 // the shard's seeds
	last     uint64
	findings sim.Findings // of the seeds before next
	next     uint64       // the first seed that is not in it; 0 behind the last one of all
	ending   *failureLine // what ends the chunk that follows
	failed   *failureLine // what has ended the search
	whole    int          // how many bytes count: behind them is what a cut has left of a chunk
}

// done reports whether there is nothing more to search.
func (r *results) done() bool { return r.failed != nil || r.next == 0 || r.next > r.last }

// parseResults reads a results file. What a cut has left at its end does not count; a mistake before
// that does not come from a cut, and is refused.
func parseResults(data []byte) (*results, error) {
	var r *results
	for at, n := 0, 1; ; n++ {
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			break
		}
		line, err := decodeLine(data[at : at+end])
		at += end + 1
		switch {
		case err != nil:
		case r == nil:
			r, err = begun(line.Search)
		default:
			err = r.take(line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if r.ending == nil {
			r.whole = at
		}
	}
	if r == nil {
		return nil, errors.New("it has no whole line")
	}
	return r, nil
}

func decodeLine(data []byte) (*resultLine, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var line resultLine
	if err := dec.Decode(&line); err != nil {
		return nil, fmt.Errorf("it is not a line of a search's results: %w", err)
	}
	return &line, nil
}

// begun takes a first line.
func begun(h *searchHeader) (*results, error) {
	switch {
	case h == nil || h.Format != resultsFormat:
		return nil, errors.New("it does not begin like the results of a search; 'raftsim explore -out' writes them")
	case h.Version != resultsVersion:
		return nil, fmt.Errorf("it is in version %d of the format, and this raftsim reads version %d; search again",
			h.Version, resultsVersion)
	case h.Shard < 1 || h.Shard > h.Shards || h.From < 1 || h.To < h.From || h.Chunk < 1:
		return nil, fmt.Errorf("there is no shard %s of the seeds %d-%d", h.part(), h.From, h.To)
	}
	first, last, err := h.part().of(h.From, h.To)
	if err != nil {
		return nil, err
	}
	return &results{header: *h, first: first, last: last, next: first, findings: sim.Findings{First: first}}, nil
}

// take adds a line that is not the first.
func (r *results) take(line *resultLine) error {
	switch {
	case line.Search != nil || (line.Failed == nil) == (line.Chunk == nil):
		return errors.New("it is neither a chunk of seeds nor a seed that failed")
	case r.done():
		return errors.New("the search had come to its end, and here it goes on")
	case line.Chunk != nil:
		return r.takeChunk(line.Chunk)
	case r.ending != nil || line.Failed.Seed < r.next || line.Failed.Seed > r.end():
		return fmt.Errorf("seed %d failed out of its turn: the next seeds are %d-%d", line.Failed.Seed, r.next, r.end())
	}
	r.ending = line.Failed
	return nil
}

func (r *results) takeChunk(c *chunkLine) error {
	end := r.end()
	if r.ending != nil {
		end = r.ending.Seed
	}
	if c.From != r.next || c.To != end {
		return fmt.Errorf("it has the seeds %d-%d where %d-%d are next", c.From, c.To, r.next, end)
	}
	part := sim.Findings{
		Seeds: int64(c.To - c.From + 1), Last: c.To, SimTime: trace.Time(c.SimulatedUS), Steps: c.Events,
	}
	r.next, r.failed, r.ending = c.To+1, r.ending, nil
	return r.findings.Include(part, c.Counters)
}

// end is the last seed of the chunk in which the next one is.
func (r *results) end() uint64 {
	return r.next + min(r.header.Chunk-1-(r.next-r.first)%r.header.Chunk, r.last-r.next)
}
