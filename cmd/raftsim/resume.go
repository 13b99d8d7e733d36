package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"ticketing/sim"
)

// resultsFile is a results file that a search adds to.
type resultsFile struct {
	results
	path    string
	file    *os.File
	told    sim.Findings // what of the present search is in the file,
	counted map[string]int64
	failure error       // of writing
	stop    func()      // ends the search when there is one
	replay  replayWords // the command for a seed
}

type replayWords func(seed uint64) string

// openResults begins a results file, or goes on with one of the same search. It returns a sentence for
// a person who may not have expected that there is one.
func openResults(path string, header searchHeader) (f *resultsFile, note string, err error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("reading the results so far: %w", err)
	}
	first, err := resultLine{Search: &header}.encode()
	if err != nil {
		return nil, "", err
	}
	fresh := bytes.HasPrefix(first, data) && len(data) < len(first) // nothing, or a part of the first line
	whole := first
	if !fresh {
		whole = data
	}
	r, err := parseResults(whole)
	if err != nil {
		return nil, "", misuse("%s: %v; give another -out", path, err)
	}
	if what := header.differs(&r.header); what != "" || r.header.part() != header.part() {
		if what == "" {
			what = fmt.Sprintf("the shard, %s and not %s", r.header.part(), header.part())
		}
		return nil, "", misuse("%s has the results of another search; it differs in %s. Give another -out, or the flags of that search", path, what)
	}
	f = &resultsFile{results: *r, path: path, counted: map[string]int64{}}
	if f.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644); err != nil {
		return nil, "", fmt.Errorf("opening the results: %w", err)
	}
	if err := f.place(first, fresh); err != nil {
		f.file.Close()
		return nil, "", fmt.Errorf("writing the results: %w", err)
	}
	return f, f.note(len(data), fresh), nil
}

// place lets the next line follow the last whole one. The file is not opened for appending: should a
// scheduler start the same shard twice, both write the same bytes at the same places.
func (f *resultsFile) place(first []byte, fresh bool) error {
	end := int64(f.whole)
	if fresh {
		end = 0
	}
	if err := f.file.Truncate(end); err != nil {
		return err
	}
	if _, err := f.file.Seek(end, 0); err != nil || !fresh {
		return err
	}
	_, err := f.file.Write(first)
	return err
}

// note says what was found in the file.
func (f *resultsFile) note(size int, fresh bool) string {
	dropped := size - f.whole
	if fresh {
		dropped = size
	}
	text := ""
	switch {
	case f.done() && dropped == 0:
		return fmt.Sprintf("%s: the search is through already", f.path)
	case f.findings.Seeds > 0 || !fresh:
		text = fmt.Sprintf("%s: goes on at seed %d", f.path, f.next)
	case size > 0:
		text = f.path + ": begins anew"
	}
	if dropped > 0 {
		text += fmt.Sprintf("; dropped %d bytes of a line that was cut off", dropped)
	}
	return text
}

// tick is told of every seed, in their order. At the end of a chunk, or of the search, it writes.
func (f *resultsFile) tick(all *sim.Findings) {
	if f.failure != nil || all.Failed == nil && all.Last != f.end() {
		return
	}
	if f.failure = f.write(all); f.failure != nil {
		f.stop()
	}
}

// write adds the lines of a chunk, both of them at once if the last seed has failed.
func (f *resultsFile) write(all *sim.Findings) error {
	var lines []byte
	if all.Failed != nil {
		line, err := resultLine{Failed: failureOf(all.Failed, f.replay(all.Last))}.encode()
		if err != nil {
			return err
		}
		lines = line
	}
	counts := all.Counters()
	c := &chunkLine{
		From: f.next, To: all.Last, Counters: map[string]int64{},
		SimulatedUS: int64(all.SimTime - f.told.SimTime), Events: all.Steps - f.told.Steps,
	}
	for name, n := range counts {
		if n -= f.counted[name]; n != 0 {
			c.Counters[name] = n
		}
	}
	line, err := resultLine{Chunk: c}.encode()
	if err != nil {
		return err
	}
	if _, err := f.file.Write(append(lines, line...)); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	f.told, f.counted, f.next = *all, counts, all.Last+1
	return nil
}

func failureOf(r *sim.Result, replay string) *failureLine {
	line := &failureLine{Seed: r.Seed, Violated: []string{}, Replay: replay}
	for _, v := range r.Unexpected() {
		line.Violated = append(line.Violated, v.Invariant)
	}
	if r.Failure != nil {
		line.Failure = r.Failure.Error()
	}
	return line
}
