package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// WriteTo writes the trace as JSON lines: the header, then an event a line.
func (t *Trace) WriteTo(out io.Writer) (int64, error) {
	counted := &countingWriter{out: bufio.NewWriter(out)}
	enc := json.NewEncoder(counted)
	if err := enc.Encode(t.Header); err != nil {
		return counted.n, fmt.Errorf("writing the trace: %w", err)
	}
	for i := range t.Events {
		if err := enc.Encode(&t.Events[i]); err != nil {
			return counted.n, fmt.Errorf("writing the trace: %w", err)
		}
	}
	if err := counted.out.Flush(); err != nil {
		return counted.n, fmt.Errorf("writing the trace: %w", err)
	}
	return counted.n, nil
}

type countingWriter struct {
	out *bufio.Writer
	n   int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.out.Write(b)
	c.n += int64(n)
	return n, err
}

// ErrCut says that a file ends in the middle of a line, as that of a killed process does. Read
// returns all that is whole together with it.
var ErrCut = errors.New("the last line is cut off, as when the process was killed")

// Read reads what WriteTo or a Recorder wrote.
func Read(in io.Reader) (*Trace, error) {
	lines := bufio.NewReader(in)
	first, err := lines.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	t := &Trace{}
	if t.Header, err = readHeader(first); err != nil {
		return nil, err
	}
	for {
		line, failed := lines.ReadBytes('\n')
		if failed != nil && !errors.Is(failed, io.EOF) {
			return nil, fmt.Errorf("reading the trace: %w", failed)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			var e Event
			err := json.Unmarshal(line, &e)
			if err != nil && failed != nil && !json.Valid(line) { // only the last may lack its end
				return t, fmt.Errorf("after event %d: %w", len(t.Events), ErrCut)
			}
			if err != nil {
				return nil, fmt.Errorf("reading line %d of the trace: %w", len(t.Events)+2, err)
			}
			t.Events = append(t.Events, e)
		}
		if failed != nil {
			return t, nil
		}
	}
}

func readHeader(line []byte) (Header, error) {
	var h Header
	if len(bytes.TrimSpace(line)) == 0 {
		return h, errors.New("there is no trace in it: it does not begin with a header")
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, fmt.Errorf("this is no trace: its first line is no header: %w", err)
	}
	if h.Schema != schema || h.Version != Version {
		return h, fmt.Errorf("this is schema %q version %d; this program reads %s version %d",
			h.Schema, h.Version, schema, Version)
	}
	return h, nil
}

// NewHeader is a header with what every trace has.
func NewHeader() Header {
	return Header{
		Schema: schema, Version: Version, Without: []string{}, Nodes: []string{}, Clients: []string{},
	}
}
