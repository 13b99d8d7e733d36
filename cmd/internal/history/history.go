// Package history takes down what clients saw of a lock service: which request they sent, when, and
// what came of it, in an order that needs no trust in any server. Whoever checks a service from
// outside has nothing else to go by.
//
// A history is right only if all its times are of one clock. Calls are rounded down and returns are
// rounded up, to whole microseconds, so that rounding never puts one operation before another.
package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"ticketing/fsm"
)

// Kind is what was asked for.
type Kind string

// The kinds.
const (
	Acquire Kind = "acquire"
	Release Kind = "release"
)

// Outcome is what the client knows of it.
type Outcome string

// The outcomes. A request of which the client knows that nothing was done is no operation.
const (
	OK      Outcome = "ok"
	Held    Outcome = "held"     // of an Acquire that does not wait: somebody has it
	NotHeld Outcome = "not-held" // of a Release: that tenure is over
	Unknown Outcome = "unknown"  // it may have been carried out, or may yet be
)

// Operation is one request and what came of it.
type Operation struct {
	Client  string    `json:"client"`
	Kind    Kind      `json:"kind"`
	Key     string    `json:"key"`
	Token   fsm.Token `json:"token,omitempty,string"` // of a Release, and of an Acquire that is OK
	Lease   int64     `json:"lease,omitempty"`        // of an Acquire, in µs
	Call    int64     `json:"call"`                   // in µs
	Return  int64     `json:"return"`                 // in µs; means nothing if Unknown
	Outcome Outcome   `json:"outcome"`
}

// Granted reports whether the operation is a lock that a client was told it has.
func (o Operation) Granted() bool { return o.Kind == Acquire && o.Outcome == OK }

func (o Operation) check() error {
	granted := o.Granted()
	legal := map[Kind][]Outcome{
		Acquire: {OK, Held, Unknown},
		Release: {OK, NotHeld, Unknown},
	}
	switch {
	case !slices.Contains(legal[o.Kind], o.Outcome):
		return fmt.Errorf("there is no %q with outcome %q", o.Kind, o.Outcome)
	case o.Key == "" || o.Client == "":
		return errors.New("key and client must be given")
	case (granted || o.Kind == Release) != (o.Token != 0):
		return errors.New("a Release and a lock that was granted have a token, and no others")
	case (o.Kind == Acquire) != (o.Lease > 0):
		return errors.New("an Acquire has a lease, and no other has")
	case o.Call < 0 || o.Outcome != Unknown && o.Return < o.Call:
		return fmt.Errorf("it is called at %d and returns at %d", o.Call, o.Return)
	}
	return nil
}

// Write writes a history as JSON, an operation a line.
func Write(w io.Writer, operations []Operation) error {
	lines := json.NewEncoder(w)
	for _, o := range operations {
		if err := lines.Encode(o); err != nil {
			return fmt.Errorf("writing a history: %w", err)
		}
	}
	return nil
}

// Read reads what Write has written, or another program. It refuses what cannot be a history.
func Read(r io.Reader) ([]Operation, error) {
	var operations []Operation
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		var o Operation
		strict := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		strict.DisallowUnknownFields()
		err := strict.Decode(&o)
		if err == nil {
			err = o.check()
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the history: %w", number, err)
		}
		operations = append(operations, o)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading a history: %w", err)
	}
	return operations, nil
}

// CheckTokens returns an error unless all tokens differ, over all keys, and a lock that was asked
// for after another had been granted has the greater one. No model of single keys sees that, as
// keys share one counter.
func CheckTokens(operations []Operation) error {
	var granted []Operation
	for _, o := range operations {
		if o.Granted() {
			granted = append(granted, o)
		}
	}
	owners := map[fsm.Token]Operation{}
	for _, o := range granted {
		if other, repeated := owners[o.Token]; repeated {
			return fmt.Errorf("one token for two locks:\n%+v\n%+v", other, o)
		}
		owners[o.Token] = o
	}
	byReturn := slices.Clone(granted)
	slices.SortFunc(byReturn, func(a, b Operation) int { return cmp.Compare(a.Return, b.Return) })
	slices.SortFunc(granted, func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) })
	var greatest Operation // of those that had returned before the one at hand was called
	next := 0
	for _, o := range granted {
		for ; next < len(byReturn) && byReturn[next].Return < o.Call; next++ {
			if byReturn[next].Token > greatest.Token {
				greatest = byReturn[next]
			}
		}
		if o.Token < greatest.Token {
			return fmt.Errorf("the token goes back, from\n%+v\nto\n%+v", greatest, o)
		}
	}
	return nil
}
